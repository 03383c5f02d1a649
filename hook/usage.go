package hook

import (
	"context"
	"log/slog"
)

// UsageLogger logs what a run took so far, each time its model stops: "generation complete" at level info, with the attributes agent, session_id, run_id, user_id, model, stop,
// input_tokens, output_tokens, cache_read_tokens, cache_write_tokens and reasoning_tokens. nil is slog.Default().
func UsageLogger(to *slog.Logger) Middleware {
	return Middleware{Name: "usage", PostGeneration: func(ctx context.Context, g *Generation) error {
		log := to
		if log == nil {
			log = slog.Default()
		}
		attrs := []any{"agent", g.Agent, "session_id", g.Session, "run_id", g.Run, "user_id", g.User}
		if r := g.Response; r != nil {
			attrs = append(attrs, "model", r.Model, "stop", string(r.Stop))
		}
		u := g.Usage
		log.InfoContext(ctx, "generation complete", append(attrs, "input_tokens", u.Input, "output_tokens", u.Output,
			"cache_read_tokens", u.CacheRead, "cache_write_tokens", u.CacheWrite, "reasoning_tokens", u.Reasoning)...)
		return nil
	}}
}

package loop_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/tool"
)

// With every option off, with each one on, and with all of them on, the loop is an engine.
func TestTheLoopIsAnEngine(t *testing.T) {
	type option struct {
		set   func(cfg *loop.Config)
		tools []tool.Option
	}
	options := map[string]option{
		"middleware": {set: func(cfg *loop.Config) {
			cfg.Middleware = []model.Middleware{func(m model.Model) model.Model { return struct{ model.Model }{m} }}
		}},
		"settings": {set: func(cfg *loop.Config) { cfg.Settings = model.Settings{MaxTokens: 100, Stop: []string{"x"}} }},
		"output": {set: func(cfg *loop.Config) {
			cfg.Output, cfg.Model = json.RawMessage(`{"type":"string"}`), inJSON{cfg.Model}
		}},
		"hooks": {set: func(cfg *loop.Config) {
			cfg.Hooks = []hook.Middleware{{
				Name: "all four",
				PreGeneration: func(_ context.Context, g *hook.Generation) error {
					g.System, g.Messages = "Work well.", message.NewHistory(message.User("by the way")).Append(all(g.Messages)...)
					return nil
				},
				PreToolUse: func(_ context.Context, use *hook.ToolUse) (hook.Decision, error) {
					use.Call.Input += " "
					return hook.Asking("may it?"), nil
				},
				PostToolUse: func(_ context.Context, use *hook.ToolUse) error {
					use.Result.Content = "result: " + use.Result.Content
					return nil
				},
				PostGeneration: func(_ context.Context, g *hook.Generation) error {
					if len(g.Output) < 10 {
						g.Again("are you sure?")
					}
					return nil
				},
			}}
		}},
		"limits":       {set: func(cfg *loop.Config) { cfg.Limits = loop.Limits{Steps: 20, ToolCalls: 20, Tokens: 10_000, Repeats: 2} }},
		"no limits":    {set: func(cfg *loop.Config) { cfg.Limits = loop.Limits{Steps: -1, ToolCalls: -1, Tokens: -1, Repeats: -1} }},
		"prices":       {set: func(cfg *loop.Config) { cfg.Prices = &catalog.Catalog{} }},
		"channel":      {set: func(cfg *loop.Config) { cfg.Channel = "talk" }},
		"logger":       {set: func(cfg *loop.Config) { cfg.Logger = slog.New(slog.DiscardHandler) }},
		"read only":    {tools: []tool.Option{tool.ReadOnly}},
		"idempotent":   {tools: []tool.Option{tool.Idempotent, tool.Sequential}},
		"for approval": {tools: []tool.Option{tool.RequiresApproval, tool.Destructive, tool.OpenWorld}},
	}
	factory := func(options ...option) enginetest.Factory {
		return func(t *testing.T, w *enginetest.Work) engine.Engine {
			cfg := loop.Config{Model: w.Model()}
			var tools []tool.Option
			for _, o := range options {
				if tools = append(tools, o.tools...); o.set != nil {
					o.set(&cfg)
				}
			}
			cfg.Tools = []tool.Tool{w.Tool(tools...)}
			eng, err := loop.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return eng
		}
	}
	t.Run("bare", func(t *testing.T) { enginetest.Run(t, factory(), enginetest.NoBranches) })
	var on []option
	for name, o := range options {
		t.Run(name, func(t *testing.T) { enginetest.Run(t, factory(o), enginetest.NoBranches) })
		if name != "no limits" {
			on = append(on, o)
		}
	}
	t.Run("all", func(t *testing.T) { enginetest.Run(t, factory(on...), enginetest.NoBranches) })
}

// inJSON is a model that says everything as a JSON string.
type inJSON struct{ model.Model }

func (m inJSON) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	resp, err := m.Model.Complete(ctx, req)
	if err == nil && resp.Message.Text() != "" {
		b, _ := json.Marshal(resp.Message.Text())
		out := *resp
		out.Message, resp = message.Assistant(string(b), resp.Message.ToolCalls()...), &out
	}
	return resp, err
}

func (m inJSON) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: resp.Message.Text(), Final: true, Response: resp})
}

func all(h message.History) (ms []message.Message) {
	for _, m := range h.All() {
		ms = append(ms, m)
	}
	return ms
}

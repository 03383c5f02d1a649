package hook

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/tokens"
	"github.com/pawl-dev/pawl/message"
)

// Compaction shortens a transcript of threshold tokens or more before a run, by a function of the caller's. Tokens are estimated: one for each 4 bytes of ASCII, or 3 of other text, in text,
// reasoning, calls and results, 1,600 for a file; the user's new message is included.
//
// What summarize gives is the transcript from then on, journaled as a difference; the original stays in the journal. The user's new message is kept as it is, last,
// whether or not summarize gives it. When summarize fails, or gives something that is not shorter, the transcript stays as it is and log is told, nil being
// slog.Default(): a run does not fail because it could have been shorter.
func Compaction(threshold int, summarize func(context.Context, message.History) (message.History, error), log *slog.Logger) Middleware {
	return Middleware{Name: "compaction", PreGeneration: func(ctx context.Context, g *Generation) error {
		before := tokens.In(g.Messages)
		if before < threshold {
			return nil
		}
		short, err := summarized(ctx, summarize, g.Messages)
		if after := tokens.In(short); err == nil && after >= before {
			err = errdefs.Validation.Errorf("the summary takes %d tokens, the transcript %d", after, before)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			g.Messages, g.Moved = short, true
			return nil
		}
		to := log
		if to == nil {
			to = slog.Default()
		}
		to.WarnContext(ctx, "the transcript could not be shortened", "session_id", g.Session, "run_id", g.Run, "tokens", before, "error", err)
		return nil
	}}
}

// summarized calls summarize, whose panic is an error like any other, and puts the newest message of the user's at the end.
func summarized(ctx context.Context, summarize func(context.Context, message.History) (message.History, error), h message.History) (short message.History, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	if short, err = summarize(ctx, h); err != nil {
		return h, err
	}
	short = message.Repair(short)
	if newest := h.Last(); newest.Role() == message.RoleUser && short.Last() != newest {
		others := slices.DeleteFunc(short.Messages(), func(m message.Message) bool { return m == newest })
		short = message.NewHistory(others...).Append(newest)
	}
	return short, nil
}

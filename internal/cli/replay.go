package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

func replayCommand(s streams) *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Drive the loop from a session's record, and compare",
		Long: `Goes through all runs of a session again, with what is on record in place of models, tools and people: nothing is called, run or written, and no key is
needed. Prints a line for each attempt that goes as it went. When the program now does something else (another call, another input, another transcript for a model,
another ending), it says what and where, and exits with 1.

Limits are left out: a run that one of them ended is replayed as far as it went.`,
		Example: "  pawl replay run-abc",
		Args:    oneID,
		RunE: withStore(c.openStore, func(ctx context.Context, store journal.Store, args []string) error {
			return replay(ctx, s, c, store, args[0])
		}),
	}
	c.addEngine(cmd, "how the session's runs were run")
	c.addJournal(cmd)
	return cmd
}

func replay(ctx context.Context, s streams, c common, store journal.Store, id string) error {
	if err := mustBe(ctx, store, id); err != nil {
		return err
	}
	began, err := lastStart(ctx, store, id)
	if err != nil {
		return err
	}
	inner, elsewhere := strings.CutPrefix(began.Engine, atTemporal) // what was done elsewhere is replayed here
	c.at, began.Engine = nil, inner
	if err := c.mayDrive(id, began); err != nil {
		return err
	}
	make, err := c.maker(true)
	if err != nil {
		return err
	}
	if began.Engine == pawl.ToolEngine {
		make = pawl.NewToolEngine
	}
	if make == nil {
		make = func(cfg loop.Config) (engine.Engine, error) { return loop.New(cfg) }
	}
	eng, err := make(loop.Config{Model: absent{}, Limits: loop.Limits{Steps: -1, ToolCalls: -1, Tokens: -1}})
	if err != nil {
		return wrongUse(err)
	}
	if elsewhere {
		eng = recorded{eng}
	}
	went, err := agent.Replay(ctx, agent.Agent{ID: "pawl"}, eng, id, agent.WithJournal(store))
	if err := tellReplayed(s.out, went); err != nil {
		return err
	}
	if errdefs.NotFound.Is(err) {
		return wrongUse(err)
	}
	return err
}

func tellReplayed(w io.Writer, went []agent.Replayed) error {
	for _, r := range went {
		attempt, status := "", r.Status
		if r.Attempt > 1 {
			attempt = fmt.Sprintf(", attempt %d", r.Attempt)
		}
		if status == "" {
			status = "unfinished"
		}
		if _, err := fmt.Fprintf(w, "%s%s: %d effects as on record, %s\n", printable(r.RunID), attempt, r.Effects, printable(status)); err != nil {
			return err
		}
	}
	return nil
}

// recorded is an engine by the name that it has on record when it was gone elsewhere.
type recorded struct{ engine.Engine }

func (r recorded) Capabilities() engine.Capabilities {
	can := engine.CapabilitiesOf(r.Engine)
	can.Name = atTemporal + can.Name
	return can
}

// absent stands for the model of a replay, whose replies are on record.
type absent struct{}

var errAbsent = errdefs.Internal.Errorf("a replay calls no model")

func (absent) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errAbsent
}

func (absent) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return errAbsent
}

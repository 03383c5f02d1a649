package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cli/otlp"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func resumeCommand(s streams, p Program) *cobra.Command {
	c := common{program: p}
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Finish an interrupted or killed run",
		Long: `Goes on with a session's unfinished run, from its last entry in the journal. What is on record is not done again: a model's reply is
taken as it stands, and a tool call that has its result is not made. A call that had begun and has no result is made again only if its tool reads or can
be repeated; of any other the model is told that its outcome is unknown (--unknown report). With --unknown ask a person decides whether it is made again, with
--unknown retry it is, with the same idempotency key. What the first resume made of a call stands.

Model and directory are those of the run, unless flags say otherwise. What the run was not to do binds it still: its deny and ask rules, a mode that is stricter than the
one given now, the hosts that its sandbox let be reached. Allow rules and looser modes are not taken over, so give them again. A run that began in a sandbox goes on without
one only with --no-sandbox. A run that another process is still driving is left alone, or waited for with --wait. In
PostgreSQL nobody can tell at once that a process is gone: there every resume waits for its lease to end, 10 s at most, and says so.`,
		Example: "  pawl resume run-abc",
		Args:    oneID,
	}
	c.add(cmd)
	cmd.Flags().Lookup("session").Hidden = true
	cmd.Flags().StringVar(&c.unknown, "unknown", string(engine.UnknownReport), "what to do about a call that had begun and has no result: `report`, ask or retry")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.session != "" {
			return usage("--session: the session is the argument of resume")
		}
		if !engine.Unknown(c.unknown).Valid() {
			return usage("--unknown %q: want report, ask or retry", c.unknown)
		}
		code, err := resume(cmd.Context(), s, c, args[0])
		if code == exitCompleted && err == nil {
			return nil
		}
		return &exitError{code, err}
	}
	return cmd
}

func resume(ctx context.Context, s streams, c common, id string) (int, error) {
	ctx = otlp.Caller(ctx)
	return c.command(s, func(lines *jsonl) (*agent.Result, error) {
		if err := c.handOver(); err != nil {
			return nil, err
		}
		store, closeStore, err := c.openStore(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = closeStore() }()
		asked := false
		if c.began, asked, err = c.unfinished(ctx, store, id); err != nil {
			return nil, err
		}
		if lines != nil {
			if err := lines.recall(ctx, store, id); err != nil {
				return nil, err
			}
		}
		o, err := c.options(ctx)
		if err != nil {
			return nil, err
		}
		o.Journal, c.person = store, !c.json && s.attended()
		if c.person || asked {
			o.Tools = append(o.Tools, askuser.New(nil))
		}
		leave, err := c.atTemporal(ctx, s, &o)
		if err != nil {
			return nil, err
		}
		defer leave()
		res, err := c.drive(ctx, s, lines, o, func(ctx context.Context, rt *pawl.Runtime, opts ...agent.RunOption) (*agent.Result, error) {
			return rt.Resume(ctx, id, append(opts, agent.WithUnknown(engine.Unknown(c.unknown)))...)
		})
		if errdefs.NotFound.Is(err) { // it was unfinished a moment ago
			err = errdefs.NotFound.Errorf("another process finished the run meanwhile: see %s", c.line("sessions", "show", id))
		}
		if res == nil && errdefs.PolicyDenied.Is(err) { // it would go on under less than it began with
			err = wrongUse(err)
		}
		return res, err
	})
}

// unfinished gives the beginning of a session's unfinished run, and whether its model asks people: then it goes on with that tool.
func (c common) unfinished(ctx context.Context, store journal.Store, id string) (began journal.RunStarted, asked bool, err error) {
	log, err := journal.Open(ctx, store, id)
	if err != nil {
		return began, false, err
	}
	switch st := log.State(); {
	case st.Seq == 0:
		return began, false, noSession(id)
	case st.Run == "":
		last := "it has none of its own yet"
		if st.Status != "" {
			last = "the last one is " + st.Status
		}
		return began, false, usage("session %q has no unfinished run: %s; go on with: %s", id, last, c.next(id))
	case st.ParentRun != "", st.Agent != programAgent:
		return began, false, usage("session %q is not one of this program's agent: %s", id, c.goOn(id, st))
	}
	for _, m := range log.State().Messages.All() {
		for call := range message.Of[message.ToolCall](m) {
			asked = asked || strings.EqualFold(call.Name, askuser.Name)
		}
	}
	if began, err = lastStart(ctx, store, id); err != nil {
		return began, false, err
	}
	return began, asked, c.mayDrive(id, began)
}

// mayDrive refuses another engine, or place for it, than that of a run which goes on, as far as the flag alone tells.
func (c common) mayDrive(id string, began journal.RunStarted) error {
	_, elsewhere := strings.CutPrefix(began.Engine, atTemporal)
	switch want := engineAsked(began.Engine); {
	case elsewhere && c.at == nil:
		return usage("session %q is driven by the engine %s, in processes of its own: give --engine '%s'", id, began.Engine, want)
	case !elsewhere && began.Engine != "" && c.at != nil:
		return usage("session %q is driven by the engine %s, in the process that runs it: give no other place for it with --engine", id, began.Engine)
	case c.engine == "loop" && !elsewhere && want != "":
		return usage("session %q is driven by the engine %s: give --engine %s with its file", id, began.Engine, want)
	case c.engine == "loop" && strings.Contains(want, "?"):
		return usage("session %q is driven by the engine %s: give --engine '%s' with its file", id, began.Engine, want)
	}
	return nil
}

// engineAsked is what --engine has to be for a run that was begun by an engine, with words for what is not on record; "" is the default.
func engineAsked(name string) string {
	inner, elsewhere := strings.CutPrefix(name, atTemporal)
	kind, _, _ := strings.Cut(inner, ":")
	if kind != "" && kind != "loop" {
		kind += ":FILE"
	}
	switch {
	case elsewhere && kind != "loop":
		return scheme + "HOST:PORT?engine=" + kind
	case elsewhere:
		return scheme + "HOST:PORT"
	case kind == "loop":
		return ""
	}
	return kind
}

// lastStart is how a session's last run began.
func lastStart(ctx context.Context, store journal.Store, id string) (began journal.RunStarted, err error) {
	for e, err := range store.Read(ctx, id, 0) {
		if err != nil {
			return began, err
		}
		if d, ok := e.Data.(journal.RunStarted); ok {
			began = d
		}
	}
	return began, nil
}

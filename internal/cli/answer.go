package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// The commands that answer a pending call or question, from any process.

func approveCommand(s streams) *cobra.Command {
	var edit string
	var session bool
	var edited func() bool
	cmd := answering(s, "approve ID CALL", "Let a pending call run", "  pawl approve run-abc call_1\n  pawl approve run-abc call_1 --edit '{\"amount\": 5}'\n  pawl approve run-abc call_1 --session", 2,
		func(args []string, p journal.Pending, dir string) (journal.Answered, error) {
			a := journal.Answered{ID: p.ID, Approved: true}
			if a.Session = session; session && !edited() && p.Call != nil {
				a.Rule = proposed(dir, *p.Call)
			}
			if a.Input = edit; edited() && strings.TrimSpace(edit) == "" {
				return a, usage("--edit: want a JSON object")
			}
			return a, nil
		})
	edited = func() bool { return cmd.Flags().Changed("edit") } // an empty one is a mistake, and not the model's input
	cmd.Flags().StringVar(&edit, "edit", "", "run the call with this `JSON` as its input")
	cmd.Flags().BoolVar(&session, "session", false, "don't ask again in this session: about this call, and, unless it is edited, its like, by the rule that is printed; not where a hook or the tool asks each time")
	return cmd
}

// proposed is the permission rule that covers a call and its like, "" when there is none. dir is the project's.
func proposed(dir string, c journal.Called) string {
	if dir == "" { // a program of somebody's did not say where it works
		return ""
	}
	rule, err := permission.ProposeRule(dir, &hook.ToolUse{Call: message.ToolCall{Name: c.Name, Input: c.Input}})
	if err != nil {
		return ""
	}
	return rule
}

// forSession is what is approved for a session, in words.
func forSession(rule string) string {
	if rule == "" {
		return "this very call"
	}
	return rule
}

func rejectCommand(s streams) *cobra.Command {
	var why string
	cmd := answering(s, "reject ID CALL", "Refuse a pending call", "  pawl reject run-abc call_1 --reason \"too expensive\"", 2,
		func(_ []string, p journal.Pending, _ string) (journal.Answered, error) {
			return journal.Answered{ID: p.ID, Text: why}, nil
		})
	cmd.Flags().StringVar(&why, "reason", "", "what the model is told, as `TEXT`")
	return cmd
}

func answerCommand(s streams) *cobra.Command {
	return answering(s, "answer ID CALL TEXT", "Answer a pending question", "  pawl answer run-abc q1 \"the second one\"", 3,
		func(args []string, p journal.Pending, _ string) (journal.Answered, error) {
			if p.Call != nil {
				return journal.Answered{}, usage("%s is a call: use pawl approve or pawl reject", p.ID)
			}
			if p.Confirm {
				return journal.Answered{}, usage("%s is answered by yes or no: use pawl approve or pawl reject", p.ID)
			}
			return journal.Answered{ID: p.ID, Approved: true, Text: args[2]}, nil
		})
}

// decider says what to answer to what is pending in a run that works in dir.
type decider func(args []string, p journal.Pending, dir string) (journal.Answered, error)

// answering is a command that finds what is pending, lets decide say what to answer, and puts it on record. One answer wins.
func answering(s streams, use, short, example string, args int, decide decider) *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Long: short + `, from any process. The run goes on with pawl resume once everything that is pending has its answer; one answer wins.
The line for that is printed. It has the flags of pawl resume that are given here, which have no other effect: the lines that a run prints have them.`,
		Args: func(cmd *cobra.Command, have []string) error {
			if len(have) != args {
				return usage("want %s, got %d arguments", use, len(have))
			}
			return nil
		},
	}
	c.addKept(cmd)
	for _, name := range keptFlags {
		cmd.Flags().Lookup(name).Hidden = true
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, closeStore, err := c.openStore(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = closeStore() }()
		a, left, st, err := answer(cmd.Context(), store, args, decide)
		if errdefs.Conflict.Is(err) {
			return &exitError{exitFailed, err}
		}
		if err != nil {
			return wrongUse(err)
		}
		if a.Session {
			fmt.Fprintln(s.err, "approved for the session: "+escapedLine(forSession(a.Rule)))
			if st.Untrusted != "" {
				fmt.Fprintln(s.err, "the conversation has what strangers wrote: where taint is on, that lifts it for this very call only, and for no command")
			}
		}
		next := c.goOn(args[0], st)
		if len(left) > 0 {
			next = "still pending: " + strings.Join(left, ", ")
		}
		_, err = fmt.Fprintln(s.err, printable(next))
		return err
	}
	return cmd
}

// answer puts an answer on record and gives it, what is pending still, and the session.
func answer(ctx context.Context, store journal.Store, args []string, decide decider) (a journal.Answered, left []string, st journal.State, err error) {
	if err := mustBe(ctx, store, args[0]); err != nil {
		return a, nil, st, err
	}
	all, err := agent.Pending(ctx, store, args[0])
	if err != nil {
		return a, nil, st, err
	}
	var names []string
	for _, p := range all {
		if names = append(names, p.ID); p.ID != args[1] {
			continue
		}
		began, err := lastStart(ctx, store, args[0])
		if err != nil {
			return a, nil, st, err
		}
		a, err = decide(args, p, began.Dir)
		if err != nil {
			return a, nil, st, err
		}
		a.By = "pawl"
		if err := agent.Answer(ctx, store, args[0], a); err != nil {
			return a, nil, st, err
		}
		log, err := journal.Open(ctx, store, args[0])
		if err != nil {
			return a, nil, st, err
		}
		all, err := agent.Pending(ctx, store, args[0])
		for _, p := range all {
			left = append(left, p.ID)
		}
		return a, left, log.State(), err
	}
	if len(names) == 0 {
		return a, nil, st, usage("%q is not pending in session %s: nothing is", args[1], args[0])
	}
	return a, nil, st, usage("%q is not pending in session %s; pending: %s", args[1], args[0], strings.Join(names, ", "))
}

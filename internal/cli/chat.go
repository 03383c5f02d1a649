package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/chat"
	"github.com/pawl-dev/pawl/internal/cli/otlp"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func chatCommand(s streams, p Program) *cobra.Command {
	c := common{program: p}
	cmd := &cobra.Command{
		Use:   "chat [flags]",
		Short: "A conversation at the terminal",
		Long: `Talks with an agent in a project directory: each line that is sent is the prompt of a run, with the tools, the sandbox and the questions of pawl run. What is
typed while a run is under way is heard before its next step. Esc or Ctrl-C interrupts a run behind its step, a second time at once; Ctrl-C twice on an empty line,
or Ctrl-D, leaves. /help has the rest: other models, forks, other sessions, what it cost.

All of it is in the journal, as it happens: with --session a conversation goes on where it was, whatever ended it, and a run that was not finished can be finished
there. The exit code is that of the last run, 0 when there was none.`,
		Example: "  pawl chat\n  pawl chat --model anthropic/claude-sonnet-5-5\n  pawl chat --session ui",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("chat takes no prompt, it is typed there: for a single run use pawl run %q", args[0])
			}
			return nil
		},
	}
	c.add(cmd)
	cmd.Flags().Lookup("json").Hidden = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		code, err := talk(cmd.Context(), s, c)
		if code == exitCompleted && err == nil {
			return nil
		}
		return &exitError{code, err}
	}
	return cmd
}

// talk holds a conversation, and says how it can be gone on with.
func talk(ctx context.Context, s streams, c common) (int, error) {
	left, err := c.conversation(otlp.Caller(ctx), s)
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code, exit.err
	case errdefs.Canceled(err): // while the project was being opened
		return exitCanceled, errors.New("canceled")
	case err != nil:
		return exitFailed, err
	}
	if left.Session != "" && c.journal != "memory" {
		fmt.Fprintln(s.err, "go on with: "+c.chatting(left.Session))
	}
	if left.Result == nil && left.Err == nil {
		return exitCompleted, nil
	}
	code := codeOf(left.Result, left.Err)
	if code == exitWaiting {
		return code, errors.New(c.waiting(left.Result))
	}
	return code, nil // why stands above, where it happened
}

// chatting is the line that goes on with a conversation.
func (c common) chatting(session string) string {
	return c.line(append([]string{"chat", "--session", session}, c.kept(true)...)...)
}

func (c common) conversation(ctx context.Context, s streams) (left chat.Left, err error) {
	switch {
	case c.json:
		return left, usage("--json: chat is for people; use pawl run --json")
	case !terminal(s.in) || !terminal(s.out):
		return left, usage("chat needs a terminal, as standard input and as standard output: without one use pawl run, with --session to go on")
	case os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "":
		return left, usage("chat needs a terminal that can move its cursor, and TERM is %q: use pawl run, with --session to go on", os.Getenv("TERM"))
	}
	if err := c.handOver(); err != nil {
		return left, err
	}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return left, err
	}
	defer func() { _ = closeStore() }()
	if err := c.joins(ctx, store); err != nil {
		return left, err
	}
	o, err := c.options(ctx)
	if err != nil {
		return left, err
	}
	at := &runtimes{c: c, s: s, store: store, options: &o, model: o.Model}
	defer at.close()
	var opts []agent.RunOption
	if c.wait {
		opts = append(opts, agent.WithWait())
	}
	elsewhere := ""
	if c.at != nil {
		elsewhere = "a worker"
	}
	here := ""
	if c.dir == "" && c.began.Dir != "" {
		if here, err = projectRoot(""); err != nil {
			return left, err
		}
		if here == o.ProjectRoot {
			here = ""
		}
	}
	left, err = chat.Run(ctx, chat.Config{
		In: s.in.(*os.File), Out: s.out.(*os.File), Colour: coloured(s.out), // a terminal is a file
		Store: store, Session: c.session, Options: opts, Wait: c.wait,
		Open: at.open, Elsewhere: elsewhere, Here: here,
		Message: func(text string, files []string) (message.Message, error) {
			m, err := said(text, "@", files)
			if err == nil {
				err = admitted(at.current(), m)
			}
			return m, err
		},
		Rule:  func(call journal.Called) string { return proposed(o.ProjectRoot, call) },
		Alive: func(ctx context.Context, session string) bool { return alive(ctx, store, session) },
	})
	return left, err
}

// joins looks at the session that is to be gone on with: whether it is one of this program's, and of an unfinished run what it was begun with.
func (c *common) joins(ctx context.Context, store journal.Store) error {
	if c.session == "" {
		return nil
	}
	log, err := journal.Open(ctx, store, c.session)
	if err != nil {
		return err
	}
	switch st := log.State(); {
	case st.ParentRun != "", st.Agent != "" && st.Agent != programAgent:
		return usage("session %q is not one of this program's agent: %s", c.session, c.goOn(c.session, st))
	case st.Run != "":
		if c.began, err = lastStart(ctx, store, c.session); err != nil {
			return err
		}
		return c.mayDrive(c.session, c.began)
	}
	return nil
}

// runtimes opens the Runtimes of a conversation: the first one with what the command line says, and one for each other model.
type runtimes struct {
	c       common
	s       streams
	store   journal.Store
	options *pawl.Options // of the first one, which was looked at before; nil: it is open

	mu    sync.Mutex
	model model.Model
	leave []func()
}

func (r *runtimes) current() model.Model {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model
}

func (r *runtimes) close() {
	for _, leave := range r.leave {
		leave()
	}
}

func (r *runtimes) open(ctx context.Context, name string, tell func(server string, begun bool)) (*pawl.Runtime, string, error) {
	var o pawl.Options
	if name == "" {
		o = *r.options
	} else {
		if r.c.at != nil {
			return nil, "", usage("/model: the workers of %s have the model: leave, and name another one with --model", r.c.at.flag(r.c.engine))
		}
		c := r.c
		c.model = name
		var err error
		if o, err = c.options(ctx); err != nil {
			return nil, "", err
		}
		o.Budget = r.options.Budget // what was spent is spent
	}
	o.Journal, o.OutputDir = r.store, r.c.outputs(o.ProjectRoot)
	o.Tools = append(slices.Clip(o.Tools), askuser.New(nil))
	o.Logger = slog.New(starts(tell))
	leave, err := r.c.atTemporal(ctx, r.s, &o)
	if err != nil {
		return nil, "", err
	}
	rt, err := pawl.New(ctx, o)
	if err != nil {
		leave()
		return nil, "", wrongUse(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model, r.leave = o.Model, append(r.leave, leave)
	return rt, cmp.Or(name, r.c.model, r.c.began.Model, r.c.settingsModel, pawl.DefaultModel()), nil
}

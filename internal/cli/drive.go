package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
)

// command is a whole command that runs an agent: what is written last, and the exit code, whatever happens.
func (c common) command(s streams, execute func(lines *jsonl) (*agent.Result, error)) (code int, err error) {
	var lines *jsonl
	if c.json {
		lines = newJSONL(s.out)
	}
	res, err := execute(lines)
	if lines != nil {
		lines.finished(res, err)
		if lines.err != nil && !errors.Is(lines.err, syscall.EPIPE) { // a reader that went away is a cancel
			return exitFailed, lines.err
		}
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code, exit.err
	}
	if code = codeOf(res, err); code == exitCompleted && err != nil {
		code = exitFailed // the answer could not be written
	}
	switch {
	case code == exitWaiting:
		return code, errors.New(c.waiting(res))
	case code == exitCanceled && errdefs.Canceled(err):
		return code, errors.New("canceled")
	}
	return code, err
}

// waiting says what waits for a person, and how to answer.
func (c common) waiting(res *agent.Result) string {
	var b strings.Builder
	b.WriteString("waiting for a person:")
	for _, p := range res.Pending {
		switch {
		case p.Call != nil:
			fmt.Fprintf(&b, "\n  %s (%s): %s, or %s", escapedLine(p.Prompt), summary(p.Call.Name, p.Call.Input), c.answering("approve", res.ContextID, p.ID), c.answering("reject", res.ContextID, p.ID))
		case p.Confirm:
			fmt.Fprintf(&b, "\n  %s: %s, or %s", escapedLine(p.Prompt), c.answering("approve", res.ContextID, p.ID), c.answering("reject", res.ContextID, p.ID))
		default:
			before := ": "
			if strings.Contains(p.Prompt, "\n") { // choices, one a line
				before = "\n  "
			}
			fmt.Fprintf(&b, "\n  %s%s%s", p.Prompt, before, c.answering("answer", res.ContextID, p.ID, "TEXT"))
		}
	}
	b.WriteString("\nthen: " + c.again(res.ContextID))
	return b.String()
}

// drive makes a Runtime, lets do use it, and shows what happens: as lines, or to a person.
func (c common) drive(ctx context.Context, s streams, lines *jsonl, o pawl.Options, do func(context.Context, *pawl.Runtime, ...agent.RunOption) (*agent.Result, error)) (*agent.Result, error) {
	host := &lineHost{show: func(event.Event) {}}
	o.OutputDir, o.Host = c.outputs(o.ProjectRoot), host
	var live *live
	if lines == nil {
		live = newLive(s)
		defer live.end()
		if o.Logger = live.logger(); c.at != nil {
			live.waits.Elsewhere = "a worker"
		}
	}
	rt, err := pawl.New(ctx, o)
	if err != nil {
		return nil, wrongUse(err)
	}
	defer func() { _ = rt.Close() }()
	var more []agent.RunOption
	if c.wait {
		more = append(more, agent.WithWait())
	}
	if lines == nil {
		return c.show(s, rt.Dir(), host, live, func() (*agent.Result, error) { return do(ctx, rt, more...) })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	host.show = func(e event.Event) {
		if lines.event(e); lines.err != nil {
			cancel() // nobody reads any more
		}
	}
	res, err := do(ctx, rt, more...)
	_ = rt.Close() // ends what goes on in the background
	if e := lines.ends(context.WithoutCancel(ctx), o.Journal); err == nil {
		err = e
	}
	return res, err
}

// show runs for a person: the answer goes to standard output, all else to standard error. On a terminal the model's words are shown as they come,
// the answer among them, and when somebody is there to answer, the run's questions are asked.
func (c common) show(s streams, dir string, host *lineHost, live *live, do func() (*agent.Result, error)) (*agent.Result, error) {
	words := s.err
	if terminal(s.out) {
		words = s.out
	}
	p := newProgress(live.out, live.screen.writer(words), coloured(s.err))
	p.holdAnswer = !terminal(s.out)
	if live.shows(p.line); c.person {
		p.asks, host.asker = true, newAsker(s, live.screen, dir)
	}
	host.show = func(e event.Event) { live.event(e, func() { p.event(e) }) }
	res, err := do()
	live.end()
	if res == nil {
		return nil, err
	}
	p.end(res, c)
	if text := strings.TrimSuffix(res.Text(), "\n"); (p.holdAnswer || p.apart) && text != "" && res.Status == agent.StatusCompleted {
		if _, e := fmt.Fprintln(s.out, text); e != nil {
			err = errors.Join(err, e)
		}
	}
	return res, err
}

// lineHost shows a run on a terminal or as lines. Without an asker nobody is there to answer questions.
type lineHost struct {
	engine.NoopHost
	show  func(event.Event)
	asker *asker
}

func (h *lineHost) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	if h.asker == nil {
		return h.NoopHost.AskUser(ctx, p)
	}
	return h.asker.AskUser(ctx, p)
}

func (h *lineHost) Listening() bool { return true }

func (h *lineHost) Publish(_ context.Context, e event.Event) error {
	h.show(e)
	return nil
}

package loopfuzz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

const session = "s"

var errDead = errors.New("killed")

// world is what is there beside the processes that come and go: the journal's disk, the provider, what tools act on, people. It sees what is really done.
type world struct {
	disk disk

	mu     sync.Mutex
	plan   plan // what is left of it
	whole  plan
	said   int // words of the model
	prompt string
	runs   []*ran
	asked  map[string]history // by cache key: what the model was asked last
	broken []string           // promises
	over   bool
}

type history []string

// ran is one time that a tool was run.
type ran struct {
	life          *life
	id, key, name string
	behind        bool // in the background
	repeatable    bool
	ended, parked bool
	late          bool // it ended long after its context
	attempt       string
}

func (w *world) breaks(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func popped[T any](w *world, list func(p *plan) *[]T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return pop(list(&w.plan))
}

// disk is a store whose entries were written and read again, as by another process.
type disk struct{ journal.Store }

func (d disk) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range d.Store.Read(ctx, session, after) {
			var back journal.Entry
			if err == nil {
				var b []byte
				if b, err = e.MarshalJSON(); err == nil {
					err = back.UnmarshalJSON(b)
				}
			}
			if !yield(back, err) || err != nil {
				return
			}
		}
	}
}

// life is a process, as its journal sees it.
type life struct {
	disk
	w          *world
	faults     []fault
	cancel     context.CancelFunc
	interrupts chan engine.Interrupt

	mu       sync.Mutex
	n        int
	dead     bool
	failed   bool // the journal refused an append once, or the process is dead
	canceled time.Time
	timers   []*time.Timer
}

type lifeKey struct{}

// lifeOf is the process that a tool or a model is used by.
func lifeOf(ctx context.Context) *life { return ctx.Value(lifeKey{}).(*life) }

// Append is where a life meets its faults.
func (l *life) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		l.failed = true
		return errDead
	}
	l.n++
	for _, f := range l.faults {
		switch {
		case f.At != l.n:
		case f.Later:
			l.timers = append(l.timers, time.AfterFunc(1500*time.Millisecond, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				_ = l.meet(ctx, f.Do)
			}))
		default:
			err := l.meet(ctx, f.Do)
			l.failed = l.failed || err != nil
			if f.Do == "late" {
				_ = l.disk.Append(ctx, s, at, es...)
			}
			if err != nil {
				return err
			}
		}
	}
	return l.disk.Append(ctx, s, at, es...)
}

// meet has a fault happen; an error is that of the append. l.mu is held.
func (l *life) meet(ctx context.Context, do string) error {
	switch do {
	case "kill", "late":
		l.dead = true
		return errDead
	case "fail":
		return errors.New("no space left on device")
	case "cancel":
		if l.canceled.IsZero() {
			l.canceled = time.Now()
		}
		l.cancel()
	case "interrupt":
		select {
		case l.interrupts <- engine.Interrupt{Cause: engine.CauseUserCancel}:
		default:
		}
	case "steer":
		text := fmt.Sprintf("steering %d", l.n)
		if err := agent.Steer(context.WithoutCancel(ctx), l.disk, session, message.User(text)); err != nil && !errdefs.Conflict.Is(err) && !errdefs.NotFound.Is(err) {
			l.w.breaks("steering: %v", err)
		}
	}
	return nil
}

func (l *life) is(what func(*life) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return what(l)
}

// Complete is the model. It says what is next in the plan, wherever the conversation stands: one that is asked again says something else.
func (w *world) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	replied := w.asks(ctx, req)
	t := popped(w, func(p *plan) *[]turn { return &p.Turns })
	w.mu.Lock()
	w.said++
	text := fmt.Sprintf("word %d", w.said)
	w.mu.Unlock()
	stop, fails := model.StopEnd, func(c *errdefs.Class) error { return &model.Error{Provider: "fuzz", Kind: c, Message: t.Kind} }
	switch t.Kind {
	case "call":
		stop = model.StopTools
	case "again":
		text += " again"
	case "cut":
		stop = model.StopLength
	case "window":
		stop = model.StopWindow
	case "pause":
		stop = model.StopPause
	case "blank":
		text = ""
	case "badcall":
		text, stop = "", model.StopBadCall
	case "refuse":
		stop = model.StopRefusal
	case "filter":
		stop = model.StopFilter
	case "slow":
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Minute):
		}
	case "panic":
		panic("the model")
	case "plain":
		return nil, errors.New("connection reset")
	case "rate_limit", "not_available", "context_overflow", "unauthorized", "timeout", "internal":
		return nil, fails(errdefs.Named(t.Kind))
	}
	var parts []message.Part
	if text != "" {
		parts = append(parts, message.Text{Text: text})
	}
	for _, c := range t.Calls {
		input := c.Raw
		if input == "" {
			input = c.Input.String()
		}
		parts = append(parts, message.ToolCall{ID: c.ID, Name: c.Tool, Input: input})
	}
	replied()
	return &model.Response{Message: message.New(message.RoleAssistant, parts...), Stop: stop, Usage: model.Usage{Input: 10, Output: 5}}, nil
}

// CompleteStream shows half a text before it may fail.
func (w *world) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := w.Complete(ctx, req)
	if err != nil {
		return errors.Join(cb(model.StreamResult{Text: "half "}), err)
	}
	for word := range strings.SplitAfterSeq(resp.Message.Text(), " ") {
		if err := cb(model.StreamResult{Text: word}); err != nil {
			return err
		}
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func (w *world) tools() []tool.Tool {
	make := func(name string, opts ...tool.Option) tool.Tool {
		repeatable := name != "pay" && name != "sign" && name != "hidden"
		return tool.Func(name, "", func(ctx context.Context, in spec) (tool.Result, error) { return w.use(ctx, name, repeatable, in) }, opts...)
	}
	return []tool.Tool{
		make("look", tool.ReadOnly), make("put", tool.Idempotent), make("pay"), make("solo", tool.ReadOnly, tool.Sequential), make("sign", tool.RequiresApproval),
		make("hidden"),
	}
}

// use is all tools.
func (w *world) use(ctx context.Context, name string, repeatable bool, in spec) (res tool.Result, err error) {
	c := tool.FromContext(ctx)
	x := &ran{id: c.ID, key: c.Key, name: name, behind: c.Background, repeatable: repeatable}
	w.begins(ctx, x, in)
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		x.ended = true
	}()
	res.Content = "did " + c.Key
	switch in.Do {
	case "error":
		return res, errors.New("no luck")
	case "panic":
		panic("the tool")
	case "exit":
		runtime.Goexit()
	case "unknown":
		return res, fmt.Errorf("the line went dead: %w", tool.ErrUnknown)
	case "slow":
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-time.After(time.Minute):
		}
	case "deaf":
		time.Sleep(time.Minute)
		w.mu.Lock()
		x.late = ctx.Err() != nil
		w.mu.Unlock()
	case "final":
		res.Final = true
	case "background":
		if res.Background = name == "put" && !c.Background; c.Background {
			time.Sleep(time.Second)
		}
	case "ask":
		at, _ := engine.InsideOf(ctx)
		r, err := at.Ask(ctx, engine.Prompt{Asked: journal.Asked{Prompt: "which?"}})
		w.mu.Lock()
		x.parked = err != nil
		w.mu.Unlock()
		return tool.Result{Content: "did " + c.Key + " " + r.Text}, err
	case "park":
		if w.first(x) {
			w.mu.Lock()
			x.parked = true
			w.mu.Unlock()
			return res, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseCustom}}
		}
	}
	return res, nil
}

// first reports whether x is the first run with its key.
func (w *world) first(x *ran) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.IndexFunc(w.runs, func(o *ran) bool { return o.key == x.key && o.behind == x.behind }) == slices.Index(w.runs, x)
}

func inputOf(c message.ToolCall) (in spec) {
	_ = json.Unmarshal([]byte(c.Input), &in)
	return in
}

// hooks judge as the input says; one that lets everything through comes behind, which must change nothing.
func (w *world) hooks() []hook.Middleware {
	return []hook.Middleware{{
		Name: "judge",
		PreGeneration: func(_ context.Context, g *hook.Generation) error {
			switch popped(w, func(p *plan) *[]string { return &p.Prepare }) {
			case "inject":
				g.Messages = g.Messages.Append(message.User("mind the gap"))
			case "panic":
				panic("prepare")
			case "error":
				return errors.New("not today")
			}
			return nil
		},
		PreToolUse: func(_ context.Context, u *hook.ToolUse) (d hook.Decision, err error) {
			in := inputOf(u.Call)
			switch in.Hook {
			case "allow":
				d = hook.Allowed("fine")
			case "deny":
				d = hook.Denied("not allowed")
			case "ask":
				d = hook.Asking("may I?")
			case "rewrite":
				if in.Hook = ""; in.N > 1 { // which is judged again
					in.Hook = "deny"
				}
				d.Input = in.String()
			case "badrewrite":
				d.Input = `{"do":5}`
			case "panic":
				panic("judge")
			case "error":
				return d, errors.New("can't tell")
			case "end":
				u.EndRun("enough")
			case "context":
				d.Context = "be careful"
			}
			return d, nil
		},
		PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
			switch inputOf(u.Call).Post {
			case "rewrite":
				u.Result.Content = "seen: " + u.Result.Content
			case "panic":
				panic("after")
			case "error":
				return errors.New("withheld")
			case "end":
				u.EndRun("seen enough")
			}
			return nil
		},
		PostGeneration: func(_ context.Context, g *hook.Generation) error {
			if strings.HasSuffix(g.Response.Message.Text(), "again") {
				g.Again("go on")
			}
			return nil
		},
	}, {Name: "yes", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Allowed("whatever"), nil }}}
}

// seed is the seeder.
func (w *world) seed(ctx context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
	b := agent.DefaultBoard(ctx)
	switch popped(w, func(p *plan) *[]string { return &p.Seeds }) {
	case "fresh":
		return agent.BoardWith(message.History{}, req), nil
	case "more":
		b.SetChannel(engine.MainChannel, b.Channel(engine.MainChannel).Append(message.User("from the seeder")))
	}
	return b, nil
}

// BeforeFinalize is the decider.
func (w *world) BeforeFinalize(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
	switch popped(w, func(p *plan) *[]string { return &p.Decisions }) {
	case "revise":
		return agent.FinalizeDecision{Revise: true}, nil
	case "discard":
		return agent.FinalizeDecision{DiscardOutput: true}, nil
	case "accept":
		return agent.FinalizeDecision{AcceptOutput: true}, nil
	case "error":
		return agent.FinalizeDecision{}, errors.New("undecided")
	case "panic":
		panic("decider")
	}
	return agent.FinalizeDecision{}, nil
}

// Commit is the committer.
func (w *world) Commit(context.Context, agent.RunInfo, *agent.Result) error {
	switch popped(w, func(p *plan) *[]string { return &p.Commits }) {
	case "error":
		return errors.New("not stored")
	case "panic":
		panic("committer")
	}
	return nil
}

// host is where a life's runs happen.
func (w *world) host(l *life) engine.Host {
	h := engine.HostFuncs{
		InterruptsFunc: func() <-chan engine.Interrupt { return l.interrupts },
		AskUserFunc: func(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
			kind := popped(w, func(p *plan) *[]string { return &p.Replies })
			switch kind {
			case "", "nobody":
				return engine.Reply{}, errdefs.NotAvailable.Errorf("nobody")
			case "panic":
				panic("host")
			case "error":
				return engine.Reply{}, errors.New("the line is busy")
			case "elsewhere": // somebody else answers, and whoever was asked here never does
				_ = agent.Answer(context.WithoutCancel(ctx), w.disk, session, journal.Answered{ID: p.ID, Approved: true, By: "bob"})
				select {
				case <-ctx.Done():
					return engine.Reply{}, ctx.Err()
				case <-time.After(time.Hour):
					return engine.Reply{}, errdefs.NotAvailable.Errorf("he went home")
				}
			}
			return engine.Reply{Answered: answer(kind, p.Asked)}, nil
		},
	}
	if w.whole.Listening {
		h.PublishFunc = func(context.Context, event.Event) error { return nil }
	}
	return h
}

// answer is what a person says to a question.
func answer(kind string, q journal.Asked) journal.Answered {
	a := journal.Answered{ID: q.ID, Approved: kind != "no", By: "ada"}
	switch {
	case q.Call == nil:
		a.Text = "this one"
	case kind == "edit":
		a.Input = spec{Do: "ok", N: 7}.String()
	case kind == "ending":
		a.Input = spec{Do: "ok", Hook: "end"}.String()
	case kind == "worse":
		a.Input = spec{Do: "ok", Hook: "deny"}.String()
	}
	return a
}

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is one turn of a stub model.
type reply func(ctx context.Context, req model.Request) (*model.Response, error)

// ends is a reply that ends for a reason.
func ends(stop model.StopReason, text string, calls ...message.ToolCall) reply {
	return func(context.Context, model.Request) (*model.Response, error) {
		return &model.Response{Message: message.Assistant(text, calls...), Stop: stop, Usage: model.Usage{Input: 10, Output: 5}}, nil
	}
}

func says(text string) reply { return ends(model.StopEnd, text) }

func uses(calls ...message.ToolCall) reply { return ends(model.StopTools, "", calls...) }

func fails(err error) reply {
	return func(context.Context, model.Request) (*model.Response, error) { return nil, err }
}

func times(n int, r reply) (rs []reply) {
	for range n {
		rs = append(rs, r)
	}
	return rs
}

func call(id, name, input string) message.ToolCall {
	return message.ToolCall{ID: id, Name: name, Input: input}
}

// stub plays its replies in order and notes what it was asked. It streams the words of a reply.
type stub struct {
	replies []reply
	name    string
	mu      sync.Mutex
	asked   []model.Request
}

func plays(rs ...reply) *stub { return &stub{replies: rs} }

func (s *stub) Capabilities() model.Capabilities {
	return model.Capabilities{Name: s.name, Tools: true, MaxTokens: true, Stop: true, ProviderTools: []string{model.WebSearch, model.WebFetch}}
}

func (s *stub) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *stub) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, req)
	s.mu.Unlock()
	if n >= len(s.replies) {
		return nil, errdefs.Internal.Errorf("the stub was asked %d times", n+1)
	}
	return s.replies[n](ctx, req)
}

func (s *stub) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	for word := range strings.SplitAfterSeq(resp.Message.Text(), " ") {
		if err := cb(model.StreamResult{Text: word}); err != nil {
			return err
		}
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// play is one run of a loop over a memory journal, without an agent around it.
type play struct {
	cfg   loop.Config
	ctx   context.Context //nolint:containedctx // a test's
	host  engine.Host
	run   engine.Run // what it begins with: gate, bounds, system prompt
	store journal.Store
}

// played is how it ended.
type played struct {
	err   error
	talk  message.History // on the board
	log   *journal.Log
	store journal.Store
	eng   *loop.Engine
	run   engine.Run
}

func (p play) do(t *testing.T) played {
	t.Helper()
	eng, err := loop.New(p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if p.ctx == nil {
		p.ctx = t.Context()
	}
	if p.host == nil {
		p.host = engine.NoopHost{}
	}
	if p.store == nil {
		p.store = journal.Memory()
	}
	d := played{store: p.store, eng: eng, run: begun(t, p.store, p.run)}
	d.log = d.run.Log
	d.execute(t, p.ctx, p.host)
	return d
}

// begun begins a run in a new session.
func begun(t testing.TB, store journal.Store, run engine.Run) engine.Run {
	t.Helper()
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	run.ID, run.Session, run.Log, run.Values, run.Attempt = "r", "s", log, new(engine.Values), 1
	begin := []journal.Entry{
		{Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "me", Attempt: 1}},
		{Run: "r", Data: journal.Said{Message: message.User("go")}},
	}
	if err := log.Drive(t.Context(), "me", begin...); err != nil {
		t.Fatal(err)
	}
	return run
}

// once runs a loop and looks at nothing: for measuring.
func once(t testing.TB, eng *loop.Engine, host engine.Host) error {
	run := begun(t, journal.Memory(), engine.Run{})
	_, err := eng.Execute(t.Context(), run, host, engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: run.Log.State().Seed}}))
	return err
}

// execute runs the loop from the run's seed, or resumes it, and holds what every ending has to hold: the transcript is valid, the journal
// folds to the same one, and a replay of what is on record finds no difference.
func (d *played) execute(t *testing.T, ctx context.Context, host engine.Host) {
	t.Helper()
	board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: d.log.State().Seed}})
	board, d.err = d.eng.Execute(ctx, d.run, host, board)
	d.replay(t)
	if d.talk = board.Channel(engine.MainChannel); errdefs.Interrupted.Is(d.err) {
		return // open calls are answered when it goes on
	}
	if diff := cmp.Diff(dump(message.Repair(d.talk)), dump(d.talk)); diff != "" {
		t.Errorf("the transcript is not valid (-mended +got):\n%s", diff)
	}
	folded := d.log.State().Messages
	if diff := cmp.Diff(dump(folded), dump(d.talk)); diff != "" {
		t.Errorf("the journal folds to another transcript (-journal +board):\n%s", diff)
	}
}

func (d *played) replay(t *testing.T) {
	t.Helper()
	attempts, err := journal.Attempts(context.Background(), d.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	a := attempts[len(attempts)-1]
	again, steps := d.run, engine.NewReplay(a)
	again.Steps = steps
	board, err := d.eng.Execute(context.Background(), again, engine.NoopHost{}, engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: a.Seed}}))
	if err := steps.End(board, err); err != nil {
		t.Error(err)
	}
}

// since gives what was said after the user's word.
func (d played) since() []string { return dump(d.talk)[1:] }

// entries gives the run's entries of one type.
func entries[D journal.Data](t *testing.T, d played) (ds []D) {
	t.Helper()
	for e, err := range d.store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if x, ok := e.Data.(D); ok {
			ds = append(ds, x)
		}
	}
	return ds
}

// dump shows a transcript, a line a message.
func dump(h message.History) []string {
	lines := make([]string, 0, h.Len())
	for _, m := range h.All() {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s", m.Role(), m.Text())
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.ToolCall:
				fmt.Fprintf(&b, " <%s %s %s>", p.ID, p.Name, p.Input)
			case message.ToolResult:
				fmt.Fprintf(&b, " [%s %s", p.Call, p.Content)
				if p.IsError {
					b.WriteString(" !")
				}
				b.WriteString("]")
			}
		}
		lines = append(lines, b.String())
	}
	return lines
}

func wantErr(t *testing.T, err error, class *errdefs.Class, parts ...string) {
	t.Helper()
	if class == nil {
		if err != nil {
			t.Errorf("error: %v", err)
		}
		return
	}
	if !errors.Is(err, class) {
		t.Errorf("error %v is not of class %v", err, class)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q doesn't say %q", err, part)
		}
	}
}

// listener is a host that listens.
type listener struct {
	engine.NoopHost
	mu     sync.Mutex
	events []event.Event
	ask    func(engine.Prompt) (engine.Reply, error)
	on     func(event.Event)
}

func (l *listener) Listening() bool { return true }

func (l *listener) Publish(_ context.Context, e event.Event) error {
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
	if l.on != nil {
		l.on(e)
	}
	return nil
}

func (l *listener) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	if l.ask == nil {
		return l.NoopHost.AskUser(ctx, p)
	}
	return l.ask(p)
}

// texts gives the deltas of one kind.
func (l *listener) texts(kind event.Delta) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Delta == kind {
			out = append(out, e.Text)
		}
	}
	return out
}

type none struct{}

// counted is a tool that writes: it counts its runs.
func counted(name string, n *int, opts ...tool.Option) tool.Tool {
	var mu sync.Mutex
	return tool.Func(name, "", func(context.Context, none) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		*n++
		return fmt.Sprintf("%s %d", name, *n), nil
	}, opts...)
}

// constant is a tool that always says the same.
func constant(name string, opts ...tool.Option) tool.Tool {
	return tool.Func(name, "", func(context.Context, map[string]any) (string, error) { return "ok", nil }, opts...)
}

func answer(m message.Message) reply {
	return func(context.Context, model.Request) (*model.Response, error) { return &model.Response{Message: m}, nil }
}

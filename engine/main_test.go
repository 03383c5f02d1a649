package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// performs is a Performer made of a function. By default every effect succeeds.
type performs func(ctx context.Context, host engine.Host, e engine.Effect) (journal.Data, error)

func (f performs) Perform(ctx context.Context, _ engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	if f == nil {
		return fine(e), nil
	}
	return f(ctx, host, e)
}

// fine is an outcome that says which effect it is of.
func fine(e engine.Effect) journal.Data {
	id := e.Key().String()
	for {
		s, ok := e.(engine.Scoped)
		if !ok {
			break
		}
		e = s.Effect
	}
	if u, ok := e.(engine.UseTool); ok {
		return journal.ToolFinished{Call: u.Call.ID, Name: u.Call.Name, Content: id, Outcome: journal.OutcomeOK}
	}
	return journal.Stopped{Again: id}
}

func use(id string, a tool.Annotations) engine.UseTool {
	return engine.UseTool{Call: journal.Called{ID: id, Name: "t", Input: `{}`}, Annotations: a}
}

var (
	writes     = tool.Annotations{}
	readOnly   = tool.Annotations{ReadOnly: true}
	idempotent = tool.Annotations{Idempotent: true}
)

// begun opens a session in which a run is under way.
func begun(t testing.TB, store journal.Store) engine.Run {
	t.Helper()
	log := open(t, store)
	if err := log.Drive(t.Context(), "me", journal.Entry{Run: "r", Data: journal.RunStarted{Owner: "me", Attempt: 1}}); err != nil {
		t.Fatal(err)
	}
	return engine.Run{ID: "r", Session: "s", Attempt: 1, Log: log}
}

func open(t testing.TB, store journal.Store) *journal.Log {
	t.Helper()
	log, err := journal.Open(context.Background(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func read(t testing.TB, store journal.Store) (lines []string) {
	t.Helper()
	for e, err := range store.Read(context.Background(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Key != (journal.Key{}) {
			lines = append(lines, string(e.Data.Kind())+" "+e.Key.String())
		}
	}
	return lines
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// place is a host that notes what it is told.
type place struct {
	engine.NoopHost
	mu          sync.Mutex
	events      []event.Event
	checkpoints []engine.Checkpoint
	interrupts  chan engine.Interrupt
}

func (p *place) Listening() bool { return true }

func (p *place) Publish(_ context.Context, e event.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	return nil
}

func (p *place) Checkpoint(_ context.Context, c engine.Checkpoint) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkpoints = append(p.checkpoints, c)
	return nil
}

func (p *place) Interrupts() <-chan engine.Interrupt { return p.interrupts }

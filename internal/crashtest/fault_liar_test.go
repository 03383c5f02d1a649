package crashtest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/crashtest"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// lie is a scenario that breaks a promise, and what has to be noticed.
type lie struct {
	crashtest.Scenario
	repeated, lost bool
}

// noticed inspects lies under a fault.
func noticed(t *testing.T, fault crashtest.Fault, lies map[string]lie) {
	t.Helper()
	if !crashtest.CanDie || runtime.GOOS != "linux" {
		t.Skip("faults are made on Linux only")
	}
	tier.SkipUnlessAll(t, "it needs all points, and TestTheMatrixNotices shows the principle")
	var scenarios []crashtest.Scenario
	for name, l := range lies {
		l.Name, l.Text = name, "the end"
		scenarios = append(scenarios, l.Scenario)
	}
	for name, got := range crashtest.Inspect(t, &fault, scenarios...) {
		l := lies[name]
		if got.Err != nil || l.repeated != (got.Repeated > 0) || l.lost && got.Lost == 0 || !l.lost && !l.repeated && got.Lost > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got.Problems) > 0 && testing.Verbose() {
			t.Logf("%s: %s", name, got.Problems[0])
		}
	}
}

func TestTheFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	pay := func(p *crashtest.Process) tool.Tool { return p.Tool("pay") }
	noticed(t, crashtest.FullFile(), map[string]lie{
		"an honest one":    {Scenario: crashtest.Scenario{Build: paying(pay)}},
		"an honest driver": {Scenario: crashtest.Scenario{Build: driving(driver{})}},
		"a driver whose tool runs though its start is not written": {Scenario: crashtest.Scenario{Build: driving(driver{reckless: true})}, repeated: true},
		"a driver that tries the tool again when its result is not written": {
			Scenario: crashtest.Scenario{Build: driving(driver{stubborn: true})}, repeated: true,
		},
		"a store whose failed append lets the tool run": {
			Scenario: crashtest.Scenario{Build: paying(pay), Open: failing(func(entries []journal.Entry, err error) error {
				starts := func(e journal.Entry) bool { return e.Data.Kind() == (journal.ToolStarted{}).Kind() }
				if slices.ContainsFunc(entries, starts) { // with the judgment before it
					return nil
				}
				return err
			})}, repeated: true, lost: true,
		},
		"a store that reports what it could not write": {
			Scenario: crashtest.Scenario{Build: paying(pay), Open: failing(func([]journal.Entry, error) error { return nil })}, lost: true,
		},
		"a store whose error says nothing": {
			Scenario: crashtest.Scenario{Build: paying(pay), Open: failing(func([]journal.Entry, error) error { return errors.New("oops") })}, lost: true,
		},
		"a store whose error has the class but no place": {
			Scenario: crashtest.Scenario{Build: paying(pay), Open: failing(func([]journal.Entry, error) error { return errdefs.NotAvailable })}, lost: true,
		},
	})
}

func TestHalfAnAppendIsNoticed(t *testing.T) {
	t.Parallel()
	var half bool
	fault := crashtest.Fault{
		Name: "half an append",
		Open: func(ctx context.Context, dir string) (crashtest.Store, error) {
			s, err := crashtest.SQLite(ctx, dir)
			return halving{s, &half}, err
		},
		Begin: func(string) error { half = true; return nil },
	}
	noticed(t, fault, map[string]lie{"half": {
		Scenario: crashtest.Scenario{Build: paying(func(p *crashtest.Process) tool.Tool { return p.Tool("pay") })}, lost: true,
	}})
}

// halving writes the first of several entries and fails.
type halving struct {
	crashtest.Store
	half *bool
}

func (s halving) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if *s.half {
		if len(entries) > 1 {
			if err := s.Store.Append(ctx, session, after, entries[0]); err != nil {
				return err
			}
		}
		return errdefs.NotAvailable.Errorf("half of it is there")
	}
	return s.Store.Append(ctx, session, after, entries...)
}

// failing makes another error of one that an append has.
func failing(change func(entries []journal.Entry, err error) error) crashtest.Opener {
	return func(ctx context.Context, dir string) (crashtest.Store, error) {
		s, err := crashtest.SQLite(ctx, dir)
		return changing{s, change}, err
	}
}

type changing struct {
	crashtest.Store
	change func(entries []journal.Entry, err error) error
}

func (s changing) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	err := s.Store.Append(ctx, session, after, entries...)
	if errdefs.NotAvailable.Is(err) {
		err = s.change(entries, err)
	}
	return err
}

// driver is an engine that journals its one call by itself, before it listens to the model.
type driver struct {
	*loop.Engine
	tool               tool.Tool
	reckless, stubborn bool
}

func driving(d driver) builder {
	return func(p *crashtest.Process) (_ agent.Agent, _ engine.Engine, err error) {
		d.tool = p.Tool("pay")
		d.Engine, err = loop.New(loop.Config{Model: scripted.New(scripted.Text("the end"))})
		return agent.Agent{}, d, err
	}
}

func (d driver) Execute(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
	call := journal.Called{ID: "c1", Name: "pay", Input: `{}`}
	if run.Log == nil { // a replay: it asks, and compares
		if _, err := run.Steps.Do(ctx, engine.UseTool{Call: call}); err != nil {
			return b, err
		}
		return d.Engine.Execute(ctx, run, host, b)
	}
	key := engine.UseTool{Call: call}.Key()
	outcome, begun := run.Log.Recorded(key)
	write := func(data journal.Data) error {
		return run.Log.Append(ctx, journal.Entry{Run: run.ID, Key: key, Data: data})
	}
	finished := journal.ToolFinished{Call: call.ID, Name: call.Name, Outcome: journal.OutcomeUnknown}
	if outcome == nil && !begun {
		if err := write(journal.ToolStarted{Call: call}); err != nil && !d.reckless {
			return b, err
		}
		if _, err := d.tool.Execute(tool.WithCall(ctx, tool.Call{ID: call.ID, Name: call.Name, Key: "k"}), []byte(call.Input)); err != nil {
			return b, err
		}
		finished.Outcome, finished.Content = journal.OutcomeOK, "paid"
	}
	if outcome == nil {
		err := write(finished)
		if err != nil && d.stubborn {
			_, _ = d.tool.Execute(tool.WithCall(ctx, tool.Call{ID: call.ID, Name: call.Name, Key: "k"}), []byte(call.Input))
			err = write(finished)
		}
		if err != nil {
			return b, err
		}
	}
	return d.Engine.Execute(ctx, run, host, b)
}

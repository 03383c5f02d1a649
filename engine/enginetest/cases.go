package enginetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
)

var completions = []check{
	{name: "a run completes with all its work done once and on the board", run: func(s *scene) {
		s.sets(3, 0)
		s.completes(s.execute(s.Context()))
	}},
	{name: "branches complete, and nothing of any is lost", needs: []Lack{NoBranches}, run: func(s *scene) {
		s.sets(2, 5)
		s.completes(s.execute(s.Context()))
	}},
	{name: "it completes where nobody listens and nothing interrupts", run: func(s *scene) {
		s.sets(2, 0)
		s.completes(s.on(s.Context(), engine.HostFuncs{Inner: engine.NoopHost{}, AskUserFunc: s.host.AskUser}))
	}},
	{name: "what it says of itself stays the same", run: func(s *scene) {
		s.sets(1, 0)
		before := engine.CapabilitiesOf(s.eng)
		s.completes(s.execute(s.Context()))
		if after := engine.CapabilitiesOf(s.eng); !reflect.DeepEqual(before, after) {
			s.Errorf("the capabilities were %+v, and are %+v", before, after)
		}
	}},
	{name: "without what it needs it does nothing", run: func(s *scene) {
		s.sets(2, 0)
		needs := engine.CapabilitiesOf(s.eng).Needs
		for _, n := range needs {
			if !s.run.Deps.Has(n) {
				s.Errorf("it needs a %v, which its factory did not put into Work.Dependencies", n)
			}
		}
		if len(needs) == 0 {
			return
		}
		s.run.Deps = nil
		e := s.execute(s.Context())
		if e.panicked != nil || e.err == nil || errdefs.Of(e.err) == nil {
			s.Errorf("Execute gave %v, %v: want an error with a class", e.panicked, e.err)
		}
		s.each(0)
	}},
}

var cancels = []check{
	{name: "a run that was cancelled before does nothing", run: func(s *scene) {
		s.sets(2, 0)
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		s.wants(s.execute(ctx), context.Canceled)
		s.each(0)
	}},
	{name: "a cancel in a step ends the run with the context's error and keeps what was done", run: func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		s.stopsInStep2(ctx, cancel, context.Canceled)
	}},
	{name: "a deadline in a step ends the run with the context's error and keeps what was done", run: func(s *scene) {
		ctx := &expiring{Context: s.Context(), done: make(chan struct{})}
		s.stopsInStep2(ctx, ctx.expire, context.DeadlineExceeded)
	}},
	{name: "what breaks in a step because of a cancel is a cancel", run: func(s *scene) {
		s.sets(3, 0)
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		s.w.on = func(_ context.Context, at Step) error {
			if at.Number < 2 {
				return nil
			}
			cancel()
			return errdefs.NotAvailable.Errorf("the connection was closed")
		}
		e := s.execute(ctx)
		s.wants(e, context.Canceled)
		s.keeps(e)
	}},
	{name: "what breaks in a model call because of a cancel is a cancel", needs: []Lack{NoUsage}, run: func(s *scene) {
		s.sets(3, 0)
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		s.w.think = func(_ context.Context, n int) error {
			if n != 2 {
				return nil
			}
			cancel()
			return errdefs.NotAvailable.Errorf("the connection was closed")
		}
		e := s.execute(ctx)
		if _, uses := s.w.thoughts(); uses {
			s.wants(e, context.Canceled)
			s.keeps(e)
		}
	}},
	{name: "a cancel in a model call ends the run with the context's error and keeps what was done", needs: []Lack{NoUsage}, run: func(s *scene) {
		s.sets(3, 0)
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		s.w.think = func(ctx context.Context, n int) error {
			if n != 2 {
				return nil
			}
			cancel()
			return s.w.waits(ctx)
		}
		e := s.execute(ctx)
		if n, uses := s.w.thoughts(); !uses {
			return // it has a model of its own
		} else if n != 2 {
			s.Errorf("the model was called %d times, want 2", n)
		}
		s.wants(e, context.Canceled)
		s.keeps(e)
	}},
	{name: "a cancel stops every branch", needs: []Lack{NoBranches}, run: func(s *scene) {
		s.sets(2, 3)
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		s.w.on = func(ctx context.Context, at Step) error {
			cancel()
			return s.w.waits(ctx)
		}
		s.wants(s.execute(ctx), context.Canceled)
		for at := range s.w.done() {
			if at.Number > 1 {
				s.Errorf("step %+v was begun after the cancel", at)
			}
		}
	}},
}

// stopsInStep2 executes three steps; ctx ends in the second.
func (s *scene) stopsInStep2(ctx context.Context, stop func(), want error) {
	s.Helper()
	s.sets(3, 0) //nolint:contextcheck // ctx is the run's; the scene is set under the test's
	s.w.on = func(ctx context.Context, at Step) error {
		if at.Number < 2 {
			return nil
		}
		stop()
		return s.w.waits(ctx)
	}
	e := s.execute(ctx)
	s.wants(e, want)
	if errdefs.Interrupted.Is(e.err) {
		s.Errorf("Execute gave %v: a cancel is no interrupt", e.err)
	}
	if done := s.w.done(); done[Step{0, 1}] != 1 || done[Step{0, 2}] != 1 || len(done) != 2 {
		s.Errorf("the steps that were begun: %v, want the first two, once", done)
	}
	s.keeps(e)
}

// expiring is a context whose deadline passes when the case says so.
type expiring struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func (c *expiring) expire() { c.once.Do(func() { close(c.done) }) }

func (c *expiring) Done() <-chan struct{} { return c.done }

func (c *expiring) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// barge is the interrupt of the cases.
var barge = engine.Interrupt{Cause: engine.CauseUserInput, Detail: "somebody spoke"}

var interrupts = []check{
	{name: "an interrupt that is there before does nothing", run: func(s *scene) {
		s.sets(2, 0)
		s.host.barge(barge)
		s.interrupted(s.execute(s.Context()), barge)
		s.each(0)
	}},
	{name: "an interrupt stops at the next step and keeps what was done", run: func(s *scene) { s.interruptedInStep2(barge) }},
	{name: "an interrupt without a cause is one", run: func(s *scene) { s.interruptedInStep2(engine.Interrupt{}) }},
	{name: "an interrupt in the last step does not undo it", run: func(s *scene) {
		s.sets(2, 0)
		s.w.on = func(_ context.Context, at Step) error {
			if at.Number == 2 {
				s.host.barge(barge)
			}
			return nil
		}
		e := s.execute(s.Context())
		if e.err != nil {
			s.interrupted(e, barge)
		}
		s.each(1)
		s.keeps(e)
		if e.err != nil && engine.CapabilitiesOf(s.eng).Resume {
			s.resume()
			s.completes(s.execute(s.Context()))
		}
	}},
	{name: "a closed channel never interrupts", run: func(s *scene) {
		s.sets(2, 0)
		close(s.host.interrupts)
		s.completes(s.execute(s.Context()))
	}},
	{name: "every branch sees the one interrupt", needs: []Lack{NoBranches}, run: func(s *scene) { s.interruptedInBranches() }},
	{name: "a resumed run does nothing again that was finished", run: func(s *scene) {
		s.interruptedInStep2(barge)
		s.goesOn()
	}},
	{name: "a resumed run goes on in every branch", needs: []Lack{NoBranches}, run: func(s *scene) {
		s.interruptedInBranches()
		s.goesOn()
	}},
	{name: "a checkpoint of another run is refused before anything is done", run: func(s *scene) {
		s.sets(2, 0)
		s.resume()
		s.run.ResumeFrom.ExecID = "another-run"
		e := s.execute(s.Context())
		if e.panicked != nil || !errdefs.Validation.Is(e.err) && !errdefs.NotAvailable.Is(e.err) {
			s.Errorf("Execute gave %v, %v: want errdefs.Validation, or errdefs.NotAvailable from an engine that never resumes", e.panicked, e.err)
		}
		s.each(0)
	}},
	{name: "a run that has not begun is resumed whole, or refused", run: func(s *scene) {
		s.sets(2, 0)
		s.host.barge(barge)
		s.interrupted(s.execute(s.Context()), barge)
		s.goesOn()
	}},
}

// interruptedInStep2 executes three steps; the interrupt comes in the second.
func (s *scene) interruptedInStep2(i engine.Interrupt) {
	s.Helper()
	s.sets(3, 0)
	s.w.on = func(_ context.Context, at Step) error {
		if at.Number == 2 {
			s.host.barge(i)
			s.reaches()
		}
		return nil
	}
	e := s.execute(s.Context())
	s.w.on = nil
	s.interrupted(e, i)
	if done := s.w.done(); done[Step{0, 1}] != 1 || done[Step{0, 2}] != 1 || len(done) != 2 {
		s.Errorf("the steps that were begun: %v, want the first two, once", done)
	}
	s.keeps(e)
}

// reaches gives an engine whose work is done elsewhere the time to hear of an interrupt: until it took it, and a moment to pass it on.
func (s *scene) reaches() {
	if !engine.CapabilitiesOf(s.eng).Elsewhere {
		return
	}
	for until := time.Now().Add(prompt); len(s.host.interrupts) > 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(prompt / 4)
}

// interruptedInBranches interrupts once, in the first branch's first step, for which the other branches wait.
func (s *scene) interruptedInBranches() {
	s.Helper()
	s.sets(3, 3)
	said, once := make(chan struct{}), sync.Once{}
	s.w.on = func(ctx context.Context, at Step) error {
		if at == (Step{1, 1}) {
			s.host.barge(barge)
			s.reaches()
			once.Do(func() { close(said) })
		}
		select {
		case <-said:
		case <-s.w.over:
		}
		return nil
	}
	e := s.execute(s.Context())
	s.w.on = nil
	s.interrupted(e, barge)
	for at := range s.w.done() {
		if at.Number > 1 {
			s.Errorf("step %+v was begun after the interrupt", at)
		}
	}
}

// goesOn resumes the run, which completes, or is refused if the engine can't.
func (s *scene) goesOn() {
	s.Helper()
	before := s.w.total()
	s.resume()
	e := s.execute(s.Context())
	if engine.CapabilitiesOf(s.eng).Resume {
		s.completes(e)
		return
	}
	if s.wants(e, errdefs.NotAvailable); s.w.total() != before {
		s.Errorf("an engine that can't resume did %d steps", s.w.total()-before)
	}
}

// hosts are places that fail. They cost no run anything.
var hosts = func() (all []check) {
	for what, set := range map[string]func(p *place, f func() error){
		"Publish":     func(p *place, f func() error) { p.publish = f },
		"Checkpoint":  func(p *place, f func() error) { p.check = f },
		"ReportUsage": func(p *place, f func() error) { p.usage = f },
	} {
		for how, f := range map[string]func() error{
			"fails":          func() error { return errdefs.Internal.Errorf("the host is broken") },
			"is unavailable": func() error { return errdefs.NotAvailable.Errorf("the host is away") },
			"panics":         func() error { panic("the host is broken") },
		} {
			all = append(all, check{name: what + " " + how, run: func(s *scene) {
				s.sets(2, 0)
				set(s.host, f)
				s.completes(s.execute(s.Context()))
			}})
			all = append(all, check{name: what + " " + how + " in branches", needs: []Lack{NoBranches}, run: func(s *scene) {
				s.sets(2, 2)
				set(s.host, f)
				s.completes(s.execute(s.Context()))
			}})
		}
	}
	return append(all, check{name: "ReportUsage says that the budget is used up", needs: []Lack{NoUsage}, run: func(s *scene) {
		s.sets(3, 0)
		s.host.usage = func() error { return errdefs.BudgetExceeded.Errorf("that was the last token") }
		s.wants(s.execute(s.Context()), errdefs.BudgetExceeded)
		if n := s.host.reports(); n != 1 {
			s.Errorf("usage was reported %d times: want the run to stop at the first", n)
		}
		if n, _ := s.w.thoughts(); n > 1 || s.w.total() > 1 {
			s.Errorf("the run went on: %d steps, %d model calls", s.w.total(), n)
		}
	}})
}()

var failures = func() (all []check) {
	for _, class := range []*errdefs.Class{errdefs.Validation, errdefs.BudgetExceeded} {
		all = append(all, check{name: "a step that fails with " + class.Error() + " is not tried again", run: func(s *scene) {
			s.sets(3, 0)
			s.w.on = func(_ context.Context, at Step) error {
				if at.Number == 2 {
					return class.Errorf("step 2 can't be done")
				}
				return nil
			}
			e := s.execute(s.Context())
			if e.panicked != nil || e.err != nil && !errors.Is(e.err, class) {
				s.Errorf("Execute gave %v, %v: want nil or an error of class %v", e.panicked, e.err, class)
			}
			for at, n := range s.w.done() {
				if n > 1 {
					s.Errorf("step %+v was done %d times", at, n)
				}
			}
			s.keeps(e)
		}}, check{name: "a model call that fails with " + class.Error() + " is not tried again", needs: []Lack{NoUsage}, run: func(s *scene) {
			s.sets(3, 0)
			s.w.think = func(_ context.Context, n int) error {
				if n == 2 {
					return class.Errorf("the model can't")
				}
				return nil
			}
			e := s.execute(s.Context())
			n, uses := s.w.thoughts()
			if !uses {
				return // it has a model of its own
			}
			if s.wants(e, class); n != 2 {
				s.Errorf("the model was called %d times, want 2", n)
			}
			s.keeps(e)
		}})
	}
	return append(all,
		check{name: "a panic in a step ends it, or reaches the caller", run: func(s *scene) {
			s.sets(3, 0)
			s.w.on = func(_ context.Context, at Step) error {
				if at.Number == 2 {
					panic("step 2 is broken")
				}
				return nil
			}
			e := s.execute(s.Context())
			if n := s.w.done()[Step{0, 2}]; n != 1 {
				s.Errorf("the step that panicked was done %d times", n)
			}
			if e.panicked == nil {
				s.keeps(e)
			}
		}},
		check{name: "a panic in a branch does not end the process", needs: []Lack{NoBranches}, run: func(s *scene) {
			s.sets(2, 3)
			s.w.on = func(_ context.Context, at Step) error {
				if at == (Step{2, 1}) {
					panic("branch 2 is broken")
				}
				return nil
			}
			if e := s.execute(s.Context()); e.panicked == nil && e.err == nil && s.w.done()[Step{2, 2}] == 0 {
				s.Error("a branch was given up, and the run completed")
			}
		}})
}()

var gates = []check{
	{name: "a tool that the agent may use runs", needs: []Lack{NoTools}, run: func(s *scene) {
		s.sets(2, 0)
		s.run.Tools = []string{"other", ToolName}
		s.completes(s.execute(s.Context()))
	}},
	{name: "a tool that the agent may not use does not run, though it is asked for", needs: []Lack{NoTools}, run: func(s *scene) {
		for _, tools := range [][]string{{}, {"other"}, {ToolName + "er"}, {""}} {
			s.sets(2, 0)
			s.run.Tools = tools
			e := s.execute(s.Context())
			if s.each(0); e.panicked != nil {
				s.Errorf("Execute panicked: %v", e.panicked)
			}
		}
	}},
}

var races = []check{
	{name: "runs of one engine at the same time are independent", run: func(s *scene) {
		s.sets(3, 0)
		const runs = 8
		all := make([]*scene, runs)
		ends := make([]end, runs)
		for i := range all {
			one := *s
			one.host = &place{interrupts: make(chan engine.Interrupt, 1)}
			one.begin(fmt.Sprint("s", i))
			all[i] = &one
		}
		var wg sync.WaitGroup
		for i, one := range all {
			wg.Go(func() { ends[i] = one.execute(s.Context()) })
		}
		wg.Wait()
		s.each(runs)
		s.apart(ends)
	}},
	{name: "an interrupt is for one run", run: func(s *scene) {
		s.sets(2, 0)
		s.host.barge(barge)
		other := *s
		other.host = &place{interrupts: make(chan engine.Interrupt, 1)}
		other.begin("other")
		s.interrupted(s.execute(s.Context()), barge)
		other.completes(other.execute(s.Context()))
	}},
}

// apart fails unless each result is on exactly one board, and each board has as many.
func (s *scene) apart(ends []end) {
	s.Helper()
	on := make([]int, len(ends))
	texts := make([]string, len(ends))
	for i, e := range ends {
		if s.wants(e, nil); e.board != nil {
			texts[i] = written(e.board)
		}
	}
	for _, r := range s.w.results() {
		boards := 0
		for i, text := range texts {
			if strings.Contains(text, r) {
				on[i]++
				boards++
			}
		}
		if boards != 1 {
			s.Errorf("%q is on %d boards", r, boards)
		}
	}
	for i, n := range on {
		if n != s.w.steps {
			s.Errorf("board %d has %d results, want %d", i, n, s.w.steps)
		}
	}
}

package enginetest

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

var records = []check{
	{name: "the transcript is valid at every entry, and the board has the journal's", needs: []Lack{NoJournal}, run: func(s *scene) {
		s.sets(3, 0)
		e := s.execute(s.Context())
		s.completes(e)
		s.onRecord(e)
	}},
	{name: "the transcript is valid after a cancel, a failure and an interrupt", needs: []Lack{NoJournal}, run: func(s *scene) {
		for _, how := range []func(stop func()) error{
			func(stop func()) error { stop(); return context.Canceled },
			func(func()) error { return errdefs.Internal.Errorf("step 2 is broken") },
			func(func()) error { s.host.barge(barge); return nil },
		} {
			s.sets(3, 0)
			ctx, cancel := context.WithCancel(s.Context())
			s.w.on = func(_ context.Context, at Step) error {
				if at.Number != 2 {
					return nil
				}
				return how(cancel)
			}
			e := s.execute(ctx)
			cancel()
			if e.panicked != nil {
				s.Fatalf("Execute panicked: %v\n%s", e.panicked, e.stack)
			}
			if s.valid(); !errdefs.Interrupted.Is(e.err) { // then what is open is answered when it goes on
				s.closes(e)
				s.onRecord(e)
			}
		}
	}},
	{name: "what is on record is given again, and nothing is done", needs: []Lack{NoJournal}, run: func(s *scene) {
		s.sets(3, 0)
		first := s.execute(s.Context())
		s.completes(first)
		thoughts, _ := s.w.thoughts()
		s.resume()
		s.run.ResumeFrom.Seq = s.run.Log.Seq()
		if !engine.CapabilitiesOf(s.eng).Resume {
			s.run.ResumeFrom = nil
		}
		second := s.execute(s.Context())
		s.completes(second)
		s.same("the board of the second time", first.board.Channel(engine.MainChannel), second.board.Channel(engine.MainChannel))
		if n, _ := s.w.thoughts(); n != thoughts || s.host.reports() > 0 {
			s.Errorf("the second time the model was called %d times more, and usage reported %d times", n-thoughts, s.host.reports())
		}
		s.onRecord(second)
	}},
	{name: "a replay finds no difference and does nothing", needs: []Lack{NoJournal}, run: func(s *scene) {
		s.sets(3, 0)
		s.completes(s.execute(s.Context()))
		s.replays()
	}},
	{name: "a replay of a run with branches finds no difference", needs: []Lack{NoJournal, NoBranches}, run: func(s *scene) {
		s.sets(2, 3)
		s.completes(s.execute(s.Context()))
		s.replays()
	}},
	{name: "a replay of a run that was interrupted and resumed finds no difference", needs: []Lack{NoJournal}, run: func(s *scene) {
		s.interruptedInStep2(barge)
		if !engine.CapabilitiesOf(s.eng).Resume {
			return
		}
		s.goesOn()
		s.replays()
	}},
	{name: "nothing begins once the journal has failed", needs: []Lack{NoJournal}, run: func(s *scene) {
		for n, more := 1, true; more; n++ {
			s.sets(3, 0)
			apart := engine.CapabilitiesOf(s.eng).Elsewhere // then the journal fails one of many processes, and another one may go on
			broken := &breaking{Store: s.store, n: n + 1}   // the first begins the run
			s.store = broken
			s.begin("t")
			s.w.on = func(context.Context, Step) error {
				if broken.failed() && !apart {
					s.Errorf("a step began after append %d failed", n)
				}
				return nil
			}
			e := s.execute(s.Context())
			if more = broken.failed(); !more && n == 1 {
				s.Error("the run put nothing on record")
			}
			for at, times := range s.w.done() {
				if times > 1 && s.has(NoTools) { // a function of an engine may be done again
					s.Errorf("append %d failed, and step %+v was done %d times", n, at, times)
				}
			}
			if apart && e.panicked == nil && e.err == nil {
				continue // what could not be put on record was tried again
			}
			if more && !errors.Is(e.err, errDisk) {
				s.Errorf("append %d failed, and Execute gave %v, %v: want the store's error", n, e.panicked, e.err)
			}
		}
	}},
	{name: "a run whose session another driver has taken over ends", needs: []Lack{NoJournal}, run: func(s *scene) {
		s.sets(3, 0)
		s.w.on = func(_ context.Context, at Step) error {
			if at.Number != 2 {
				return nil
			}
			other, err := journal.Open(s.Context(), s.store, s.run.Session)
			if err != nil {
				return err
			}
			return other.Drive(s.Context(), "driver-3", journal.Entry{Run: s.run.ID, Data: journal.Resumed{Owner: "driver-3"}})
		}
		s.wants(s.execute(s.Context()), errdefs.Conflict)
		if n := s.w.done()[Step{0, 3}]; n > 0 {
			s.Errorf("step 3 was done %d times by a driver that was overtaken", n)
		}
	}},
}

// closes puts on record what the engine has put behind the transcript by itself, as agent.Run does at a run's end.
func (s *scene) closes(e end) {
	s.Helper()
	then, now := s.run.Log.State().Messages, e.board.Channel(engine.MainChannel)
	if now.Len() <= then.Len() {
		return
	}
	said := now.Slice(then.Len(), now.Len()).Messages()
	if err := s.run.Log.Append(context.WithoutCancel(s.Context()), journal.Entry{Run: s.run.ID, Data: journal.Board{Append: map[string][]message.Message{engine.MainChannel: said}}}); err != nil {
		s.Fatal(err)
	}
}

// onRecord fails unless the transcript is valid at each entry, and the main channel is the one on record.
func (s *scene) onRecord(e end) {
	s.Helper()
	s.valid()
	s.same("the board's main channel, against the journal's", s.run.Log.State().Messages, e.board.Channel(engine.MainChannel))
}

func (s *scene) valid() {
	s.Helper()
	for seq := int64(1); seq <= s.run.Log.Seq(); seq++ {
		st, err := journal.StateAt(s.Context(), s.store, s.run.Session, seq)
		if err != nil {
			s.Fatal(err)
		}
		s.same("the transcript on record, against what makes it valid", message.Repair(st.Messages), st.Messages)
	}
}

// same compares transcripts by what they say.
func (s *scene) same(what string, want, got message.History) {
	s.Helper()
	if want.Len() != got.Len() {
		s.Errorf("%s has %d messages, want %d", what, got.Len(), want.Len())
		return
	}
	for i, m := range want.All() {
		if w, g := m.AppendJSON(nil), got.At(i).AppendJSON(nil); !bytes.Equal(w, g) {
			s.Errorf("%s: message %d is %s, want %s", what, i+1, g, w)
		}
	}
}

// replays closes the run, as completed, and drives the engine through what is on record of it.
func (s *scene) replays() {
	s.Helper()
	if err := s.run.Log.Append(s.Context(), journal.Entry{Run: s.run.ID, Data: journal.RunFinished{Status: "completed", Committed: true}}); err != nil {
		s.Fatal(err)
	}
	attempts, err := journal.Attempts(s.Context(), s.store, s.run.Session)
	if err != nil || len(attempts) != 1 {
		s.Fatalf("%d attempts are on record: %v", len(attempts), err)
	}
	steps := engine.NewReplay(attempts[0])
	s.run.Steps, s.run.Log, s.run.ResumeFrom, s.seed = steps, nil, nil, attempts[0].Seed
	s.host = &place{}
	before, total := 0, s.w.total()
	before, _ = s.w.thoughts()
	e := s.execute(s.Context())
	if err := steps.End(e.board, e.err); err != nil {
		s.Errorf("the replay differs: %v", err)
	}
	if n, _ := s.w.thoughts(); n != before || s.w.total() != total || s.host.heard+s.host.reports()+len(s.host.checkpoints) > 0 {
		s.Errorf("the replay did %d steps and %d model calls, and told its host %d things", s.w.total()-total, n-before, s.host.heard+s.host.reports()+len(s.host.checkpoints))
	}
	s.keeps(e)
}

var errDisk = errdefs.NotAvailable.Errorf("store: append: the disk is full")

// breaking is a store whose append number n fails, and no other: whoever goes on after it would get away with it.
type breaking struct {
	journal.Store
	mu sync.Mutex
	n  int
}

func (b *breaking) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 {
		return errDisk
	}
	return b.Store.Append(ctx, session, after, entries...)
}

func (b *breaking) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n <= 0
}

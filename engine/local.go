package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// Local performs effects in this process and journals them in run.Log. Resuming is nothing but running again: what is on record
// is given again, in memory, until the record ends.
func Local(run Run, host Host, p Performer) Steps {
	run.intr = run.latch(host)
	return &local{run: run, host: host, p: p, intr: run.intr, driver: run.Log.Driver()}
}

// latch is where the run's interrupts are seen.
func (r *Run) latch(host Host) *latch {
	switch {
	case r.intr != nil:
		return r.intr
	case r.Background != nil:
		return r.Background.intr
	}
	return latchOf(host)
}

// Interruptions gives the interrupt of a run, nil while there is none, to an engine that does not use [Local]: what the host says is read once, and seen by every part of the run, and by those below.
func Interruptions(run Run, host Host) func() *Interrupt { return run.latch(host).get }

type local struct {
	run    Run
	host   Host
	p      Performer
	scopes []string
	beside bool // other branches may run beside these steps
	intr   *latch
	driver string // of the session, when the steps began
	kept   atomic.Pointer[endless]
	spare  atomic.Pointer[room]

	ahead  bool            // see Ahead
	held   []journal.Entry // what waits for the next append
	heldBy []context.Context
}

// together bounds how many effects, or branches of one Branch, run at the same time.
const together = 16

func (s *local) Do(ctx context.Context, effects ...Effect) ([]journal.Data, error) {
	effects = s.scoped(effects)
	out := make([]journal.Data, len(effects))
	for from, to := 0, 0; from < len(effects); from = to {
		for to = from + 1; to < len(effects) && to-from < together && Together(effects[from], effects[to]); to++ {
		}
		if err := s.group(ctx, effects[from:to], out[from:to], nil); err != nil {
			return out, err
		}
	}
	return out, nil
}

// single is Do for one effect.
func (s *local) single(ctx context.Context, e Effect) (journal.Data, error) {
	r := s.room()
	defer s.leave(r)
	if r.effect[0] = e; len(s.scopes) > 0 {
		r.effect[0] = s.scoped([]Effect{e})[0]
	}
	err := s.group(ctx, r.effect[:], r.out[:], r)
	return r.out[0], err
}

// room is what a single effect needs, in one piece. One effect of a path comes after the other, so that they have one room.
type room struct {
	effect          [1]Effect
	out             [1]journal.Data
	begun           [1]bool
	intent, outcome [1]journal.Entry
}

func (s *local) room() *room {
	if r := s.spare.Swap(nil); r != nil {
		return r
	}
	return &room{}
}

// leave gives a room to the next who needs one.
func (s *local) leave(r *room) {
	*r = room{}
	s.spare.Store(r)
}

func (s *local) scoped(effects []Effect) []Effect { return InScopes(s.scopes, s.beside, effects) }

// Together reports whether two neighbours belong to one group: they may run together, or they are questions, which are pending together and
// put one after the other. [Steps] that perform effects elsewhere part them so, too.
func Together(a, b Effect) bool {
	_, askA := Bare(a).(Ask)
	_, askB := Bare(b).(Ask)
	return a.Concurrent() && b.Concurrent() || askA && askB
}

// group performs effects together. Intents are made durable just before, and not earlier: begun means begun. Each outcome is on record
// before its neighbours are waited for, and kept even when the run was cancelled while it was being made.
func (s *local) group(ctx context.Context, effects []Effect, out []journal.Data, r *room) error {
	var begun []bool
	var intents []journal.Entry
	if r != nil {
		begun, intents = r.begun[:], r.intent[:0]
	} else {
		begun = make([]bool, len(effects))
	}
	missing, err := s.recall(ctx, effects, out, begun)
	if err != nil || missing == 0 {
		return err
	}
	for i, e := range effects {
		if in := e.Intent(); in != nil && out[i] == nil && !begun[i] {
			intents = append(intents, s.entry(e, in))
		}
	}
	if err := s.first(ctx, effects[0], len(intents) > 0); err != nil {
		return err
	}
	if err := s.stopped(ctx); err != nil {
		return err
	}
	if err := s.begin(ctx, effects[0], intents); err != nil {
		if errdefs.Conflict.Is(err) && s.overtaken(intents) {
			return s.group(ctx, effects, out, nil) // another attempt at this effect was faster: look again
		}
		return err
	}
	if !effects[0].Concurrent() {
		if r == nil {
			r = s.room() // one outcome comes after the other
			defer s.leave(r)
		}
		for i, e := range effects {
			if err := s.one(ctx, s.host, e, &out[i], r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(effects) == 1 {
		return s.one(ctx, s.host, effects[0], &out[0], r)
	}
	return s.together(ctx, effects, out)
}

// stopped says why nothing more may begin.
func (s *local) stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.run.Log.Failed(); err != nil { // an outcome may be missing: what comes after it must not begin, whoever asks for it
		return err
	}
	if i := s.intr.get(); i != nil {
		return InterruptedError{*i}
	}
	return nil
}

// together performs concurrent effects.
func (s *local) together(ctx context.Context, effects []Effect, out []journal.Data) error {
	return pump(ctx, s.host, len(effects), func(ctx context.Context, i int, host Host) error { return s.one(ctx, host, effects[i], &out[i], nil) })
}

// recall fills in what is on record, and settles what was begun and lost.
func (s *local) recall(ctx context.Context, effects []Effect, out []journal.Data, begun []bool) (missing int, err error) {
	for i, e := range effects {
		var done journal.Data
		done, begun[i] = s.run.Log.Recorded(e.Key())
		if done == nil && begun[i] {
			if lost := e.Lost(); lost != nil {
				if done, err = s.settle(ctx, s.host, e, lost, nil); err != nil {
					return 0, err
				}
			}
		}
		if out[i] = done; done == nil {
			missing++
		}
	}
	return missing, nil
}

// overtaken tells another attempt at the same effects, which has begun them, from another driver, who has the session to himself.
func (s *local) overtaken(intents []journal.Entry) bool {
	return s.drives() && slices.ContainsFunc(intents, func(e journal.Entry) bool {
		_, begun := s.run.Log.Recorded(e.Key)
		return begun
	})
}

// drives reports whether the session's driver is the one that these steps began under. What is on record under another one may be of
// another run: it must not be taken for this one's.
func (s *local) drives() bool { return s.run.Log.Driver() == s.driver }

// one performs an effect and puts on record what came of it, whatever the error and whether or not ctx has ended meanwhile.
func (s *local) one(ctx context.Context, host Host, e Effect, out *journal.Data, r *room) error {
	if *out != nil {
		return nil
	}
	do := perform
	if len(s.run.Bounds.Tracers) > 0 {
		do = withTracers
	}
	d, err := do(ctx, s.p, &s.run, host, e)
	if d == nil && err != nil && !errors.As(err, new(InterruptedError)) {
		d = e.Lost() // it was begun, and nobody knows how far it came
	}
	if s.ahead && r != nil && err == nil && waits(d) {
		*out = d
		s.hold(s.without(ctx), s.entry(e, d))
		return nil
	}
	if d != nil {
		var lost error
		*out, lost = s.settle(s.without(ctx), host, e, d, r)
		return errors.Join(err, lost)
	}
	if err != nil && !errors.As(err, new(InterruptedError)) {
		return s.failed(ctx, host, e, err, out)
	}
	return err
}

// failed notes that an effect came to nothing, or keeps that as its outcome.
func (s *local) failed(ctx context.Context, host Host, e Effect, err error, out *journal.Data) error {
	keep := s.without(ctx)
	if f, ok := Bare(e).(Failing); ok {
		if lost := s.write(keep, host, s.entry(e, f.Failed(err))); lost != nil {
			return errors.Join(err, lost)
		}
	}
	if s.keeps(e, err) {
		var lost error
		*out, lost = s.settle(keep, host, e, failedBy(err), nil)
		return lost
	}
	return err
}

// keeps reports whether an error is an outcome: see [Keep].
func (s *local) keeps(e Effect, err error) bool {
	if !Kept(e) || errdefs.Of(err) == nil && errdefs.Canceled(err) || s.run.Log.Failed() != nil {
		return false
	}
	for _, never := range []*errdefs.Class{errdefs.Interrupted, errdefs.Conflict, errdefs.BudgetExceeded} {
		if never.Is(err) {
			return false
		}
	}
	return true
}

// perform keeps a panic of a model or a host from taking the process, or the neighbours' outcomes, with it. When the run was cancelled, whatever an
// effect fails with is that: what breaks then (a stream, a prompt) has no class of its own.
func perform(ctx context.Context, p Performer, run *Run, host Host, e Effect) (d journal.Data, err error) {
	defer func() {
		if v := recover(); v != nil {
			d, err = nil, errdefs.Recovered(e.Key().String(), v)
		}
		if end := ctx.Err(); end != nil && err != nil && (errdefs.Of(err) != nil || !errdefs.Canceled(err)) && !errors.As(err, new(InterruptedError)) {
			err = fmt.Errorf("%w: %v: %v", end, e.Key(), err) //nolint:errorlint // see above
		}
	}()
	d, err = p.Perform(ctx, *run, host, e)
	switch d.(type) {
	case journal.Board, journal.Visited:
		if err == nil {
			err = changes(e, d)
		}
		if err != nil {
			d = nil
		}
	}
	return d, err
}

// changes checks an outcome that changes the board, or tells of a change.
func changes(e Effect, d journal.Data) error {
	switch d := d.(type) {
	case journal.Board:
		return fits(e, d)
	case journal.Visited:
		return checked(e, d.Board)
	}
	return nil
}

// checked refuses a change of the board that would not come back as it is.
func checked(e Effect, b journal.Board) error {
	if err := b.Check(); err != nil {
		return fmt.Errorf("engine: %v: what it changed can't be journaled: %w", e.Key(), err)
	}
	return nil
}

// fits checks an outcome that changes the board.
func fits(e Effect, b journal.Board) error {
	if err := checked(e, b); err != nil {
		return err
	}
	if _, edits := b.Edit[MainChannel]; e.Concurrent() && (edits || len(b.Append[MainChannel]) > 0) {
		return errdefs.Validation.Errorf("engine: %v is concurrent and changes the channel %s, whose order would be that of chance: give the message in a var, and append it by an effect that is not concurrent", e.Key(), MainChannel)
	}
	return nil
}

// settle puts an outcome on record, or gives the one that was there first: that one counts.
func (s *local) settle(ctx context.Context, host Host, e Effect, d journal.Data, r *room) (journal.Data, error) {
	var entry []journal.Entry
	if r != nil {
		entry = r.outcome[:0]
	}
	entry = append(entry, s.entry(e, d))
	err := s.write(ctx, host, entry...)
	if errdefs.Conflict.Is(err) && s.drives() {
		if first, _ := s.run.Log.Recorded(e.Key()); first != nil {
			return first, nil
		}
	}
	if err == nil && keepsCheckpoints(host) {
		s.checkpoint(ctx, host, &entry[0])
	}
	return d, err
}

// keepsCheckpoints reports whether a checkpoint would reach anybody. Only types of ours are asked, as they are: what embeds one may have its own.
func keepsCheckpoints(host Host) bool {
	switch h := host.(type) {
	case NoopHost, *NoopHost:
		return false
	case HostFuncs:
		return h.CheckpointFunc != nil || keepsCheckpoints(h.inner())
	}
	return true
}

// without is ctx without its end. The steps of a path have one context, and so one of these.
func (s *local) without(ctx context.Context) context.Context {
	if reflect.TypeOf(ctx).Kind() != reflect.Pointer { // others may not be comparable
		return context.WithoutCancel(ctx)
	}
	if k := s.kept.Load(); k != nil && k.of == ctx {
		return k.without
	}
	k := &endless{ctx, context.WithoutCancel(ctx)}
	s.kept.Store(k)
	return k.without
}

type endless struct{ of, without context.Context }

// checkpoint tells the host how far the run is, which the journal has already: neither an error nor a panic fails the run.
func (s *local) checkpoint(ctx context.Context, host Host, e *journal.Entry) {
	at := s.run.Log.Mark()
	c := Checkpoint{
		ExecID: s.run.ID, Step: e.Key.String(), Session: s.run.Session, Attributes: s.run.Attributes, Seq: e.Seq,
		Iteration: at.Steps, Timestamp: time.Now().UTC(), OriginalStartedAt: at.Started,
	}
	defer func() { _ = recover() }()
	_ = host.Checkpoint(ctx, c)
}

func (s *local) Branch(ctx context.Context, branches ...Branch) error {
	if err := Settle(ctx, s); err != nil {
		return err
	}
	return pump(ctx, s.host, len(branches), func(ctx context.Context, i int, host Host) (err error) {
		defer func() {
			if v := recover(); v != nil { // in a goroutine of ours it would end the process
				err = errdefs.Recovered("branch "+branches[i].Scope, v)
			}
		}()
		sub := &local{run: s.run, host: host, p: s.p, scopes: append(slices.Clip(s.scopes), branches[i].Scope), beside: s.beside || len(branches) > 1, intr: s.intr, driver: s.driver}
		return branches[i].Run(ctx, sub)
	})
}

func (s *local) entry(e Effect, d journal.Data) journal.Entry {
	return journal.Entry{Run: s.run.ID, Key: e.Key(), Data: d}
}

// join gives the one error there is as it is, and joins several.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(e error) bool { return e == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// pump runs n jobs, in order and so many together, and brings what they publish to this goroutine, so that a ranged stream is only ever called from the goroutine that
// ranges over it. One job runs right here: no goroutine, no channel. It returns when all jobs have, with their errors in order.
func pump(ctx context.Context, host Host, n int, job func(ctx context.Context, i int, host Host) error) error {
	if n == 1 {
		return job(ctx, 0, host)
	}
	inner, cancel := context.WithCancel(ctx)
	events := make(chan event.Event)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		errs[i] = errGone
	}
	go func() {
		free := make(chan struct{}, together) // of this call alone: what a job runs side by side never waits for the jobs beside it
		for i := range n {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				errs[i] = job(inner, i, piped{host, events})
			})
		}
		wg.Wait()
		close(events)
	}()
	defer func() { // a listener may end this goroutine (runtime.Goexit): the jobs must not wait for it for ever
		cancel()
		for range events {
		}
	}()
	for e := range events {
		publish(ctx, host, e)
	}
	return join(errs)
}

// errGone is the error of a job that called runtime.Goexit.
var errGone = errdefs.Internal.Errorf("engine: an effect ended its goroutine without an outcome")

type piped struct {
	Host
	events chan<- event.Event
}

func (p piped) Publish(_ context.Context, e event.Event) error { p.events <- e; return nil }
func (p piped) Listening() bool                                { return Listening(p.Host) }
func (p piped) interrupts() *latch                             { return above(p.Host) }

// latch turns a channel that one reader drains into an interrupt that every part of a run sees.
type latch struct {
	above *latch // of the run above, whose interrupts are this one's too
	mu    sync.Mutex
	c     <-chan Interrupt
	seen  *Interrupt
}

// latchOf makes the latch of a run: below that of the run above, or on the host's channel.
func latchOf(host Host) *latch {
	if l := above(host); l != nil {
		return &latch{above: l}
	}
	return &latch{c: interrupts(host)}
}

// interrupts takes a host that panics to have none.
func interrupts(host Host) (c <-chan Interrupt) {
	defer func() {
		if recover() != nil {
			c = nil
		}
	}()
	return host.Interrupts()
}

// above is the latch of the run above, nil when there is none. Every host of ours that stands before another one passes it on: with a latch of its own, the run
// below would take an interrupt out of the channel that the run above waits for.
func above(host Host) *latch {
	if child, ok := host.(interface{ interrupts() *latch }); ok {
		return child.interrupts()
	}
	return nil
}

// set interrupts all parts, and what is below, unless they are already.
func (l *latch) set(i Interrupt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = &i
	}
}

func (l *latch) get() *Interrupt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil && l.above != nil {
		l.seen = l.above.get()
	}
	if l.seen == nil && l.c != nil {
		select {
		case i, open := <-l.c:
			if open {
				l.seen = &i
			} else {
				l.c = nil
			}
		default:
		}
	}
	return l.seen
}

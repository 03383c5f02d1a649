// Package live keeps runs going behind those who ask for them: a run goes on when its caller is gone, and whoever comes reads it from any point on.
package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/stream"
)

// Agent is who runs: a serve.Agent.
type Agent interface {
	Run(ctx context.Context, req pawl.Request, opts ...agent.RunOption) (*agent.Result, error)
	Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error)
	Journal() journal.Store
}

// Runs are the runs that were begun here. Safe for concurrent use.
type Runs struct {
	agent  Agent
	stream stream.Store
	writer *stream.Writer
	most   int
	log    *slog.Logger

	mu     sync.Mutex
	under  map[string]*Run // way, by session
	soon   map[string]int  // by session: answers after which its run may be about to go on
	closed bool
	all    sync.WaitGroup
}

// New makes an empty Runs of an agent. What is said goes into st; nil is the memory of this process. No more than most runs are under way at a time.
func New(a Agent, st stream.Store, most int, log *slog.Logger) *Runs {
	gather := stream.Batching{}
	if st == nil {
		st, gather.Every = stream.Memory(stream.Retention{}), -1
	}
	return &Runs{agent: a, stream: st, writer: stream.NewWriter(st, gather, log), most: most, log: log, under: map[string]*Run{}, soon: map[string]int{}}
}

// Journal is the store that the sessions are in.
func (r *Runs) Journal() journal.Store { return r.agent.Journal() }

// Run is one that was begun, or taken up again, here.
type Run struct {
	Session, ID string
	Known       bool            // it was on record already when it was asked for
	from        stream.Position // where the session was before it
	*going
}

// going is what goes on behind those who asked for it.
type going struct {
	cancel context.CancelCauseFunc
	stop   chan engine.Interrupt
	begun  chan struct{} // closed when its beginning is on record
	done   chan struct{} // closed when it is over
	once   sync.Once
	res    *agent.Result
	err    error
}

// From is the position before the run's first entry: who follows from there gets all of it.
func (r *Run) From() stream.Position { return r.from }

// Cancel ends the run as canceled. It does not wait for that.
func (r *Run) Cancel() { r.cancel(nil) }

// Interrupt stops the run at its next step; it can be resumed. It does not wait for that, and does nothing when somebody has done so before.
func (r *Run) Interrupt(i engine.Interrupt) {
	select {
	case r.stop <- i:
	default:
	}
}

// Done is closed when the run is over here: it has ended, or was left to be resumed.
func (r *Run) Done() <-chan struct{} { return r.done }

// Result is what came of it, as agent.Run gives it; nil, nil before Done.
func (r *Run) Result() (*agent.Result, error) {
	select {
	case <-r.done:
		return r.res, r.err
	default:
		return nil, nil
	}
}

// Start begins a run and returns when its beginning is on record; the run then goes on, whatever becomes of ctx, of which it keeps the values. The request may name the run: one of that name that the session has already is not begun again, and comes back as Known; that it was asked something else is Conflict. If
// nobody drives it any more, because its process died or was shut down, it goes on. When ctx ends before, a run with a name goes on, too, for whoever asks for it again; one without is ended as canceled.
//
// It fails with Conflict while a run is under way in the session, or waits for a person there, with RateLimit when there are as many as may be, with NotAvailable after Close, and with what kept the run from beginning.
func (r *Runs) Start(ctx context.Context, req pawl.Request, opts ...agent.RunOption) (*Run, error) {
	named := req.RunID != ""
	if !named {
		req.RunID = "run-" + strings.ToLower(rand.Text())
	}
	if req.ContextID == "" {
		if req.ContextID = req.SessionID; req.ContextID == "" {
			req.ContextID = req.RunID
		}
	}
	run, err := r.begin(ctx, req.ContextID, req.RunID, func(ctx context.Context, more ...agent.RunOption) (*agent.Result, error) {
		if err := r.waits(ctx, req.ContextID); err != nil {
			return nil, err
		}
		return r.agent.Run(ctx, req, append(slices.Clone(opts), more...)...)
	})
	if !named && run != nil && err != nil { // nobody else knows of it
		run.Cancel()
		<-run.done
		return run.await(context.WithoutCancel(ctx))
	}
	if named && errdefs.Conflict.Is(err) { // there may be one of that name: begun before, or just now
		if run, e := r.known(ctx, req.ContextID, req.RunID, req.Message); run != nil || e != nil {
			return run, e
		}
	}
	return run, err
}

// waits is Conflict when a session's run waits for a person who can still answer: a prompt, which would close it, is not to throw that away unseen.
func (r *Runs) waits(ctx context.Context, session string) error {
	pending, err := agent.Pending(ctx, r.Journal(), session)
	if err != nil {
		return err
	}
	now := time.Now()
	pending = slices.DeleteFunc(pending, func(p journal.Pending) bool { return p.Expired(now) })
	if len(pending) == 0 {
		return nil
	}
	what := pending[0].ID
	if c := pending[0].Call; c != nil {
		what += " (" + c.Name + ")"
	}
	if more := len(pending) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	path := "/v1/sessions/" + url.PathEscape(session)
	return errdefs.Conflict.Errorf("serve: session %s waits for a person's answer to %s: answer it (POST %s/answers), or cancel its run (POST %s/cancel), and then say what is new", session, what, path, path)
}

// Resume goes on with the unfinished run of a session, as Start begins one. NotFound when there is none.
func (r *Runs) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*Run, error) {
	return r.begin(ctx, session, "", func(ctx context.Context, more ...agent.RunOption) (*agent.Result, error) {
		return r.agent.Resume(ctx, session, append(slices.Clone(opts), more...)...)
	})
}

// End ends the unfinished run of a session as canceled: one that is under way here, and one that waits, or was left. It does not wait for that. With an id it is the run of that name. Without one it is the run that is unfinished when End is called, and no later one,
// whoever has to be waited for. NotFound when there is none, or another one is under way by now; Conflict when another process drives it.
func (r *Runs) End(ctx context.Context, session, id string) (*Run, error) {
	want := id
	if want == "" {
		log, err := journal.Open(ctx, r.Journal(), session)
		if err != nil {
			return nil, err
		}
		want = log.Run()
	}
	for {
		run, err := r.here(ctx, session, id)
		if err != nil {
			return nil, err
		}
		if run != nil {
			run.Cancel()
			return run, nil
		}
		run, err = r.begin(ctx, session, "", func(ctx context.Context, more ...agent.RunOption) (*agent.Result, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return r.agent.Resume(ctx, session, append(more, agent.WithObserver(onStart{do: func(run string) {
				if run == want || want == "" { // it goes on as far as to be canceled
					cancel()
				}
			}}))...)
		})
		if err == nil && want != "" && r.id(run) != want {
			return nil, errdefs.NotFound.Errorf("serve: run %s of session %s is over: run %s is under way there", want, session, r.id(run))
		}
		if !errdefs.Conflict.Is(err) || r.Of(session) == nil { // else somebody else has it go on just now
			return run, err
		}
	}
}

// here gives the run that is under way in a session, by this process, once it has begun; nil when nothing is. With an id, NotFound when it is another one.
func (r *Runs) here(ctx context.Context, session, id string) (*Run, error) {
	for run := r.Of(session); run != nil; run = r.Of(session) {
		begun, err := run.await(ctx)
		switch under := r.id(run); {
		case ctx.Err() != nil:
			return nil, err
		case begun == nil: // it did not begin, and is not there any more
		case id != "" && under != id:
			return nil, errdefs.NotFound.Errorf("serve: run %s of session %s is over: run %s is under way there", id, session, under)
		default:
			return run, nil
		}
	}
	return nil, nil
}

type onStart struct {
	agent.BaseObserver
	do func(run string)
}

func (o onStart) OnRunStart(_ context.Context, info agent.RunInfo, _ *agent.Request) {
	o.do(info.RunID)
}

// Drives reports whether the run of a session is under way here, or about to be.
func (r *Runs) Drives(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.under[session] != nil || r.soon[session] > 0
}

// expect notes that a run may be about to go on; the function that it gives takes that back.
func (r *Runs) expect(session string) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.soon[session]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.soon[session]--; r.soon[session] == 0 {
			delete(r.soon, session)
		}
	}
}

// Of gives the run that is under way in a session, by this process; nil when there is none.
func (r *Runs) Of(session string) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.under[session]
}

// Begun is Of, of a run whose beginning is on record: it waits for that. What would end a run before it comes to nothing, for there is nothing yet that could be over.
func (r *Runs) Begun(ctx context.Context, session string) (*Run, error) {
	return r.here(ctx, session, "")
}

// known finds a run of a session by its name: under way here, or on record; nil when there is none. One that was left by its process goes on. Conflict when it was asked something else than m.
func (r *Runs) known(ctx context.Context, session, id string, m message.Message) (*Run, error) {
	if run := r.Of(session); run != nil && r.id(run) == id {
		begun, err := run.await(ctx)
		switch {
		case begun != nil:
			if err := r.asked(ctx, session, id, m); err != nil {
				return nil, err
			}
			return &Run{Session: session, ID: id, Known: true, from: run.from, going: run.going}, nil
		case !errdefs.Conflict.Is(err): // else somebody else asked for it by its name too, and it is on record
			return nil, err
		}
	}
	var known *Run
	left := false
	for e, err := range r.Journal().Read(ctx, session, 0) {
		if err != nil {
			return nil, err
		}
		if e.Run != id {
			continue
		}
		switch d := e.Data.(type) {
		case journal.RunStarted:
			if known == nil {
				known = &Run{Session: session, ID: id, Known: true, from: stream.Position{Seq: e.Seq - 1}, going: over()}
			}
			left = true
		case journal.Resumed:
			left = true
		case journal.Parked:
			left = d.Cause == string(engine.CauseHostShutdown)
		case journal.RunFinished:
			left = false
		}
	}
	if known == nil {
		return nil, nil
	}
	if err := r.asked(ctx, session, id, m); err != nil {
		return nil, err
	}
	if !left {
		return known, nil
	}
	run, err := r.Resume(ctx, session)
	switch {
	case err == nil:
		known.going = run.going
	case errdefs.Conflict.Is(err), errdefs.NotFound.Is(err): // it lives elsewhere, or another run has taken its place
	default:
		return nil, err
	}
	return known, nil
}

// asked is Conflict when a run that is on record was asked something else than m.
func (r *Runs) asked(ctx context.Context, session, id string, m message.Message) error {
	for e, err := range r.Journal().Read(ctx, session, 0) {
		if err != nil {
			return err
		}
		d, ok := e.Data.(journal.Said)
		if !ok || e.Run != id || e.Key != (journal.Key{}) {
			continue
		}
		was, err := json.Marshal(d.Message)
		if err != nil {
			return err
		}
		if is, err := json.Marshal(m); err != nil || !bytes.Equal(was, is) {
			return errors.Join(err, errdefs.Conflict.Errorf("serve: session %s has a run %s, which was asked something else: give this one another name, or none", session, id))
		}
		return nil
	}
	return nil
}

// Under gives the run of a name that is under way in a session, by this process; nil when there is none.
func (r *Runs) Under(session, id string) *Run {
	if run := r.Of(session); run != nil && r.id(run) == id {
		return run
	}
	return nil
}

// Settle waits until a run whose end is on record has left its session, so that who is told of that end can begin another one there.
func (r *Runs) Settle(ctx context.Context, session, id string) {
	if run := r.Under(session, id); run != nil {
		select {
		case <-run.done:
		case <-ctx.Done():
		}
	}
}

func (r *Runs) id(run *Run) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return run.ID
}

// over is a run that nobody does here.
func over() *going {
	g := &going{cancel: func(error) {}, stop: make(chan engine.Interrupt, 1), begun: make(chan struct{}), done: make(chan struct{})}
	close(g.begun)
	close(g.done)
	return g
}

// begin has a run done behind the caller. When ctx ends before it has begun, it goes on, and comes with the error of ctx.
func (r *Runs) begin(ctx context.Context, session, id string, do func(context.Context, ...agent.RunOption) (*agent.Result, error)) (*Run, error) {
	far, err := r.far(ctx, session)
	if err != nil {
		return nil, err
	}
	behind, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	run := &Run{Session: session, ID: id, from: far, going: &going{cancel: cancel, stop: make(chan engine.Interrupt, 1), begun: make(chan struct{}), done: make(chan struct{})}}
	if err := r.enter(run); err != nil {
		cancel(nil)
		return nil, err
	}
	go func() { // it is to outlive the caller; Close waits for it
		defer r.all.Done()
		defer cancel(nil)
		host := newHost(r, run)
		defer r.leave(run)
		defer host.end()
		run.res, run.err = doSafely(func() (*agent.Result, error) { return do(behind, agent.WithEngineHost(host)) })
	}()
	begun, err := run.await(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return run, err
	case begun == nil && err == nil:
		err = errdefs.Internal.Errorf("serve: the run in session %s ended, and its beginning is not on record", session)
	}
	return begun, err
}

// await waits until the run has begun. nil when it did not, for the reason that the error gives.
func (r *Run) await(ctx context.Context) (*Run, error) {
	select {
	case <-r.begun:
		return r, nil
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-r.begun:
		return r, nil
	default:
		return nil, r.err
	}
}

func doSafely(do func() (*agent.Result, error)) (res *agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Recovered("the agent", p)
		}
	}()
	return do()
}

func (r *Runs) enter(run *Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return errdefs.NotAvailable.Errorf("serve: the server is shutting down")
	case r.under[run.Session] != nil:
		return errdefs.Conflict.Errorf("serve: run %s is under way in session %s: say something to it by steering, wait for it, or cancel it", r.under[run.Session].ID, run.Session)
	case len(r.under) >= r.most:
		return errdefs.RateLimit.Errorf("serve: as many runs are under way as may be, %d: try again later", len(r.under))
	}
	r.under[run.Session] = run
	r.all.Add(1)
	return nil
}

func (r *Runs) leave(run *Run) {
	r.mu.Lock()
	if r.under[run.Session] == run {
		delete(r.under, run.Session)
	}
	r.mu.Unlock()
	close(run.done)
}

// far is how far a session is, in its journal and in its stream.
func (r *Runs) far(ctx context.Context, session string) (at stream.Position, err error) {
	if at.Offset, err = r.stream.Last(ctx, session); err != nil {
		at.Offset = 0 // the stream is no record: without it everything is told later
	}
	for info, err := range r.Journal().Sessions(ctx, journal.Query{Session: session}) {
		if err != nil {
			return at, err
		}
		at.Seq = info.Seq
	}
	return at, nil
}

// Follow yields what happens in a session from a position on, as [stream.Follow] does.
func (r *Runs) Follow(ctx context.Context, session string, from stream.Position) iter.Seq2[stream.News, error] {
	return stream.Follow(ctx, r.Journal(), r.stream, session, from)
}

// Close takes no further runs, and interrupts those that are under way. What has not come to its next step when ctx ends is let go of, as if its process had died. Either can be resumed. It waits for them all.
func (r *Runs) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	under := make([]*Run, 0, len(r.under))
	for _, run := range r.under {
		under = append(under, run)
	}
	r.mu.Unlock()
	for _, run := range under {
		run.Interrupt(engine.Interrupt{Cause: engine.CauseHostShutdown, Detail: "the server is shutting down"})
	}
	for _, run := range under {
		select {
		case <-run.done:
		case <-ctx.Done():
			r.log.Warn("a run did not come to its next step before the server had to stop: what it was at is broken off", "session", run.Session, "run", r.id(run))
			run.cancel(engine.ErrLeft)
		}
	}
	r.all.Wait()
	r.writer.Close(context.WithoutCancel(ctx))
}

// TakeUp goes on with the runs that processes which died or were shut down have left, until as many are under way as may be. It leaves those alone that wait for a person's answer, that somebody interrupted on purpose, that another process drives, and those of tasks, which their parents take up. It gives the sessions.
func (r *Runs) TakeUp(ctx context.Context) (sessions []string, err error) {
	var all []string
	for _, status := range []string{"running", "interrupted"} {
		for i, err := range r.Journal().Sessions(ctx, journal.Query{Status: status}) {
			if err != nil {
				return nil, err
			}
			all = append(all, i.Session)
		}
	}
	for _, session := range all {
		left, err := r.left(ctx, session)
		if errdefs.NotFound.Is(err) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return sessions, err
		}
		if !left || r.Of(session) != nil {
			continue
		}
		_, err = r.Resume(ctx, session)
		switch {
		case err == nil:
			sessions = append(sessions, session)
		case errdefs.Conflict.Is(err), errdefs.NotFound.Is(err): // somebody else was faster
		case errdefs.RateLimit.Is(err), ctx.Err() != nil:
			return sessions, err
		default:
			r.log.Warn("a run that was left can't go on", "session", session, "error", err)
		}
	}
	return sessions, nil
}

// left reports whether the last run of a session was left by its process, or waited for a person who has answered since.
func (r *Runs) left(ctx context.Context, session string) (left bool, err error) {
	waits := false
	for e, err := range r.Journal().Read(ctx, session, 0) {
		if err != nil {
			return false, err
		}
		switch d := e.Data.(type) {
		case journal.SessionCreated:
			if d.TaskOf != "" {
				return false, nil
			}
			left = false // a fork's: what was under way is not its own
		case journal.RunStarted, journal.Resumed:
			left, waits = true, false
		case journal.Parked:
			waits = d.Cause == string(engine.CauseAwaitingPerson)
			left = waits || d.Cause == string(engine.CauseHostShutdown)
		case journal.RunFinished:
			left = false
		}
	}
	if !left || !waits {
		return left, nil
	}
	pending, err := agent.Pending(ctx, r.Journal(), session)
	return len(pending) == 0, err
}

// Answer answers what waits in a session, as [agent.Answer] does, and has the run go on here when nothing else of it waits for a person. A rule that can't be read is Validation.
func (r *Runs) Answer(ctx context.Context, session string, a journal.Answered) error {
	if a.Rule != "" {
		if err := new(permission.Grants).Approve(session, hook.Grant{Rule: a.Rule}); err != nil {
			return err
		}
	}
	done := r.expect(session)
	if err := agent.Answer(ctx, r.Journal(), session, a); err != nil {
		done()
		return err
	}
	run := r.Of(session)
	if run == nil {
		defer done()
		return r.goOn(ctx, session)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		done()
		return nil
	}
	r.all.Add(1)
	r.mu.Unlock()
	go func() { // it may be on its way to be left, and not have seen the answer
		defer r.all.Done()
		defer done()
		<-run.done
		if err := r.goOn(context.WithoutCancel(ctx), session); err != nil {
			r.log.Warn("a run was answered, but does not go on", "session", session, "error", err)
		}
	}()
	return nil
}

// goOn resumes a run that waited for people, if none of them has still to answer.
func (r *Runs) goOn(ctx context.Context, session string) error {
	waits, err := agent.Pending(ctx, r.Journal(), session)
	if err != nil || len(waits) > 0 {
		return err
	}
	log, err := journal.Open(ctx, r.Journal(), session)
	if err != nil {
		return err
	}
	if st := log.State(); st.Run == "" || st.Status != string(agent.StatusInterrupted) {
		return nil // it is over, or somebody drives it
	}
	return r.Wake(ctx, session)
}

// Wake resumes the unfinished run of a session, unless somebody drives it, or there is none.
func (r *Runs) Wake(ctx context.Context, session string) error {
	_, err := r.Resume(context.WithoutCancel(ctx), session)
	if errdefs.Conflict.Is(err) || errdefs.NotFound.Is(err) || errdefs.NotAvailable.Is(err) {
		return nil // somebody else was faster, or the server stops: it can be resumed
	}
	return err
}

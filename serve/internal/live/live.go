// Package live keeps runs going behind those who ask for them: a run goes on when its caller is gone, and whoever comes reads it from any point on.
package live

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
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
	if err := r.enterBehind(ctx, run); err != nil {
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

// enterBehind registers a run. If the journal says that the one before it in the session has
// ended or was interrupted, it waits until that one has returned: clients read the journal, and
// come back as soon as it says so.
func (r *Runs) enterBehind(ctx context.Context, run *Run) error {
	for {
		before, err := r.enter(run)
		if before == nil || !r.isRecordedOver(ctx, run.Session) {
			return err
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isRecordedOver reports whether the journal has the end of the session's last run, or that it
// was interrupted.
func (r *Runs) isRecordedOver(ctx context.Context, session string) bool {
	log, err := journal.Open(ctx, r.Journal(), session)
	return err == nil && log.State().Status != ""
}

// enter registers a run, unless another one of the session is under way, which it returns.
func (r *Runs) enter(run *Run) (before *Run, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch before = r.under[run.Session]; {
	case r.closed:
		return nil, errdefs.NotAvailable.Errorf("serve: the server is shutting down")
	case before != nil:
		return before, errdefs.Conflict.Errorf("serve: run %s is under way in session %s: say something to it by steering, wait for it, or cancel it", before.ID, run.Session)
	case len(r.under) >= r.most:
		return nil, errdefs.RateLimit.Errorf("serve: as many runs are under way as may be, %d: try again later", len(r.under))
	}
	r.under[run.Session] = run
	r.all.Add(1)
	return nil, nil
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

package pawl

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
)

// hooksGrace is how long Close waits for shell hooks in the background.
const hooksGrace = 5 * time.Second

// sessions are those that had a run here, and have not ended, with the shell hooks that were made.
type sessions struct {
	mu     sync.Mutex
	began  map[string]hook.Where
	shells []*hook.Shells // of all assemblies, to be closed
}

// shellHooks gets an assembly's shell hooks ready, and gives what stands at the points of a run. The same hooks as before are the same Shells: what has run once has.
func (r *Runtime) shellHooks(a, before *assembly, hooks []hook.ShellHook, env map[string]string) ([]hook.Middleware, error) {
	if len(hooks) == 0 {
		return nil, nil
	}
	if a.hooks = hooks; before != nil && before.shells != nil && reflect.DeepEqual(before.hooks, hooks) && maps.Equal(before.env, env) {
		a.shells = before.shells
	} else {
		rules, err := hook.ShellIf(r.dir)
		if err != nil {
			return nil, err
		}
		a.shells, err = hook.NewShells(hook.ShellOptions{Dir: r.dir, Env: environment(env), If: rules, Notify: r.notice}, hooks...)
		if err != nil {
			return nil, err
		}
		r.sessions.mu.Lock()
		r.sessions.shells = append(r.sessions.shells, a.shells)
		r.sessions.mu.Unlock()
	}
	a.env = env
	m := a.shells.Middleware()
	told := m.PreGeneration
	m.PreGeneration = func(ctx context.Context, g *hook.Generation) error {
		err := r.begin(ctx, a, g.Where, func() string { return r.source(ctx, g.Where) })
		if err == nil && told != nil {
			err = told(ctx, g)
		}
		return err
	}
	return []hook.Middleware{m}, nil
}

// begin tells the hooks of SessionStart that a session has its first run here. Their error, or a continue: false, keeps it from beginning.
func (r *Runtime) begin(ctx context.Context, a *assembly, w hook.Where, source func() string) error {
	s := &r.sessions
	s.mu.Lock()
	_, begun := s.began[w.Session]
	s.began[w.Session] = w
	s.mu.Unlock()
	if begun {
		return nil
	}
	o, err := a.shells.Fire(ctx, hook.SessionStart, w, hook.SessionPayload{Source: source(), Model: engine.CapabilitiesOf(a.engine).Model})
	if err == nil && o.Ended {
		err = errdefs.Aborted.Errorf("pawl: a SessionStart hook keeps the session from going on: %s", o.Reason)
	}
	if err != nil {
		s.mu.Lock()
		delete(s.began, w.Session)
		s.mu.Unlock()
	}
	return err
}

// source says whether the run is the first of its session.
func (r *Runtime) source(ctx context.Context, w hook.Where) string {
	for e, err := range r.opts.Journal.Read(ctx, w.Session, 0) {
		if _, run := e.Data.(journal.RunStarted); err == nil && run && e.Run != w.Run {
			return "resume"
		} else if err != nil || run {
			break
		}
	}
	return "startup"
}

// resumes is begin for an unfinished run that is about to go on. What is wrong with it agent.Resume says.
func (r *Runtime) resumes(ctx context.Context, a *assembly, session string) error {
	if a.shells == nil {
		return nil
	}
	log, err := journal.Open(ctx, r.opts.Journal, session)
	if err != nil || log.State().Run == "" {
		return err
	}
	st := log.State()
	ctx = context.WithValue(ctx, between{}, true)
	return r.begin(ctx, a, hook.Where{Agent: st.Agent, Session: session, Run: st.Run, User: st.User}, func() string { return "resume" })
}

// EndSession says that nobody goes on with a session for now: its commands in the background are stopped, its SessionEnd hooks run, and what was approved for it in memory (Permissions.Grants) is forgotten. What is on
// record stays, and a later prompt or resume takes the session up again. It fails with errdefs.Conflict while a run is under way in it, or waits to begin.
func (r *Runtime) EndSession(ctx context.Context, session string) error {
	leave, err := r.alone(session)
	if err != nil {
		return err
	}
	defer leave()
	if r.workspace != nil {
		r.workspace.EndSession(session)
	}
	if g := r.opts.Permissions.Grants; g != nil {
		g.Forget(session)
	}
	s := &r.sessions
	s.mu.Lock()
	w, begun := s.began[session]
	delete(s.began, session)
	s.mu.Unlock()
	if !begun {
		return nil
	}
	return r.ended(ctx, w)
}

// ended runs the hooks of SessionEnd. Each has its own time, a second and a half when it does not say.
func (r *Runtime) ended(ctx context.Context, w hook.Where) error {
	shells := r.now.Load().shells
	if shells == nil {
		return nil
	}
	w.Run, ctx = "", context.WithValue(ctx, between{}, true)
	_, err := shells.Fire(ctx, hook.SessionEnd, w, hook.SessionPayload{Reason: "other"})
	return err
}

// closeHooks ends all sessions, together, and then the hooks.
func (r *Runtime) closeHooks() error {
	s := &r.sessions
	var wg sync.WaitGroup
	together := make(chan struct{}, 8)
	errs := make([]error, len(s.began), len(s.began)+1)
	for i, w := range slices.Collect(maps.Values(s.began)) {
		together <- struct{}{}
		wg.Go(func() {
			errs[i] = r.ended(context.Background(), w)
			<-together
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), hooksGrace)
	defer cancel()
	for _, shells := range s.shells {
		if err := shells.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) { // killed hooks say so by a notice
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// between marks a context as one of a session between its runs: what hooks say there the Runtime's own host is told, which nobody else publishes to for the session.
type between struct{}

// notice tells of a shell hook: those who listen to the run that it is about, or between runs the Runtime's own host. What a hook wrote is for the log alone, and what one in the
// background says, too: it may come in the middle of anything.
func (r *Runtime) notice(ctx context.Context, n hook.Notice) {
	if n.Kind == hook.NoticeOutput {
		r.log().DebugContext(ctx, n.String(), "session", n.Session)
		return
	}
	if engine.Warn(ctx, n.String()) {
		return
	}
	r.log().WarnContext(ctx, n.String(), "session", n.Session)
	if ctx.Value(between{}) != nil && engine.Listening(r.opts.Host) {
		engine.Publish(ctx, r.opts.Host, event.Event{Entry: journal.Entry{Session: n.Session, Run: n.Run}, Delta: event.Warning, Text: n.String()})
	}
}

func (r *Runtime) log() *slog.Logger {
	if r.opts.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.opts.Logger
}

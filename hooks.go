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
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/journal"
)

// hooksGrace is how long Close waits for shell hooks in the background.
const hooksGrace = 5 * time.Second

// shellHooks gets an assembly's shell hooks ready, and gives what stands at the points of a run. The same hooks as before are the same [shell.Hooks]: what has run once has.
func (r *Runtime) shellHooks(a, before *assembly, hooks []shell.Hook, env map[string]string) ([]hook.Middleware, error) {
	if len(hooks) == 0 {
		return nil, nil
	}
	if a.hooks = hooks; before != nil && before.shells != nil && reflect.DeepEqual(before.hooks, hooks) && maps.Equal(before.env, env) {
		a.shells, a.hooking = before.shells, before.hooking
		r.use(a.hooking)
	} else {
		rules, err := permission.ShellIf(r.dir)
		if err != nil {
			return nil, err
		}
		a.shells, err = shell.New(shell.Options{Dir: r.dir, Env: environment(env), If: rules, Notify: r.notice}, hooks...)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.shells = append(r.shells, a.shells)
		r.mu.Unlock()
		a.hooking = r.own(func() error { return r.closeShells(a.shells) })
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

// closeShells waits for what hooks still do in the background, which Close ends.
func (r *Runtime) closeShells(s *shell.Hooks) error {
	r.mu.Lock()
	known := slices.Contains(r.shells, s)
	r.mu.Unlock()
	if !known { // closeHooks has closed it
		return nil
	}
	err := s.Close(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shells = slices.DeleteFunc(slices.Clone(r.shells), func(o *shell.Hooks) bool { return o == s })
	return err
}

// begin tells the hooks of SessionStart that a session has its first run here. Their error, or a continue: false, keeps it from beginning.
func (r *Runtime) begin(ctx context.Context, a *assembly, w hook.Where, source func() string) error {
	r.mu.Lock()
	s := r.holding(w.Session)
	begun := s.begun != hook.Where{}
	s.begun = w
	r.mu.Unlock()
	if begun {
		return nil
	}
	o, err := a.shells.Fire(ctx, shell.SessionStart, w, shell.SessionPayload{Source: source(), Model: engine.CapabilitiesOf(a.engine).Model})
	if err == nil && o.Ended {
		err = errdefs.Aborted.Errorf("pawl: a SessionStart hook keeps the session from going on: %s", o.Reason)
	}
	if err != nil {
		r.mu.Lock()
		s.begun = hook.Where{}
		r.mu.Unlock()
	}
	return err
}

// source says where a session that begins here comes from: it had a run before, it is a fork without one of its own, or it is new.
func (r *Runtime) source(ctx context.Context, w hook.Where) string {
	from := "startup"
	for e, err := range r.opts.Journal.Read(ctx, w.Session, 0) {
		if err != nil {
			break
		}
		switch d := e.Data.(type) {
		case journal.SessionCreated:
			if d.Parent != "" { // what stands before is its parent's
				from = "fork"
			}
		case journal.RunStarted:
			if e.Run == w.Run {
				return from
			}
			from = "resume"
		}
	}
	return from
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

// ended runs the hooks of SessionEnd. Each has its own time, a second and a half when it does not say.
func (r *Runtime) ended(ctx context.Context, w hook.Where) error {
	a := r.hold()
	defer r.drop(a)
	if a.shells == nil {
		return nil
	}
	w.Run, ctx = "", context.WithValue(ctx, between{}, true)
	_, err := a.shells.Fire(ctx, shell.SessionEnd, w, shell.SessionPayload{Reason: "other"})
	return err
}

// closeHooks ends all sessions, together, and then the hooks. Each hook has its own time.
func (r *Runtime) closeHooks() error {
	r.mu.Lock()
	var begun []hook.Where
	for _, s := range r.held {
		if s.begun != (hook.Where{}) {
			begun = append(begun, s.begun)
		}
	}
	clear(r.held)
	all := r.shells
	r.mu.Unlock()
	var wg sync.WaitGroup
	together := make(chan struct{}, 8)
	errs := make([]error, len(begun), len(begun)+1)
	for i, w := range begun {
		together <- struct{}{}
		wg.Go(func() {
			errs[i] = r.ended(context.Background(), w)
			<-together
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), hooksGrace)
	defer cancel()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.shells = nil
	}()
	for _, shells := range all {
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
func (r *Runtime) notice(ctx context.Context, n shell.Notice) {
	if n.Kind == shell.NoticeOutput {
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

package pawl

import (
	"context"
	"strings"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
)

// maxSessions is the default of Options.MaxSessions.
const maxSessions = 1000

// session is what the Runtime holds of one that had a run here. Everything else of it is in the journal.
type session struct {
	begun hook.Where   // the last run whose beginning the hooks of SessionStart know of; zero: none
	used  int64        // when it had its last run: Runtime.used then
	told  []string     // what of the project has no effect, as it was said in its last run
	log   *journal.Log // what its last run knew of it, so that the next one reads what is new; nil: nothing yet
}

// holding gives a session's place in memory. r.mu is held.
func (r *Runtime) holding(name string) *session {
	s := r.held[name]
	if s == nil {
		s = &session{}
		r.held[name] = s
	}
	return s
}

// untold are those of an assembly's problems that the last run of a session did not tell.
func (r *Runtime) untold(session string, problems []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.held[session]
	if s == nil {
		return problems
	}
	return without(problems, s.told)
}

// EndSession says that nobody goes on with a session for now: its commands in the background are stopped, its SessionEnd hooks run, and what was approved for it in memory (Permissions.Grants) is forgotten. What is on
// record stays, and a later prompt or resume takes the session up again; its SessionStart hooks run again then. It fails with errdefs.Conflict while a run is under way in it, or waits to begin.
//
// A Runtime does so by itself with the session that was used longest ago, when there are more than Options.MaxSessions. One with a command that runs in the background is in use.
func (r *Runtime) EndSession(ctx context.Context, session string) error {
	leave, err := r.alone(session)
	if err != nil {
		return err
	}
	defer leave()
	return r.end(ctx, session)
}

// end is EndSession for who is alone in it.
func (r *Runtime) end(ctx context.Context, name string) error {
	of := r.below(name)
	if r.workspace != nil {
		r.workspace.Forget(of)
	}
	if g := r.opts.Permissions.Grants; g != nil {
		g.ForgetAll(of)
	}
	r.mu.Lock()
	s := r.held[name]
	delete(r.held, name)
	shells := r.shells
	r.mu.Unlock()
	var err error
	if s != nil && s.begun != (hook.Where{}) {
		err = r.ended(ctx, s.begun)
	}
	for _, all := range shells { // those before a reload, too
		all.Forget(of)
	}
	for _, m := range r.opts.Middleware {
		if m.Forget != nil {
			m.Forget(of)
		}
	}
	return err
}

// below tells a session and those of its tasks from others, among them sessions that only have such a name.
func (r *Runtime) below(name string) (of func(string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var others []string
	for o := range r.held {
		if strings.HasPrefix(o, name+"/") {
			others = append(others, o)
		}
	}
	for o := range r.queues {
		if strings.HasPrefix(o, name+"/") {
			others = append(others, o)
		}
	}
	return func(s string) bool {
		if s != name && !strings.HasPrefix(s, name+"/") {
			return false
		}
		for _, o := range others {
			if s == o || strings.HasPrefix(s, o+"/") {
				return false
			}
		}
		return true
	}
}

// trim ends the sessions that were used longest ago, until no more are held than may be.
func (r *Runtime) trim(ctx context.Context) {
	for {
		name, leave := r.oldest()
		if leave == nil {
			return
		}
		if err := r.end(ctx, name); err != nil {
			r.log().WarnContext(ctx, "a session that was put away did not end well", "session", name, "error", err)
		}
		leave()
	}
}

// oldest enters the session that was used longest ago and that nobody uses, when there is one too many. leave is nil when not.
func (r *Runtime) oldest() (name string, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.held) <= r.opts.MaxSessions {
		return "", nil
	}
	running := map[string]bool{}
	if r.workspace != nil {
		running = r.workspace.Running()
	}
	var oldest *session
	for n, s := range r.held {
		if r.queues[n] == nil && !running[n] && (oldest == nil || s.used < oldest.used) {
			name, oldest = n, s
		}
	}
	if oldest == nil {
		return "", nil
	}
	return name, r.occupy(name)
}

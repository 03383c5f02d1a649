package pawl

import (
	"context"
	"path/filepath"

	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// isExposed reports whether commands can change the rules, skills and agents of a project with nobody asked: there is no sandbox that keeps them from it, or they are not there yet to be protected.
func (a *assembly) isExposed(trusted bool) bool {
	if a.project == nil || trusted || !a.permissions.Fence && a.permissions.Mode != permission.ModeBypass {
		return false
	}
	names := []string{".agents"}
	if a.project.Settings.Compat {
		names = append(names, ".claude")
	}
	for _, name := range names {
		if fence.MayWrite(a.policy, filepath.Join(a.project.Root, name)) {
			return true
		}
	}
	return false
}

// guard keeps what commands make of the project's rules, skills and agents from being read, while a run is under way that could let them. The run calls done at its end.
func (r *Runtime) guard(ctx context.Context) (done func()) {
	a := r.hold()
	defer r.drop(a)
	r.guarding.Lock()
	defer r.guarding.Unlock()
	if r.guards == 0 && !a.exposed {
		return func() {}
	}
	if r.guards++; r.guarded == nil {
		now, err := a.read.Text(ctx) // what a person has just changed, the assembly may not have yet
		if err != nil {
			now = a.read
		}
		if r.guarded = now; now.HasText() {
			r.told(project.Guard(now))
		}
		whatever := context.WithoutCancel(ctx)
		r.release = func() error { return project.Unguard(whatever, now) }
	}
	return func() {
		r.guarding.Lock()
		defer r.guarding.Unlock()
		if r.guards--; r.guards == 0 && (r.workspace == nil || len(r.workspace.Running()) == 0) {
			r.unguard()
		}
	}
}

// unguard ends it. Commands in the background may outlive the runs, so it may be as late as Close. r.guarding is held.
func (r *Runtime) unguard() {
	if r.guarded != nil {
		r.told(r.release())
		r.guarded, r.release = nil, nil
	}
}

// suspects reports whether a reading of the project has changes that commands may have made. Then it is on record, and the next reading is without them.
func (r *Runtime) suspects(p *project.Project) bool {
	r.guarding.Lock()
	defer r.guarding.Unlock()
	if r.guarded == nil || p.Guarded() || !p.Changed(r.guarded) {
		return false
	}
	err := project.Guard(r.guarded)
	r.told(err)
	return err == nil
}

// told logs why text can't be guarded. Runs are told why approvals can't be kept when there is anything to approve.
func (r *Runtime) told(err error) {
	if err != nil {
		r.log().Warn("what commands change of the project's rules, skills and agents will be read", "error", err)
	}
}

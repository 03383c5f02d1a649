package pawl

import (
	"slices"
	"sync"
)

// shared is something that assemblies have in common, such as connected MCP servers. It ends when nobody holds it any more: neither the Runtime, for its next run, nor a run. What is held still at Close ends then.
type shared struct {
	holders int // guarded by Runtime.mu
	ending  sync.Once
	close   func() error
	err     error
}

func (s *shared) end() error {
	s.ending.Do(func() { s.err = s.close() })
	return s.err
}

// own makes a shared that its caller holds.
func (r *Runtime) own(end func() error) *shared {
	s := &shared{holders: 1, close: end}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared = append(r.shared, s)
	return s
}

// use holds what somebody holds already.
func (r *Runtime) use(s *shared) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.holders++
}

// parts are what an assembly has in common with others.
func (a *assembly) parts() (all []*shared) {
	for _, s := range []*shared{a.servers.use, a.hooking} {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

// hold gives the assembly in force, with a hold on it.
func (r *Runtime) hold() *assembly {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.now.Load()
	for _, s := range a.parts() {
		s.holders++
	}
	return a
}

// share takes another hold on an assembly that is held.
func (r *Runtime) share(a *assembly) *assembly {
	for _, s := range a.parts() {
		r.use(s)
	}
	return a
}

// drop gives back a hold on an assembly. What nobody holds any more ends behind it; Close waits for that.
func (r *Runtime) drop(a *assembly) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range a.parts() {
		if s.holders--; s.holders > 0 || r.closed { // Close ends them all
			continue
		}
		r.endings.Go(func() {
			if err := s.end(); err != nil {
				r.log().Warn("what a change of the project has replaced did not end well", "error", err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.shared = slices.DeleteFunc(r.shared, func(o *shared) bool { return o == s })
		})
	}
}

// replace puts an assembly in force, whose hold it takes over, in the place of the one that is there, or of no other than old.
func (r *Runtime) replace(old, next *assembly) {
	r.mu.Lock()
	before := r.now.Load()
	put := old == nil || old == before
	if put {
		r.now.Store(next)
	}
	r.mu.Unlock()
	switch {
	case !put:
		r.drop(next)
	case before != nil:
		r.drop(before)
	}
}

// endAll ends what is left, at Close.
func (r *Runtime) endAll() (err error) {
	r.mu.Lock()
	all := slices.Clone(r.shared)
	r.mu.Unlock()
	for _, s := range slices.Backward(all) {
		if e := s.end(); e != nil && err == nil {
			err = e
		}
	}
	r.endings.Wait()
	return err
}

package temporal

import (
	"sync"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
)

// alive are effects that workflows in this process have asked for and that are not done: an activity that comes to the same process needs not go over the record to find its effect.
type alive struct {
	mu  sync.Mutex
	all map[aliveKey]engine.Effect
}

type aliveKey struct {
	session, run string
	attempt      int
	key          journal.Key
}

// of has the effects of a path.
func (a *alive) of(p path) *living { return &living{all: a, path: p} }

// get gives an effect; nil where no workflow in this process waits for it.
func (a *alive) get(at aliveKey) engine.Effect {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[at]
}

// living are the effects of one path that its workflow waits for. It is used by the workflow's coroutines, one at a time.
type living struct {
	all  *alive
	path path
	mine map[journal.Key]struct{}
}

func (l *living) at(key journal.Key) aliveKey {
	return aliveKey{l.path.Session, l.path.Run, l.path.Attempt, key}
}

// put has activities find an effect.
func (l *living) put(e engine.Effect) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.all == nil {
		l.all.all = map[aliveKey]engine.Effect{}
	}
	if l.mine == nil {
		l.mine = map[journal.Key]struct{}{}
	}
	key := e.Key()
	l.all.all[l.at(key)], l.mine[key] = e, struct{}{}
}

// done lets go of an effect, whichever process did it.
func (l *living) done(key journal.Key) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	delete(l.all.all, l.at(key))
	delete(l.mine, key)
}

// end lets go of what is left: the path has ended, or its workflow goes on in another process.
func (l *living) end() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	for key := range l.mine {
		delete(l.all.all, l.at(key))
	}
	l.mine = nil
}

// latest keeps what was made or found last, a bounded number of things.
type latest[T any] struct {
	mu    sync.Mutex
	all   map[aliveKey]T
	order []aliveKey // the oldest first
}

// mostLatest is how many are kept.
const mostLatest = 256

// get gives what is kept, or what is made now; what can't be made is not kept.
func (l *latest[T]) get(at aliveKey, make func() (T, bool)) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, there := l.all[at]; there {
		return v
	}
	v, ok := make()
	if !ok {
		return v
	}
	if l.all == nil {
		l.all = map[aliveKey]T{}
	}
	if l.all[at], l.order = v, append(l.order, at); len(l.order) > mostLatest {
		delete(l.all, l.order[0])
		l.order = l.order[1:]
	}
	return v
}

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

// latest are effects that were found, the last ones that were needed.
type latest struct {
	mu    sync.Mutex
	all   map[aliveKey]engine.Effect
	order []aliveKey // the oldest first
}

// mostLatest is how many are kept.
const mostLatest = 256

func (l *latest) get(at aliveKey) engine.Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[at]
}

func (l *latest) put(at aliveKey, e engine.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.all[at]; there || e == nil {
		return
	}
	if l.all == nil {
		l.all = map[aliveKey]engine.Effect{}
	}
	if l.all[at], l.order = e, append(l.order, at); len(l.order) > mostLatest {
		delete(l.all, l.order[0])
		l.order = l.order[1:]
	}
}

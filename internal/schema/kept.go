package schema

import "sync"

// maxKept is how many bytes of text half of what is kept may have. Compiled, it is some ten times that.
const maxKept = 256 << 10

// keeper has the schemas that were compiled last, by their text: what serves many has the same few again and again, and compiling one costs more than most else of a tool.
type keeper struct {
	mu       sync.Mutex
	now, old map[string]*Schema // what of old is used again moves to now; what is not goes when now is full
	size     int                // of the texts in now
}

var compiled keeper

func (k *keeper) find(text []byte) *Schema {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.now[string(text)]
	if s == nil {
		if s = k.old[string(text)]; s != nil {
			k.add(string(text), s)
		}
	}
	return s
}

func (k *keeper) keep(text []byte, s *Schema) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(string(text), s)
}

// add needs the lock.
func (k *keeper) add(text string, s *Schema) {
	switch {
	case len(text) > maxKept/4: // one of them would push out all others
		return
	case k.now[text] != nil: // somebody was faster
		return
	case k.now == nil || k.size+len(text) > maxKept:
		k.now, k.old, k.size = map[string]*Schema{}, k.now, 0
	}
	k.now[text] = s
	k.size += len(text)
}

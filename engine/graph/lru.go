package graph

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// MemoryCache is a [Cache] in this process. It takes at most so many bytes, keys and what goes with them included, and forgets first what was not asked for the longest; a value that does not fit alone is not
// kept. At 0 and less there is room for nothing.
func MemoryCache(size int) Cache { return &lru{size: size, of: map[string]*held{}} }

// lru is a ring of what is held, the one that was asked for last behind its root.
type lru struct {
	mu   sync.Mutex
	size int
	used int
	of   map[string]*held
	root held
}

type held struct {
	key          string
	value        []byte
	until        time.Time // zero: for ever
	newer, older *held
}

// heldSize is about what an entry takes beside its key and value.
const heldSize = 200

func (h *held) size() int { return heldSize + len(h.key) + len(h.value) }

func (c *lru) Get(_ context.Context, key string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.of[key]
	if h == nil {
		return nil, false, nil
	}
	c.drop(h)
	if !h.until.IsZero() && !time.Now().Before(h.until) {
		return nil, false, nil
	}
	c.add(h)
	return h.value, true, nil
}

func (c *lru) Put(_ context.Context, key string, value []byte, ttl time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.of[key]; was != nil {
		c.drop(was)
	}
	h := &held{key: key, value: value}
	if ttl > 0 {
		h.until = time.Now().Add(ttl)
	}
	if h.size() > c.size {
		return nil
	}
	c.add(h)
	for c.used > c.size {
		c.drop(c.root.newer)
	}
	return nil
}

// add makes h the newest.
func (c *lru) add(h *held) {
	c.of[h.key] = h
	c.used += h.size()
	newest := cmp.Or(c.root.older, &c.root)
	h.older, h.newer = newest, &c.root
	newest.newer, c.root.older = h, h
}

func (c *lru) drop(h *held) {
	delete(c.of, h.key)
	c.used -= h.size()
	h.older.newer, h.newer.older = h.newer, h.older
}

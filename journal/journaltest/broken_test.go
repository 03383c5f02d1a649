package journaltest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/broken"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/message"
)

// defect is a store with one defect, and the cases that must notice it.
type defect struct {
	open    func() journal.Store
	durable func() func(*testing.T, string) journal.Store
	fails   []string
}

func (d defect) run(t *testing.T) {
	if d.durable != nil {
		journaltest.RunDurable(t, d.durable())
		return
	}
	journaltest.Run(t, func(*testing.T) journal.Store { return d.open() })
}

func TestTheSuiteFailsOnBrokenStores(t *testing.T) {
	if broken.IsInner() {
		journaltest.ShortenWaits()
	}
	pieces := make(map[string]broken.Piece, len(defects))
	for name, d := range defects {
		pieces[name] = broken.Piece{Run: d.run, Fails: d.fails}
	}
	broken.Pieces(t, pieces)
}

var defects = map[string]defect{
	"a Conflict leaves the first entry behind": {
		open: func() journal.Store { return halfway{journal.Memory()} },
		fails: []string{
			"append/an append that does not follow the last entry is a Conflict and leaves nothing",
			"fork/a fork that is not appended where it begins is a Conflict", "concurrency/one appender wins each position",
		},
	},
	"it checks, and then it writes": {
		open:  func() journal.Store { return &racy{Store: journal.Memory()} },
		fails: []string{"concurrency/one appender wins each position"},
	},
	"an append goes to the end, whatever it should follow": {
		open:  func() journal.Store { return unfenced{journal.Memory()} },
		fails: []string{"append/an append that does not follow", "log/a Log over it folds, takes over and fences"},
	},
	"a fork sees what its parent says later": {
		open: func() journal.Store {
			return &liveForks{Store: journal.Memory(), of: map[string]journal.SessionCreated{}}
		},
		fails: []string{"fork/a fork shares what was and then goes its own way", "fork/deleting the parent keeps what the fork shares"},
	},
	"it forgets the key": {
		open:  func() journal.Store { return forgetful{journal.Memory()} },
		fails: []string{"append/every kind comes back byte for byte", "log/a Log over it folds"},
	},
	"it holds a lock while the consumer works": {
		open:  func() journal.Store { return &locked{Store: journal.Memory()} },
		fails: []string{"read/nothing is held while the consumer works"},
	},
	"a listing is limited before it is filtered": {
		open:  func() journal.Store { return limitFirst{journal.Memory()} },
		fails: []string{"sessions/queries narrow, and the limit counts what matches"},
	},
	"a fork is of its parent's directory, wherever it is cut": {
		open:  func() journal.Store { return &movedForks{Store: journal.Memory(), of: map[string]string{}} },
		fails: []string{"sessions/a session is of the directory of its last run"},
	},
	"it takes no notice of the directory that is asked for": {
		open:  func() journal.Store { return anywhere{journal.Memory()} },
		fails: []string{"sessions/a session is of the directory of its last run"},
	},
	"leases never run out and can't be given up": {
		open:  func() journal.Store { return endless{journal.Memory()} },
		fails: []string{"lease/a lease can be given up", "lease/a lease runs out"},
	},
	"anybody gets a lease": {
		open:  func() journal.Store { return generous{journal.Memory()} },
		fails: []string{"lease/a lease keeps others out", "prune/what is old goes"},
	},
	"it counts from its own position": {
		open:  func() journal.Store { return offByOne{journal.Memory()} },
		fails: []string{"read/reading begins after a position", "follow/nothing is missed and nothing comes twice"},
	},
	"its followers are woken by nobody": {
		open:  func() journal.Store { return deaf{journal.Memory()} },
		fails: []string{"follow/an append wakes its followers"},
	},
	"its followers are woken before there is anything to see": {
		open:  func() journal.Store { return &hasty{Store: journal.Memory()} },
		fails: []string{"follow/an append wakes its followers"},
	},
	"each follower leaves a goroutine behind": {
		open:  func() journal.Store { return leaking{journal.Memory()} },
		fails: []string{"follow/followers that stop leave no goroutine"},
	},
	"a read skips what was appended since the one before": {
		open:  func() journal.Store { return &skipping{Store: journal.Memory(), seen: map[string]int64{}} },
		fails: []string{"follow/what is on record comes first"},
	},
	"it writes although the context has ended": {
		open:  func() journal.Store { return stubborn{journal.Memory()} },
		fails: []string{"append/with a cancelled context nothing is added"},
	},
	"it cuts off what is long": {
		open:  func() journal.Store { return newShelved(&shelved{most: 4 << 20}) },
		fails: []string{"large contents/a string of 5 MB comes back"},
	},
	"a deletion takes large contents with it, whoever else has them": {
		open:  func() journal.Store { return newShelved(&shelved{uncounted: true}) },
		fails: []string{"large contents/what two sessions have outlives either"},
	},
	"what is twice in an append counts once": {
		open:  func() journal.Store { return newShelved(&shelved{once: true}) },
		fails: []string{"large contents/what is twice in an append is there twice"},
	},
	"a deletion takes what forks share": {
		open:  func() journal.Store { return newShelved(&shelved{forkless: true}) },
		fails: []string{"large contents/a fork's large contents outlive its parent"},
	},
	"what was removed counts as being there": {
		open:  func() journal.Store { return newShelved(&shelved{sure: true}) },
		fails: []string{"large contents/what was deleted can be appended again"},
	},
	"a refused append takes back what it never added": {
		open:  func() journal.Store { return newShelved(&shelved{undoes: true}) },
		fails: []string{"large contents/a refused append leaves large contents as they were"},
	},
	"it looks whether a content is there, and then it refers to it": {
		open:  func() journal.Store { return newShelved(&shelved{racy: true}) },
		fails: []string{"large contents/appends and deletions of the same content at once"},
	},
	"the last append is written by the next one": {
		durable: func() func(*testing.T, string) journal.Store {
			disks := map[string]journal.Store{}
			return func(_ *testing.T, dir string) journal.Store {
				if disks[dir] == nil {
					disks[dir] = journal.Memory()
				}
				return &lazy{Store: journal.Memory(), disk: disks[dir]}
			}
		},
		fails: []string{"everything is there after closing", "each append is there when it returned"},
	},
}

type halfway struct{ journal.Store }

func (s halfway) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	err := s.Store.Append(ctx, session, after, entries...)
	if errors.Is(err, errdefs.Conflict) {
		for n := range int64(1000) {
			if s.Store.Append(ctx, session, n, entries[0]) == nil {
				break
			}
		}
	}
	return err
}

// length is what a store of a careless author asks before it writes.
func length(ctx context.Context, s journal.Store, session string) (n int64) {
	for _, err := range s.Read(ctx, session, 0) {
		_ = err
		n++
	}
	return n
}

type racy struct {
	journal.Store
	mu sync.Mutex
}

func (s *racy) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if len(entries) == 0 || entries[0].Data == (journal.SessionCreated{Parent: "p", At: 1}) {
		return s.Store.Append(ctx, session, after, entries...)
	}
	if have := length(ctx, s.Store, session); have != after {
		return errdefs.Conflict.Errorf("%d, not %d", have, after)
	}
	for range 20 {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.Append(ctx, session, length(ctx, s.Store, session), entries...)
}

type unfenced struct{ journal.Store }

func (s unfenced) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	err := s.Store.Append(ctx, session, after, entries...)
	if errors.Is(err, errdefs.Conflict) {
		err = s.Store.Append(ctx, session, length(ctx, s.Store, session), entries...)
	}
	return err
}

type liveForks struct {
	journal.Store
	mu sync.Mutex
	of map[string]journal.SessionCreated
}

func (s *liveForks) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	err := s.Store.Append(ctx, session, after, entries...)
	if err == nil {
		if c, ok := entries[0].Data.(journal.SessionCreated); ok && c.Parent != "" {
			s.mu.Lock()
			s.of[session] = c
			s.mu.Unlock()
		}
	}
	return err
}

func (s *liveForks) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	s.mu.Lock()
	c, ok := s.of[session]
	s.mu.Unlock()
	if !ok || after > 0 {
		return s.Store.Read(ctx, session, after)
	}
	return func(yield func(journal.Entry, error) bool) {
		n := int64(0)
		for _, seq := range []iter.Seq2[journal.Entry, error]{s.Read(ctx, c.Parent, 0), s.Store.Read(ctx, session, c.At)} {
			for e, err := range seq {
				n++
				if e.Seq = n; !yield(e, err) {
					return
				}
			}
		}
	}
}

type forgetful struct{ journal.Store }

func (s forgetful) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, session, after) {
			if e.Key = (journal.Key{}); !yield(e, err) {
				return
			}
		}
	}
}

// locked would hang for good; so that its test ends, an append that finds the lock taken gives up after a while.
type locked struct {
	journal.Store
	mu sync.RWMutex
}

func (s *locked) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	for wait := time.Now().Add(30 * time.Millisecond); !s.mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(wait) {
			return errdefs.NotAvailable.Errorf("locked by a reader")
		}
	}
	defer s.mu.Unlock()
	return s.Store.Append(ctx, session, after, entries...)
}

func (s *locked) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		s.Store.Read(ctx, session, after)(yield)
	}
}

type limitFirst struct{ journal.Store }

func (s limitFirst) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		for i, err := range s.Store.Sessions(ctx, journal.Query{Limit: q.Limit}) {
			if (err != nil || q.Matches(i)) && !yield(i, err) {
				return
			}
		}
	}
}

type anywhere struct{ journal.Store }

func (s anywhere) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	q.Dir = ""
	return s.Store.Sessions(ctx, q)
}

type movedForks struct {
	journal.Store
	mu sync.Mutex
	of map[string]string // the directory of the parent, by fork
}

func (s *movedForks) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	err := s.Store.Append(ctx, session, after, entries...)
	if err != nil || len(entries) == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := entries[0].Data.(type) {
	case journal.SessionCreated:
		for i, err := range s.Store.Sessions(ctx, journal.Query{Session: d.Parent}) {
			if err == nil && d.Parent != "" {
				s.of[session] = i.Dir
			}
		}
	case journal.RunStarted:
		delete(s.of, session)
	}
	return nil
}

func (s *movedForks) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		dir := q.Dir
		q.Dir = ""
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, err := range s.Store.Sessions(ctx, q) {
			if of, ok := s.of[i.Session]; ok {
				i.Dir = of
			}
			if (dir == "" || i.Dir == dir) && !yield(i, err) {
				return
			}
		}
	}
}

type endless struct{ journal.Store }

func (s endless) Lease(ctx context.Context, session, owner string, _ time.Time) error {
	return s.Store.Lease(ctx, session, owner, time.Now().Add(time.Hour))
}

type generous struct{ journal.Store }

func (s generous) Lease(ctx context.Context, session, owner string, until time.Time) error {
	err := s.Store.Lease(ctx, session, owner, until)
	if errdefs.Conflict.Is(err) {
		return nil
	}
	return err
}

type offByOne struct{ journal.Store }

func (s offByOne) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	if after > 256 {
		after--
	}
	return s.Store.Read(ctx, session, after)
}

type deaf struct{ journal.Store }

func (s deaf) Watch(context.Context, string) (<-chan struct{}, func()) { return nil, func() {} }

// hasty wakes, and then it appends.
type hasty struct {
	journal.Store
	mu       sync.Mutex
	watchers []chan struct{}
}

func (s *hasty) Watch(context.Context, string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, c)
	return c, func() {}
}

func (s *hasty) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	s.mu.Lock()
	for _, c := range s.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	return s.Store.Append(ctx, session, after, entries...)
}

type leaking struct{ journal.Store }

func (s leaking) Watch(ctx context.Context, session string) (<-chan struct{}, func()) {
	woken, stop := s.Store.(journal.Watcher).Watch(ctx, session)
	end := make(chan struct{})
	go func() { <-end }()
	return woken, stop
}

// skipping reads, but for the first time, only the last of what is new.
type skipping struct {
	journal.Store
	mu   sync.Mutex
	seen map[string]int64
}

func (s *skipping) Watch(ctx context.Context, session string) (<-chan struct{}, func()) {
	return s.Store.(journal.Watcher).Watch(ctx, session)
}

func (s *skipping) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		n := length(ctx, s.Store, session)
		s.mu.Lock()
		seen := s.seen[session]
		s.seen[session] = n
		s.mu.Unlock()
		for e, err := range s.Store.Read(ctx, session, after) {
			if (seen == 0 || e.Seq <= seen || e.Seq == n || err != nil) && !yield(e, err) {
				return
			}
		}
	}
}

type stubborn struct{ journal.Store }

func (s stubborn) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	return s.Store.Append(context.WithoutCancel(ctx), session, after, entries...)
}

// shelved keeps long texts apart from their entries, once each, and counts who has them.
type shelved struct {
	journal.Store
	forkless  bool // it does not know that forks share; else it keeps all once there is one
	uncounted bool // whoever goes takes them along
	once      bool // what an append has twice counts once, and its deletion takes two
	sure      bool // what was written once is never written again
	undoes    bool // a refused append takes back what it never added
	racy      bool // it looks whether a text is there, and counts later
	most      int  // bytes of a text that it keeps; 0: all

	mu    sync.Mutex
	texts map[string]string
	known map[string]bool
	refs  map[string]int
	has   map[string][]string // what a session's own entries have
	forks bool

	deletions atomic.Int64
}

func newShelved(s *shelved) journal.Store {
	s.Store, s.texts, s.known, s.refs, s.has = journal.Memory(), map[string]string{}, map[string]bool{}, map[string]int{}, map[string][]string{}
	return s
}

// label begins what lies in an entry in place of a text.
const label = "shelved: "

func (s *shelved) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	entries = slices.Clone(entries)
	texts, has := map[string]string{}, []string(nil)
	for i, e := range entries {
		if d, ok := e.Data.(journal.Said); ok && d.Message.Len() == 1 && len(d.Message.Text()) > 10_000 {
			text := d.Message.Text()
			if s.most > 0 {
				text = text[:min(len(text), s.most)]
			}
			name := fmt.Sprintf("%s%x", label, sha256.Sum256([]byte(text)))
			texts[name], has = text, append(has, name)
			entries[i].Data = journal.Said{Message: message.User(name)}
		}
	}
	if s.racy {
		s.mu.Lock()
		maps.DeleteFunc(texts, func(name, _ string) bool { return s.refs[name] > 0 })
		s.mu.Unlock()
		for before, n := s.deletions.Load(), 0; n < 1000 && s.deletions.Load() == before; n++ {
			runtime.Gosched()
		}
	}
	err := s.Store.Append(ctx, session, after, entries...)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.shelve(session, texts, has)
		if d, ok := entries[0].Data.(journal.SessionCreated); ok && d.Parent != "" {
			s.forks = true
		}
	case s.undoes:
		s.release(has)
	}
	return err
}

func (s *shelved) shelve(session string, texts map[string]string, has []string) {
	for name, text := range texts {
		if !s.sure || !s.known[name] {
			s.texts[name], s.known[name] = text, true
		}
	}
	s.has[session] = append(s.has[session], has...)
	if s.once {
		has = slices.Compact(slices.Sorted(slices.Values(has)))
	}
	for _, name := range has {
		s.refs[name]++
	}
}

func (s *shelved) release(has []string) {
	for _, name := range has {
		if s.refs[name]--; s.refs[name] <= 0 || s.uncounted {
			delete(s.texts, name)
		}
	}
}

func (s *shelved) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, session, after) {
			if d, ok := e.Data.(journal.Said); ok && strings.HasPrefix(d.Message.Text(), label) {
				s.mu.Lock()
				e.Data = journal.Said{Message: message.User(s.texts[d.Message.Text()])}
				s.mu.Unlock()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *shelved) Delete(ctx context.Context, session string) error {
	if err := s.Store.Delete(ctx, session); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forkless || !s.forks {
		s.release(s.has[session])
	}
	delete(s.has, session)
	s.deletions.Add(1)
	return nil
}

// lazy keeps the last append to itself until the next one.
type lazy struct {
	journal.Store // what this process believes
	disk          journal.Store
	mu            sync.Mutex
	flush         func() error
	closed        bool
}

func (s *lazy) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("closed")
	}
	if s.flush != nil {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.flush = func() error { return s.disk.Append(context.WithoutCancel(ctx), session, after, entries...) }
	return s.Store.Append(ctx, session, after, entries...)
}

func (s *lazy) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	if strings.HasPrefix(session, "s") {
		return s.Store.Read(ctx, session, after)
	}
	return s.disk.Read(ctx, session, after)
}

func (s *lazy) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/crashtest"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
)

// soak is one of it.
type soak struct {
	length  time.Duration
	rest    time.Duration // that a server has before it is read: what waits for a while before it is let go of
	clients int
	dir     string // everything that is left of it
	self    string // the program that servers are
	out     io.Writer
	calm    bool // without faults of processes and stores

	begun    time.Time
	provider *provider
	effects  *effects
	servers  *servers
	faults   *faults
	stores   [agents]journal.Store
	http     *http.Client
	did      *tally // by clients
	faulty   *tally // faults
	closers  []func() error

	mu       sync.Mutex
	sessions int // done with
	found    counts
	done     []binned
	lost     []string // what is wrong
	parts    []string // what is wrong with the long-lived server
}

// run soaks, and gives what is wrong, and an error when the machinery failed.
func (s *soak) run(ctx context.Context) (err error) {
	defer func() {
		for i := range s.closers {
			err = errors.Join(err, s.closers[len(s.closers)-1-i]())
		}
	}()
	s.begun = time.Now()
	if err := s.setUp(ctx); err != nil {
		return err
	}
	stop := s.reporting(ctx)
	defer stop()
	if err := s.work(ctx, s.length/6); err != nil {
		return err
	}
	first, err := s.quiet(ctx, "first")
	if err != nil {
		return err
	}
	if err := s.work(ctx, s.length-s.length/6); err != nil {
		return err
	}
	last, err := s.quiet(ctx, "last")
	if err != nil {
		return err
	}
	s.parts = append(s.parts, grown(first, last)...)
	steady, mayfly := s.servers.pair()
	if err := errors.Join(steady.end(), mayfly.end()); err != nil {
		s.parts = append(s.parts, fmt.Sprintf("a server did not end well: %v", err))
	}
	s.late()
	s.vacuous()
	stop()
	s.summary(first, last)
	return nil
}

// closing has f called when the soak is over.
func (s *soak) closing(f func() error) { s.closers = append(s.closers, f) }

func (s *soak) setUp(ctx context.Context) (err error) {
	project := filepath.Join(s.dir, "project")
	disk := filepath.Join(s.dir, "disk")
	if err := errors.Join(os.MkdirAll(project, 0o700), os.MkdirAll(disk, 0o700)); err != nil {
		return err
	}
	s.did, s.faulty = &tally{}, &tally{}
	s.provider = &provider{faults: s.faulty, refuse: s.wrong}
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: s.clients}}
	if s.effects, err = newEffects(s.dir, project); err != nil {
		return err
	}
	s.closing(s.effects.file.Close)
	s.faults = &faults{provider: s.provider, did: s.faulty, scale: min(1, s.length.Minutes()/3)}
	if s.calm { // a disk that comes and goes would be in the way of sandboxes that begin just then
	} else if err := crashtest.Mount(disk, 256); err != nil {
		fmt.Fprintf(s.out, "soak: no full disks: none can be mounted here: %v\n", err)
	} else {
		s.faults.disk = disk
		s.closing(func() error { return crashtest.Unmount(disk) })
	}
	if s.faults.database, err = pgtest.Start(); err != nil {
		return err
	}
	s.closing(s.faults.database.Stop)
	dsn, err := s.faults.database.Database() //nolint:contextcheck // it has a time of its own
	if err != nil {
		return err
	}
	w := world{Project: project, SQLite: filepath.Join(disk, "journal.db"), Postgres: dsn + " pool_max_conns=4 pool_min_conns=4 pool_health_check_period=1s"}
	for to, h := range map[*string]http.Handler{&w.Model: s.provider.handler(), &w.Effects: s.effects} {
		url, stop, err := listen(h) //nolint:contextcheck // until it is stopped
		if err != nil {
			return err
		}
		*to = url
		s.closing(func() error { stop(); return nil })
	}
	var closeStores func() error
	if s.stores, _, closeStores, err = open(ctx, w); err != nil {
		return err
	}
	s.closing(closeStores)
	return s.start(w)
}

// start starts the servers.
func (s *soak) start(w world) error {
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "servers.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.closing(log.Close)
	s.servers = &servers{self: s.self, raw: string(raw), log: log}
	s.faults.servers = s.servers
	if s.servers.steady, err = start(s.self, s.servers.raw, log); err != nil {
		return err
	}
	s.closing(func() error {
		for _, w := range []*worker{s.servers.steady, s.servers.mayfly} {
			if w != nil && !w.died() {
				_ = w.kill()
			}
		}
		return nil
	})
	return s.servers.begin()
}

// work has clients come and go, and faults, for a while; then each client has its prompt out. The faults end first: the leases of a process that was killed run for 10 s.
func (s *soak) work(ctx context.Context, d time.Duration) error {
	stirring, calm := context.WithTimeout(ctx, d)
	defer calm()
	s.provider.failing(usual)
	defer s.provider.failing(0)
	var wg sync.WaitGroup
	var failed error
	if !s.calm {
		wg.Go(func() {
			storms, over := context.WithTimeout(stirring, d-min(d/3, 10*time.Second))
			defer over()
			if failed = s.faults.run(storms); failed != nil {
				calm()
			}
		})
	}
	for range s.clients {
		wg.Go(func() {
			for stirring.Err() == nil {
				s.session(ctx, stirring)
				pause(stirring, 0, 200*time.Millisecond)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed
}

// session has one from its beginning to its end, and looks what became of it.
func (s *soak) session(ctx, more context.Context) {
	s.mu.Lock()
	s.sessions++
	n := s.sessions
	s.mu.Unlock()
	c := &client{servers: s.servers, http: s.http, did: s.did, on: n % agents, session: fmt.Sprintf("s%d", n)}
	err := c.live(ctx, more)
	if ctx.Err() != nil {
		return // somebody wants no more of it
	}
	p := &past{session: c.session, prompts: c.prompts}
	problems, found := []string(nil), counts{}
	if reading := s.read(ctx, p, s.stores[c.on]); reading == nil {
		problems, found = p.check()
	} else {
		err = errors.Join(err, reading)
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	s.mu.Lock()
	s.found.add(found)
	s.mu.Unlock()
	if len(problems) == 0 {
		if draw(8) > 0 { // some stay, so that there is something to list
			s.bin(ctx, c)
		}
		return
	}
	kept := s.export(ctx, p, s.stores[c.on])
	for _, what := range problems {
		s.wrong(fmt.Sprintf("session %s on %s: %s (its journal: %s)", c.session, storeNames[c.on], what, kept))
	}
}

// binned is a session that is to be deleted.
type binned struct {
	*client
	since time.Time
}

// stale is how old a request can get that a stopped server has not read yet, with some to spare. One that begins a run is known by the session's record: to have the session deleted before is to have the run begun anew.
const stale = 40 * time.Second

// bin deletes sessions that have been done with for a while, later than any request for them can come.
func (s *soak) bin(ctx context.Context, c *client) {
	s.mu.Lock()
	s.done = append(s.done, binned{c, time.Now()})
	var old []binned
	for len(s.done) > 0 && time.Since(s.done[0].since) > stale {
		old, s.done = append(old, s.done[0]), s.done[1:]
	}
	s.mu.Unlock()
	for _, c := range old {
		if status, _, err := c.do(ctx, http.MethodDelete, c.path(""), nil, nil); err == nil && status == http.StatusNoContent { // else a server or a store is not there, and it stays
			s.did.add("session deleted")
		}
	}
}

// read reads a session's journals, and its effects; while a store is down it tries again.
func (s *soak) read(ctx context.Context, p *past, store journal.Store) (err error) {
	for end := time.Now().Add(patience / 2); ; pause(ctx, 100*time.Millisecond, 500*time.Millisecond) {
		if p.journals, err = journals(ctx, store, p.session); err == nil {
			p.effects, err = s.effects.of(p.session)
			return err
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// journals are a session's own and those of its tasks.
func journals(ctx context.Context, store journal.Store, session string) (all map[string][]journal.Entry, err error) {
	below, err := journal.Tasks(ctx, store, session)
	if err != nil {
		return nil, err
	}
	all = map[string][]journal.Entry{}
	for _, name := range append(below, session) {
		for e, err := range store.Read(ctx, name, 0) {
			if err != nil {
				return nil, err
			}
			all[name] = append(all[name], e)
		}
	}
	return all, nil
}

// export keeps a session's journals, and gives the directory that they are in.
func (s *soak) export(ctx context.Context, p *past, store journal.Store) string {
	dir := filepath.Join(s.dir, "lost", p.session)
	err := os.MkdirAll(dir, 0o700)
	for name := range p.journals {
		f, err2 := os.Create(filepath.Join(dir, filepath.Base(name)+".jsonl")) //nolint:gosec // a path of ours
		if err2 == nil {
			err2 = errors.Join(journal.Export(ctx, store, name, f), f.Close())
		}
		err = errors.Join(err, err2)
	}
	if err != nil {
		return fmt.Sprintf("%s, not whole: %v", dir, err)
	}
	return dir
}

// wrong puts down what is wrong, and says so at once.
func (s *soak) wrong(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, what)
	fmt.Fprintln(s.out, "soak: WRONG:", what)
}

// late looks for what happened behind the back of a session that was done with: by a process that had been stopped, say.
func (s *soak) late() {
	s.effects.mu.Lock()
	defer s.effects.mu.Unlock()
	for session, all := range s.effects.done {
		for what, xs := range all {
			if len(xs) > 1 && !kinds[xs[0].Tool].repeatable {
				defer s.wrong(fmt.Sprintf("session %s: %s: %s happened %d times in the end", session, what, xs[0].Tool, len(xs)))
			}
		}
	}
}

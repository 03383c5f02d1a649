package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

func (c *counts) add(d counts) {
	c.effects += d.effects
	c.repeated += d.repeated
	c.unknown += d.unknown
	c.resumed += d.resumed
	c.failed += d.failed
	c.canceled += d.canceled
}

func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%6s  %s\n", time.Since(s.begun).Round(time.Second), fmt.Sprintf(format, args...))
}

// reporting says how it stands, each minute, or six times if it is short, until stop.
func (s *soak) reporting(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(min(time.Minute, s.length/6))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.report(ctx)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (s *soak) report(ctx context.Context) {
	steady, _ := s.servers.pair()
	r, err := steady.read(ctx, s.http)
	now := r.String()
	if err != nil {
		now = err.Error()
	}
	s.mu.Lock()
	n, lost, c := s.sessions, len(s.lost), s.found
	s.mu.Unlock()
	s.say("%d sessions, %d wrong; %d effects, %d of them again; %d resumes, %d outcomes unknown, %d runs failed, %d canceled", n, lost, c.effects, c.repeated, c.resumed, c.unknown, c.failed, c.canceled)
	s.say("  faults: %s", s.faulty)
	s.say("  clients: %s", s.did)
	s.say("  under load: %s", now)
}

// quiet reads the long-lived server when nobody asks it for anything: the median of some readings.
func (s *soak) quiet(ctx context.Context, name string) (reading, error) {
	s.http.CloseIdleConnections()
	pause(ctx, s.rest, s.rest+1)
	steady, _ := s.servers.pair()
	var all []reading
	for range 9 {
		r, err := steady.read(ctx, s.http)
		if err != nil {
			return r, fmt.Errorf("the server does not answer: %w", err)
		}
		all = append(all, r)
		pause(ctx, s.rest/15, s.rest/10)
	}
	for _, profile := range []string{"heap", "goroutine"} {
		b, err := steady.profile(ctx, s.http, "/profile/"+profile)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, profile+"-"+name), b, 0o600)
		}
		if err != nil {
			return reading{}, err
		}
	}
	m := median(all)
	s.say("  at rest, the %s reading: %s", name, m)
	return m, nil
}

// wanted are what a soak has to have had to say anything.
var wanted = []string{"kill -9", "provider down", "database restart", "frozen until its leases ran out", "429", "500", "503", "stream cut off", "silence"}

// vacuous says what there was too little of.
func (s *soak) vacuous() {
	want := wanted
	if s.faults.disk != "" {
		want = append(want[:len(want):len(want)], "full disk")
	}
	for _, name := range want {
		if s.faulty.of(name) == 0 {
			s.wrong("there was no fault of the kind: " + name)
		}
	}
	for _, name := range []string{"answered", "resumed", "stream cut off", "stream left", "stream read to its end"} {
		if s.did.of(name) == 0 {
			s.wrong("no client did: " + name)
		}
	}
	if least := int(500 * min(1, s.length.Minutes()/30)); s.sessions < least {
		s.wrong(fmt.Sprintf("there were %d sessions: want %d", s.sessions, least))
	}
}

func (s *soak) summary(first, last reading) {
	s.say("%d sessions, %d effects, %d resumes; faults: %s; clients: %s", s.sessions, s.found.effects, s.found.resumed, s.faulty, s.did)
	s.say("after %v: %s", s.length/6, first)
	s.say("after %v: %s", s.length, last)
	for _, what := range s.lost {
		s.say("LOST OR DONE TWICE: %s", what)
	}
	for _, what := range s.parts {
		s.say("GROWN: %s", what)
	}
	if s.failed() {
		s.say("it failed: everything is kept in %s", s.dir)
		return
	}
	s.say("nothing lost, nothing done twice, nothing grown")
}

func (s *soak) failed() bool { return len(s.lost)+len(s.parts) > 0 }

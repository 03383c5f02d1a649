package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// Result is what a system took for a workload: the sessions that are measured, without those before.
type Result struct {
	System   string        `json:"system"`
	Workload string        `json:"workload"`
	Sessions int           `json:"sessions"`
	Turns    int           `json:"turns"`  // model calls
	Pieces   int           `json:"pieces"` // of the answers
	CPU      time.Duration `json:"cpu_ns"` // of all threads, user and system, the collector's too
	Wall     time.Duration `json:"wall_ns"`
	Allocs   uint64        `json:"allocs"`
	Bytes    uint64        `json:"bytes"`       // that were allocated
	Base     int64         `json:"base_rss"`    // bytes that were resident at most before the sessions; 0 where the system doesn't say
	Peak     int64         `json:"peak_rss"`    // and at the end
	Retained int64         `json:"retained"`    // bytes on the heap for all sessions, which have ended and are held
	First20  time.Duration `json:"first20_ns"`  // CPU a turn of the first and the last twenty turns of sessions, in workloads of long ones
	Last20   time.Duration `json:"last20_ns"`   //
	Late50   time.Duration `json:"late_p50_ns"` // from when the upstream sent a piece to when the caller had it
	Late99   time.Duration `json:"late_p99_ns"`
	Size     int64         `json:"size,omitempty"`    // bytes of a program's file
	Modules  int           `json:"modules,omitempty"` // that a program is made of, besides its own
	Sizes    []Sized       `json:"sizes,omitempty"`   // what something took at growing sizes
}

// Sized is what something took at a size.
type Sized struct {
	Size     int           `json:"size"`
	Wall     time.Duration `json:"wall_ns"`
	Bytes    uint64        `json:"bytes"`    // that were allocated
	Retained int64         `json:"retained"` // bytes on the heap that what came of it holds
}

// Run puts a system under load, and checks what it answers.
func Run(ctx context.Context, name string, w Workload, url, profiles string, system func(*Task) (System, error)) (r Result, err error) {
	t := http.DefaultTransport.(*http.Transport)
	t.MaxIdleConnsPerHost, t.MaxIdleConns = max(512, w.Sessions), 0 // for everybody who uses it
	dir, err := os.MkdirTemp("", "pawl-turns-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	task := &Task{Workload: w, Upstream: url, Dir: dir, Result: strings.Repeat("r", w.Asks.Result)}
	if w.Image > 0 {
		const png = "\x89PNG\r\n\x1a\n"
		task.Image = png + strings.Repeat("p", w.Image-len(png))
	}
	curve := make([]time.Duration, 0, w.Turns())
	measuring := false
	if w.long() {
		task.OnTool = func() {
			if measuring {
				curve = append(curve, cpu())
			}
		}
	}
	sys, err := system(task)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()

	prompt, want := w.prompt(), upstream.Answer(w.Asks)
	ask := func(s Session, e *ear) error {
		a, err := s.Ask(ctx, prompt, e.hear)
		if err != nil {
			return err
		}
		if wrong := task.wrong.Load(); wrong != nil {
			return fmt.Errorf("the tool was called with %.60q, which the model did not say", *wrong)
		}
		return w.check(a, e.heard, want)
	}
	for i := range w.Warm {
		if err := ask(sys.Open(i), &ear{}); err != nil {
			return r, fmt.Errorf("%s, %s: %w", name, w.Name, err)
		}
	}
	measuring = true
	held := make([]Session, w.Sessions)
	ears := make([]ear, w.Sessions)
	r = Result{System: name, Workload: w.Name, Sessions: w.Sessions, Turns: w.Turns(), Pieces: w.Pieces()}
	runtime.GC()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.Base = child.Peak(os.Getpid())
	stop, err := profile(profiles, name, w.Name)
	if err != nil {
		return r, err
	}
	began, used := time.Now(), cpu()
	err = sessions(w, func(i int) error {
		held[i] = sys.Open(w.Warm + i)
		ears[i].stamps = w.Asks.Stamp
		return ask(held[i], &ears[i])
	})
	r.CPU, r.Wall = cpu()-used, time.Since(began)
	runtime.ReadMemStats(&after)
	r.Peak = child.Peak(os.Getpid())
	if err = errors.Join(err, stop()); err != nil {
		return r, fmt.Errorf("%s, %s: %w", name, w.Name, err)
	}
	r.Allocs, r.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	if n := w.Asks.Turns - 1; w.long() && len(curve) == n*w.Sessions {
		for one := range slices.Chunk(curve, n) {
			r.First20 += (one[20] - one[0]) / 20 / time.Duration(w.Sessions)
			r.Last20 += (one[n-1] - one[n-21]) / 20 / time.Duration(w.Sessions)
		}
	}
	r.Late50, r.Late99 = lateness(ears)
	ears = nil
	t.CloseIdleConnections()
	if c, ok := sys.(interface{ CloseIdle() }); ok {
		c.CloseIdle()
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	r.Retained = int64(after.HeapAlloc) - int64(before.HeapAlloc) //nolint:gosec // no heap is that large
	runtime.KeepAlive(held)
	runtime.KeepAlive(sys)
	return r, nil
}

// lateness is what half of all pieces, and 99 of 100, were not above.
func lateness(ears []ear) (p50, p99 time.Duration) {
	var late []time.Duration
	for i := range ears {
		late = append(late, ears[i].late...)
	}
	if slices.Sort(late); len(late) == 0 {
		return 0, 0
	}
	return late[len(late)/2], late[len(late)*99/100]
}

// sessions runs all of a workload's.
func sessions(w Workload, one func(i int) error) error {
	if !w.Together {
		for i := range w.Sessions {
			if err := one(i); err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
		}
		return nil
	}
	errs := make([]error, w.Sessions)
	var all sync.WaitGroup
	for i := range w.Sessions {
		all.Go(func() { errs[i] = one(i) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
	}
	return nil
}

// profile writes profiles of the CPU and of what is allocated into a directory, if there is one.
func profile(dir, system, workload string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	path := filepath.Join(dir, system+"-"+workload)
	f, err := os.Create(path + ".cpu.pprof") //nolint:gosec // where the caller wants it
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		a, err := os.Create(path + ".allocs.pprof") //nolint:gosec // as above
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(a, 0), a.Close(), f.Close())
	}, nil
}

// PerTurn is a figure for each model call.
func (r Result) PerTurn(n float64) float64 { return n / float64(max(1, r.Turns)) }

// PerPiece is a figure for each piece of an answer.
func (r Result) PerPiece(n float64) float64 { return n / float64(max(1, r.Pieces)) }

// PerSession is a figure for each session.
func (r Result) PerSession(n float64) float64 { return n / float64(max(1, r.Sessions)) }

// Exponent is how a cost grows with a size: 1 is in proportion.
func Exponent(cost, doubled float64) float64 { return math.Log2(doubled / cost) }

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// As a child the test binary is a server as bad as can be.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-serve" {
		times = new(bad).times
		if err := serveAgents(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bad leaks with each effect, a goroutine, a descriptor and some of the heap, and loses one of so many effects, and has one of so many twice.
type bad struct {
	mu    sync.Mutex
	n     int
	heap  [][]byte
	files []*os.File
}

func (b *bad) times(effect) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	go func() { select {} }()
	b.heap = append(b.heap, make([]byte, 64<<10))
	if f, err := os.Open(os.DevNull); err == nil {
		b.files = append(b.files, f)
	}
	switch b.n % 20 {
	case 7:
		return 0
	case 13:
		return 2
	}
	return 1
}

func TestABadServerIsFound(t *testing.T) {
	tier.SkipQuick(t, "it needs a PostgreSQL server, and ten seconds")
	if pgtest.Absent() {
		component.Absent(t, pgtest.ErrAbsent.Error(), "scripts/test installs it")
	}
	var out strings.Builder
	s := &soak{length: 3 * time.Second, rest: 300 * time.Millisecond, clients: 8, dir: t.TempDir(), self: os.Args[0], out: &locked{b: &out}, calm: true}
	if err := s.run(context.Background()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !s.failed() {
		t.Error("it did not fail")
	}
	for _, want := range []string{"the heap ", "number of goroutines", "number of descriptors"} {
		if !slices.ContainsFunc(s.parts, func(got string) bool { return strings.Contains(got, want) }) {
			t.Errorf("nobody says that this grew: %s: %q", want, s.parts)
		}
	}
	for _, want := range []string{"is done, as the journal says, and did not happen", "happened 2 times"} {
		if !slices.ContainsFunc(s.lost, func(got string) bool { return strings.Contains(got, want) && strings.Contains(got, s.dir) }) {
			t.Errorf("nobody says: %s: %q", want, s.lost)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	b  *strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Package peertest tests programs with peers: a small load of each one, and what the page says of them.
package peertest

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// Run puts each of them under a small load, and looks whether the answers are right and the model was asked as often as it had to be.
func Run(t *testing.T, peers load.Peers) {
	t.Helper()
	s := httptest.NewServer(upstream.New(0).Handler())
	defer s.Close()
	for workload, times := range map[string]float64{"W1": .2, "W2-200": .25, "W3": .01, "W3-flushed": .01, "W4": .05} {
		w, err := load.Named(workload, times)
		if err != nil {
			t.Fatal(err)
		}
		w.Warm, w.Sessions, w.Latency = min(w.Warm, 1), min(w.Sessions, 5), 0
		for name, system := range peers.Systems() {
			before := counts(t, s.URL)
			r, err := load.Run(t.Context(), name, w, s.URL, "", system)
			if err != nil {
				t.Error(err)
				continue
			}
			after, asked := counts(t, s.URL), int64((w.Warm+w.Sessions)*w.Asks.Turns)
			if got, refused := after.Requests-before.Requests, after.Refused-before.Refused; got != asked || refused != 0 {
				t.Errorf("%s, %s: the model was asked %d times, and %d of them wrongly, want %d", name, workload, got, refused, asked)
			}
			if r.Turns != w.Sessions*w.Asks.Turns || r.Allocs == 0 {
				t.Errorf("%s, %s: %+v", name, workload, r)
			}
		}
	}
}

func counts(t *testing.T, url string) upstream.Counts {
	t.Helper()
	c, err := upstream.CountsOf(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Page holds a page to a program: it has a row for each peer, and each module that the program's go.mod requires, at its version.
func Page(t *testing.T, peers load.Peers, page, mod string) {
	t.Helper()
	text := read(t, page)
	for name := range peers {
		if !strings.Contains(text, "| `"+name+"` |") {
			t.Errorf("%s has no row for %s", page, name)
		}
	}
	modules := 0
	for line := range strings.Lines(read(t, mod)) {
		f := strings.Fields(line)
		if len(f) != 2 || !strings.HasPrefix(f[1], "v") || strings.HasPrefix(f[0], "github.com/pawl-dev/") { // with more fields it is indirect, or no requirement
			continue
		}
		if modules++; !strings.Contains(text, "`"+f[0]+"` "+f[1]) {
			t.Errorf("%s does not say that %s %s is measured", page, f[0], f[1])
		}
	}
	if modules == 0 {
		t.Errorf("%s requires nothing", mod)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path) //nolint:gosec // of this repository
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Main holds a program to what bench/turns asks of it.
func Main(t *testing.T, peers load.Peers) {
	t.Helper()
	var out bytes.Buffer
	var all []load.Described
	if err := peers.Main(t.Context(), []string{"peers"}, &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || len(all) != len(peers) {
		t.Errorf("%s: %v", out.String(), err)
	}
	for _, p := range all {
		if peers[p.Name].Wire != p.Wire || p.Wire == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, args := range [][]string{nil, {"more"}, {"run", "-system", "nobody", "-workload", "W1"}} {
		if err := peers.Main(t.Context(), args, &out); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

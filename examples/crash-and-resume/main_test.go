package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/readme"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheCommandsOfTheREADME(t *testing.T) {
	page := readme.Open(t, "examples/crash-and-resume")
	out := page.Run()
	if n := strings.Count(out, "shop: "); n != 3 {
		t.Errorf("the shop was asked %d times:\n%s", n, out)
	}
}

// The process is killed from outside at each request to the shop: before it took effect there, and behind that.
func TestItIsKilledAtAnyRequest(t *testing.T) {
	for _, at := range []string{"before reserve", "after reserve", "before charge", "after charge"} {
		t.Run(at, func(t *testing.T) {
			var mu sync.Mutex
			asked, done := map[string]int{}, map[string]string{}
			reached, dead := make(chan bool), make(chan bool)
			shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				what := strings.TrimPrefix(r.URL.Path, "/")
				asked[what]++
				first := asked[what] == 1
				mu.Unlock()
				if first && at == "before "+what {
					close(reached)
					<-dead
					return
				}
				mu.Lock()
				done[r.Header.Get("Idempotency-Key")] = what
				mu.Unlock()
				if first && at == "after "+what {
					close(reached)
					<-dead
				}
			}))
			defer shop.Close()

			args := []string{"-dir", t.TempDir(), "-shop", shop.Listener.Addr().String()}
			killed := readme.Command(t, "../..", args...)
			if err := killed.Start(); err != nil {
				t.Fatal(err)
			}
			<-reached
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = killed.Wait() // it was killed
			close(dead)
			out, err := readme.Command(t, "../..", args...).CombinedOutput()
			if err != nil || string(out) != "Order 7 is yours, and paid.\n" {
				t.Errorf("%v\n%s", err, out)
			}
			if all := slices.Sorted(maps.Values(done)); !slices.Equal(all, []string{"charge", "reserve"}) {
				t.Errorf("the shop did %q", all)
			}
			for _, what := range []string{"reserve", "charge"} {
				if want := 1 + strings.Count(at, what); asked[what] != want {
					t.Errorf("%s was asked for %d times, want %d", what, asked[what], want)
				}
			}
		})
	}
}

package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/raced"
)

// piecesOf makes a small body that no other has.
func piecesOf(seed string) (b httpapi.Body) {
	sum := sha256.Sum256([]byte(seed))
	for i := range 20 {
		b = append(b, bytes.Repeat([]byte(hex.EncodeToString(sum[:1+i])), 1+int(sum[i])%4))
	}
	return b
}

// Bodies have their rooms one after the other: whatever servers and callers do, each arrives as it is or not at all.
func TestSmallBodiesThatShareRoomsArriveAsTheyAre(t *testing.T) {
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		switch n % 7 {
		case 1: // before it has read anything
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			w.(http.Flusher).Flush()
		case 2: // the next one on this connection is sent again
			w.Header().Set("Connection", "close")
		case 3:
			time.Sleep(time.Millisecond)
		case 4:
			panic(http.ErrAbortHandler)
		}
		got, err := io.ReadAll(r.Body)
		if want := bytes.Join(piecesOf(fmt.Sprint(n)), nil); err == nil && !bytes.Equal(got, want) {
			t.Errorf("body %d came as %q, want %q", n, got, want)
		}
		_, _ = w.Write(got)
	})
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := range 60 {
				n := worker*60 + i
				ctx, cancel := context.WithCancel(t.Context())
				if n%5 == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1000))*time.Microsecond, cancel)
				}
				resp, err := api.Do(ctx, http.MethodPost, "/x?n="+fmt.Sprint(n), piecesOf(fmt.Sprint(n)).Content(), nil)
				if err == nil {
					got, err := io.ReadAll(resp.Body)
					if want := bytes.Join(piecesOf(fmt.Sprint(n)), nil); err == nil && !bytes.Equal(got, want) {
						t.Errorf("the answer to body %d is %q", n, got)
					}
					_ = resp.Body.Close()
				} else if k := n % 7; n%5 != 0 && k != 1 && k != 4 {
					t.Errorf("request %d: %v", n, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

func TestABodyIsSentTwiceByTwoRequests(t *testing.T) {
	content := piecesOf("x").Content()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		_, _ = w.Write(got)
	})
	for range 2 {
		resp, err := api.Do(t.Context(), http.MethodPost, "/x", content, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, bytes.Join(piecesOf("x"), nil)) {
			t.Errorf("%q came back, %v", got, err)
		}
		_ = resp.Body.Close()
	}
}

func TestACallersTraceIsToldOfARequest(t *testing.T) {
	api := serve(t, func(http.ResponseWriter, *http.Request) {})
	wrote := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { wrote++ }})
	resp, err := api.Do(ctx, http.MethodPost, "/x", piecesOf("x").Content(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if wrote != 1 {
		t.Errorf("it was told of %d requests, want 1", wrote)
	}
}

// A request waits for minutes: what it sent is not held meanwhile.
func TestARequestThatWaitsDoesNotHoldItsBody(t *testing.T) {
	if raced.Enabled {
		t.Skip("with -race, rooms to be used again are dropped at random")
	}
	const many, size = 64, 3500
	came, leave := make(chan struct{}), make(chan struct{})
	api := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/wait" {
			came <- struct{}{}
			<-leave
		}
	})
	waiting := func(body httpapi.Body) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		for range many { // one waits when the next one comes
			all.Go(func() {
				resp, err := api.Do(t.Context(), http.MethodPost, "/wait", body.Content(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
			})
			<-came
		}
		runtime.ReadMemStats(&after)
		for range many {
			leave <- struct{}{}
		}
		all.Wait()
		return float64(after.TotalAlloc-before.TotalAlloc) / many
	}
	small, large := httpapi.Body{make([]byte, size)}, httpapi.Body{make([]byte, 2*size)}
	joined, apart := math.Inf(1), math.Inf(1)
	for range 10 {
		joined, apart = min(joined, waiting(small)), min(apart, waiting(large)) // which is sent from where it lies; what is made for a request is the same
	}
	if more := joined - apart; more > size/4 {
		t.Errorf("a request that waits takes %.0f bytes more than one whose body is not joined, with a body of %d", more, size)
	}
}

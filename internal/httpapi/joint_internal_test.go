package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Providers speak HTTP/2, where a body is written beside the answer, and may be given up in its middle.
func TestSmallBodiesThatShareRoomsArriveAsTheyAreOverHTTP2(t *testing.T) {
	body := func(n string) Body {
		return Body{bytes.Repeat([]byte(n+","), 300), bytes.Repeat([]byte(n+";"), 200)}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch rand.IntN(5) {
		case 0: // before it has read anything
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		case 1:
			panic(http.ErrAbortHandler)
		}
		n := r.URL.RawQuery
		if got, err := io.ReadAll(r.Body); r.ProtoMajor != 2 || err == nil && !bytes.Equal(got, bytes.Join(body(n), nil)) {
			t.Errorf("%s: body %s came as %.60q", r.Proto, n, got)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	api := &API{Provider: "x", Base: server.URL, Header: http.Header{}, send: sender{transport: server.Client().Transport}}
	var all sync.WaitGroup
	var came atomic.Int32
	for worker := range 8 {
		all.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%4 == 0 {
					time.AfterFunc(time.Duration(rand.IntN(800))*time.Microsecond, cancel)
				}
				n := fmt.Sprint(1000 + worker*60 + i)
				if resp, err := api.Do(ctx, http.MethodPost, "/?"+n, body(n).Content(), nil); err == nil {
					came.Add(1)
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := came.Load(); n < 100 {
		t.Errorf("%d of 480 came", n)
	}
}

package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
)

// large is a body in many pieces, too large to be joined.
func large() (b httpapi.Body) {
	for i := range 3000 {
		b = append(b, bytes.Repeat([]byte{byte(i)}, i%40))
	}
	return b
}

func TestALargeBodyIsSentWhole(t *testing.T) {
	body := large()
	want := sha256.Sum256(bytes.Join(body, nil))
	var asked atomic.Int32
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		all, err := io.ReadAll(r.Body)
		if err != nil || sha256.Sum256(all) != want || int64(len(all)) != r.ContentLength {
			t.Errorf("%d bytes that are not the body: %v", len(all), err)
		}
		if asked.Add(1)%3 == 0 { // the next one finds the connection gone, and is sent again
			w.Header().Set("Connection", "close")
		}
	})
	for range 9 {
		resp, err := api.Do(t.Context(), http.MethodPost, "/x", body.Content(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if got := sha256.Sum256(bytes.Join(body, nil)); got != want {
		t.Error("sending a body has changed it")
	}
}

func TestALargeBodyTakesNoBufferOfItsOwn(t *testing.T) {
	var body httpapi.Body
	for range 40 {
		body = append(body, make([]byte, 1<<10))
	}
	room := make(chan []byte, 1)
	room <- make([]byte, 64<<10)
	api := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b := <-room
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, b)
		room <- b
	})
	const n = 50
	send := func() {
		for range n {
			resp, err := api.Do(t.Context(), http.MethodPost, "/x", body.Content(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	send()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	send()
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 24<<10 { // with what the server takes
		t.Errorf("a request of 40 KiB allocates %d bytes", each)
	} else {
		t.Logf("a request of 40 KiB allocates %d bytes", each)
	}
}

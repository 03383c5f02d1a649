package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math"
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
	for pieces, each := range map[int]int{40: 1 << 10, 4000: 10} { // a list of the latter would take 96 KB
		takesNoBuffer(t, pieces, each)
	}
}

func takesNoBuffer(t *testing.T, pieces, each int) {
	t.Helper()
	var body httpapi.Body
	for range pieces {
		body = append(body, make([]byte, each))
	}
	room := make(chan []byte, 1)
	room <- make([]byte, 64<<10)
	api := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b := <-room
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, b)
		room <- b
	})
	least := uint64(math.MaxUint64)
	for range 100 { // pools lose things by chance: a request for which they lose none says what one takes, with what the server does
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp, err := api.Do(t.Context(), http.MethodPost, "/x", body.Content(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if t.Logf("a request of 40 KB in %d pieces allocates %d bytes", pieces, least); least > 8<<10 {
		t.Errorf("a request of 40 KB in %d pieces allocates %d bytes: there is a buffer for its body, or for the list of them", pieces, least)
	}
}

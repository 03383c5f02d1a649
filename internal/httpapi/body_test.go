package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
)

// counted is a connection that counts what is written to it.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func TestARequestGoesOutInAsFewPiecesAsItCan(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, _ := io.ReadAll(r.Body)
		_, _ = w.Write(all)
	}))
	t.Cleanup(server.Close)
	var writes atomic.Int64
	transport := httpapi.Transport().(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return counted{conn, &writes}, err
	}
	t.Cleanup(transport.CloseIdleConnections)
	for size, want := range map[int]int64{30: 1, 3500: 1, 3600: 2, 6000: 2, 30_000: 2} {
		body := httpapi.Body{[]byte("["), []byte(strings.Repeat("x", size-2)), []byte("]")}
		content := body.Content()
		r, err := content.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, apart := httpapi.Pieces(r); apart != (want > 1) { // joined for nothing, it would be copied twice
			t.Errorf("%d bytes are sent from where they lie: %v", size, apart)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, r)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = content.Len
		req.Header.Set("Authorization", "Bearer "+strings.Repeat("k", 100))
		writes.Store(0)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || len(got) != size {
			t.Errorf("%d bytes: %d came, %v", size, len(got), err)
		}
		if n := writes.Load(); n != want {
			t.Errorf("%d bytes went out in %d pieces, want %d", size, n, want)
		}
	}
}

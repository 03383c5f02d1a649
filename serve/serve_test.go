package serve_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// listens has a server of its own listen, and gives its address and how to stop it.
func listens(t *testing.T, o serve.Options, tools ...tool.Tool) (addr string, stop func() error) {
	t.Helper()
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done.")), Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	s, err := serve.New(serve.Of(agent.Agent{ID: "a"}, e, journal.Memory()), o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return l.Addr().String(), func() error {
		cancel()
		return <-ended
	}
}

// get asks by a connection of its own.
func get(t *testing.T, addr, path string) (*http.Response, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(req)
}

func TestConnectionsAreLimited(t *testing.T) {
	addr, stop := listens(t, serve.Options{MaxConns: 1})
	first, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(first, "GET /healthz HTTP/1.1\r\n"); err != nil { // and does not go on
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // it is let in
	answered := make(chan int, 1)
	go func() {
		res, err := get(t, addr, "/healthz")
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		_ = res.Body.Close()
		answered <- res.StatusCode
	}()
	select {
	case code := <-answered:
		t.Errorf("a second one is let in: %d", code)
	case <-time.After(100 * time.Millisecond):
	}
	_ = first.Close()
	if code := <-answered; code != 200 {
		t.Errorf("behind it: %d", code)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Who reads a stream, who waits for an answer and who has not said what he wants: none of them keeps a server from stopping.
func TestAServerStopsWhoeverIsThere(t *testing.T) {
	g := gate("wait")
	addr, stop := listens(t, serve.Options{Grace: 50 * time.Millisecond}, g)
	post := func(body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/runs", strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		return (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		res, err := post(`{"prompt":"Wait.","session":"s","wait":true}`)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = res.Body.Close() }()
		if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), `"s"`) {
			t.Errorf("who waited is told %s", b)
		}
	}()
	<-g.started
	stream, err := get(t, addr, "/v1/sessions/s/events")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	_ = stream.Body.Close()
	<-waited
	if _, err := get(t, addr, "/healthz"); err == nil {
		t.Error("it listens still")
	}
}

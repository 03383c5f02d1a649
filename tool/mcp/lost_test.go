//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

func rawJSON(s string) json.RawMessage { return json.RawMessage(s) }

// Servers say in different ways that they don't know a session: some with a body, some with 400.
func TestAServerMayForgetSessionsInItsOwnWay(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(w http.ResponseWriter){
		"404 without a body": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"404 with a body of the protocol": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		},
		"400 with a body of the protocol": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":2}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHTTPServer(t, nil, nil)
			var forgotten atomic.Value
			var calls atomic.Int64
			forgotten.Store("")
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if id := r.Header.Get(sessionHeader); id != "" && id == forgotten.Load() {
					say(w)
					return
				}
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), `"tools/call"`) {
					calls.Add(1)
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				(*h.handler.Load()).ServeHTTP(w, r)
			}))
			t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
			c := connect(t, Server{Name: "s", URL: front.URL})
			for range 2 {
				forgotten.Store(c.servers[0].current().ID())
				if got, err := use(t, c, "fail", `{}`); err != nil || got.Content != "it went wrong" {
					t.Fatal(got, err)
				}
			}
			if calls.Load() != 2 {
				t.Error("the server ran", calls.Load())
			}
		})
	}
}

func TestACallThatMayHaveRunIsNotRepeated(t *testing.T) {
	t.Parallel()
	h := newHTTPServer(t, nil, nil)
	var calls atomic.Int64
	var how atomic.Value
	how.Store("")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"tools/call"`) {
			calls.Add(1)
			switch how.Load() {
			case "cut":
				panic(http.ErrAbortHandler)
			case "502":
				w.WriteHeader(http.StatusBadGateway)
				return
			case "half":
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(http.StatusOK)
				_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":")
				return
			}
		}
		(*h.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	c := connect(t, Server{Name: "s", URL: front.URL})
	for _, kind := range []string{"cut", "502", "half"} {
		how.Store(kind)
		calls.Store(0)
		_, err := use(t, c, "fail", `{}`)
		if err == nil || !strings.Contains(err.Error(), "Whether it took effect is unknown") || calls.Load() != 1 {
			t.Errorf("%s: %d calls, %v", kind, calls.Load(), err)
		}
		calls.Store(0)
		if _, err := use(t, c, "echo", `{}`); err == nil || strings.Contains(err.Error(), "unknown") || calls.Load() != attempts {
			t.Errorf("%s, of one that may run again: %d calls, %v", kind, calls.Load(), err)
		}
	}
	how.Store("")
	if got, err := use(t, c, "echo", `{"text":"a"}`); err != nil || got.Content != "a\nend" {
		t.Error("it goes on:", got, err)
	}
}

func TestACallWaitsAMomentForAServerThatIsAway(t *testing.T) { // alone, because it measures time
	h := newHTTPServer(t, nil, nil)
	addr := h.Listener.Addr().String()
	c := connect(t, Server{Name: "s", URL: h.URL})
	find(t, c, "fail")
	h.CloseClientConnections()
	_ = h.Listener.Close()
	time.Sleep(100 * time.Millisecond) // until the client knows
	back := make(chan *http.Server)
	time.AfterFunc(400*time.Millisecond, func() {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Error(err)
			back <- &http.Server{}
			return
		}
		srv := &http.Server{Handler: *h.handler.Load()}
		go func() { _ = srv.Serve(l) }()
		back <- srv
	})
	got, err := use(t, c, "fail", `{}`)
	srv := <-back
	if err != nil || got.Content != "it went wrong" {
		t.Error(got, err)
	}
	closeClient(t, c)
	_ = srv.Close()
}

func TestHeadersGoToTheServerOnly(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked.Store(true) }))
	defer other.Close()
	h := newHTTPServer(t, nil, nil)
	var seen atomic.Value
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("X-Key"))
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/old":
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			(*h.handler.Load()).ServeHTTP(w, r)
		}
	}))
	defer front.Close()
	s := Server{Name: "s", URL: front.URL, Headers: map[string]string{"X-Key": "secret"}}
	c := connect(t, s)
	if find(t, c, "echo"); seen.Load() != "secret" {
		t.Error(seen.Load())
	}
	closeClient(t, c)
	for _, path := range []string{"/away", "/old"} {
		s.URL, s.Required = front.URL+path, true
		if _, err := Connect(t.Context(), []Server{s}, Options{}); err == nil || !strings.Contains(err.Error(), "leads away from") {
			t.Error(path, err)
		}
	}
	front.CloseClientConnections()
	if leaked.Load() {
		t.Error("the other server was asked")
	}
}

func TestAServerThatWantsALoginSaysSo(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer h.Close()
	_, err := Connect(t.Context(), []Server{{Name: "s", URL: h.URL, Required: true}}, Options{Tokens: t.TempDir()})
	if !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), "pawl mcp login --url "+h.URL+" s") {
		t.Error(err)
	}
}

func TestTheSandboxOfARunBindsItsCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHTTPServer(t, nil, nil)
	wide := sandbox.Policy{Root: dir, Network: sandbox.Network{All: true, Hosts: []string{"127.0.0.1"}}}
	ctx := sandbox.With(t.Context(), wide)
	web := Server{Name: "w", URL: h.URL}
	c, err := Connect(ctx, []Server{stdioServer("all"), web}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	inner := func(p sandbox.Policy) context.Context { return sandbox.With(ctx, p) }
	narrow := wide
	narrow.Root = filepath.Join(dir, "sub")
	alone := wide
	alone.Network = sandbox.Network{}
	here := wide
	here.Network = sandbox.Network{Hosts: []string{"127.0.0.1"}}
	for name, c2 := range map[string]struct {
		ctx    context.Context
		denied string
	}{
		"the same":            {ctx, ""},
		"fewer places":        {inner(narrow), "mcp__s__echo"},
		"no network":          {inner(alone), "mcp__s__echo mcp__w__echo"},
		"the server's host":   {inner(here), "mcp__s__echo"},
		"a program of no run": {t.Context(), ""},
	} {
		var denied []string
		for _, f := range c.Tools(ctx) {
			n := f.Definition().Name
			if !strings.HasSuffix(n, "__echo") {
				continue
			}
			if _, err := f.Execute(c2.ctx, rawJSON(`{}`)); errors.Is(err, errdefs.PolicyDenied) {
				denied = append(denied, n)
			} else if err != nil {
				t.Error(name, err)
			}
		}
		if got := strings.Join(denied, " "); got != c2.denied {
			t.Errorf("%s: %q is denied", name, got)
		}
	}
}

func TestCommandsAreMadeByTheCaller(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var made []string
	s := stdioServer("all")
	s.Args = []string{"-x", "-e", "A=1", "-e", "B=2", "two words"}
	c, err := Connect(t.Context(), []Server{s}, Options{Dir: dir, Command: func(_ context.Context, name string, args ...string) (*exec.Cmd, error) {
		made = append([]string{name}, args...)
		return exec.Command(name, args...), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"": dir, "sub": sub, sub: sub} {
		s := stdioServer("all")
		s.Dir = in
		var cmd *exec.Cmd
		c, err := Connect(t.Context(), []Server{s}, Options{Dir: dir, Command: func(_ context.Context, name string, args ...string) (*exec.Cmd, error) {
			cmd = exec.Command(name, args...)
			return cmd, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if closeClient(t, c); cmd.Dir != want {
			t.Errorf("%q is %s", in, cmd.Dir)
		}
	}
	if strings.Join(made[1:], "|") != "-x|-e|A=1|-e|B=2|two words" {
		t.Error(made)
	}
	if live := c.servers[0].current(); live == nil {
		t.Error(c.Warnings())
	}
}

func TestAServerThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Server{
		"two _ in a row":    {Name: "a__b", Command: "x"},
		"want 1 to 32":      {Name: strings.Repeat("a", 33), Command: "x"},
		"_ at its ends":     {Name: "a_", Command: "x"}, // its tool b would be a's tool _b
		`server "_a"`:       {Name: "_a", Command: "x"},
		"the name":          {Name: "a b", Command: "x"},
		"neither":           {Name: "a"},
		"and a URL":         {Name: "a", Command: "x", URL: "http://x"},
		"begins with http":  {Name: "a", URL: "ftp://x"},
		"are for a command": {Name: "a", URL: "http://x", Args: []string{"y"}},
		"are for a URL":     {Name: "a", Command: "x", Headers: map[string]string{"A": "b"}},
		"a time below 0":    {Name: "a", Command: "x", Timeout: -1},
	} {
		if _, err := Connect(t.Context(), []Server{s}, Options{}); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), want) {
			t.Error(want, err)
		}
	}
	if _, err := Connect(t.Context(), []Server{{Name: "a", Command: "x"}, {Name: "A", Command: "y"}}, Options{}); !errors.Is(err, errdefs.Conflict) {
		t.Error(err)
	}
}

func TestManyCallsAtOnceFindTheirAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		f := find(t, connect(t, s), "echo")
		errs := make(chan error)
		for i := range 20 {
			go func() {
				res, err := f.Execute(tool.WithCall(t.Context(), tool.Call{ID: fmt.Sprint(i)}), fmt.Appendf(nil, `{"text":"%d"}`, i))
				if want := fmt.Sprintf("%d\nend", i); err == nil && res.Content != want {
					err = fmt.Errorf("%q for %q", res.Content, want)
				}
				errs <- err
			}()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// newDelete ends a session over HTTP.
func newDelete(ctx context.Context, url, session string) (func() error, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(sessionHeader, session)
	return func() error {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		http.DefaultClient.CloseIdleConnections()
		return resp.Body.Close()
	}, nil
}

func toolCall(ctx context.Context, name string, out io.Writer) context.Context {
	return tool.WithCall(ctx, tool.Call{ID: "1", Name: name, Output: out})
}

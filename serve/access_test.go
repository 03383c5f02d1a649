package serve_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

func TestWhoMayComeIn(t *testing.T) {
	const token = "a-token-of-some-length"
	closed := serves(t, journal.Memory(), scripted.New(scripted.Text("Hi.")), serve.Options{Tokens: []string{"another-token-of-this", token}, Origins: []string{"https://chat.example"}})
	local := serves(t, journal.Memory(), scripted.New(scripted.Text("Hi.")), serve.Options{Hosts: []string{"box.example"}})
	for _, c := range []struct {
		name   string
		at     *place
		want   int
		header []string
	}{
		{"no token", closed, 401, nil},
		{"a wrong token", closed, 401, []string{"Authorization", "Bearer a-token-of-some-lengtH"}},
		{"a part of it", closed, 401, []string{"Authorization", "Bearer a-token-of-some"}},
		{"another scheme", closed, 401, []string{"Authorization", "Basic " + token}},
		{"the token alone", closed, 401, []string{"Authorization", token}},
		{"the token", closed, 200, []string{"Authorization", "Bearer " + token}},
		{"the scheme in lower case", closed, 200, []string{"Authorization", "bearer " + token}},
		{"any name, with a token", closed, 200, []string{"Authorization", "Bearer " + token, "Host", "anything.example"}},
		{"a page that may", closed, 200, []string{"Authorization", "Bearer " + token, "Origin", "https://chat.example"}},
		{"a page that may not", closed, 403, []string{"Authorization", "Bearer " + token, "Origin", "https://evil.example"}},
		{"a page of the right name and another scheme", closed, 403, []string{"Authorization", "Bearer " + token, "Origin", "http://chat.example"}},
		{"a page of nowhere", closed, 403, []string{"Authorization", "Bearer " + token, "Origin", "null"}},
		{"two origins", closed, 403, []string{"Authorization", "Bearer " + token, "Origin", "https://chat.example", "Origin", "https://evil.example"}},
		{"by its address", local, 200, nil},
		{"as localhost", local, 200, []string{"Host", "localhost:7295"}},
		{"by a name that leads here", local, 403, []string{"Host", "evil.example"}},
		{"by a name that only begins so", local, 403, []string{"Host", "localhost.evil.example"}},
		{"by an address in a name", local, 403, []string{"Host", "127.0.0.1.evil.example"}},
		{"by a name of its own", local, 200, []string{"Host", "Box.example:80"}},
		{"its own page", local, 200, []string{"Host", "localhost:7295", "Origin", "http://localhost:7295"}},
		{"a local page of another port", local, 403, []string{"Host", "localhost:7295", "Origin", "http://localhost:3000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := c.at.ask(t.Context(), "GET", "/v1/sessions", "", c.header...)
			defer func() { _ = res.Body.Close() }()
			b, _ := io.ReadAll(res.Body)
			if res.StatusCode != c.want {
				t.Errorf("%d %s", res.StatusCode, b)
			}
			if c.want != 200 && !strings.Contains(string(b), `"message":"serve: `) {
				t.Errorf("it says %s", b)
			}
			if c.want == 401 && res.Header.Get("WWW-Authenticate") == "" || strings.Contains(string(b), token) {
				t.Errorf("%v %s", res.Header, b)
			}
			if got := res.Header.Get("Access-Control-Allow-Origin"); (got != "") != (c.name == "a page that may") {
				t.Errorf("pages of %q may read it", got)
			}
		})
	}
	res := closed.ask(t.Context(), "OPTIONS", "/v1/runs", "", "Origin", "https://chat.example", "Access-Control-Request-Method", "POST")
	_ = res.Body.Close()
	if res.StatusCode != 204 || !strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("before a page asks: %d %v", res.StatusCode, res.Header)
	}
	closed.do(200, nil, "GET", "/healthz", "")
	for _, o := range []serve.Options{{Tokens: []string{"short"}}, {Tokens: []string{"with a blank in the middle"}}, {Origins: []string{"chat.example"}}, {Origins: []string{"https://chat.example/"}}, {Origins: []string{"*"}}, {MaxRuns: -1}} {
		if _, err := serve.New(serve.Of(agent.Agent{ID: "a"}, nil, journal.Memory()), o); !errdefs.Validation.Is(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestOthersNeedAToken(t *testing.T) {
	s, err := serve.New(serve.Of(agent.Agent{ID: "a"}, nil, journal.Memory()), serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), l); !errdefs.PolicyDenied.Is(err) {
		t.Errorf("it served: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it listens: %v", err)
	}
}

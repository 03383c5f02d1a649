package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a server with an agent, and who asks it.
type place struct {
	t      *testing.T
	server *serve.Server
	http   *httptest.Server
	store  journal.Store
	client *http.Client
	header http.Header
}

// serves opens a server for an agent of a model and tools.
func serves(t *testing.T, store journal.Store, m model.Model, o serve.Options, tools ...tool.Tool) *place {
	t.Helper()
	e, err := loop.New(loop.Config{Model: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, serve.Of(agent.Agent{ID: "a"}, e, store), o)
}

func open(t *testing.T, a serve.Agent, o serve.Options) *place {
	t.Helper()
	s, err := serve.New(a, o)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, server: s, http: httptest.NewServer(s), store: a.Journal(), header: http.Header{}}
	p.client = p.http.Client()
	t.Cleanup(p.close)
	return p
}

func (p *place) close() {
	p.http.CloseClientConnections()
	_ = p.server.Close()
	p.http.Close()
	p.client.CloseIdleConnections()
}

// ask sends a request and gives its answer, which the caller closes.
func (p *place) ask(ctx context.Context, method, path, body string, header ...string) *http.Response {
	p.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.http.URL+path, r)
	if err != nil {
		p.t.Fatal(err)
	}
	for name, values := range p.header {
		req.Header[name] = values
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
			continue
		}
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// do sends a request and reads its answer, which has to have a status, into a value.
func (p *place) do(status int, into any, method, path, body string, header ...string) http.Header {
	p.t.Helper()
	res := p.ask(p.t.Context(), method, path, body, header...)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode != status {
		p.t.Fatalf("%s %s %s: %d %s\nwant %d", method, path, clip(body), res.StatusCode, clip(string(b)), status)
	}
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, clip(string(b)))
		}
	}
	return res.Header
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:400] + "…"
	}
	return s
}

// sent is an event as it came.
type sent struct {
	id, name, data string
	Kind           string          `json:"kind"`
	Session        string          `json:"session"`
	Run            string          `json:"run"`
	Seq            int64           `json:"seq"`
	Attempt        int             `json:"attempt"`
	Text           string          `json:"text"`
	WaitMS         int64           `json:"wait_ms"`
	Data           json.RawMessage `json:"data"`
}

func (e sent) String() string {
	if e.Data == nil {
		return fmt.Sprintf("%s %d %q", e.Kind, e.Attempt, e.Text)
	}
	return fmt.Sprintf("%d %s", e.Seq, e.Kind)
}

// reads gives the events of a response as they come.
func reads(t *testing.T, body io.Reader) func(yield func(sent) bool) {
	return func(yield func(sent) bool) {
		sc := bufio.NewScanner(body)
		sc.Buffer(nil, 16<<20)
		var e sent
		var data bytes.Buffer
		for sc.Scan() {
			line := sc.Text()
			field, value, _ := strings.Cut(line, ": ")
			switch {
			case line == "" && data.Len() > 0:
				e.data = data.String()
				if err := json.Unmarshal(data.Bytes(), &e); err != nil {
					t.Errorf("an event is no JSON: %v: %s", err, e.data)
				}
				if !yield(e) {
					return
				}
				e, data = sent{}, bytes.Buffer{}
			case line == "", strings.HasPrefix(line, ":"):
			case field == "id":
				e.id = value
			case field == "event":
				e.name = value
			case field == "data":
				if data.Len() > 0 {
					data.WriteByte('\n')
				}
				data.WriteString(value)
			default:
				t.Errorf("no line of an event stream: %q", line)
			}
		}
	}
}

// follow reads events from a path, up to a number of them if there is one, and goes away then.
func (p *place) follow(path, last string, most int) (all []sent) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	res := p.ask(ctx, http.MethodGet, path, "", "Last-Event-ID", last)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		p.t.Fatalf("%s after %q: %d %s", path, last, res.StatusCode, b)
	}
	for e := range reads(p.t, res.Body) {
		all = append(all, e)
		if len(all) == most {
			break
		}
	}
	return all
}

func shown(all []sent) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// ask is a request without a network.
func ask(t testing.TB, s http.Handler, method, path, body, last string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

//go:build unix

package mcp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

func TestSchemasAreThoseThatProvidersTake(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("schemas"))
	got := map[string]string{}
	for _, f := range c.Tools(t.Context()) {
		d := f.Definition()
		if name := strings.TrimPrefix(d.Name, "mcp__s__"); name != "resources" {
			got[name] = string(d.Schema)
			if len(d.Description) > longestDescription+len("…") {
				t.Error(name, "is described with", len(d.Description))
			}
		}
	}
	want := map[string]string{
		"a_text": "", "b_number": "", "c_list": "", "d_text_type": "", "e_types": "", "f_none": "", "g_empty": "", "j_huge": "",
		"h_untyped": `{"type":"object","properties":{"x":{"type":"string"}}}`, "i_good": `{"type":"object"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := tool.NewSet(c.Tools(t.Context())...); err != nil {
		t.Error(err)
	}
	warned := strings.Join(c.Warnings(), "\n")
	for _, name := range []string{"a_text", "b_number", "c_list", "d_text_type", "e_types", "j_huge"} {
		if !strings.Contains(warned, `"`+name+`"`) {
			t.Errorf("no warning of %s in\n%s", name, warned)
		}
	}
	if n := len(c.Warnings()); n != 6 {
		t.Errorf("%d warnings:\n%s", n, warned)
	}
}

func TestAServerWithACrowdOfToolsHasNone(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("crowd"))
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "more than 2000 tools") || len(c.Tools(t.Context())) != 0 {
		t.Error(w)
	}
}

func TestAListThatChangesInAStormIsAskedForOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("storm"))
	if got, err := use(t, c, "t", `{}`); err != nil || got.Content != "asked 1" {
		t.Error(got, err)
	}
	eventually(t, "the server says so", c.Changed)
	c.Tools(t.Context())
	if got, err := use(t, c, "t", `{}`); err != nil || strings.TrimPrefix(got.Content, "asked ") > "3" {
		t.Error(got, err)
	}
}

func TestALineWithoutAnEndEndsTheConnection(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("line"))
	_, err := use(t, c, "t", `{}`)
	if err == nil || !strings.Contains(err.Error(), "a message of more than 32 MiB") || !errors.Is(err, tool.ErrUnknown) {
		t.Error(err)
	}
}

// What a server sends over HTTP is bounded in every form, also where it says that it failed.
func TestAHugeAnswerOverHTTPEndsTheCallOnly(t *testing.T) {
	t.Parallel()
	h := newHTTPServer(t, nil, nil)
	var how atomic.Value
	var total atomic.Int64
	how.Store("")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		how := how.Load().(string)
		if how == "" || !strings.Contains(string(body), `"tools/call"`) {
			(*h.handler.Load()).ServeHTTP(w, r)
			return
		}
		kind, status, _ := strings.Cut(how, " ")
		w.Header().Set("Content-Type", kind)
		if status != "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		begin := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`
		if kind == "text/event-stream" {
			begin = "data: " + begin
		}
		sent, _ := io.WriteString(w, begin)
		defer func() { total.Store(int64(sent)) }()
		for chunk := strings.Repeat("x", 1<<20); sent < 100<<20; {
			n, err := io.WriteString(w, chunk)
			if sent += n; err != nil {
				return
			}
		}
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	c := connect(t, Server{Name: "s", URL: front.URL})
	for _, kind := range []string{"application/json", "text/event-stream", "application/json 500"} {
		how.Store(kind)
		total.Store(0)
		_, err := use(t, c, "fail", `{}`)
		if err == nil || !errors.Is(err, tool.ErrUnknown) {
			t.Errorf("%s: %v", kind, err)
		}
		eventually(t, "the server notices", func() bool { return total.Load() > 0 })
		if sent := total.Load(); sent > (largestMessage>>20+16)<<20 { // and what lies in between in buffers
			t.Errorf("%s: %d bytes were read", kind, sent)
		}
		how.Store("")
		if got, err := use(t, c, "echo", `{"text":"a"}`); err != nil || got.Content != "a\nend" {
			t.Errorf("after %s: %v %v", kind, got, err)
		}
	}
}

// The record and the model are told that a call may have taken effect, not that it failed.
func TestACallThatLostItsServerHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool string
		env  string
		want journal.Outcome
	}{
		"its server dies": {"die", "MCP_TEST_LIVES=" + filepath.Join(t.TempDir(), "lives"), journal.OutcomeUnknown},
		"it takes long":   {"hang", "A=b", journal.OutcomeUnknown},
		"it fails":        {"fail", "A=b", journal.OutcomeError},
	} {
		s := stdioServer("all", c.env)
		s.Timeout = 2 * time.Second
		store := journal.Memory()
		client := connect(t, s)
		if w := client.Warnings(); len(w) > 0 {
			t.Error(w)
		}
		res, _, _ := runs(t, client, c.tool, engine.NoopHost{}, store)
		if res.Err != nil {
			t.Error(name, res.Err)
		}
		var got []journal.Outcome
		for e, err := range store.Read(t.Context(), "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := e.Data.(journal.ToolFinished); ok {
				got = append(got, d.Outcome)
				if (d.Outcome == journal.OutcomeUnknown) != strings.Contains(d.Content, "Whether it took effect is unknown") {
					t.Errorf("%s: the model is told %q", name, d.Content)
				}
			}
		}
		if diff := cmp.Diff([]journal.Outcome{c.want}, got); diff != "" {
			t.Error(name, diff, outcome(t, store))
		}
	}
}

package serve_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// routes are those of the run API that read a body or a query, each with what a client may send.
var routes = []struct{ method, path, query, body string }{
	{"POST", "/v1/runs", "", `{"prompt":"Hi.","session":"s2","files":[{"mime":"image/png","data":"AAA="}],"wait":true}`},
	{"POST", "/v1/runs", "", `{"message":{"role":"user","parts":[{"type":"text","text":"x"}]},"run":"r9","wait":true}`},
	{"GET", "/v1/sessions", "limit=5&after=s&status=completed&q=H", ""},
	{"GET", "/v1/sessions/s", "messages=false", ""},
	{"GET", "/v1/sessions/s/entries", "after=1&limit=2", ""},
	{"POST", "/v1/sessions/s/resume", "", `{"wait":true}`},
	{"POST", "/v1/sessions/s/cancel", "", `{}`},
	{"POST", "/v1/sessions/s/interrupt", "", `{"reason":"lunch"}`},
	{"POST", "/v1/sessions/s/steer", "", `{"prompt":"Stop."}`},
	{"POST", "/v1/sessions/s/answers", "", `{"id":"x","approved":true,"input":"{}"}`},
	{"POST", "/v1/sessions/s/fork", "", `{"at":2,"as":"s3","prompt":"And?","wait":true}`},
}

// Whatever is asked of the run API: an answer, or a problem as JSON with its class; never a failure of ours; and what was refused has begun nothing.
func FuzzAPI(f *testing.F) {
	for i, r := range routes {
		f.Add(uint8(i), r.query, r.body)
	}
	f.Add(uint8(0), "", `{"prompt":"a","Prompt":"b"}`)
	f.Add(uint8(2), "limit=-1&limit=2&%zz", "")
	f.Add(uint8(4), "after=9223372036854775808", "")
	f.Add(uint8(10), "", `{"at":-1}`)
	f.Add(uint8(1), "", `{"message":{"role":"assistant"}}`)
	f.Fuzz(func(t *testing.T, which uint8, query, body string) {
		r := routes[int(which)%len(routes)]
		if strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }) {
			return // no client gets that into a request
		}
		e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("Hi."), scripted.Text("And."), scripted.Text("So."))})
		if err != nil {
			t.Fatal(err)
		}
		store := journal.Memory()
		s, err := serve.New(serve.Of(agent.Agent{ID: "a"}, e, store), serve.Options{MaxBody: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		ask(t, s, "POST", "/v1/runs", `{"prompt":"Hello.","session":"s","run":"r","wait":true}`, "")
		count := func() (n int) {
			for i, err := range store.Sessions(t.Context(), journal.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				n += int(i.Seq)
			}
			return n
		}
		before := count()
		w := ask(t, s, r.method, r.path+"?"+query, body, "")
		if w.Code < 300 {
			return
		}
		var p struct {
			Error struct{ Class, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || !slices.Contains([]int{400, 403, 404, 409, 413, 415}, w.Code) || p.Error.Class == "" {
			t.Fatalf("%s %s?%s %q: %d %s", r.method, r.path, query, body, w.Code, w.Body)
		}
		if w.Code == http.StatusBadRequest && count() != before {
			t.Fatalf("%s %s?%s %q: %d %s, and something was begun", r.method, r.path, query, body, w.Code, w.Body)
		}
	})
}

// A file of a push notification config: what is damaged is named, and what is read is kept as it is.
func FuzzPushFiles(f *testing.F) {
	for _, s := range []string{`{}`, `{"task":"t","id":"i","url":"https://h","token":"x"}`, `null`, `[`, `{"url":5}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	store := serve.PushFiles(dir)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, "x.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := store.All(t.Context())
		if err != nil {
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "x.json") || all != nil {
				t.Fatalf("%q: %v, %v", b, all, err)
			}
			return
		}
		again, err := json.Marshal(all[0])
		var same serve.Push
		if err != nil || len(all) != 1 || json.Unmarshal(again, &same) != nil || !cmp.Equal(same, all[0]) {
			t.Fatalf("%q: %+v, %s, %v", b, all, again, err)
		}
	})
}

package blackbox

import (
	"strings"
	"testing"
)

func TestServe_RunAPI(t *testing.T) { runRows(t) }

var _ = table("TestServe_RunAPI",
	row{"a run answers at once with where it can be read", "serve.md: at once, with 202 and `session`, `run` and `events`, where the run can be read", "POST /v1/runs", func(w *world) {
		s := w.serves()
		a := s.wants(202, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "s"}`)
		path, _ := a.json("events").(string)
		all := s.follow(path, "", nil)
		if got := kinds(all); len(got) == 0 || got[len(got)-1] != "run.finished" || a.json("session") != "s" {
			w.t.Errorf("%s, events %v", a.text, got)
		}
	}},
	row{"a run that is waited for answers with where the session stands", "serve.md: with `\"wait\": true`, when the run is over or waits for a person, with where the session stands", "POST /v1/runs", func(w *world) {
		a := w.serves().wants(200, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "s", "wait": true}`)
		if a.json("status") != "completed" || a.json("text") != "Done." || a.json("messages", 1, "parts", 0, "text") != "Done." {
			w.t.Error(a.text)
		}
	}},
	row{"a run is its events for who accepts them", "serve.md: to `Accept: text/event-stream`, with the run's events", "POST /v1/runs", func(w *world) {
		res := w.serves().open("POST", "/v1/runs", `{"prompt": "hi", "session": "s"}`, "Accept", "text/event-stream")
		defer func() { _ = res.Body.Close() }()
		got := strings.Join(kinds(readEvents(w.t, res.Body, nil)), " ")
		if !strings.HasPrefix(got, "session.created run.started said prepared") || !strings.Contains(got, "text.delta") || !strings.HasSuffix(got, "run.finished") {
			w.t.Error(got)
		}
	}},
	row{"a run that has a name is begun once", "serve.md: A run that has a name, by `run` or by the header `Idempotency-Key`, is begun once", "POST /v1/runs", func(w *world) {
		s := w.serves("--permission-mode", "bypassPermissions")
		s.wants(200, []string{`"status":"completed"`}, "POST", "/v1/runs", `{"prompt": "write", "session": "s", "wait": true}`, "Idempotency-Key", "k")
		w.write("effects", "changed")
		s.wants(200, []string{`"known":true`}, "POST", "/v1/runs", `{"prompt": "write", "session": "s"}`, "Idempotency-Key", "k")
		s.wants(409, []string{`"class":"conflict"`}, "POST", "/v1/runs", `{"prompt": "other", "session": "s", "run": "k"}`)
		w.wants("effects", "changed")
	}},
	row{"who was cut off reads on and misses nothing", "serve.md: it then misses nothing and has nothing twice", "GET /v1/sessions/{session}/events", func(w *world) {
		s := w.serves()
		s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "s", "run": "r", "wait": true}`)
		const path = "/v1/sessions/s/events?run=r&deltas=false"
		whole := s.follow(path, "", nil)
		for cut := range whole {
			first := s.follow(path, "", func(e event) bool { return e.id == whole[cut].id })
			rest := s.follow(path, first[len(first)-1].id, nil)
			if got := append(kinds(first), kinds(rest)...); strings.Join(got, " ") != strings.Join(kinds(whole), " ") {
				w.t.Errorf("cut off behind %d: %v", cut, got)
			}
		}
		s.wants(204, nil, "GET", path, "", "Last-Event-ID", whole[len(whole)-1].id)
	}},
	row{"a run that asks waits and is answered", "serve.md: What it asks stands in `pending`, and is answered by its `id`; then the run goes on", "POST /v1/sessions/{session}/answers", func(w *world) {
		s := w.serves()
		a := s.wants(200, []string{`"status":"interrupted"`, `"waits":true`}, "POST", "/v1/runs", `{"prompt": "write", "session": "s", "run": "r", "wait": true}`)
		if a.json("pending", 0, "id") != "w" || a.json("pending", 0, "call", "name") != "write" {
			w.t.Error(a.text)
		}
		w.wants("effects", "")
		s.wants(409, nil, "POST", "/v1/runs", `{"prompt": "more", "session": "s"}`)
		s.wants(200, []string{`"session":"s"`}, "GET", "/v1/sessions?status=waiting", "")
		s.wants(400, nil, "POST", "/v1/sessions/s/answers", `{"id": "w", "approved": true, "nosuch": 1}`)
		s.ask("POST", "/v1/sessions/s/answers", `{"id": "w", "approved": true, "by": "ada"}`)
		s.follow("/v1/sessions/s/events?run=r", "", func(e event) bool { return e.data["kind"] == "run.finished" })
		w.wants("effects", "one")
		s.wants(200, []string{`"status":"completed"`, "Done."}, "GET", "/v1/sessions/s", "")
	}},
	row{"a person's no is told to the model", "serve.md: `approved` says yes; without it the answer is no, and `text` says why", "POST /v1/sessions/{session}/answers", func(w *world) {
		s := w.serves()
		s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "write", "session": "s", "run": "r", "wait": true}`)
		s.ask("POST", "/v1/sessions/s/answers", `{"id": "w", "text": "Not on a Friday."}`)
		s.follow("/v1/sessions/s/events?run=r", "", func(e event) bool { return e.data["kind"] == "run.finished" })
		w.wants("effects", "")
		s.wants(200, []string{"Not on a Friday."}, "GET", "/v1/sessions/s", "")
	}},
	row{"a run under way hears what is steered", "serve.md: `steer` is heard before the model's next reply", "POST /v1/sessions/{session}/steer", func(w *world) {
		s := w.waiting()
		s.ask("POST", "/v1/sessions/s/steer", `{"prompt": "Be thorough."}`)
		w.write("go", "")
		s.follow("/v1/sessions/s/events?run=r", "", func(e event) bool { return e.data["kind"] == "run.finished" })
		s.wants(200, []string{"Be thorough.", `"status":"completed"`}, "GET", "/v1/sessions/s", "")
	}},
	row{"a run under way can be cancelled", "serve.md: `cancel` breaks off what the run is at, or gives up what it waits for, and the run is over", "POST /v1/sessions/{session}/cancel", func(w *world) {
		s := w.waiting()
		s.wants(200, []string{`"status":"canceled"`}, "POST", "/v1/sessions/s/cancel", `{"wait": true}`)
		s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "s", "wait": true}`)
	}},
	row{"a run that waits for a person can be cancelled", "serve.md: end the unfinished run, as canceled: also one that waits, or was left", "POST /v1/sessions/{session}/cancel", func(w *world) {
		s := w.serves()
		s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "write", "session": "s", "wait": true}`)
		s.wants(200, []string{`"status":"canceled"`}, "POST", "/v1/sessions/s/cancel", `{"wait": true}`)
		w.wants("effects", "")
	}},
	row{"a run can be interrupted and resumed", "serve.md: `interrupt` lets it finish that, and leaves it at its next step: `resume` goes on", "POST /v1/sessions/{session}/interrupt, POST /v1/sessions/{session}/resume", func(w *world) {
		s := w.waiting()
		s.wants(202, nil, "POST", "/v1/sessions/s/interrupt", `{"reason": "lunch"}`)
		w.write("go", "")
		w.until("the run is interrupted", func() bool { return s.ask("GET", "/v1/sessions/s", "").json("status") == "interrupted" })
		s.wants(200, []string{`"status":"completed"`, "Done."}, "POST", "/v1/sessions/s/resume", `{"wait": true}`)
	}},
	row{"a session can be listed, read, forked and deleted", "serve.md: make a session of another one's beginning", "GET /v1/sessions, GET /v1/sessions/{session}, GET /v1/sessions/{session}/entries, POST /v1/sessions/{session}/fork, DELETE /v1/sessions/{session}", func(w *world) {
		s := w.serves()
		s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "a/b", "wait": true}`)
		s.wants(200, []string{`"title":"hi"`}, "GET", "/v1/sessions?limit=1&q=A%2FB", "")
		if a := s.wants(200, nil, "GET", "/v1/sessions/a%2Fb?messages=false", ""); a.json("messages") != nil {
			w.t.Error(a.text)
		}
		if a := s.wants(200, nil, "GET", "/v1/sessions/a%2Fb/entries?after=1&limit=2", ""); a.json("entries", 0, "kind") != "run.started" || a.json("entries", 1, "kind") != "said" || a.json("entries", 2) != nil {
			w.t.Error(a.text)
		}
		s.wants(200, []string{"Done again."}, "POST", "/v1/sessions/a%2Fb/fork", `{"as": "others", "prompt": "more", "wait": true}`)
		if a := s.ask("DELETE", "/v1/sessions/others", ""); a.code/100 != 2 {
			w.t.Errorf("%d %s", a.code, a.text)
		}
		s.wants(404, []string{`"class":"not_found"`}, "GET", "/v1/sessions/others", "")
		s.wants(200, []string{"Done."}, "GET", "/v1/sessions/a%2Fb", "")
	}},
	row{"sessions of other projects are not there", "serve.md: Other projects' sessions in the same journal are not there for him, by any door: they are 404, and a name that one of them has is taken, which is 409", "", func(w *world) {
		w.write("other/go.mod", "module other\n")
		w.plays(touches, "--dir", "other", "--session", "theirs", "go")
		w.write("model.yaml", chats)
		s := w.serves()
		s.wants(404, nil, "GET", "/v1/sessions/theirs", "")
		s.wants(409, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "theirs", "wait": true}`)
		if a := s.wants(200, nil, "GET", "/v1/sessions", ""); strings.Contains(a.text, "theirs") {
			w.t.Error(a.text)
		}
	}},
	row{"a run that fails says its class", "serve.md: The class is one of [errdefs]", "", func(w *world) {
		a := w.serves().wants(200, nil, "POST", "/v1/runs", `{"prompt": "fail", "session": "s", "wait": true}`)
		if a.json("status") != "failed" || a.json("error", "class") != "unauthorized" {
			w.t.Error(a.text)
		}
	}},
	row{"a server that is killed loses nothing", "serve.md: If its server died meanwhile it goes on", "", func(w *world) {
		s := w.waiting()
		seen := s.follow("/v1/sessions/s/events?run=r&deltas=false", "", func(e event) bool { return e.data["kind"] == "tool.started" })
		s.end()
		w.write("go", "")
		again := w.serves("--permission-mode", "bypassPermissions")
		again.wants(200, []string{`"known":true`}, "POST", "/v1/runs", `{"prompt": "wait", "session": "s", "run": "r"}`)
		seen = append(seen, again.follow("/v1/sessions/s/events?run=r&deltas=false", seen[len(seen)-1].id, nil)...)
		for i, e := range seen {
			if e.data["seq"] != float64(i+1) {
				w.t.Errorf("event %d is entry %v", i+1, e.data["seq"])
			}
		}
		if got := kinds(seen); got[len(got)-1] != "run.finished" {
			w.t.Error(got)
		}
	}},
)

// waiting starts a server whose run r of the session s is under way until the file go is
// there.
func (w *world) waiting() *server {
	w.t.Helper()
	onUnix(w.t)
	s := w.serves("--permission-mode", "bypassPermissions")
	s.wants(202, nil, "POST", "/v1/runs", `{"prompt": "wait", "session": "s", "run": "r"}`)
	w.until("the call runs", w.has("began"))
	return s
}

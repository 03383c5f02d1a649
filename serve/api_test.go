package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

type status struct {
	Session, Status, Run, Text string
	Seq                        int64
	Here                       bool
	Pending                    []journal.Pending
	Messages                   []message.Message
	Error                      *struct{ Class, Message string }
}

type begun struct {
	Session, Run, Events string
	Known                bool
}

type failure struct {
	Error struct{ Class, Message string }
}

// gated is a tool that waits until it is let go, and counts how often it ran.
type gated struct {
	tool.Tool
	runs    atomic.Int32
	started chan struct{}
	goOn    chan struct{}
}

func gate(name string) *gated {
	g := &gated{started: make(chan struct{}, 100), goOn: make(chan struct{})}
	g.Tool = tool.Func(name, "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		g.runs.Add(1)
		g.started <- struct{}{}
		select {
		case <-g.goOn:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return g
}

func call(name string) []scripted.Call { return []scripted.Call{{Name: name, Input: `{}`}} }

func TestARunIsBegunAndRead(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("It is five.")), serve.Options{})
	var b begun
	h := p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"How much is 2 + 3?","session":"s/1"}`)
	if b.Session != "s/1" || b.Run == "" || b.Events != h.Get("Location") {
		t.Fatalf("%+v, Location %s", b, h.Get("Location"))
	}
	all := p.follow(b.Events, "", 0)
	if got := shown(all); !strings.HasPrefix(got, "1 session.created\n") || !strings.HasSuffix(got, " run.finished\n") || !strings.Contains(got, `text.delta 0 "five."`) {
		t.Errorf("it read\n%s", got)
	}
	var st status
	p.do(http.StatusOK, &st, "GET", "/v1/sessions/s%2F1", "")
	if st.Status != "completed" || st.Text != "It is five." || st.Run != "" || len(st.Messages) != 2 || st.Here {
		t.Errorf("%+v", st)
	}
	var list struct {
		Sessions []status
		More     bool
	}
	p.do(http.StatusOK, &list, "GET", "/v1/sessions", "")
	if len(list.Sessions) != 1 || list.Sessions[0].Session != "s/1" || list.More {
		t.Errorf("%+v", list)
	}
	var page struct {
		Entries []journal.Entry
		More    bool
	}
	var entries []journal.Entry
	for more := true; more; more = page.More {
		p.do(http.StatusOK, &page, "GET", fmt.Sprintf("/v1/sessions/s%%2F1/entries?limit=2&after=%d", len(entries)), "")
		entries = append(entries, page.Entries...)
	}
	n := 0
	for e, err := range p.store.Read(t.Context(), "s/1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(e)
		if got, _ := json.Marshal(entries[n]); string(got) != string(want) {
			t.Errorf("entry %d is %s\nwant %s", n+1, got, want)
		}
		n++
	}
	if n != len(entries) {
		t.Errorf("%d entries, want %d", len(entries), n)
	}
	p.do(http.StatusNoContent, nil, "DELETE", "/v1/sessions/s%2F1", "")
	p.do(http.StatusNotFound, nil, "GET", "/v1/sessions/s%2F1", "")
}

func TestAnAnswerIsWaitedForOrStreamedAtOnce(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("It is five."), scripted.Text("Six.")), serve.Options{})
	var st status
	p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"2 + 3?","session":"s","wait":true}`)
	if st.Status != "completed" || st.Text != "It is five." {
		t.Errorf("%+v", st)
	}
	res := p.ask(t.Context(), "POST", "/v1/runs", `{"prompt":"3 + 3?","session":"s"}`, "Accept", "text/event-stream")
	defer func() { _ = res.Body.Close() }()
	var all []sent
	for e := range reads(t, res.Body) {
		all = append(all, e)
	}
	if got := shown(all); !strings.Contains(got, " run.started\n") || !strings.HasSuffix(got, " run.finished\n") || strings.Contains(got, "five") || !strings.Contains(got, `"Six."`) {
		t.Errorf("it read\n%s", got)
	}
}

// Whoever is cut off, wherever that is, and comes back with the id of the last event that he has, has what he would have had: each event once.
func TestAReaderThatIsCutOffMissesNothing(t *testing.T) {
	script := func() *scripted.Model {
		return scripted.New(
			scripted.Turn{Reasoning: "So then.", Text: "Let me look at that.", Calls: call("look")},
			scripted.Text("It is all there."),
		)
	}
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "there", nil }, tool.ReadOnly)
	p := serves(t, journal.Memory(), script(), serve.Options{}, look)
	var b begun
	p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"Look."}`)
	whole := p.follow(b.Events, "", 0)
	if len(whole) < 20 {
		t.Fatalf("only %d events:\n%s", len(whole), shown(whole))
	}
	for cut := 1; cut <= len(whole); cut++ {
		first := p.follow(b.Events, "", cut)
		rest := p.follow(b.Events, first[cut-1].id, 0)
		if d := cmp.Diff(shown(whole), shown(append(first, rest...))); d != "" {
			t.Fatalf("cut after %d:\n%s", cut, d)
		}
	}
	// One at a time, each time anew.
	var each []sent
	for last := ""; ; {
		next := p.follow(b.Events, last, 1)
		if len(next) == 0 {
			break
		}
		each, last = append(each, next...), next[0].id
	}
	if d := cmp.Diff(shown(whole), shown(each)); d != "" {
		t.Errorf("one at a time:\n%s", d)
	}
}

// The same while the run goes on: readers come and go, and none of them has anything to do with how it goes.
func TestReadersComeAndGoWhileItRuns(t *testing.T) {
	turns := make([]scripted.Turn, 0, 20)
	for n := range 19 {
		turns = append(turns, scripted.Turn{Text: fmt.Sprintf("Step %d goes on with some words.", n), Calls: call("look"), Delay: 3 * time.Millisecond})
	}
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "there", nil }, tool.ReadOnly)
	p := serves(t, journal.Memory(), scripted.New(append(turns, scripted.Text("Done."))...), serve.Options{}, look)
	var b begun
	p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"Look."}`)
	var wg sync.WaitGroup
	got := make([]string, 6)
	for i := range got {
		wg.Go(func() {
			var all []sent
			for last, most := "", i; ; most++ {
				next := p.follow(b.Events, last, 1+most%7)
				if len(next) == 0 {
					break
				}
				all, last = append(all, next...), next[len(next)-1].id
			}
			got[i] = shown(all)
		})
	}
	wg.Wait()
	whole := shown(p.follow(b.Events, "", 0))
	for i := range got {
		if d := cmp.Diff(whole, got[i]); d != "" {
			t.Errorf("reader %d:\n%s", i, d)
		}
	}
}

func TestARunOutlivesWhoAskedForIt(t *testing.T) {
	g := gate("wait")
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done.")), serve.Options{}, g)
	ctx, cancel := context.WithCancel(t.Context())
	res := p.ask(ctx, "POST", "/v1/runs", `{"prompt":"Wait.","session":"s","run":"r"}`, "Accept", "text/event-stream")
	<-g.started
	cancel()
	_ = res.Body.Close()
	close(g.goOn)
	all := p.follow("/v1/sessions/s/events?run=r", "", 0)
	if got := shown(all); !strings.HasSuffix(got, " run.finished\n") {
		t.Errorf("it came to\n%s", got)
	}
	var st status
	if p.do(http.StatusOK, &st, "GET", "/v1/sessions/s", ""); st.Status != "completed" || g.runs.Load() != 1 {
		t.Errorf("%+v, %d calls", st, g.runs.Load())
	}
}

// A client that does not know whether it was heard asks again.
func TestARunThatIsAskedForTwiceIsBegunOnce(t *testing.T) {
	g := gate("wait")
	store := journal.Memory()
	m := scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done."))
	p := serves(t, store, m, serve.Options{}, g)
	const ask = `{"prompt":"Wait.","session":"s"}`
	var all [8]begun
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			res := p.ask(t.Context(), "POST", "/v1/runs", ask, "Idempotency-Key", "k1")
			defer func() { _ = res.Body.Close() }()
			if err := json.NewDecoder(res.Body).Decode(&all[i]); err != nil || res.StatusCode/100 != 2 {
				t.Errorf("%d %v", res.StatusCode, err)
			}
		})
	}
	<-g.started
	wg.Wait()
	known := 0
	for _, b := range all {
		if b.Run != "k1" || b.Session != "s" {
			t.Errorf("%+v", b)
		}
		if b.Known {
			known++
		}
	}
	if known != len(all)-1 {
		t.Errorf("%d of %d were told that the run is known", known, len(all))
	}
	// Its server is shut down, and another one takes its place.
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = p.server.Close()
	}()
	for { // until it takes nothing more
		res := p.ask(t.Context(), "POST", "/v1/runs", `{"prompt":"Hi.","session":"s"}`)
		if _ = res.Body.Close(); res.StatusCode == http.StatusServiceUnavailable {
			break
		}
	}
	close(g.goOn)
	<-closed
	q := serves(t, store, m, serve.Options{}, g)
	if got := q.statusOf("s"); got != "interrupted" {
		t.Errorf("it is %s", got)
	}
	var b begun
	q.do(http.StatusOK, &b, "POST", "/v1/runs", ask, "Idempotency-Key", "k1")
	if !b.Known {
		t.Errorf("%+v", b)
	}
	if got := shown(q.follow(b.Events, "", 0)); strings.Count(got, "run.started") != 1 || !strings.HasSuffix(got, " run.finished\n") {
		t.Errorf("it came to\n%s", got)
	}
	q.settled("s")
	var st status
	q.do(http.StatusOK, &b, "POST", "/v1/runs", ask, "Idempotency-Key", "k1")
	if q.do(http.StatusOK, &st, "GET", "/v1/sessions/s", ""); st.Status != "completed" || st.Text != "Done." || g.runs.Load() != 1 {
		t.Errorf("%+v, %d calls", st, g.runs.Load())
	}
	q.do(http.StatusBadRequest, nil, "POST", "/v1/runs", `{"prompt":"x","run":"other"}`, "Idempotency-Key", "k1")
}

// A name is of one prompt: who gives it to another one is told so, instead of getting an answer to what he did not ask.
func TestANameIsOfOnePrompt(t *testing.T) {
	g := gate("wait")
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "journal.db")) // what is on record has been read back
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	p := serves(t, store, scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done.")), serve.Options{}, g)
	defer p.close()
	const first, other = `{"session":"s","run":"one","prompt":"Look.","files":[{"mime":"text/plain","name":"a","data":"eA=="}]}`, `{"session":"s","run":"one","prompt":"Look.","files":[{"mime":"text/plain","name":"a","data":"eQ=="}]}`
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", first)
	<-g.started
	for _, over := range []bool{false, true} {
		if over {
			close(g.goOn)
			p.follow("/v1/sessions/s/events?run=one", "", 0)
		}
		p.do(http.StatusOK, nil, "POST", "/v1/runs", first)
		var f failure
		if p.do(http.StatusConflict, &f, "POST", "/v1/runs", other); !strings.Contains(f.Error.Message, "asked something else") {
			t.Errorf("over: %v: %+v", over, f)
		}
	}
}

// What does not come to its next step when the server stops is as if its process had died: it goes on with the next one.
func TestAServerThatCannotWaitLeavesItsRuns(t *testing.T) {
	g := gate("wait")
	store := journal.Memory()
	m := scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done."))
	p := serves(t, store, m, serve.Options{Grace: time.Millisecond}, g)
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Wait.","session":"s","run":"r"}`)
	<-g.started
	p.close()
	q := serves(t, store, m, serve.Options{}, g)
	var st status
	if q.do(http.StatusOK, &st, "GET", "/v1/sessions/s", ""); st.Run != "r" || st.Here {
		t.Errorf("%+v", st)
	}
	close(g.goOn)
	q.do(http.StatusOK, &st, "POST", "/v1/sessions/s/resume", `{"wait":true}`)
	if b, _ := json.Marshal(st.Messages); st.Status != "completed" || g.runs.Load() != 1 || !strings.Contains(string(b), "context canceled") {
		t.Errorf("%+v, %d calls\n%s", st, g.runs.Load(), b)
	}
}

// A session is deleted by whoever has it to himself: what another server does in it is not lost.
func TestASessionThatAnotherServerDrivesIsNotDeleted(t *testing.T) {
	g := gate("wait")
	store := journal.Memory()
	m := scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done."))
	p, q := serves(t, store, m, serve.Options{}, g), serves(t, store, m, serve.Options{}, g)
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Wait.","session":"s"}`)
	<-g.started
	var f failure
	if q.do(http.StatusConflict, &f, "DELETE", "/v1/sessions/s", ""); !strings.Contains(f.Error.Message, "another process") {
		t.Errorf("%+v", f)
	}
	close(g.goOn)
	p.settled("s")
	if got := p.statusOf("s"); got != "completed" {
		t.Errorf("it is %s", got)
	}
	q.do(http.StatusNoContent, nil, "DELETE", "/v1/sessions/s", "")
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Again.","session":"s"}`)
}

// Who reads a list in pages is told when the session that he was at is gone: he would take what he has for all of it.
func TestAListGoesOnBehindASessionThatIsThere(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("One."), scripted.Text("Two."), scripted.Text("Three.")), serve.Options{})
	for _, s := range []string{"a", "b", "c"} {
		p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"Go.","session":"`+s+`","wait":true}`)
	}
	var list struct {
		Sessions []status
		More     bool
	}
	p.do(http.StatusOK, &list, "GET", "/v1/sessions?limit=1", "")
	if len(list.Sessions) != 1 || list.Sessions[0].Session != "c" || !list.More {
		t.Fatalf("%+v", list)
	}
	if p.do(http.StatusOK, &list, "GET", "/v1/sessions?after=c", ""); len(list.Sessions) != 2 || list.More {
		t.Errorf("%+v", list)
	}
	p.do(http.StatusNoContent, nil, "DELETE", "/v1/sessions/c", "")
	var f failure
	if p.do(http.StatusNotFound, &f, "GET", "/v1/sessions?after=c", ""); !strings.Contains(f.Error.Message, `"c"`) {
		t.Errorf("%+v", f)
	}
	if p.do(http.StatusOK, &list, "GET", "/v1/sessions?after=a", ""); len(list.Sessions) != 0 || list.More {
		t.Errorf("%+v", list)
	}
}

func TestASessionHasOneRunAtATime(t *testing.T) {
	g := gate("wait")
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done.")), serve.Options{MaxRuns: 1}, g)
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Wait.","session":"s"}`)
	<-g.started
	var f failure
	p.do(http.StatusConflict, &f, "POST", "/v1/runs", `{"prompt":"Me, too.","session":"s"}`)
	if f.Error.Class != "conflict" || !strings.Contains(f.Error.Message, "steering") {
		t.Errorf("%+v", f)
	}
	if h := p.do(http.StatusTooManyRequests, &f, "POST", "/v1/runs", `{"prompt":"Me, too.","session":"other"}`); h.Get("Retry-After") == "" || f.Error.Class != "rate_limit" {
		t.Errorf("%+v %v", f, h)
	}
	p.do(http.StatusConflict, &f, "DELETE", "/v1/sessions/s", "")
	close(g.goOn)
	p.follow("/v1/sessions/s/events?run="+p.run("s"), "", 0)
}

// run is the run of a session whose record has just one.
func (p *place) run(session string) string {
	p.t.Helper()
	for e, err := range p.store.Read(p.t.Context(), session, 0) {
		if err != nil {
			p.t.Fatal(err)
		}
		if _, ok := e.Data.(journal.RunStarted); ok {
			return e.Run
		}
	}
	p.t.Fatalf("session %s has no run", session)
	return ""
}

func TestARunIsCanceledOrInterruptedAndResumed(t *testing.T) {
	g := gate("wait")
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Done.")), serve.Options{}, g)
	for _, s := range []string{"c", "i"} {
		p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Wait.","session":"`+s+`"}`)
		<-g.started
	}
	var st status
	if p.do(http.StatusOK, &st, "POST", "/v1/sessions/c/cancel", `{"wait":true}`); st.Status != "canceled" || st.Run != "" {
		t.Errorf("%+v", st)
	}
	var f failure
	p.do(http.StatusNotFound, nil, "POST", "/v1/sessions/c/cancel", "")
	if p.do(http.StatusConflict, &f, "POST", "/v1/sessions/c/interrupt", ""); !strings.Contains(f.Error.Message, "no run is under way") {
		t.Errorf("%+v", f)
	}
	p.do(http.StatusNotFound, nil, "POST", "/v1/sessions/c/resume", "{}")
	var b begun
	p.do(http.StatusAccepted, &b, "POST", "/v1/sessions/i/interrupt", `{"reason":"lunch"}`) // it is under way until its tool has ended
	close(g.goOn)
	if got := shown(p.follow(b.Events, "", 0)); !strings.HasSuffix(got, " parked\n") {
		t.Fatalf("it came to\n%s", got)
	}
	st = status{}
	p.settled("i")
	p.do(http.StatusOK, &st, "POST", "/v1/sessions/i/resume", `{"wait":true}`)
	if st.Status != "completed" || st.Text != "Done." || g.runs.Load() != 2 {
		t.Errorf("%+v, %d calls", st, g.runs.Load())
	}
}

func TestWhoSaysSomethingWhileItRunsIsHeard(t *testing.T) {
	g := gate("wait")
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("Well then.")), serve.Options{}, g)
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Wait.","session":"s","run":"r"}`)
	<-g.started
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/s/steer", `{"prompt":"Hurry, please."}`)
	close(g.goOn)
	p.follow("/v1/sessions/s/events?run=r", "", 0)
	var st status
	p.do(http.StatusOK, &st, "GET", "/v1/sessions/s", "")
	if !strings.Contains(fmt.Sprint(st.Messages), "Hurry, please.") {
		t.Errorf("%+v", st.Messages)
	}
	p.do(http.StatusConflict, nil, "POST", "/v1/sessions/s/steer", `{"prompt":"And more."}`)
}

func TestASessionIsForkedWithAnotherPrompt(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("One."), scripted.Text("Two.")), serve.Options{})
	var st, fork status
	p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"First.","session":"s","wait":true}`)
	p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"Second.","session":"s","wait":true}`)
	p.do(http.StatusOK, &fork, "POST", "/v1/sessions/s/fork", fmt.Sprintf(`{"at":%d,"as":"f","prompt":"Another.","wait":true}`, st.Seq))
	said := fmt.Sprint(fork.Messages)
	if fork.Session != "f" || !strings.Contains(said, "First.") || !strings.Contains(said, "Another.") || strings.Contains(said, "Second.") || fork.Text != "Two." {
		t.Errorf("%+v", fork)
	}
	var made struct{ Session string }
	if p.do(http.StatusCreated, &made, "POST", "/v1/sessions/s/fork", `{}`); made.Session != "s-fork" {
		t.Errorf("%+v", made)
	}
	p.do(http.StatusConflict, nil, "POST", "/v1/sessions/s/fork", `{"as":"f"}`)
	p.do(http.StatusNotFound, nil, "POST", "/v1/sessions/s/fork", `{"at":1000}`)
}

func TestWhatCannotBeReadIsToldAndDoesNothing(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("Hi.")), serve.Options{MaxBody: 1 << 16})
	p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"Hello.","session":"s","wait":true}`)
	deep := `{"inputs":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"prompt":"x"}`
	bodies := map[string]int{
		``: 400, `{`: 400, `[]`: 400, `null`: 400, `"x"`: 400, `7`: 400, `{} {}`: 400, `{"prompt":"x"}]`: 400,
		`{"prompt":5}`: 400, `{"Prompt":"x"}`: 400, `{"promt":"x"}`: 400, `{"prompt":"x","prompt":"y"}`: 400, "{\"prompt\":\"\xff\"}": 400,
		`{"prompt":"x","session":5}`: 400, `{"prompt":"x","session":"a\nb"}`: 400, `{"prompt":"x","session":"` + strings.Repeat("s", 1000) + `"}`: 400,
		`{"prompt":" "}`: 400, `{}`: 400, `{"message":{"role":"assistant","parts":[{"type":"text","text":"x"}]}}`: 400, `{"message":{"role":"user","parts":[{"type":"odd"}]}}`: 400,
		`{"message":{"role":"user","parts":[{"type":"text","text":"x"}]},"prompt":"x"}`: 400, `{"prompt":"x","files":[{"mime":"image/png","data":"%%%"}]}`: 400,
		`{"prompt":"x","files":[{"data":"aGk="}]}`: 400, deep: 400, `{"prompt":"` + strings.Repeat("x", 1<<16) + `"}`: 413,
	}
	for body, want := range bodies {
		res := p.ask(t.Context(), "POST", "/v1/runs", body, "Content-Type", "application/json")
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want || !strings.Contains(string(b), `{"error":{"class":`) {
			t.Errorf("%s: %d %s", clip(body), res.StatusCode, clip(string(b)))
		}
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/sessions/none/steer", `{"prompt":"x"}`, 404},
		{"POST", "/v1/sessions/none/cancel", `{}`, 404},
		{"POST", "/v1/sessions/none/interrupt", `{}`, 404},
		{"POST", "/v1/sessions/none/resume", `{}`, 404},
		{"POST", "/v1/sessions/none/answers", `{"id":"x"}`, 404},
		{"POST", "/v1/sessions/none/fork", `{}`, 404},
		{"DELETE", "/v1/sessions/none", ``, 404},
		{"GET", "/v1/sessions/none/events", ``, 404},
		{"GET", "/v1/sessions/none/entries", ``, 404},
		{"GET", "/v1/sessions/s/events?run=none", ``, 404},
		{"GET", "/v1/sessions/s/events?after=-1", ``, 400},
		{"GET", "/v1/sessions/s/events?after=eyJhdCI6", ``, 400},
		{"GET", "/v1/sessions/s/events?bogus=1", ``, 400},
		{"GET", "/v1/sessions/s/events?deltas=no", ``, 400},
		{"GET", "/v1/sessions/s?messages=0", ``, 400},
		{"GET", "/v1/sessions/s?message=false", ``, 400},
		{"GET", "/v1/sessions?status=bogus", ``, 400},
		{"GET", "/v1/sessions?limit=1&limit=2", ``, 400},
		{"GET", "/v1/sessions?Limit=1", ``, 400},
		{"GET", "/v1/sessions?q=%zz", ``, 400},
		{"POST", "/v1/runs?wait=true", `{"prompt":"x"}`, 400},
		{"POST", "/v1/sessions/s/cancel", `{"reason":"lunch"}`, 400},
		{"GET", "/v1/sessions/s/entries?limit=0", ``, 400},
		{"GET", "/v1/sessions/s/entries?after=x", ``, 400},
		{"GET", "/v1/sessions?limit=1e9", ``, 400},
		{"GET", "/v1/sessions?after=none", ``, 404},
		{"POST", "/v1/sessions/s/fork", `{"at":-1}`, 400},
		{"POST", "/v1/sessions/s/fork", `{"at":1.5}`, 400},
		{"POST", "/v1/sessions/s/steer", `{"text":"x"}`, 400},
		{"PUT", "/v1/runs", `{}`, 404},
		{"GET", "/v1/nothing", ``, 404},
	} {
		res := p.ask(t.Context(), c.method, c.path, c.body)
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.want || !strings.Contains(string(b), `{"error":{"class":`) {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, res.StatusCode, clip(string(b)), c.want)
		}
	}
	var list struct{ Sessions []status }
	if p.do(200, &list, "GET", "/v1/sessions?status=completed&limit=9&q=s&agent=a&user=&after=", ""); len(list.Sessions) != 1 {
		t.Errorf("something was made of it: %+v", list)
	}
}

// A stream of a run ends where nothing more comes by itself: the client is not to wait for a person. One of the session goes on behind the answer.
func TestAStreamOfARunEndsWhenItWaitsForAPerson(t *testing.T) {
	p := open(t, asksOnce(t, journal.Memory()), serve.Options{})
	res := p.ask(t.Context(), "POST", "/v1/runs", `{"prompt":"Add.","session":"s"}`, "Accept", "text/event-stream")
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || !strings.Contains(string(b), `"kind":"parked"`) {
		t.Fatalf("%v\n%s", err, b)
	}
	var st status
	p.do(http.StatusOK, &st, "GET", "/v1/sessions/s", "")
	all := p.ask(t.Context(), "GET", "/v1/sessions/s/events", "")
	defer func() { _ = all.Body.Close() }()
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+st.Pending[0].ID+`","approved":true}`)
	for e := range reads(t, all.Body) {
		if e.Kind == "run.finished" {
			return
		}
	}
	t.Error("the session's stream ended")
}

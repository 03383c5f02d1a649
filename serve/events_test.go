package serve_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// flaky fails its first call in the middle of what it says.
func flaky(t *testing.T) model.Model {
	t.Helper()
	m := scripted.New(
		scripted.Turn{Text: "Half of this is said.", Error: &scripted.Failure{Status: 529, MidStream: true}},
		scripted.Text("All of it is said."),
	)
	return resilience.Retry(resilience.RetryPolicy{Attempts: 3, Wait: 20 * time.Millisecond, Restart: true, Rand: func() float64 { return 0.5 }})(m)
}

// What was said in vain is told to be void, and a reader who comes back in between is told so, once.
func TestARetryIsToldOnce(t *testing.T) {
	p := serves(t, journal.Memory(), flaky(t), serve.Options{})
	var b begun
	p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"Say it."}`)
	whole := p.follow(b.Events, "", 0)
	if got := shown(whole); strings.Count(got, "retry 1 ") != 1 || !strings.Contains(got, `text.delta 0 "Half "`) || !strings.Contains(got, `text.delta 1 "All "`) {
		t.Fatalf("it read\n%s", got)
	}
	for _, e := range whole {
		if (e.Kind == "retry") != (e.WaitMS > 0) || e.WaitMS > 1000 {
			t.Errorf("%v is to wait for %d ms", e, e.WaitMS)
		}
	}
	for cut := 1; cut <= len(whole); cut++ {
		first := p.follow(b.Events, "", cut)
		if d := cmp.Diff(shown(whole), shown(append(first, p.follow(b.Events, first[cut-1].id, 0)...))); d != "" {
			t.Fatalf("cut after %d:\n%s", cut, d)
		}
	}
}

// leased is a store whose session another driver has, who may be gone, for a time.
type leased struct {
	journal.Store
	until atomic.Pointer[time.Time]
}

func (h *leased) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if end := h.until.Load(); end != nil && time.Now().Before(*end) {
		return errdefs.Conflict.Errorf("held: %w", &journal.Leased{Owner: "another", Left: time.Until(*end)})
	}
	return h.Store.Lease(ctx, session, owner, until)
}

// Who follows a session is told that a run waits for it, and how long at most, although no entry says so.
func TestAReaderIsToldWhatARunWaitsFor(t *testing.T) {
	store := &leased{Store: journal.Memory()}
	p := serves(t, store, scripted.New(scripted.Text("One."), scripted.Text("Two.")), serve.Options{})
	p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"First.","session":"s","wait":true}`)
	const held = time.Hour
	end := time.Now().Add(held)
	store.until.Store(&end)
	var began sync.WaitGroup
	defer began.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res := p.ask(ctx, "GET", "/v1/sessions/s/events", "")
	defer func() { _ = res.Body.Close() }()
	began.Go(func() {
		p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"Second.","session":"s","run":"r2","wait":true}`)
	})
	var told []sent
	for e := range reads(t, res.Body) {
		if e.Kind == "waiting" || e.Kind == "warning" || e.Run == "r2" {
			told = append(told, e)
		}
		if e.Kind == "waiting" {
			store.until.Store(nil) // the other driver lets the session go
		}
		if e.Run == "r2" && e.Kind == "run.finished" {
			break
		}
	}
	if len(told) < 3 || told[0].Kind != "warning" || told[1].Kind != "waiting" || told[1].Run != "r2" || told[1].Text != "the session" || told[1].WaitMS <= 0 || told[1].WaitMS > held.Milliseconds() || told[2].Kind != "run.started" {
		t.Errorf("it was told\n%s", shown(told))
	}
}

func TestAReaderMayWantEntriesAlone(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("It is five.")), serve.Options{})
	var b begun
	p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"2 + 3?","session":"s"}`)
	n := int64(0)
	for _, e := range p.follow(b.Events+"&deltas=false", "", 0) {
		if n++; e.Seq != n || e.Data == nil {
			t.Errorf("event %d is %v", n, e)
		}
	}
	if all := p.follow(b.Events+"&after=3", "", 0); len(all) == 0 || all[0].Seq != 4 {
		t.Errorf("after entry 3: %s", shown(all))
	}
}

// An id is the client's word: it is not trusted.
func FuzzWhereAReaderWas(f *testing.F) {
	f.Add("17")
	f.Add("-1")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"at":{"seq":5,"offset":9,"under":[{"run":"r","key":{"op":"model","id":"1"},"by":"x","attempt":1,"part":1}]},"have":1,"next":{"seq":5,"offset":10}}`)))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"at":{"seq":9223372036854775807}}`)))
	store := journal.Memory()
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("Hi."))})
	if err != nil {
		f.Fatal(err)
	}
	s, err := serve.New(serve.Of(agent.Agent{ID: "a"}, e, store), serve.Options{})
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ask(f, s, "POST", "/v1/runs", `{"prompt":"Hello.","session":"s","run":"r","wait":true}`, "")
	f.Fuzz(func(t *testing.T, id string) {
		if strings.ContainsAny(id, "\r\n\x00") || len(id) > 4096 {
			return
		}
		w := ask(t, s, "GET", "/v1/sessions/s/events?run=r", "", id)
		switch {
		case w.Code == http.StatusOK || w.Code == http.StatusNoContent:
		case w.Code == http.StatusBadRequest && json.Valid(w.Body.Bytes()):
		default:
			t.Errorf("%q: %d %s", id, w.Code, w.Body)
		}
	})
}

// Whoever goes away in the middle leaves nothing behind.
func TestReadersThatGoAwayLeaveNothing(t *testing.T) {
	g := gate("wait")
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Now I wait.", Calls: call("wait")}, scripted.Text("Done.")), serve.Options{}, g)
	p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Wait.","session":"s","run":"r"}`)
	<-g.started
	p.client.CloseIdleConnections()
	before := runtime.NumGoroutine()
	for range 100 {
		p.follow("/v1/sessions/s/events?run=r", "", 3)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 50 { // who never read
		res := p.ask(ctx, "GET", "/v1/sessions/s/events", "")
		defer func() { _ = res.Body.Close() }()
	}
	cancel()
	for n := 0; runtime.NumGoroutine() > before+5; n++ {
		if n > 500 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		p.client.CloseIdleConnections()
		time.Sleep(10 * time.Millisecond)
	}
	close(g.goOn)
	p.follow("/v1/sessions/s/events?run=r", "", 0)
}

// A run belongs to the trace of who asked for it, by whichever door he came, and also when he does not wait for it.
func TestARunIsInTheTraceOfWhoAskedForIt(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for door, begin := range map[string]func(p *place){
		"the run API": func(p *place) { p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"Hello.","wait":true}`) },
		"the run API, later": func(p *place) {
			p.do(http.StatusAccepted, nil, "POST", "/v1/runs", `{"prompt":"Hello.","session":"s","run":"r"}`)
			p.follow("/v1/sessions/s/events?run=r", "", 0)
		},
		"chat completions": func(p *place) {
			p.do(http.StatusOK, nil, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Hello."}]}`)
		},
		"AG-UI": func(p *place) {
			p.ui(`{"threadId":"t","runId":"r","state":{},"messages":[{"id":"m","role":"user","content":"Hello."}],"tools":[],"context":[],"forwardedProps":{}}`)
		},
		"A2A": func(p *place) { peer{p, a2a.V1}.send(user("m1", "Hello.")) },
	} {
		t.Run(door, func(t *testing.T) {
			spans := tracetest.NewInMemoryExporter()
			tel, err := telemetry.New(telemetry.Config{TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans))})
			if err != nil {
				t.Fatal(err)
			}
			e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("Hi."))})
			if err != nil {
				t.Fatal(err)
			}
			p := open(t, serve.Of(agent.Agent{ID: "a"}, e, journal.Memory(), agent.WithTracer(tel)), serve.Options{})
			p.header.Set("Traceparent", "00-"+id+"-"+parent+"-01")
			begin(p)
			if err := p.server.Close(); err != nil { // the run's own span ends behind its answer
				t.Fatal(err)
			}
			below := map[string]int{}
			for _, s := range spans.GetSpans() {
				if s.SpanContext.TraceID().String() != id {
					t.Errorf("span %s is in trace %s", s.Name, s.SpanContext.TraceID())
				}
				below[s.Parent.SpanID().String()]++
			}
			if len(below) != 2 || below[parent] != 1 {
				t.Errorf("spans below others: %v: want one below %s, the run, and the rest below that", below, parent)
			}
		})
	}
}

package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// lingers takes its time behind a run whose end is on record.
type lingers struct{ agent.BaseObserver }

func (lingers) OnRunEnd(context.Context, agent.RunInfo, *agent.Result) {
	time.Sleep(20 * time.Millisecond)
}

// Whoever was told that a run is over can begin the next one in its session, at each door.
func TestWhoIsToldOfTheEndCanGoOn(t *testing.T) {
	for name, next := range map[string]func(p *place, n int){
		"chat": func(p *place, n int) {
			p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Go."}],"stream":true}`, "X-Pawl-Session", "s")
		},
		"whole chat": func(p *place, n int) {
			p.do(http.StatusOK, nil, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Go."}]}`, "X-Pawl-Session", "s")
		},
		"AG-UI": func(p *place, n int) { p.ui(input("s", fmt.Sprint("r", n), "")) },
		"events": func(p *place, n int) {
			var b struct{ Events, Run string }
			p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"Go.","session":"s"}`)
			res := p.ask(p.t.Context(), "GET", b.Events, "")
			defer func() { _ = res.Body.Close() }()
			for e := range reads(p.t, res.Body) {
				if e.Kind == "run.finished" && e.Run == b.Run { // those before it come, too
					break
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("One."), scripted.Text("Two."), scripted.Text("Three."))})
			if err != nil {
				t.Fatal(err)
			}
			p := open(t, serve.Of(agent.Agent{ID: "a", Observers: []agent.Observer{lingers{}}}, e, journal.Memory()), serve.Options{})
			for n := range 3 {
				next(p, n)
			}
		})
	}
}

package temporal_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// A question is answered by a process that knows of no workflow: while nobody waits for the run, and while somebody does.
func TestAnAnswerFromElsewhere(t *testing.T) {
	t.Parallel()
	server := devserver.Shared(t)
	c := server.Client(t)
	for name, gone := range map[string]bool{"while nobody waits": true, "while somebody waits": false} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			eng, err := loop.New(loop.Config{Model: stepping(1), Tools: []tool.Tool{tool.Func("work", "Works.", func(_ context.Context, _ struct {
				Step int `json:"step"`
			},
			) (string, error) {
				return "did it", nil
			}, tool.RequiresApproval)}})
			if err != nil {
				t.Fatal(err)
			}
			ag, queue := agent.Agent{ID: "careful", Instructions: "You work."}, "q-"+name
			works(t, c, store, queue, temporal.Member{Agent: ag, Engine: eng})
			host := asked{came: make(chan string, 9), answer: make(chan bool)}
			ctx, die := context.WithCancelCause(t.Context())
			defer die(nil)
			type ended struct {
				res *agent.Result
				err error
			}
			over := make(chan ended, 1)
			run := func(resume bool) {
				req, opts := agent.Request{ContextID: "s", Message: message.User("go")}, []agent.RunOption{agent.WithJournal(store), agent.WithEngineHost(host)}
				var e ended
				if at := temporal.NewEngine(c, eng, temporal.WithQueue(queue)); resume {
					e.res, e.err = agent.Resume(t.Context(), ag, at, "s", append(opts, agent.WithWait())...)
				} else {
					e.res, e.err = agent.Run(ctx, ag, at, req, opts...)
				}
				over <- e
			}
			go run(false)
			id := ""
			select {
			case id = <-host.came:
			case e := <-over:
				t.Fatal("nobody is asked", e.err, e.res)
			}
			if gone {
				die(engine.ErrLeft)
				<-over
			}
			if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: id, Approved: true, By: "somebody"}); err != nil {
				t.Fatal(err)
			}
			if gone {
				go run(true)
			}
			select {
			case e := <-over:
				if e.err != nil || e.res.Err != nil || e.res.Text() != "done" {
					t.Errorf("%v, %+v", e.err, e.res)
				}
			case <-time.After(20 * time.Second):
				for e, err := range store.Read(t.Context(), "s", 0) {
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%d %T %v %+v", e.Seq, e.Data, e.Key, e.Data)
				}
				t.Fatal("the run does not go on")
			}
		})
	}
}

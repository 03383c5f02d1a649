package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// calling is a model that calls x so often, and then is done.
type calling int

func (n calling) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	if i := req.Messages.Len() / 2; i < int(n) {
		return &model.Response{Message: message.Assistant("", call(fmt.Sprint("c", i), "x", `{}`)), Stop: model.StopTools}, nil
	}
	return &model.Response{Message: message.Assistant("done")}, nil
}

func (n calling) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := n.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// What calls came to is one message, in the run's transcript and in its record, and neither is copied when the other grows.
func TestARunAndItsRecordShareTheirMessages(t *testing.T) {
	x := tool.Func("x", "", func(context.Context, struct{}) (string, error) { return "ok", nil })
	eng, err := loop.New(loop.Config{Model: calling(5), Tools: []tool.Tool{x}, Limits: loop.Limits{Repeats: -1}})
	if err != nil {
		t.Fatal(err)
	}
	var log *journal.Log
	open := func(ctx context.Context, s journal.Store, session string) (_ *journal.Log, err error) {
		log, err = journal.Open(ctx, s, session)
		return log, err
	}
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(journal.Memory()), agent.WithOpen(open))
	if err != nil || res.Err != nil {
		t.Fatal(err, res)
	}
	results := 0
	now := res.LastBoard.Channel(engine.MainChannel)
	for i, m := range log.Transcript().All() {
		if m != now.At(i) {
			t.Errorf("message %d, %s, is another one in the record", i, m.Role())
		}
		if m.Role() == message.RoleTool {
			results++
		}
	}
	if results != 5 {
		t.Errorf("there are %d results", results)
	}
}

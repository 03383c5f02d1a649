package script_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// otters is the model of the page.
type otters struct{ says string }

func (o otters) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	if strings.HasPrefix(req.Messages.Last().Text(), "!") {
		return nil, errdefs.NotAvailable.Errorf("it is away")
	}
	return &model.Response{Message: message.Assistant(o.says), Stop: model.StopEnd}, nil
}

func (o otters) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := o.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// shown is a script of the page, with what it says that comes of it: the transcript, or the error.
var shown = regexp.MustCompile("(?ms)^```python\n(.*?)^```\n(.*?)^```text\n(.*?)^```")

func TestTheScriptsOfThePageDoWhatItSays(t *testing.T) {
	page, err := os.ReadFile("../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	all := shown.FindAllStringSubmatch(string(page), -1)
	if n := strings.Count(string(page), "```python"); n != len(all) || n < 4 {
		t.Errorf("%d scripts, %d with what comes of them", n, len(all))
	}
	for _, m := range all {
		if strings.Contains(m[2], "```") {
			t.Errorf("what comes of %s does not follow it", m[1])
		}
		search := tool.Func("search", "", func(_ context.Context, in struct {
			Query string `json:"query"`
		},
		) (string, error) {
			return "3 facts about " + in.Query, nil
		}, tool.ReadOnly)
		publish := tool.Func("publish", "", func(_ context.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			if in.Text == "" {
				return "", errdefs.Validation.Errorf("there is nothing to publish")
			}
			return "published", nil
		})
		eng, err := script.New(script.Config{
			Name: "example.star", Source: m[1], Loop: loop.Config{Model: otters{"Otters hold hands."}, Tools: []tool.Tool{search, publish}},
			Models: func(name string) (model.Model, error) { return otters{name + ": Otters hold hands."}, nil },
		})
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		host := engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) {
			return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
		}}
		res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("Go."), Inputs: map[string]any{"topic": "otters"}}, agent.WithEngineHost(host))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(told(res.LastBoard.Channel("main")), "\n")
		if res.Err != nil {
			got = res.Err.Error()
		}
		same(t, m[1], strings.TrimSpace(m[3]), got)
	}
}

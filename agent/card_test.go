package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// backAndForth reads what was written, into a new value.
func backAndForth[T any](t *testing.T, v T) (back T) {
	t.Helper()
	if err := json.Unmarshal([]byte(marshal(t, v)), &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestAnAgentHasTheJSONOfItsDocument(t *testing.T) {
	for name, c := range map[string]struct {
		ag   agent.Agent
		want string
	}{
		"an id alone":  {agent.Agent{ID: "x"}, `{"id":"x","card":{"name":"","capabilities":{}}}`},
		"no tools":     {agent.Agent{ID: "x", Tools: []string{}}, `{"id":"x","card":{"name":"","capabilities":{}},"tools":[]}`},
		"what runs it": {agent.Agent{ID: "x", Hooks: []hook.Middleware{{}}, Observers: []agent.Observer{nil}, Deciders: []agent.Decider{nil}}, `{"id":"x","card":{"name":"","capabilities":{}}}`},
		"all of a card's": {
			agent.Agent{ID: "x", Instructions: "be brief", Tools: []string{"read"}, Card: agent.AgentCard{
				Name: "X", Description: "d", DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"audio/wav"},
				Capabilities: agent.AgentCapabilities{Streaming: true, PushNotifications: true, StateTransitionHistory: true},
				Skills:       []agent.Skill{{ID: "s", Name: "S"}, {ID: "t", Name: "T", Description: "d", Tags: []string{"a"}, Examples: []string{"e"}, InputModes: []string{"i/i"}, OutputModes: []string{"o/o"}}},
			}},
			`{"id":"x","card":{"name":"X","description":"d","skills":[{"id":"s","name":"S"},{"id":"t","name":"T","description":"d","tags":["a"],"examples":["e"],"inputModes":["i/i"],"outputModes":["o/o"]}],` +
				`"defaultInputModes":["text/plain"],"defaultOutputModes":["audio/wav"],"capabilities":{"streaming":true,"pushNotifications":true,"stateTransitionHistory":true}},` +
				`"instructions":"be brief","tools":["read"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "JSON", c.want, marshal(t, c.ag))
			back := backAndForth(t, c.ag)
			c.ag.Hooks, c.ag.Observers, c.ag.Deciders = nil, nil, nil
			if diff := cmp.Diff(c.ag, back); diff != "" { // nil and empty Tools differ here, too
				t.Error(diff)
			}
		})
	}
}

func TestARequestHasTheJSONOfItsDocument(t *testing.T) {
	req := agent.Request{Message: message.User("hi")}
	same(t, "the least", `{"message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}`, marshal(t, req))
	req = agent.Request{TaskID: "t", ContextID: "c", RunID: "r", Message: message.User("hi"), Inputs: map[string]any{"k": 1}, Config: &agent.RequestConfig{AcceptedOutputModes: []string{"text/plain"}}}
	want := `{"taskId":"t","contextId":"c","runId":"r","message":{"role":"user","parts":[{"type":"text","text":"hi"}]},"inputs":{"k":1},"configuration":{"acceptedOutputModes":["text/plain"]}}`
	same(t, "the most", want, marshal(t, req))
	same(t, "there and back", want, marshal(t, backAndForth(t, req)))
}

func TestAResultGoesThroughJSON(t *testing.T) {
	res := agent.Result{
		TaskID: "t", RunID: "r", Status: agent.StatusInterrupted, Cause: engine.CauseUserCancel, Messages: []message.Message{message.Assistant("hi")}, Committed: true,
		Artifacts: []agent.Artifact{{Name: "summary", Parts: message.Parts{message.Text{Text: "s"}, message.File{MIME: "audio/wav", Data: "beep"}}}, {Name: "none"}},
		State:     map[string]any{"run_id": "r"}, Attempts: 1,
	}
	want := `{"taskId":"t","runId":"r","status":"interrupted","cause":"user_cancel","messages":[{"role":"assistant","parts":[{"type":"text","text":"hi"}]}],` +
		`"artifacts":[{"name":"summary","parts":[{"type":"text","text":"s"},{"type":"file","mime":"audio/wav","data":"YmVlcA=="}]},{"name":"none"}],` +
		`"committed":true,"state":{"run_id":"r"},` +
		`"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0},"cost_micros":null,"attempts":1}`
	same(t, "JSON", want, marshal(t, res))
	same(t, "there and back", want, marshal(t, backAndForth(t, res)))
}

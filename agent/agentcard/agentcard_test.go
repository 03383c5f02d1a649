package agentcard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/agentcard"
)

func TestACardGoesToA2AAndBack(t *testing.T) {
	at := a2a.Interface{URL: "https://x/a2a", ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: "1.0"}
	want := agent.AgentCard{
		Name: "n", Description: "d", DefaultInputModes: []string{"a/b"}, DefaultOutputModes: []string{"c/d"}, Capabilities: agent.AgentCapabilities{Streaming: true, PushNotifications: true},
		Skills: []agent.Skill{{ID: "s", Name: "N", Description: "D", Tags: []string{"t"}, Examples: []string{"e"}, InputModes: []string{"i/i"}, OutputModes: []string{"o/o"}}},
	}
	card := agentcard.A2A(agent.Agent{ID: "id", Card: want}, "1.2", at)
	if diff := cmp.Diff(want, agentcard.Of(card)); diff != "" {
		t.Error(diff)
	}
	data, err := a2a.MarshalCard(card)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a2a.UnmarshalCard(data); err != nil || got.Version != "1.2" || got.Interfaces[0] != at {
		t.Errorf("%+v, %v", got, err)
	}
	// The protocol requires each list to have something in it.
	bare := agentcard.A2A(agent.Agent{ID: "id"}, "1", at)
	if diff := cmp.Diff(a2a.AgentCard{
		Name: "id", Description: "id", Version: "1", Interfaces: []a2a.Interface{at}, DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.Skill{{ID: "id", Name: "id", Description: "id", Tags: []string{"id"}}},
	}, bare); diff != "" {
		t.Error(diff)
	}
}

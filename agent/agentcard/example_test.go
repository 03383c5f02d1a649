package agentcard_test

import (
	"fmt"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/agentcard"
)

func Example() {
	ag := agent.Agent{ID: "cook", Card: agent.AgentCard{Name: "Cook", Description: "Knows recipes."}}
	card := agentcard.A2A(ag, "1.0.0", a2a.Interface{URL: "https://example.com/a2a", ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: "1.0"})
	fmt.Println(card.Name, card.Skills[0].ID, agentcard.Of(card).Description)
	// Output: Cook cook Knows recipes.
}

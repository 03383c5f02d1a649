// Package agentcard translates between an agent's card here and one of A2A, both ways: who serves an agent shows the one, who runs an agent elsewhere
// (engine/remote) has the other. It stands apart from package agent, whose programs need no A2A.
package agentcard

import (
	"cmp"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
)

// A2A is an agent's card as A2A has it: what others are told of it, with the version of the agent and where it is reached. What the protocol requires and the card does not say is filled in: the agent's ID as its
// name, its name as its description, text/plain as what it takes and gives, and one skill with its name. Whether it streams is for whoever serves it to say.
func A2A(ag agent.Agent, version string, at ...a2a.Interface) a2a.AgentCard {
	c := ag.Card
	name := cmp.Or(c.Name, ag.ID)
	out := a2a.AgentCard{
		Name: name, Description: cmp.Or(c.Description, name), Version: version, Interfaces: at,
		Capabilities:      a2a.Capabilities{Streaming: c.Capabilities.Streaming, PushNotifications: c.Capabilities.PushNotifications},
		DefaultInputModes: c.DefaultInputModes, DefaultOutputModes: c.DefaultOutputModes,
	}
	if len(out.DefaultInputModes) == 0 {
		out.DefaultInputModes = []string{"text/plain"}
	}
	if len(out.DefaultOutputModes) == 0 {
		out.DefaultOutputModes = []string{"text/plain"}
	}
	for _, s := range c.Skills {
		out.Skills = append(out.Skills, a2a.Skill{
			ID: s.ID, Name: cmp.Or(s.Name, s.ID), Description: cmp.Or(s.Description, s.Name, s.ID), Tags: s.Tags, Examples: s.Examples, InputModes: s.InputModes, OutputModes: s.OutputModes,
		})
	}
	if len(out.Skills) == 0 {
		out.Skills = []a2a.Skill{{ID: ag.ID, Name: name, Description: out.Description}}
	}
	for i, s := range out.Skills {
		if len(s.Tags) == 0 {
			out.Skills[i].Tags = []string{s.ID}
		}
	}
	return out
}

// Of is what an agent elsewhere says of itself, as an agent here would: for a run by engine/remote.
func Of(c a2a.AgentCard) agent.AgentCard {
	out := agent.AgentCard{
		Name: c.Name, Description: c.Description, DefaultInputModes: c.DefaultInputModes, DefaultOutputModes: c.DefaultOutputModes,
		Capabilities: agent.AgentCapabilities{Streaming: c.Capabilities.Streaming, PushNotifications: c.Capabilities.PushNotifications},
	}
	for _, s := range c.Skills {
		out.Skills = append(out.Skills, agent.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags, Examples: s.Examples, InputModes: s.InputModes, OutputModes: s.OutputModes})
	}
	return out
}

package crashtest

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/model/scripted"
)

// below are those with runs below the run. What goes on in the background runs beside the path all the same in every process, but for its last step, which
// waits until the run has nothing left to do but to wait for it: so the run always hears of it at the same place.
func below() []Scenario {
	asks := []scripted.Turn{calls("at work", call("k1", "pay"), call("k2", "look")), calls("may I", call("k3", "ask")), says("the kid's answer")}
	works := func(id, until string) []scripted.Turn {
		return []scripted.Turn{calls("at work", call(id+"1", "pay"), call(id+"2", "look")), calls("until then", wait(id+"3", until)), says("done by " + id)}
	}
	return []Scenario{
		{Name: "a subagent that asks for an approval", Text: "the end", Build: family(
			member{turns: []scripted.Turn{calls("give", task("c1", "kid", false), call("c2", "pay")), end}, subs: []member{{id: "kid", turns: asks}}},
		)},
		{Name: "a subagent in the background", Text: "the end", Writers: 2, Build: family(
			member{
				turns: []scripted.Turn{
					calls("give", task("c1", "kid", true), call("c2", "pay")), calls("beside it", call("c3", "pay"), call("c4", "look")), says("I wait"), end,
				},
				subs: []member{{id: "kid", turns: works("k", "before stop/3")}},
			},
		)},
		{Name: "two subagents in the background, one of which asks", Text: "the end", Writers: 3, Build: family(
			member{
				turns: []scripted.Turn{
					calls("give", task("c1", "kid", true), task("c2", "other", true)), calls("beside them", call("c3", "pay")),
					says("I wait"), says("I wait again"), end,
				},
				subs: []member{
					{id: "kid", turns: works("k", "before stop/3")},
					{id: "other", turns: []scripted.Turn{calls("may I", call("o1", "ask")), calls("until then", wait("o2", "before stop/4")), says("done too")}},
				},
			},
		)},
		{Name: "a subagent of a subagent, and calls of unknown outcome", Unknown: engine.UnknownAsk, Text: "the end", Build: family(
			member{
				turns: []scripted.Turn{calls("give", task("c1", "kid", false)), end},
				subs: []member{{
					id: "kid", turns: []scripted.Turn{calls("give on", call("k1", "pay"), task("k2", "grandkid", false)), says("from below")},
					subs: []member{{id: "grandkid", turns: []scripted.Turn{calls("at work", call("g1", "pay"), call("g2", "ask")), says("from the bottom")}}},
				}},
			},
		)},
	}
}

// team is a conversation that is handed over, and whose next prompt goes to who has it.
func team() []Scenario {
	hs := []agent.Handoff{{ToAgentID: "billing"}}
	over := call("c2", agent.DefaultHandoffToolName("billing"))
	over.Input = `{"reason":"a refund","note":"order 12"}`
	turns := counted([]scripted.Turn{ // one transcript, one script
		calls("first", call("c1", "pay")), calls("over to billing", over),
		calls("I see", call("c3", "pay")), says("it is on its way"), calls("once more", call("c4", "pay")), end,
	})
	return []Scenario{{
		Name: "a team that hands over", Prompts: []string{"Go.", "Go on."}, Text: "the end",
		Team: func(p *Process) (*agent.Team, error) {
			m := p.Model(scripted.New(turns...))
			desk, err := loop.New(loop.Config{Model: m, Tools: append(toolbox(p), agent.HandoffTools(context.Background(), nil, hs)...)})
			if err != nil {
				return nil, err
			}
			billing, err := loop.New(loop.Config{Model: m, Tools: toolbox(p)})
			if err != nil {
				return nil, err
			}
			return agent.NewTeam(agent.TeamConfig{Members: []agent.Member{
				{Agent: agent.Agent{ID: "desk"}, Engine: p.Engine(desk), Handoffs: hs},
				{Agent: agent.Agent{ID: "billing"}, Engine: p.Engine(billing)},
			}})
		},
	}}
}

// member is an agent with those that it gives tasks to.
type member struct {
	id    string
	turns []scripted.Turn
	subs  []member
}

// family builds the one at the top.
func family(top member) func(p *Process) (agent.Agent, engine.Engine, error) {
	return func(p *Process) (agent.Agent, engine.Engine, error) {
		eng, err := top.engine(p)
		return agent.Agent{ID: "crashtest", Hooks: []hook.Middleware{gate}}, eng, err
	}
}

func (m member) engine(p *Process) (engine.Engine, error) {
	tools := toolbox(p)
	var subs []agent.Subagent
	for _, sub := range m.subs {
		eng, err := sub.engine(p)
		if err != nil {
			return nil, err
		}
		subs = append(subs, agent.Subagent{Agent: agent.Agent{ID: sub.id, Instructions: "You are " + sub.id + "."}, Engine: eng})
	}
	if len(subs) > 0 {
		give, err := p.Task(subs)
		if err != nil {
			return nil, err
		}
		tools = append(tools, give)
	}
	return loop.New(loop.Config{Model: p.Model(scripted.New(counted(m.turns)...)), Tools: tools})
}

func task(id, who string, background bool) scripted.Call {
	c := call(id, agent.TaskName)
	c.Input = fmt.Sprintf(`{"agent":%q,"prompt":"Do it.","background":%t}`, who, background)
	return c
}

// wait is a call that waits for a point of the process.
func wait(id, until string) scripted.Call {
	c := call(id, "wait")
	c.Input = fmt.Sprintf(`{"until":%q}`, until)
	return c
}

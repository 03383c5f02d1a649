package crashtest

import (
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
)

// program does all that a script can: a model with a tool, a tool, a question, another agent, and functions beside each other, of which one talks.
const program = `
generate("Begin.")
tool("pay", note = " by the script", check = False)  # after a crash its outcome may be unknown
if not ask("Go on?", choices = ["yes", "no"]):
    fail("nobody wants it")
board.set("kid", agent("kid", "Do it."))

def talk():
    return generate("Do your part.", channel = "part").text

def look():
    seen = tool("look")
    emit("I have seen it")
    return seen

board.set("parts", parallel([look, talk]))
emit("the end")
`

// Scripts are those of the engine script. What a store that fails does about them it does about [Scenarios] too.
func Scripts() []Scenario {
	kid := member{id: "kid", turns: []scripted.Turn{says("the kid's answer")}}
	return []Scenario{{
		Name: "a script", Text: "the end",
		Build: func(p *Process) (agent.Agent, engine.Engine, error) {
			below, err := kid.engine(p)
			if err != nil {
				return agent.Agent{}, nil, err
			}
			give, err := p.Task([]agent.Subagent{{Agent: agent.Agent{ID: kid.id}, Engine: below}})
			if err != nil {
				return agent.Agent{}, nil, err
			}
			turns := counted([]scripted.Turn{calls("at it", call("c1", "pay")), says("begun")})
			eng, err := script.New(script.Config{Name: "program", Source: program, Loop: loop.Config{
				Model: p.Model(scripted.New(turns...)), Tools: append(toolbox(p), give),
			}})
			return agent.Agent{ID: "crashtest", Hooks: []hook.Middleware{gate}}, eng, err
		},
		Answer: func(journal.Pending) journal.Answered {
			return journal.Answered{Approved: true, Text: "1", By: "crashtest"}
		},
	}}
}

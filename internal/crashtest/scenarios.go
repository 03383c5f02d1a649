package crashtest

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// Scenarios are those that every store has to stand.
func Scenarios() []Scenario {
	return slices.Concat(alone(), unknown(), spoken(), compacted(), below(), team(), graphs())
}

// gate has a person asked about each call of ask.
var gate = hook.Middleware{Name: "gate", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
	if u.Tool.Name == "ask" {
		return hook.Asking("may I?"), nil
	}
	return hook.Decision{}, nil
}}

// end is the last word of a script.
var end = says("the end")

// alone are those of the loop by itself.
func alone() []Scenario {
	return []Scenario{
		{Name: "tools that write, one after the other", Text: "the end", Build: looping(nil,
			calls("two", call("c1", "pay"), call("c2", "pay")), calls("one more", call("c3", "pay")), end)},
		{Name: "tools that read, beside one that writes", Text: "the end", Build: looping(nil,
			calls("all", call("c1", "look"), call("c2", "look"), call("c3", "pay"), call("c4", "look"), call("c5", "look")), end)},
		{Name: "an idempotent tool", Text: "the end", Build: looping(nil,
			calls("twice", call("c1", "put"), call("c2", "put")), end)},
		{Name: "a call that a person approves", Text: "the end", Build: looping([]hook.Middleware{gate},
			calls("may I", call("c1", "pay"), call("c2", "ask")), calls("and then", call("c3", "pay")), end)},
		{Name: "calls of which a person rejects one", Text: "the end", Answer: reject("c1"), Build: looping([]hook.Middleware{gate},
			calls("may I", call("c1", "ask"), call("c2", "ask"), call("c3", "pay")), end)},
		{Name: "replies that are cut off", Text: "the first half and the rest", Build: looping(nil,
			cut(calls("too much", call("c1", "pay"))), calls("less", call("c2", "pay")), cut(says("the first half ")), says("and the rest"))},
		{Name: "a model that fails, and a second prompt", Text: "the end", Prompts: []string{"Go.", "Go on."}, Build: looping(nil,
			calls("one", call("c1", "pay")), scripted.Turn{Text: "half of this is", Error: &scripted.Failure{Status: 529, MidStream: true}},
			calls("another", call("c2", "pay")), end)},
		{Name: "hooks at all four points", Text: "the end", Build: looping(hooks(),
			calls("one", call("c1", "pay"), call("c2", "ban")), says("almost"), end)},
		{
			Name: "a run that is done again", Text: "the end", Build: looping(nil, calls("one", call("c1", "pay")), end),
			Options: func(*Process) []agent.RunOption {
				return []agent.RunOption{agent.WithMaxRevise(2), agent.WithDecider(agent.DeciderFunc(
					func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
						return agent.FinalizeDecision{Revise: res.Attempts < 2, Reason: "once more"}, nil
					}))}
			},
		},
	}
}

// unknown are those in which somebody else than the model hears of a call of unknown outcome. What becomes of one has points that only a resume has.
func unknown() []Scenario {
	build := looping(nil, calls("two", call("c1", "pay"), call("c2", "pay")), end)
	return []Scenario{
		{Name: "calls of unknown outcome that a person lets run again", Unknown: engine.UnknownAsk, Text: "the end", Build: build},
		{Name: "calls of unknown outcome that a person does not let run again", Unknown: engine.UnknownAsk, Text: "the end", Build: build, Answer: reject("c1", "c2")},
		{Name: "calls of unknown outcome that run again by themselves", Unknown: engine.UnknownRetry, Text: "the end", Build: build},
	}
}

// spoken are those in which a person says something of his own.
func spoken() []Scenario {
	question := call("c1", askuser.Name)
	question.Input = `{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}`
	say := call("c1", "steer")
	say.Input = `{"say":"faster"}`
	return []Scenario{
		{
			Name: "a question of the model's own", Text: "the end",
			Answer: func(journal.Pending) journal.Answered {
				return journal.Answered{Approved: true, Text: "2", By: "crashtest"}
			},
			Build: looping(nil, calls("one", question, call("c2", "pay")), end),
		},
		{Name: "steering", Text: "the end", Build: looping(nil,
			calls("one", say, call("c2", "pay")), calls("another", call("c3", "pay")), end)},
	}
}

// compacted are those whose transcript is summarized on the way: two replies take more than there is room for.
func compacted() []Scenario {
	long := strings.Repeat("This takes some room. ", 30)
	build := func(p *Process) (agent.Agent, engine.Engine, error) {
		turns := counted([]scripted.Turn{
			calls(long, call("c1", "pay")), calls(long, call("c2", "pay")), calls(long, call("c3", "pay")), calls(long, call("c4", "pay"), call("c5", "look")), says(long), calls(long, call("c6", "pay")), end,
		})
		eng, err := loop.New(loop.Config{
			Model: p.Model(scripted.New(turns...)), Tools: toolbox(p), Compact: loop.Compact{Enabled: true, Window: 600, Threshold: 0.5, PreserveCount: 2},
		})
		return agent.Agent{ID: "crashtest", Instructions: "Work."}, eng, err
	}
	return []Scenario{{Name: "a transcript that is compacted", Text: "the end", Prompts: []string{"Go.", "Go on."}, Build: build}}
}

// looping builds a loop that plays a script, with the tools of [toolbox].
func looping(hooks []hook.Middleware, turns ...scripted.Turn) func(p *Process) (agent.Agent, engine.Engine, error) {
	turns = counted(turns)
	return func(p *Process) (agent.Agent, engine.Engine, error) {
		eng, err := loop.New(loop.Config{Model: p.Model(scripted.New(turns...)), Tools: toolbox(p)})
		return agent.Agent{ID: "crashtest", Instructions: "Work.", Hooks: hooks}, eng, err
	}
}

// counted gives each turn another usage.
func counted(turns []scripted.Turn) []scripted.Turn {
	turns = slices.Clone(turns)
	for i := range turns {
		if turns[i].Error == nil {
			turns[i].Usage = model.Usage{Input: 100 * (i + 1), Output: 10}
		}
	}
	return turns
}

// toolbox has tools that write (pay, ban, ask), that read (look), that are idempotent (put), that say something to the run (steer), that wait for a
// point of the process (wait), and that ask a person (ask_user).
func toolbox(p *Process) []tool.Tool {
	return []tool.Tool{
		p.Tool("pay"), p.Tool("ban"), p.Tool("ask"), p.Tool("look", tool.ReadOnly), p.Tool("put", tool.Idempotent), askuser.New(nil),
		tool.Func("steer", "", func(ctx context.Context, in struct {
			Say string `json:"say"`
		},
		) (string, error) {
			p.Point("before steering")
			err := steer(ctx, in.Say)
			if errdefs.NotAvailable.Is(err) { // once more, as somebody would whose words were perhaps not heard
				err = steer(ctx, in.Say)
			}
			p.Point("after steering")
			return "said", err
		}, tool.Idempotent),
		tool.Func("wait", "", func(ctx context.Context, in struct {
			Until string `json:"until"`
		},
		) (string, error) {
			return "waited", p.Await(ctx, in.Until)
		}, tool.Idempotent),
	}
}

// steer says something to the run that the tool is used by, unless it was said already: so the tool is idempotent. The journal is not the run's own, to be
// watched: who steers is somebody else.
func steer(ctx context.Context, text string) error {
	at, _ := engine.InsideOf(ctx)
	store := at.Run.Log.Store()
	if w, ok := store.(watchedStore); ok {
		store = w.Store
	}
	for e, err := range store.Read(ctx, at.Run.Session, 0) {
		if err != nil {
			return err
		}
		if d, ok := e.Data.(journal.Said); ok && d.Message.Text() == text {
			return nil
		}
	}
	return agent.Steer(ctx, store, at.Run.Session, message.User(text))
}

func call(id, name string) scripted.Call { return scripted.Call{ID: id, Name: name} }

func calls(text string, cs ...scripted.Call) scripted.Turn {
	return scripted.Turn{Text: text, Calls: cs}
}

func says(text string) scripted.Turn { return scripted.Text(text) }

func cut(t scripted.Turn) scripted.Turn {
	t.Stop = model.StopLength
	return t
}

// reject rejects some calls and approves the rest.
func reject(ids ...string) func(journal.Pending) journal.Answered {
	return func(q journal.Pending) journal.Answered {
		return journal.Answered{Approved: !slices.Contains(ids, q.Call.ID), Text: "because I say so", By: "crashtest"}
	}
}

// hooks change the transcript, rewrite an input, refuse a call, change a result, and send the model back once.
func hooks() []hook.Middleware {
	return []hook.Middleware{{
		Name: "all",
		PreGeneration: func(_ context.Context, g *hook.Generation) error {
			g.System += " Carefully."
			g.Messages = message.NewHistory(message.User("This is what you should know.")).Append(g.Messages.Last())
			return nil
		},
		PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if u.Tool.Name == "ban" {
				return hook.Denied("not this one"), nil
			}
			return hook.Decision{Verdict: hook.Allow, Input: `{"note":", as a hook wrote"}`}, nil
		},
		PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
			u.Result.Content += ", and a hook saw it"
			return nil
		},
		PostGeneration: func(_ context.Context, g *hook.Generation) error {
			if g.Response.Message.Text() == "almost" {
				g.Again("Are you sure?")
			}
			return nil
		},
	}}
}

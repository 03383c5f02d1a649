package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/tool"
)

// A program that shows what a run does. docs/observability.md has all events, and this.
func ExampleRuntime_RunStream() {
	ctx := context.Background()
	add := tool.Func("add", "Add two numbers.",
		func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, tool.ReadOnly)
	rt, err := pawl.New(ctx, pawl.Options{
		Model: scripted.New(
			scripted.Turn{Text: "Let me see.", Calls: []scripted.Call{{Name: "add", Input: `{"A":2,"B":3}`}}},
			scripted.Text("It is five."),
		),
		Tools: []tool.Tool{add}, NoProject: true, Journal: journal.Memory(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()

	for e, err := range rt.RunStream(ctx, pawl.Request{Prompt: "How much is 2 + 3?"}) {
		if err != nil { // what keeps the run from being completed; it comes last
			fmt.Println(err)
			return
		}
		if e.ParentRun != "" { // of a subagent's run
			continue
		}
		switch d := e.Data.(type) {
		case nil: // a delta
			switch e.Delta {
			case event.TextDelta:
				fmt.Print(e.Text)
			case event.Warning:
				fmt.Println("warning:", e.Text)
			}
		case journal.ToolStarted:
			fmt.Println("\n>", d.Call.Name, d.Call.Input)
		case journal.ToolFinished:
			fmt.Println("<", d.Outcome, d.Content)
		case journal.Asked:
			fmt.Println("\nwaits for a person:", d.ID, d.Prompt)
		case journal.RunFinished:
			fmt.Println("\n" + d.Status)
		}
	}
	// Output:
	// Let me see.
	// > add {"A":2,"B":3}
	// < ok 5
	// It is five.
	// completed
}

// The four points of a run: see docs/sdk.md.
func ExampleOptions_hooks() {
	rules := hook.Middleware{
		Name: "house rules",
		PreGeneration: func(_ context.Context, g *hook.Generation) error { // once, before the first model call
			g.System += "\nSay what you deployed, and where."
			return nil
		},
		PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) { // before each call
			var in struct {
				Where string `json:"where"`
			}
			if err := json.Unmarshal([]byte(u.Call.Input), &in); err != nil {
				return hook.Decision{}, err // an error denies
			}
			switch {
			case u.Call.Name != "deploy":
				return hook.Decision{}, nil // no opinion: others decide
			case in.Where == "production":
				return hook.Denied("production is deployed by people"), nil
			case in.Where == "":
				return hook.Decision{Input: `{"where": "staging"}`}, nil // checked and judged again
			}
			return hook.Allowed("a place for tests"), nil
		},
		PostToolUse: func(_ context.Context, u *hook.ToolUse) error { // after each call that ran
			u.Result.Content = strings.ReplaceAll(u.Result.Content, "hunter2", "***")
			return nil
		},
		PostGeneration: func(_ context.Context, g *hook.Generation) error { // when the model stops
			if !strings.Contains(g.Response.Message.Text(), "staging") {
				g.Again("Where?") // at most 3 times a run
			}
			return nil
		},
	}
	deploy := tool.Func("deploy", "Deploy the program.", func(_ context.Context, in struct {
		Where string `json:"where"`
	},
	) (string, error) {
		return "deployed to " + in.Where + " with the password hunter2", nil
	})

	ctx := context.Background()
	rt, err := pawl.New(ctx, pawl.Options{
		Model: scripted.New(
			scripted.Calls(scripted.Call{Name: "deploy", Input: `{"where": "production"}`}),
			scripted.Calls(scripted.Call{Name: "deploy", Input: `{"where": ""}`}),
			scripted.Text("It is deployed."),
			scripted.Text("It is deployed to staging."),
		),
		Tools: []tool.Tool{deploy}, Middleware: []hook.Middleware{rules}, NoProject: true, Journal: journal.Memory(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	res, err := rt.Run(ctx, pawl.Request{Prompt: "Deploy it."})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range res.Messages {
		for r := range message.Of[message.ToolResult](m) {
			fmt.Println(r.Content)
		}
	}
	fmt.Println(res.Text())
	// Output:
	// production is deployed by people
	// deployed to staging with the password ***
	// It is deployed to staging.
}

// A subagent of the program's, and a script that plays both models.
func ExampleOptions_subagents() {
	script := scripted.Script{
		Turns: []scripted.Turn{
			scripted.Calls(scripted.Call{Name: "task", Input: `{"agent": "reviewer", "prompt": "Review parser.go."}`}),
			scripted.Text("The reviewer found a bug."),
		},
		Agents: map[string][]scripted.Turn{ // by the subagents' IDs; scripted.New has turns for the agent itself only
			"reviewer": {
				scripted.Calls(scripted.Call{Name: "glob", Input: `{"pattern": "parser.go"}`}),
				scripted.Text("Line 12 drops an error."),
			},
		},
	}
	ctx := context.Background()
	rt, err := pawl.New(ctx, pawl.Options{
		Model: script.Model(),
		Subagents: []agent.Subagent{{
			Agent:       agent.Agent{ID: "reviewer", Instructions: "You review Go code.", Tools: []string{"read", "glob", "grep"}},
			Description: "finds bugs", // by which the model chooses
		}},
		NoProject: true, Journal: journal.Memory(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	for e, err := range rt.RunStream(ctx, pawl.Request{Prompt: "Is parser.go sound?"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		who := "lead:"
		if e.ParentRun != "" {
			who = "reviewer:"
		}
		switch d := e.Data.(type) {
		case journal.ToolFinished:
			fmt.Println(who, d.Name, "gave", d.Content)
		case journal.RunFinished:
			fmt.Println(who, d.Status)
		}
	}
	// Output:
	// reviewer: glob gave no files match
	// reviewer: completed
	// lead: task gave Line 12 drops an error.
	// lead: completed
}

// A skill of the program's.
func ExampleOptions_skills() {
	ctx := context.Background()
	rt, err := pawl.New(ctx, pawl.Options{
		Model: scripted.New(
			scripted.Calls(scripted.Call{Name: "skill", Input: `{"name": "release"}`}),
			scripted.Calls(scripted.Call{Name: "write", Input: `{"file_path": "VERSION", "content": "2"}`}),
			scripted.Text("I can't write while I release."),
		),
		Skills: []project.Skill{{
			Name:         "release", // the system prompt has this and the description
			Description:  "Makes a release. Use it when somebody asks for a new version.",
			Body:         "1. Run the tests.\n2. Tag the commit.", // the tool skill gives this
			AllowedTools: []string{"Read", "Bash(go test:*)", "Bash(git tag:*)"},
			Keywords:     []string{"ship it"}, // a prompt that has one of them activates it without a call
		}},
		NoProject: true, Journal: journal.Memory(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	res, err := rt.Run(ctx, pawl.Request{Prompt: "Make version 2."})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range res.Messages {
		for r := range message.Of[message.ToolResult](m) {
			fmt.Println(r.Name, "gave", strings.TrimSpace(r.Content))
		}
	}
	// Output:
	// skill gave # Skill release
	//
	// 1. Run the tests.
	// 2. Tag the commit.
	//
	// From now on, only these tools may be used, beside those that other active skills allow: Read, Bash(go test:*), Bash(git tag:*)
	// write gave this call of write is not among what the active skills allow (release: Read, Bash(go test:*), Bash(git tag:*)): until the run ends, keep to that, or activate a skill that allows it
}

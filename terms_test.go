package pawl_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// waits makes a run of the session s wait for a person, and gives the journal. What comes next is a call of note, which writes.
func waits(t *testing.T, o pawl.Options) journal.Store {
	t.Helper()
	o.Journal = journal.Memory()
	rt := open(t, withNote(o, nil))
	if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); res == nil || len(res.Pending) != 1 || res.Pending[0].ID != "c1" {
		t.Fatal(res, err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	approves(t, o.Journal, "c1")
	return o.Journal
}

func approves(t *testing.T, store journal.Store, call string) {
	t.Helper()
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: call, Approved: true}); err != nil {
		t.Fatal(err)
	}
}

func withNote(o pawl.Options, noted func(context.Context)) pawl.Options {
	o.Model = stub{message.Assistant("", call("c1", "check", `{}`)), message.Assistant("", call("c2", "note", `{}`)), message.Assistant("done")}
	o.Tools = []tool.Tool{
		tool.Func("check", "", func(context.Context, struct{}) (string, error) { return "checked", nil }, tool.ReadOnly, tool.RequiresApproval),
		tool.Func("note", "", func(ctx context.Context, _ struct{}) (string, error) {
			if noted != nil {
				noted(ctx)
			}
			return "noted", nil
		}),
	}
	return o
}

// goesOn resumes the session s by another Runtime: what became of note, and what was told.
func goesOn(t *testing.T, store journal.Store, o pawl.Options, more ...agent.RunOption) (note string, warned string) {
	t.Helper()
	o.Journal = store
	o.Host = engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		if e.Delta == event.Warning {
			warned += e.Text
		}
		return nil
	}}
	rt := open(t, withNote(o, nil))
	defer func() { _ = rt.Close() }()
	res, err := rt.Resume(t.Context(), "s", more...)
	switch {
	case res == nil:
		t.Fatal(err)
	case len(res.Pending) > 0:
		return "asked", warned
	}
	for _, m := range res.Messages {
		for r := range message.Of[message.ToolResult](m) {
			if r.Name == "note" {
				note = r.Content
			}
		}
	}
	return note, warned
}

func TestAResumeIsBoundByWhatTheRunBeganWith(t *testing.T) {
	off := &sandbox.Policy{Off: true}
	may := permission.Config{Allow: []string{"note", "check"}}
	for name, c := range map[string]struct {
		began, now permission.Config
		note, says string // note's result begins with it; the warning has it
	}{
		"nothing":                               {permission.Config{}, may, "noted", ""},
		"a deny rule":                           {permission.Config{Deny: []string{"note"}}, may, "denied by the rule note (on record of the run)", "deny note"},
		"a deny rule with its place":            {permission.Config{Rules: []permission.Rule{permission.DenyRule("note")}}, may, "denied by the rule note (on record of the run)", "deny note"},
		"a deny rule, and a mode that is loose": {permission.Config{Deny: []string{"note"}}, permission.Config{Mode: permission.ModeBypass}, "denied by the rule note", "mode default, deny note"},
		"the same deny rule":                    {permission.Config{Deny: []string{"note"}}, permission.Config{Deny: []string{"note"}}, "denied by the rule note (deny rule 1)", ""},
		"an ask rule":                           {permission.Config{Ask: []string{"note"}}, may, "asked", "ask note"},
		"mode plan":                             {permission.Config{Mode: permission.ModePlan}, may, "mode plan", "mode plan"},
		"mode plan, and a looser one":           {permission.Config{Mode: permission.ModePlan}, permission.Config{Mode: permission.ModeBypass}, "mode plan", "mode plan"},
		"mode default, and a looser one":        {permission.Config{}, permission.Config{Mode: permission.ModeBypass}, "asked", "mode default"},
		"mode dontAsk":                          {permission.Config{Mode: permission.ModeDontAsk}, permission.Config{}, "mode dontAsk", "mode dontAsk"},
		"dontAsk and plan: plan forbids":        {permission.Config{Mode: permission.ModeDontAsk}, permission.Config{Mode: permission.ModePlan, Allow: may.Allow}, "mode plan", "mode dontAsk"},
		"plan and dontAsk: plan forbids":        {permission.Config{Mode: permission.ModePlan}, permission.Config{Mode: permission.ModeDontAsk, Allow: may.Allow}, "mode plan", "mode plan"},
		"an allow rule is not taken over":       {may, permission.Config{}, "asked", ""},
		"a looser mode is not taken over":       {permission.Config{Mode: permission.ModeBypass}, permission.Config{}, "asked", ""},
		"a stricter one is that of now":         {permission.Config{Mode: permission.ModeBypass}, permission.Config{Mode: permission.ModePlan}, "mode plan", ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := waits(t, pawl.Options{Permissions: c.began, Sandbox: off})
			note, warned := goesOn(t, store, pawl.Options{Permissions: c.now, Sandbox: off})
			if !strings.HasPrefix(note, c.note) || !strings.Contains(warned, c.says) || (c.says == "") != (warned == "") {
				t.Errorf("note: %q, warned: %q", note, warned)
			}
		})
	}
}

// A run that goes on, waits again and goes on again is bound by all that it ever was.
func TestEachResumeOnlyNarrows(t *testing.T) {
	off := &sandbox.Policy{Off: true}
	store := waits(t, pawl.Options{Permissions: permission.Config{Ask: []string{"note"}}, Sandbox: off})
	loose := pawl.Options{Permissions: permission.Config{Mode: permission.ModeBypass}, Sandbox: off}
	if note, _ := goesOn(t, store, pawl.Options{Permissions: permission.Config{Mode: permission.ModeBypass, Deny: []string{"WebFetch"}}, Sandbox: off}); note != "asked" {
		t.Error(note)
	}
	if note, warned := goesOn(t, store, loose); note != "asked" || !strings.Contains(warned, "mode default, deny WebFetch, ask note") {
		t.Error(note, warned)
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(log.State().Terms); got != `{"modes":["bypassPermissions","default"],"deny":["WebFetch"],"ask":["note"]}` {
		t.Error(got)
	}
	approves(t, store, "c2")
	if note, _ := goesOn(t, store, loose); note != "noted" {
		t.Error(note)
	}
	// The next run of the session is a run of its own.
	rt := open(t, pawl.Options{Model: stub{message.Assistant("x"), message.Assistant("y"), message.Assistant("z"), message.Assistant("w")}, Journal: store, Sandbox: off})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := log.Refresh(t.Context()); err != nil || string(log.State().Terms) != `{"modes":["default"]}` {
		t.Error(string(log.State().Terms), err)
	}
}

func TestARunThatBeganInASandboxGoesOnInOne(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	hosts := func(list ...string) *sandbox.Policy {
		return &sandbox.Policy{Network: sandbox.Network{Hosts: list}}
	}
	allow := permission.Config{Allow: []string{"note"}}
	for name, c := range map[string]struct {
		began, now *sandbox.Policy // nil: the default
		reached    string
	}{
		"the default, twice":      {nil, nil, "all"},
		"said to be off":          {nil, &sandbox.Policy{Off: true}, "off"},
		"without, and then in it": {&sandbox.Policy{Off: true}, nil, "all"},
		"a narrower network":      {hosts("a.example", "b.example"), nil, "a.example b.example"},
		"two narrower networks":   {hosts("a.example", "b.example"), hosts("b.example", "c.example"), "b.example"},
		"none":                    {&sandbox.Policy{}, nil, ""},
		"a wider network":         {nil, hosts("a.example"), "a.example"},
	} {
		t.Run(name, func(t *testing.T) {
			store, reached := waits(t, pawl.Options{Sandbox: c.began}), "nobody looked"
			rt := open(t, withNote(pawl.Options{Sandbox: c.now, Journal: store, Permissions: allow}, func(ctx context.Context) {
				switch p, in := sandbox.From(ctx); {
				case !in || p.Off:
					reached = "off"
				case p.Network.All:
					reached = "all"
				default:
					reached = strings.Join(p.Network.Hosts, " ")
				}
			}))
			if res, err := rt.Resume(t.Context(), "s"); err != nil || reached != c.reached {
				t.Errorf("reached %q: %+v %v", reached, res, err)
			}
		})
	}
	t.Run("what can be written", func(t *testing.T) {
		dir, mine, hidden, gone := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
		store := waits(t, pawl.Options{ProjectRoot: dir, Sandbox: &sandbox.Policy{Write: []string{mine}, Hide: []string{hidden, gone}}})
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
		var policy sandbox.Policy
		rt := open(t, withNote(pawl.Options{ProjectRoot: dir, Journal: store, Permissions: allow, Sandbox: &sandbox.Policy{Write: []string{mine, t.TempDir()}}}, func(ctx context.Context) { policy, _ = sandbox.From(ctx) }))
		if _, err := rt.Resume(t.Context(), "s"); err != nil || policy.Root != dir || !slices.Equal(policy.Write, []string{mine}) || !slices.Equal(policy.Hide, []string{hidden}) {
			t.Errorf("%+v %v", policy, err)
		}
	})
	t.Run("switched off by the settings", func(t *testing.T) {
		store := waits(t, pawl.Options{})
		o := withNote(pawl.Options{Journal: store, Permissions: allow, ProjectRoot: t.TempDir(), Overrides: json.RawMessage(`{"sandbox":{"enabled":false}}`)}, nil)
		rt, err := pawl.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rt.Close() }()
		if res, err := rt.Resume(t.Context(), "s"); res != nil || !errdefs.PolicyDenied.Is(err) || !strings.Contains(err.Error(), "--no-sandbox") {
			t.Error(res, err)
		}
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil || log.State().Status != "interrupted" {
			t.Error("it went on:", log.State().Status, err)
		}
	})
}

// What a later release put on record may forbid something.
func TestTermsThatAreNotUnderstoodKeepARunFromGoingOn(t *testing.T) {
	for raw, says := range map[string]string{
		`{"modes":["default"],"curfew":"22:00"}`:     "curfew",
		`{"modes":["default"],"deny":["Bash("]}`:     "on record of the run",
		`{"modes":["plan"],"deny":["note"],"ask":1}`: "can't be read",
	} {
		store := journal.Memory()
		o := withNote(pawl.Options{Sandbox: &sandbox.Policy{Off: true}, Journal: store}, nil)
		err := store.Append(t.Context(), "s", 0, journal.Entry{Data: journal.SessionCreated{}},
			journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1, Engine: "loop", Terms: json.RawMessage(raw)}},
			journal.Entry{Run: "r", Data: journal.Said{Message: message.User("go")}})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := open(t, o).Resume(t.Context(), "s"); res != nil || !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v %v", raw, res, err)
		}
	}
}

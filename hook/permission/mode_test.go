package permission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/tool"
)

func TestReadingAndEndingCommandsInTheBackgroundNeedsNoQuestion(t *testing.T) {
	dir := project(t)
	use := func(name string) *hook.ToolUse { // input that looks like a path is none
		u := useOf(name, in{"id": "bash_1", "file": "/etc/passwd"})
		u.Tool.Annotations = tool.Annotations{Destructive: true}
		return u
	}
	for _, name := range []string{"bash_output", "BashOutput", "bash_kill", "BashKill", "KillShell", "kill_bash"} {
		for _, mode := range permission.Modes() {
			for _, fence := range []bool{false, true} {
				m := judging(t, permission.Config{Mode: mode, Dir: dir, Fence: fence, Deny: []string{"Bash(rm:*)", "Read(//etc/**)", "Edit"}, Safety: permission.SafetyIn(dir)})
				if d := judged(t, m, use(name)); d.Verdict != hook.Allow {
					t.Errorf("%s in mode %s, fence %v: %v", name, mode, fence, d)
				}
			}
		}
	}
	for rule, names := range map[string][]string{"BashKill": {"bash_kill", "KillShell"}, "KillShell": {"bash_kill"}, "bash_kill": {"KillBash"}, "BashOutput": {"bash_output"}, "Bash*": {"bash_output", "bash_kill"}} {
		for _, name := range names {
			for _, mode := range permission.Modes() {
				if d := judged(t, judging(t, permission.Config{Mode: mode, Dir: dir, Deny: []string{rule}}), use(name)); d.Verdict != hook.Deny {
					t.Errorf("%s, denied by %s, in mode %s: %v", name, rule, mode, d)
				}
			}
			if d := judged(t, judging(t, permission.Config{Dir: dir, Ask: []string{rule}}), use(name)); d.Verdict != hook.Ask {
				t.Errorf("%s, asked about by %s: %v", name, rule, d)
			}
		}
	}
	if d := judged(t, judging(t, permission.Config{Dir: dir, Deny: []string{"BashKill"}}), use("bash_output")); d.Verdict != hook.Allow {
		t.Error(d)
	}
}

func TestAModeDecidesWhatNoRuleIsAbout(t *testing.T) {
	dir := project(t)
	modes := permission.Modes() // default, plan, acceptEdits, bypassPermissions, dontAsk
	if fmt.Sprint(modes) != "[default plan acceptEdits bypassPermissions dontAsk]" {
		t.Fatal(modes)
	}
	for call_, want := range map[string][2]string{ // without a fence, and inside one: a letter a mode, for allow, ask (?) and deny
		"read main.go":        {"aaaaa", "aaaaa"},
		"grep x":              {"aaaaa", "aaaaa"},
		"glob **/*":           {"aaaaa", "aaaaa"},
		"lookup":              {"aaaaa", "aaaaa"},
		"read ../outside/f":   {"???ad", "???ad"},
		"read out/file":       {"???ad", "???ad"},
		"read $READS/l.txt":   {"aaaaa", "aaaaa"},
		"edit main.go":        {"?daad", "adaaa"},
		"write new/x.go":      {"?daad", "adaaa"},
		"write ../outside/f":  {"?d?ad", "?d?ad"},
		"write out/file":      {"?d?ad", "?d?ad"},
		"write $READS/l.txt":  {"?d?ad", "?d?ad"},
		"bash ls":             {"aaaaa", "aaaaa"},
		"bash ls ../outside":  {"?d?ad", "adaaa"},
		"bash make":           {"?d?ad", "adaaa"},
		"bash rm -rf x":       {"?d?ad", "adaaa"},
		"bash if then":        {"?d?ad", "?d?ad"},
		"webfetch https://a":  {"???ad", "???ad"},
		"mcp__db__query":      {"?d?ad", "?d?ad"},
		"deploy":              {"?d?ad", "adaaa"},
		"task reviewer":       {"aaaaa", "aaaaa"},
		"ask_user":            {"aaaaa", "aaaaa"},
		"AskUserQuestion":     {"aaaaa", "aaaaa"},
		"read a\\u0000b":      {"???ad", "???ad"},
		`editor {"path":"x"}`: {"?d?ad", "adaaa"},
	} {
		reads := strings.TrimSuffix(dir, "project") + "reads"
		s := strings.ReplaceAll(strings.ReplaceAll(call_, "$READS", reads), `\u0000`, "\x00")
		for fence, letters := range want {
			for i, mode := range modes {
				m := judging(t, permission.Config{Mode: mode, Dir: dir, Fence: fence == 1, Readable: []string{reads}})
				d := judged(t, m, call(s))
				if verdict := map[byte]hook.Verdict{'a': hook.Allow, '?': hook.Ask, 'd': hook.Deny}[letters[i]]; d.Verdict != verdict || d.Reason == "" {
					t.Errorf("%s in mode %s, fence %v: %v (%s), want %v", call_, mode, fence == 1, d.Verdict, d.Reason, verdict)
				}
			}
		}
	}
}

func TestAToolThatSaysItDestroysOrReachesOutIsAskedAboutInsideTheFence(t *testing.T) {
	m := judging(t, permission.Config{Dir: project(t), Fence: true})
	for _, a := range []tool.Annotations{{Destructive: true}, {OpenWorld: true}, {ReadOnly: true, OpenWorld: true}} {
		u := useOf("deploy", in{})
		u.Tool.Annotations = a
		if d := judged(t, m, u); d.Verdict != hook.Ask {
			t.Errorf("%+v: %v", a, d)
		}
	}
}

func TestDenyBeatsAskBeatsAllowWhateverTheOrder(t *testing.T) {
	dir := project(t)
	texts := []string{"Bash(git push:*)", "Bash(git:*)", "Bash"}
	for _, c := range []struct {
		rules string // a verdict for each of texts: d, ?, a or - for none
		want  hook.Verdict
	}{
		{"daa", hook.Deny}, {"aad", hook.Deny}, {"a?a", hook.Ask}, {"?da", hook.Deny}, {"?-a", hook.Ask}, {"a-?", hook.Ask}, {"-a-", hook.Allow}, {"a??", hook.Ask}, {"??d", hook.Deny},
	} {
		var rules []permission.Rule
		for i, letter := range c.rules {
			if letter != '-' {
				rules = append(rules, map[rune]func(string) permission.Rule{'d': permission.DenyRule, '?': permission.AskRule, 'a': permission.AllowRule}[letter](texts[i]))
			}
		}
		for range 2 {
			if d := judged(t, judging(t, permission.Config{Rules: rules, Dir: dir}), call("bash git push origin")); d.Verdict != c.want {
				t.Errorf("%v: %v, want %v", rules, d, c.want)
			}
			slices.Reverse(rules)
		}
	}
	for mode, want := range map[permission.Mode]hook.Verdict{permission.ModeDontAsk: hook.Deny, permission.ModeBypass: hook.Allow, permission.ModePlan: hook.Ask, permission.ModeAcceptEdits: hook.Ask} {
		if d := judged(t, judging(t, permission.Config{Ask: []string{"Read"}, Allow: []string{"Read"}, Mode: mode, Dir: dir}), call("read main.go")); d.Verdict != want {
			t.Errorf("an ask rule in mode %s: %v, want %v", mode, d, want)
		}
	}
	if d := judged(t, judging(t, permission.Config{Allow: []string{"Write", "Bash", "mcp__db"}, Mode: permission.ModePlan, Dir: dir}), call("write x")); d.Verdict != hook.Deny {
		t.Error("an allow rule lifts plan:", d)
	}
}

// Of every deny rule and every call that it denies: no allow rule, no ask rule, no mode, no fence, no order and no approved rule makes it anything else.
func TestADenyRuleIsNeverWeakened(t *testing.T) {
	dir := project(t)
	type pair struct{ rule, call string }
	var pairs []pair
	var rules []string
	for _, e := range evasions {
		rules = append(rules, e.rule)
		for _, c := range e.calls {
			pairs = append(pairs, pair{e.rule, strings.ReplaceAll(c, "$DIR", dir)})
		}
	}
	for _, p := range pairs { // each once against the widest permission there is
		for _, mode := range permission.Modes() {
			m := judging(t, permission.Config{Allow: []string{"*", "Bash", "Read", "Edit", "mcp__*"}, Deny: []string{p.rule}, Mode: mode, Fence: true, Dir: dir})
			if d := judged(t, m, call(p.call)); d.Verdict != hook.Deny {
				t.Errorf("%s with %s in mode %s: %v", p.rule, p.call, mode, d)
			}
		}
	}
	rules = append(rules, "Bash", "Read", "Edit", "Write", "Grep", "Glob", "WebFetch", "Task", "*", "mcp__*", "Read(**)", "Edit(**)", "Read(//**)", "Bash(*)", "Bash(cat:*)")
	some := rapid.SliceOfN(rapid.SampledFrom(rules), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(pairs).Draw(t, "pair")
		var list []permission.Rule
		list = append(list, permission.DenyRule(p.rule))
		for _, text := range some.Draw(t, "allow") {
			list = append(list, permission.AllowRule(text))
		}
		for _, text := range some.Draw(t, "ask") {
			list = append(list, permission.AskRule(text))
		}
		list = rapid.Permutation(list).Draw(t, "order")
		grants := &permission.Grants{}
		u := call(p.call)
		_ = grants.Approve("s1", hook.Grant{Tool: u.Call.Name, Input: u.Call.Input})
		for _, text := range some.Draw(t, "grants") {
			_ = grants.Approve("s1", hook.Grant{Rule: text})
		}
		m, err := permission.New(permission.Config{Rules: list, Mode: rapid.SampledFrom(permission.Modes()).Draw(t, "mode"), Fence: rapid.Bool().Draw(t, "fence"), Dir: dir, Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		if d := hook.Judge(context.Background(), []hook.Middleware{m}, u, nil); d.Verdict != hook.Deny {
			t.Fatalf("%s with %s: %v", p.rule, p.call, d)
		}
	})
}

func TestWhatASearchFindsOfDeniedFilesIsWithheld(t *testing.T) {
	dir := project(t)
	m := judging(t, permission.Config{Deny: []string{"Read(./secret/**)", "Read(.env)", "Read(*.pem)", "Bash(rm:*)", "Edit(src/**)"}, Dir: dir})
	for name, c := range map[string]struct{ call, result, want string }{
		"glob":       {"glob **/*", "main.go\nsecret/key\nsrc/a.go\nsecret/deep/key\n.env\ncerts/a.pem", "main.go\nsrc/a.go\n[4 lines withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"a link":     {"glob *", "alias.txt\nup/b.go\ntosecret/key", "up/b.go\n[2 lines withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"content":    {"grep k", "main.go:1:k\nsecret/key:1:k\nsecret/key-2-more\n--\nsrc/a-b.go:3:k .env", "main.go:1:k\n--\nsrc/a-b.go:3:k .env\n[2 lines withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"count":      {"grep k", "secret/key:2", "[1 line withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"a note":     {"grep k", "main.go\n[skipped, unreadable: src/x, secret/key and 3 more]", "main.go\n[1 line withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"nothing":    {"grep k", "main.go\n[skipped, over 20 MiB: big.bin]", "main.go\n[skipped, over 20 MiB: big.bin]"},
		"elsewhere":  {"grep k src", "src/a.go:1:secret/key", "src/a.go:1:secret/key"},
		"no search":  {"read main.go", "secret/key", "secret/key"},
		"a command":  {"bash ls", "secret/key", "secret/key"},
		"context":    {"grep k", ".env-3-more\n.envrc-3-more", ".envrc-3-more\n[1 line withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"a dash":     {"grep k", "secret/key-x:1:k", "[1 line withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
		"in capital": {"Grep k", "secret/key:1:k", "[1 line withheld: Read(./secret/**), Read(.env), Read(*.pem)]"},
	} {
		u := call(strings.ToLower(c.call[:1]) + c.call[1:])
		u.Call.Name = strings.Split(c.call, " ")[0]
		if d := judged(t, m, u); name != "a command" && d.Verdict != hook.Allow {
			t.Errorf("%s: %v", name, d)
		}
		u.Result = &tool.Result{Content: c.result}
		if err := hook.After(t.Context(), []hook.Middleware{m}, u); err != nil {
			t.Error(name, err)
		}
		if diff := cmp.Diff(c.want, u.Result.Content); diff != "" {
			t.Error(name, diff)
		}
	}
}

func TestWhatWasApprovedForASessionCountsInThatSessionOnly(t *testing.T) {
	dir := project(t)
	grants := &permission.Grants{}
	m := judging(t, permission.Config{Dir: dir, Grants: grants, Ask: []string{"Bash(git push:*)"}, Deny: []string{"Bash(rm:*)", "Read(.env)"}})
	in := func(session, s string) hook.Verdict {
		u := call(s)
		u.Session = session
		return judged(t, m, u).Verdict
	}
	exact := call("bash make all")
	if err := grants.Approve("s1", hook.Grant{Tool: "Bash", Input: exact.Call.Input}); err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"Bash(git push:*)", "Bash(rm:*)", "Bash(rg:*)", "Edit(src/**)"} {
		if err := grants.Approve("s1", hook.Grant{Rule: rule}); err != nil {
			t.Fatal(err)
		}
	}
	for s, want := range map[string][2]hook.Verdict{ // in s1, and in another session
		"bash make all":             {hook.Allow, hook.Ask},
		"bash make all install":     {hook.Ask, hook.Ask},
		"bash git push origin":      {hook.Allow, hook.Ask},
		"bash git push; make other": {hook.Ask, hook.Ask},
		"bash rm x":                 {hook.Deny, hook.Deny},
		"bash rg x .":               {hook.Ask, hook.Ask}, // a rule's approval does not cover what may be denied
		"edit src/a.go":             {hook.Allow, hook.Ask},
		"edit main.go":              {hook.Ask, hook.Ask},
	} {
		if got := [2]hook.Verdict{in("s1", s), in("s1/c1", s)}; got != want {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
	b, err := json.Marshal(grants.List("s1")) // what is kept can be approved again
	if err != nil {
		t.Fatal(err)
	}
	var kept []hook.Grant
	if err := json.Unmarshal(b, &kept); err != nil || len(kept) != 5 {
		t.Fatal(err, kept)
	}
	grants.Forget("s1")
	if v := in("s1", "bash make all"); v != hook.Ask {
		t.Error("forgotten, and", v)
	}
	for range 2 {
		for _, g := range kept {
			if err := grants.Approve("s2", g); err != nil {
				t.Error(err)
			}
		}
	}
	if len(grants.List("s2")) != 5 || in("s2", "bash make all") != hook.Allow || in("s2", "bash git push") != hook.Allow {
		t.Error(grants.List("s2"))
	}
	plan := judging(t, permission.Config{Dir: dir, Grants: grants, Mode: permission.ModePlan})
	exact.Session = "s2"
	if d := judged(t, plan, exact); d.Verdict != hook.Deny {
		t.Error("a grant lifts plan:", d)
	}
	for _, g := range []hook.Grant{{}, {Rule: "Bash("}, {Tool: "x", Rule: "Read"}} {
		if err := grants.Approve("s", g); !errdefs.Validation.Is(err) {
			t.Errorf("%+v: %v", g, err)
		}
	}
	if err := grants.Approve("", hook.Grant{Rule: "Read"}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestTheSafetyCheckBindsAndItsQuestionsAreTheModes(t *testing.T) {
	dir := project(t)
	type verdicts = map[permission.Mode]hook.Verdict
	for s, want := range map[string]verdicts{
		"bash rm -rf /":         {permission.ModeDefault: hook.Deny, permission.ModeBypass: hook.Deny, permission.ModeAcceptEdits: hook.Deny, permission.ModeDontAsk: hook.Deny, permission.ModePlan: hook.Deny},
		"bash git push --force": {permission.ModeDefault: hook.Ask, permission.ModeBypass: hook.Allow, permission.ModeAcceptEdits: hook.Ask, permission.ModeDontAsk: hook.Deny, permission.ModePlan: hook.Deny},
		"bash go test ./...":    {permission.ModeDefault: hook.Allow, permission.ModeBypass: hook.Allow, permission.ModeAcceptEdits: hook.Allow, permission.ModeDontAsk: hook.Allow, permission.ModePlan: hook.Deny},
	} {
		for mode, want := range want {
			m := judging(t, permission.Config{Safety: permission.SafetyIn(dir), Mode: mode, Fence: true, Allow: []string{"Bash"}, Dir: dir})
			if d := judged(t, m, call(s)); d.Verdict != want || d.Reason == "" {
				t.Errorf("%s in mode %s: %v, want %v", s, mode, d, want)
			}
		}
	}
	grants := &permission.Grants{}
	push, wipe := call("bash git push --force"), call("bash rm -rf /")
	for _, u := range []*hook.ToolUse{push, wipe} {
		if err := grants.Approve("s1", hook.Grant{Tool: "bash", Input: u.Call.Input}); err != nil {
			t.Fatal(err)
		}
	}
	m := judging(t, permission.Config{Safety: permission.SafetyIn(dir), Grants: grants, Dir: dir})
	if d := judged(t, m, push); d.Verdict != hook.Allow {
		t.Error("asked again:", d)
	}
	if d := judged(t, m, wipe); d.Verdict != hook.Deny {
		t.Error("approved, and so:", d)
	}
	m = judging(t, permission.Config{Dir: dir, Mode: permission.ModeBypass, Safety: func(context.Context, string, map[string]any) error { panic("lost") }})
	if d := judged(t, m, call("read main.go")); d.Verdict != hook.Deny {
		t.Error("a check that panics lets through:", d)
	}
}

func TestGrantsAndJudgmentsAreSafeForConcurrentUse(t *testing.T) {
	grants := &permission.Grants{}
	m := judging(t, permission.Config{Dir: project(t), Grants: grants, Deny: []string{"Read(.env)"}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				_ = grants.Approve(fmt.Sprint("s", i%2), hook.Grant{Rule: fmt.Sprintf("Bash(make %d)", i)})
				u := call(fmt.Sprint("bash make ", i))
				u.Session = fmt.Sprint("s", i%2)
				if d := judged(t, m, u); d.Verdict != hook.Allow {
					t.Error(d)
				}
			}
		})
	}
	all.Wait()
}

func TestEveryJudgmentIsAudited(t *testing.T) {
	dir := project(t)
	var got []permission.Judgment
	m := judging(t, permission.Config{
		Dir: dir, Allow: []string{"Bash(go test:*)"}, Ask: []string{"WebFetch"}, Mode: permission.ModeAcceptEdits,
		Rules: []permission.Rule{{Verdict: hook.Deny, Text: "Read(.env)", Place: "settings.json: permissions.deny[0]"}},
		Audit: func(_ context.Context, j permission.Judgment) { got = append(got, j) },
	})
	where := hook.Where{Session: "s1", Run: "r1"}
	for _, want := range []struct {
		call string
		permission.Judgment
	}{
		{"bash go test .", permission.Judgment{Verdict: hook.Allow, Reason: "allowed by the rule Bash(go test:*) (allow rule 1)", Rule: "Bash(go test:*)", Place: "allow rule 1"}},
		{"bash cat .env", permission.Judgment{Verdict: hook.Deny, Reason: "denied by the rule Read(.env) (settings.json: permissions.deny[0])", Rule: "Read(.env)", Place: "settings.json: permissions.deny[0]"}},
		{"webfetch https://a", permission.Judgment{Verdict: hook.Ask, Reason: "the rule WebFetch (ask rule 1)", Rule: "WebFetch", Place: "ask rule 1"}},
		{"edit main.go", permission.Judgment{Verdict: hook.Allow, Reason: "mode acceptEdits: it edits inside the project"}},
		{"bash rm x", permission.Judgment{Verdict: hook.Ask, Reason: "commands run without a sandbox, and rm x may do more than read inside the project; the allow rules don't cover it: no rule permits rm x"}},
	} {
		got = nil
		u := call(want.call)
		d := judged(t, m, u)
		j := want.Judgment
		j.Where, j.Call, j.Tool, j.Mode, j.Input = where, "c1", u.Call.Name, permission.ModeAcceptEdits, json.RawMessage(u.Call.Input)
		if len(got) == 1 && time.Since(got[0].Time) < time.Minute && got[0].Time.Location() == time.UTC {
			j.Time = got[0].Time
		}
		if diff := cmp.Diff([]permission.Judgment{j}, got); diff != "" {
			t.Error(diff)
		}
		if d.Verdict != j.Verdict || d.Reason != j.Reason { // what the journal has
			t.Error(d)
		}
	}
	m = judging(t, permission.Config{Dir: dir, Audit: func(context.Context, permission.Judgment) { panic("full") }})
	if d := judged(t, m, call("read main.go")); d.Verdict != hook.Deny {
		t.Error("a judgment that can't be put on record counts:", d)
	}
}

// One line of a log, with its names, whatever the input is.
func TestAJudgmentIsALineOfJSON(t *testing.T) {
	var got permission.Judgment
	m := judging(t, permission.Config{Dir: project(t), Deny: []string{"Bash(echo:*)"}, Audit: func(_ context.Context, j permission.Judgment) { got = j }})
	for input, want := range map[string]string{
		"{\"command\":\"echo a\\nb\",\n\"timeout\":\"5s\"}": `"input":{"command":"echo a\nb","timeout":"5s"},"verdict":"deny","reason":"denied by the rule Bash(echo:*) (deny rule 1)","rule":"Bash(echo:*)","place":"deny rule 1","mode":"default"}`,
		`not "JSON"`: `"input":"not \"JSON\"","verdict":"ask",`,
	} {
		u := call("bash ls")
		u.Call.Input, u.User = input, "ann"
		judged(t, m, u)
		b, err := json.Marshal(got)
		at, line, _ := strings.Cut(string(b), `,"session"`)
		if err != nil || !strings.HasPrefix(at, `{"time":"2`) || !strings.HasPrefix(line, `:"s1","run":"r1","user":"ann","call":"c1","tool":"bash",`+want) || strings.Contains(line, "\n") {
			t.Errorf("%s %v", b, err)
		}
		var back permission.Judgment
		if err := json.Unmarshal(b, &back); err != nil || back.Verdict != got.Verdict || !back.Time.Equal(got.Time) {
			t.Errorf("%+v %v", back, err)
		}
	}
	for v := hook.Continue; v <= hook.Deny; v++ {
		var back hook.Verdict
		if b, err := json.Marshal(v); err != nil || json.Unmarshal(b, &back) != nil || back != v {
			t.Errorf("%s %v %v", b, err, back)
		}
	}
	if err := json.Unmarshal([]byte(`"perhaps"`), new(hook.Verdict)); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestAProposedRuleCoversTheCallAndItsLike(t *testing.T) {
	dir := project(t)
	for s, want := range map[string]string{
		"bash go test ./...":                 "Bash(go test:*)",
		"bash cd src && go test . | head":    "Bash(go test:*)",
		"bash git push":                      "Bash(git push:*)",
		"bash rm -rf x":                      "",
		"bash git push && go test .":         "",
		"bash ./go test":                     "",
		"bash git -c a=b log":                "",
		"bash go test -exec x":               "",
		"bash eval $x":                       "",
		"edit src/a.go":                      "Edit(./src/a.go)",
		"edit src/[a]*.go":                   `Edit(./src/\[a]\*.go)`,
		"read ../outside/file":               "Read(/$TOP/outside/file)",
		"webfetch https://Example.com/x":     "WebFetch(domain:example.com)",
		"webfetch https://a@example.com/x":   "",
		"mcp__db__query":                     "mcp__db__query",
		"task Reviewer":                      "task(reviewer)",
		"edit out/file":                      "",
		"edit .agents/x.md":                  "",
		"write .git/hooks/post-commit":       "",
		`deploy {"path":"../outside/file"}`:  "deploy",
		"bash go test .; $(rm -rf x)":        "",
		"bash npm run build":                 "Bash(npm run:*)",
		"bash GIT_DIR=x git status":          "",
		"bash docker run -v /:/x y":          "",
		"webfetch https://example.com:8443/": "",
	} {
		u := call(s)
		rule, err := permission.ProposeRule(dir, u)
		if want = strings.ReplaceAll(want, "$TOP", strings.TrimSuffix(dir, "/project")); err != nil || rule != want {
			t.Errorf("%s: %q %v, want %q", s, rule, err, want)
		}
		if rule == "" {
			continue
		}
		if d := judged(t, judging(t, permission.Config{Dir: dir, Allow: []string{rule}}), u); d.Verdict != hook.Allow {
			t.Errorf("%s does not allow %s: %v", rule, s, d)
		}
	}
}

func TestAReasonCallsAToolByItsName(t *testing.T) {
	u := call("webfetch https://example.com/x")
	u.Call.Name, u.Tool.Name = "web_fetch", "web_fetch"
	if d := judged(t, judging(t, permission.Config{Dir: project(t)}), u); d.Verdict != hook.Ask || !strings.Contains(d.Reason, "no rule is about web_fetch") {
		t.Errorf("%v %q", d.Verdict, d.Reason)
	}
}

func TestAModeIsReadInAnyCase(t *testing.T) {
	for name, want := range map[string]permission.Mode{"": permission.ModeDefault, "acceptedits": permission.ModeAcceptEdits, "PLAN": permission.ModePlan, "bypassPermissions": permission.ModeBypass} {
		if m, err := permission.ParseMode(name); err != nil || m != want {
			t.Error(name, m, err)
		}
	}
	if _, err := permission.ParseMode("yolo"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "dontAsk") {
		t.Error(err)
	}
}

// FuzzPermission: no rule and no call makes it panic, and what is denied alone is denied with an allow rule and in any mode.
func FuzzPermission(f *testing.F) {
	dir := f.TempDir()
	for _, e := range evasions {
		f.Add(e.rule, e.calls[0])
	}
	f.Add("Bash(a*b *c:*)", "bash a b c $(d")
	f.Add("Read(//**/{a,b}/[!c]\\*)", "read ~/../x")
	f.Add("WebFetch(https://[::1]:80/*)", "webfetch http://[::1]")
	f.Fuzz(func(t *testing.T, rule, s string) {
		alone, err := permission.New(permission.Config{Deny: []string{rule}, Dir: dir})
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Fatal(err)
			}
			return
		}
		u := call(s)
		if !json.Valid([]byte(u.Call.Input)) {
			return
		}
		before, err := alone.PreToolUse(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		u.Result = &tool.Result{Content: s + "\n" + rule}
		if err := alone.PostToolUse(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		for _, mode := range permission.Modes() {
			m, err := permission.New(permission.Config{Deny: []string{rule}, Allow: []string{rule, "Bash", "*"}, Dir: dir, Mode: mode, Fence: true})
			if err != nil {
				t.Fatal(err)
			}
			if d, err := m.PreToolUse(t.Context(), u); err != nil || before.Verdict == hook.Deny && d.Verdict != hook.Deny {
				t.Fatal(mode, before, d, err)
			}
		}
	})
}

func TestWhatWasApprovedOnRecordCountsLikeWhatIsInMemory(t *testing.T) {
	dir := project(t)
	m := judging(t, permission.Config{Dir: dir, Deny: []string{"Bash(rm:*)"}})
	exact := call("bash make all")
	for s, want := range map[string]hook.Verdict{
		"bash make all": hook.Allow, "bash make other": hook.Ask, "bash git push": hook.Allow, "bash git pull": hook.Ask, "bash rm x": hook.Deny,
	} {
		u := call(s)
		u.Granted = []hook.Grant{{Tool: "Bash", Input: exact.Call.Input}, {Rule: "Bash(git push:*)"}, {Rule: "Bash(rm:*)"}, {Rule: "Bash("}}
		if d := judged(t, m, u); d.Verdict != want {
			t.Errorf("%s: %v, want %v", s, d, want)
		}
	}
}

func TestARuleApprovedForASessionLiftsNothingThatTheSafetyCheckAsksAbout(t *testing.T) {
	dir := project(t)
	m := judging(t, permission.Config{Dir: dir, Safety: permission.SafetyIn(dir), Ask: []string{"Bash(git push:*)"}})
	forced := call("bash git push --force")
	for s, want := range map[string]hook.Verdict{"bash git push origin main": hook.Allow, "bash git push --force": hook.Ask} {
		u := call(s)
		u.Granted = []hook.Grant{{Rule: "Bash(git push:*)"}}
		if d := judged(t, m, u); d.Verdict != want {
			t.Errorf("%s: %v, want %v", s, d, want)
		}
	}
	forced.Granted = []hook.Grant{{Tool: "Bash", Input: forced.Call.Input}}
	if d := judged(t, m, forced); d.Verdict != hook.Allow {
		t.Error("this very call:", d)
	}
}

func TestModesAreOrderedByWhatTheyLetHappen(t *testing.T) {
	strictestFirst := []permission.Mode{permission.ModePlan, permission.ModeDontAsk, permission.ModeDefault, permission.ModeAcceptEdits, permission.ModeBypass}
	for i, a := range strictestFirst {
		for j, b := range strictestFirst {
			if a.Looser(b) != (i > j) {
				t.Errorf("%s is looser than %s: %v", a, b, a.Looser(b))
			}
		}
	}
	if permission.Mode("").Looser(permission.ModeDefault) || permission.ModeDefault.Looser("") || !permission.Mode("").Looser(permission.ModePlan) {
		t.Error("the zero Mode is not the default one")
	}
	if len(strictestFirst) != len(permission.Modes()) {
		t.Error("a mode has no place in the order")
	}
}

func TestAnApprovalForTheSessionHasToBeHeededByAllWhoAsk(t *testing.T) {
	says := func(d hook.Decision) hook.Middleware {
		return hook.Middleware{PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return d, nil }}
	}
	heeds, each := hook.Decision{Verdict: hook.Ask, Session: true}, hook.Asking("?")
	permissions := judging(t, permission.Config{Dir: t.TempDir(), Ask: []string{"Bash"}})
	for name, c := range map[string]struct {
		hooks []hook.Middleware
		want  bool
	}{
		"permissions":                        {[]hook.Middleware{permissions}, true},
		"all heed it":                        {[]hook.Middleware{permissions, says(heeds), says(hook.Allowed(""))}, true},
		"another hook doesn't":               {[]hook.Middleware{permissions, says(each)}, false},
		"nor does the first":                 {[]hook.Middleware{says(each), permissions}, false},
		"the safety check by itself doesn't": {[]hook.Middleware{permission.Safety(permission.SafetyIn(t.TempDir()))}, false},
		"nobody asks":                        {[]hook.Middleware{says(hook.Decision{Verdict: hook.Allow, Session: true})}, false},
		"it is denied":                       {[]hook.Middleware{permissions, says(hook.Denied("no"))}, false},
	} {
		if d := hook.Judge(t.Context(), c.hooks, useOf("bash", in{"command": "git push --force"}), nil); d.Session != c.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

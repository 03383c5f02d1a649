package project

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/internal/steady"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// decoder makes entries of a settings file.
type decoder struct {
	*source
	*report
	layer   Layer
	claude  bool // the file is Claude Code's: what is only known there is a problem, never a failure
	root    string
	home    string
	outer   bool // it is of a directory above the project
	entries []entry
}

// fields are the keys of an object and what reads them. They are what the schema has, too: a test compares the two.
type fields map[string]func(d *decoder, n node)

// ofSettings are the keys of a settings file. nil: it is known and says nothing to us.
var ofSettings, ofPermissions, ofMCP, ofSandbox, ofNetwork, ofLimits fields

func init() { // they refer to each other
	ofSettings = fields{
		"$schema":          nil, // for editors
		"permissions":      func(d *decoder, n node) { d.object(n, "permissions", ofPermissions) },
		"env":              (*decoder).env,
		"model":            (*decoder).model,
		"retries":          (*decoder).retries,
		"reasoning":        (*decoder).reasoning,
		"providerTools":    (*decoder).providerTools,
		"hooks":            (*decoder).hooks,
		"disableAllHooks":  (*decoder).disableAllHooks,
		"mcp":              func(d *decoder, n node) { d.object(n, "mcp", ofMCP) },
		"mcpServers":       (*decoder).servers,
		"sandbox":          func(d *decoder, n node) { d.object(n, "sandbox", ofSandbox) },
		"disallowedTools":  (*decoder).disallowedTools,
		"respectGitignore": (*decoder).respectGitignore,
		"compat":           (*decoder).compat,
	}
	ofPermissions = fields{
		"allow":                 func(d *decoder, n node) { d.rules(n, hook.Allow) },
		"deny":                  func(d *decoder, n node) { d.rules(n, hook.Deny) },
		"ask":                   func(d *decoder, n node) { d.rules(n, hook.Ask) },
		"defaultMode":           (*decoder).mode,
		"additionalDirectories": (*decoder).directories,
		"taint":                 (*decoder).taint,
	}
	ofMCP = fields{"servers": (*decoder).servers}
	ofSandbox = fields{
		"enabled": (*decoder).sandboxEnabled,
		"write": func(d *decoder, n node) {
			d.paths(n, "write", true, func(s *Settings) *[]string { return &s.Sandbox.Write })
		},
		"read": func(d *decoder, n node) {
			d.paths(n, "read", true, func(s *Settings) *[]string { return &s.Sandbox.Read })
		},
		"hide": func(d *decoder, n node) {
			d.paths(n, "hide", false, func(s *Settings) *[]string { return &s.Sandbox.Hide })
		},
		"protect": func(d *decoder, n node) {
			d.paths(n, "protect", false, func(s *Settings) *[]string { return &s.Sandbox.Protect })
		},
		"env":     (*decoder).sandboxEnv,
		"network": (*decoder).network,
		"limits":  func(d *decoder, n node) { d.object(n, "sandbox.limits", ofLimits) },
	}
	ofNetwork = fields{"all": (*decoder).networkAll, "hosts": (*decoder).networkHosts}
	ofLimits = fields{
		"cpu": (*decoder).cpu,
		"files": func(d *decoder, n node) {
			d.limit(n, sandbox.DefaultFiles, func(s *Settings) *uint64 { return &s.Sandbox.Limits.Files })
		},
		"fileSize": func(d *decoder, n node) {
			d.limit(n, sandbox.DefaultFileSize, func(s *Settings) *uint64 { return &s.Sandbox.Limits.FileSize })
		},
		"processes": func(d *decoder, n node) {
			d.limit(n, math.MaxUint64, func(s *Settings) *uint64 { return &s.Sandbox.Limits.Processes })
		},
	}
}

// settings decodes a file. What can't be understood fails, since it may forbid something; what has no effect is a problem.
func (d *decoder) settings() {
	if root, ok := d.parse(d.report); ok {
		d.object(root, "", ofSettings)
	}
}

// mcpFile decodes a .mcp.json.
func (d *decoder) mcpFile() {
	if root, ok := d.parse(d.report); ok {
		d.object(root, "", fields{"mcpServers": (*decoder).servers})
	}
}

func (d *decoder) object(n node, key string, known fields) {
	if n.kind == 'n' {
		return
	}
	if n.kind != '{' {
		d.wrong(n, key, "an object in braces")
		return
	}
	for _, c := range n.children {
		read, ok := known[c.name]
		switch {
		case !ok && d.claude:
			d.problem(Problem{d.place(c.keyAt), fmt.Sprintf("%q of Claude Code's settings has no effect", join(key, c.name)), ""})
		case !ok:
			d.problem(unknownName(d.place(c.keyAt), "key", join(key, c.name), joinAll(key, slices.Sorted(maps.Keys(known)))))
		case read != nil && c.kind != 'n': // null is as if it were not there
			read(d, c)
		}
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func joinAll(key string, names []string) []string {
	for i, name := range names {
		names[i] = join(key, name)
	}
	return names
}

func (d *decoder) wrong(n node, key, want string) {
	d.fail(Problem{d.place(n.at), fmt.Sprintf("%s is of the wrong type", key), "want " + want})
}

// add takes an entry at a value.
func (d *decoder) add(n node, e entry) {
	e.place, e.layer = d.place(n.at), d.layer
	if e.text == "" {
		e.text = canonical(n.value)
	}
	d.entries = append(d.entries, e)
}

func (d *decoder) boolean(n node, key string) (v, ok bool) {
	if v, ok = n.value.(bool); !ok {
		d.wrong(n, key, "true or false")
	}
	return v, ok
}

func (d *decoder) text(n node, key string) (v string, ok bool) {
	if v, ok = n.value.(string); !ok {
		d.wrong(n, key, "a text in quotes")
	}
	return v, ok
}

// maxList is how long a list may be: each rule costs a look at the disk.
const maxList = 5000

// texts calls each for every text of a list.
func (d *decoder) texts(n node, key string, each func(n node, v string)) {
	if n.kind != '[' {
		d.wrong(n, key, "a list of texts in brackets")
		return
	}
	if len(n.children) > maxList {
		d.fail(Problem{d.place(n.at), fmt.Sprintf("%s has more than %d elements", key, maxList), "have fewer"})
		return
	}
	for i, c := range n.children {
		v, ok := d.text(c, fmt.Sprintf("%s[%d]", key, i))
		switch {
		case ok && strings.TrimSpace(v) == "":
			d.fail(Problem{d.place(c.at), fmt.Sprintf("%s[%d] is empty", key, i), "remove it"})
		case ok:
			each(c, v)
		}
	}
}

func (d *decoder) textMap(n node, key string, each func(n node, v string)) {
	if n.kind != '{' {
		d.wrong(n, key, "an object of texts")
		return
	}
	for _, c := range n.children {
		if v, ok := d.text(c, join(key, c.name)); ok {
			each(c, v)
		}
	}
}

// listed adds a text to a list, once.
func (d *decoder) listed(n node, key, v string, widens bool, list func(*Settings) *[]string) {
	text := ""
	if real, err := filepath.EvalSymlinks(v); err == nil && widens && filepath.IsAbs(v) && real != v { // an approval is of where a link leads, not of the link
		v, text = real, canonical(real)
	}
	e := entry{text: text, key: key, same: v, apply: func(s *Settings) { *list(s) = append(*list(s), v) }}
	if filepath.IsAbs(v) {
		e.path = v
	}
	if widens {
		e.loosens = func(*Settings) bool { return true } // else the list has it
	}
	d.add(n, e)
}

func (d *decoder) model(n node) {
	v, ok := d.text(n, "model")
	switch {
	case !ok:
	case d.claude && !strings.Contains(v, "/"):
		d.problem(Problem{d.place(n.at), fmt.Sprintf("the model %q names no provider: it has no effect", clip(v)), `say it in .agents/settings.json: "model": "anthropic/…"`})
	default:
		name, e := v, entry{key: "model", single: true}
		if file, ok := strings.CutPrefix(v, scriptedModel); ok && file != "" {
			if file, ok = d.path(n, "model", file); !ok {
				return
			}
			name = scriptedModel + file
			e.loosens = func(s *Settings) bool { return s.Model != name } // it is a program: it says which tools are called
		}
		e.apply = func(s *Settings) { s.Model = name }
		d.add(n, e)
	}
}

func (d *decoder) retries(n node) {
	var v int
	number, _ := n.value.(json.Number)
	err := json.Unmarshal([]byte(number), &v)
	switch {
	case d.claude:
		d.problem(Problem{d.place(n.keyAt), "retries has no effect in this file", "say it in .agents/settings.json"})
	case err != nil || v < 0 || v > steady.MaxRetries:
		d.wrong(n, "retries", fmt.Sprintf("a whole number from 0 (no call is tried again) to %d", steady.MaxRetries))
	default:
		d.add(n, entry{key: "retries", single: true, apply: func(s *Settings) { s.Retries = v }})
	}
}

func (d *decoder) reasoning(n node) {
	v, ok := d.text(n, "reasoning")
	level := model.ReasoningLevel(v)
	switch {
	case !ok:
	case d.claude:
		d.problem(Problem{d.place(n.keyAt), "reasoning has no effect in this file", "say it in .agents/settings.json"})
	case level != model.ReasoningDefault && !slices.Contains(model.ReasoningLevels(), level):
		d.fail(Problem{d.place(n.at), fmt.Sprintf("reasoning %q is no level", clip(v)), fmt.Sprintf("want one of %q", model.ReasoningLevels())})
	default:
		d.add(n, entry{key: "reasoning", single: true, apply: func(s *Settings) { s.Reasoning = level }})
	}
}

// providerTools are run elsewhere, unasked, with what they are told.
func (d *decoder) providerTools(n node) {
	d.texts(n, "providerTools", func(n node, v string) {
		if d.claude {
			d.problem(Problem{d.place(n.at), "providerTools has no effect in this file", "say it in .agents/settings.json"})
			return
		}
		d.listed(n, "providerTools", v, true, func(s *Settings) *[]string { return &s.ProviderTools })
	})
}

// scriptedModel begins the name of a model that is a file.
const scriptedModel = "scripted/"

func (d *decoder) compat(n node) {
	v, ok := d.boolean(n, "compat")
	switch {
	case ok && d.claude:
		d.problem(Problem{d.place(n.keyAt), "compat has no effect in this file", "say it in .agents/settings.json"})
	case ok:
		d.add(n, entry{key: "compat", single: true, apply: func(s *Settings) { s.Compat = v }})
	}
}

func (d *decoder) respectGitignore(n node) {
	if v, ok := d.boolean(n, "respectGitignore"); ok {
		d.add(n, entry{key: "respectGitignore", single: true, apply: func(s *Settings) { s.Gitignore = v }})
	}
}

// disableAllHooks takes hooks of the user's away, which may stand guard, or puts them back.
func (d *decoder) disableAllHooks(n node) {
	if v, ok := d.boolean(n, "disableAllHooks"); ok {
		d.add(n, entry{
			key: "disableAllHooks", single: true, apply: func(s *Settings) { s.disableAllHooks = v },
			loosens: func(s *Settings) bool { return s.disableAllHooks != v },
		})
	}
}

func (d *decoder) disallowedTools(n node) {
	d.texts(n, "disallowedTools", func(n node, v string) {
		d.listed(n, "disallowedTools", v, false, func(s *Settings) *[]string { return &s.DisallowedTools })
	})
}

func (d *decoder) env(n node) {
	d.textMap(n, "env", func(n node, v string) {
		name := n.name
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(v, "\x00") {
			d.fail(Problem{d.place(n.keyAt), fmt.Sprintf("%q is no name or value of a variable", clip(name)), "correct it"})
			return
		}
		d.add(n, entry{
			key: "env." + name, shown: `"…"`, single: true, apply: func(s *Settings) { s.Env[name] = v },
			loosens: func(s *Settings) bool { old, ok := s.Env[name]; return !ok || old != v },
		})
	})
}

// rules reads permission rules. One that can't be understood fails if it forbids or asks; one that allows is left out.
func (d *decoder) rules(n node, verdict hook.Verdict) {
	key := "permissions." + verdict.String()
	d.texts(n, key, func(n node, v string) {
		rule := permission.Rule{Verdict: verdict, Text: v, Place: d.place(n.at).String()}
		if _, err := permission.New(permission.Config{Dir: d.root, Rules: []permission.Rule{rule}}); err != nil {
			p := Problem{d.place(n.at), fmt.Sprintf("the rule %q can't be understood", clip(v)), said(err, rule.Place)}
			if verdict == hook.Allow {
				d.problem(p)
			} else {
				d.fail(p)
			}
			return
		}
		rules := []permission.Rule{rule}
		if d.outer {
			rules = rule.From(d.root)
		}
		e := entry{key: key, same: rules[0].Text, apply: func(s *Settings) { s.Permissions.Rules = append(s.Permissions.Rules, rules...) }}
		if verdict == hook.Allow {
			e.loosens = func(*Settings) bool { return true }
		}
		d.add(n, e)
	})
}

// said is what an error says behind a place.
func said(err error, place string) string {
	s := err.Error()
	if _, rest, ok := strings.Cut(s, place+": "); ok {
		s = rest
	}
	return strings.TrimPrefix(s, "hook: permission: ")
}

func (d *decoder) mode(n node) {
	v, ok := d.text(n, "permissions.defaultMode")
	if !ok {
		return
	}
	mode := permission.Mode(v)
	if !slices.Contains(permission.Modes(), mode) {
		var names []string
		for _, m := range permission.Modes() {
			names = append(names, string(m))
		}
		p := Problem{d.place(n.at), fmt.Sprintf("there is no mode %q", clip(v)), "want one of " + strings.Join(names, ", ")}
		if d.claude {
			d.problem(p)
		} else {
			d.fail(p)
		}
		return
	}
	e := entry{key: "permissions.defaultMode", single: true, apply: func(s *Settings) { s.Permissions.Mode = mode }}
	if mode != permission.ModePlan {
		e.loosens = func(s *Settings) bool { return mode.Looser(s.Permissions.Mode) }
	}
	d.add(n, e)
}

func (d *decoder) taint(n node) {
	v, ok := d.text(n, "permissions.taint")
	if !ok {
		return
	}
	taint := permission.Taint(v)
	if !slices.Contains(permission.Taints(), taint) {
		d.fail(Problem{d.place(n.at), fmt.Sprintf("there is no taint %q", clip(v)), "want one of off, ask, deny"})
		return
	}
	d.add(n, entry{
		key: "permissions.taint", single: true, apply: func(s *Settings) { s.Permissions.Taint = taint },
		loosens: func(s *Settings) bool { return taint.Looser(s.Permissions.Taint) },
	})
}

// absolute is a path: ~ is the home directory, if there is one, anything else is relative to the project.
func absolute(root, home, v string) string {
	rest, below := strings.CutPrefix(v, "~/")
	switch {
	case home != "" && (below || v == "~"):
		return filepath.Join(home, filepath.FromSlash(strings.TrimPrefix(rest, "~")))
	case filepath.IsAbs(v):
		return filepath.Clean(v)
	}
	return filepath.Join(root, filepath.FromSlash(v))
}

// path is absolute, if it can be understood.
func (d *decoder) path(n node, key, v string) (string, bool) {
	switch {
	case strings.ContainsRune(v, 0):
		d.fail(Problem{d.place(n.at), key + " has a NUL in it", "remove it"})
		return "", false
	case (strings.HasPrefix(v, "~/") || v == "~") && d.home == "":
		d.fail(Problem{d.place(n.at), fmt.Sprintf("%s: %q: there is no home directory", key, clip(v)), "write an absolute path"})
		return "", false
	}
	return absolute(d.root, d.home, v), true
}

func (d *decoder) directories(n node) {
	const key = "permissions.additionalDirectories"
	d.texts(n, key, func(n node, v string) {
		if path, ok := d.path(n, key, v); ok {
			d.listed(n, key, path, true, func(s *Settings) *[]string { return &s.Directories })
		}
	})
}

func (d *decoder) paths(n node, name string, widens bool, list func(*Settings) *[]string) {
	key := "sandbox." + name
	d.texts(n, key, func(n node, v string) {
		if path, ok := d.path(n, key, v); ok {
			d.listed(n, key, path, widens, list)
		}
	})
}

func (d *decoder) sandboxEnabled(n node) {
	v, ok := d.boolean(n, "sandbox.enabled")
	if !ok {
		return
	}
	e := entry{key: "sandbox.enabled", single: true, apply: func(s *Settings) { s.Sandbox.Off = !v }}
	if !v {
		e.loosens = func(s *Settings) bool { return !s.Sandbox.Off }
	}
	d.add(n, e)
}

func (d *decoder) sandboxEnv(n node) {
	d.texts(n, "sandbox.env", func(n node, v string) {
		if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsRune(v, 0) {
			d.fail(Problem{d.place(n.at), fmt.Sprintf("sandbox.env: %q has no name", clip(v)), "want NAME or NAME=value"})
			return
		}
		d.listed(n, "sandbox.env", v, true, func(s *Settings) *[]string { return &s.Sandbox.Env })
		if name, _, ok := strings.Cut(v, "="); ok {
			d.entries[len(d.entries)-1].shown = canonical(name + "=…")
		}
	})
}

// network is a limit when it names hosts, unless it says that all can be reached all the same: else the hosts would limit nothing.
func (d *decoder) network(n node) {
	d.object(n, "sandbox.network", ofNetwork)
	has := func(name string) int {
		return slices.IndexFunc(n.children, func(c node) bool { return c.name == name && c.kind != 'n' })
	}
	if hosts := has("hosts"); n.kind == '{' && hosts >= 0 && has("all") < 0 {
		only := n.children[hosts]
		only.value = false
		d.networkAll(only)
	}
}

func (d *decoder) networkAll(n node) {
	v, ok := d.boolean(n, "sandbox.network.all")
	if !ok {
		return
	}
	e := entry{key: "sandbox.network.all", single: true, apply: func(s *Settings) { s.Sandbox.Network.All = v }}
	if v {
		e.loosens = func(s *Settings) bool { return !s.Sandbox.Network.All }
	}
	d.add(n, e)
}

func (d *decoder) networkHosts(n node) {
	d.texts(n, "sandbox.network.hosts", func(n node, v string) {
		if !fence.ValidHost(v) {
			d.fail(Problem{d.place(n.at), fmt.Sprintf("sandbox.network.hosts: %q is no host", clip(v)), "want example.com, *.example.com or an address, without scheme and port"})
			return
		}
		d.listed(n, "sandbox.network.hosts", v, true, func(s *Settings) *[]string { return &s.Sandbox.Network.Hosts })
	})
}

func (d *decoder) cpu(n node) {
	const key = "sandbox.limits.cpu"
	v, ok := d.duration(n, key)
	if !ok {
		return
	}
	d.add(n, entry{
		key: key, single: true, apply: func(s *Settings) { s.Sandbox.Limits.CPU = v },
		loosens: func(s *Settings) bool { return v > cmp.Or(s.Sandbox.Limits.CPU, sandbox.DefaultCPU) },
	})
}

// limit reads a number of which more lets more happen. 0 is the sandbox's default.
func (d *decoder) limit(n node, standard uint64, field func(*Settings) *uint64) {
	key := "sandbox.limits." + n.name
	var v uint64
	number, _ := n.value.(json.Number)
	if err := json.Unmarshal([]byte(number), &v); err != nil {
		d.wrong(n, key, "a whole number, 0 or more")
		return
	}
	d.add(n, entry{
		key: key, single: true, apply: func(s *Settings) { *field(s) = v },
		loosens: func(s *Settings) bool { return cmp.Or(v, standard) > cmp.Or(*field(s), standard) },
	})
}

// duration reads a text with a unit, or a number of seconds.
func (d *decoder) duration(n node, key string) (time.Duration, bool) {
	var v time.Duration
	var err error
	switch x := n.value.(type) {
	case string:
		v, err = time.ParseDuration(x)
	case json.Number:
		var seconds float64
		if seconds, err = x.Float64(); err == nil && seconds <= 1e9 {
			v = time.Duration(seconds * float64(time.Second))
			break
		}
		err = fmt.Errorf("%s is no number of seconds", x)
	default:
		err = fmt.Errorf("it is neither a text nor a number")
	}
	if err != nil || v <= 0 {
		d.wrong(n, key, `a time such as "30s", or a number of seconds, more than 0`)
		return 0, false
	}
	return v, true
}

// hooks reads shell hooks, in the words of package hook/shell.
func (d *decoder) hooks(n node) {
	at := d.place(n.at)
	raw := append(bytes.Repeat([]byte("\n"), at.Line-1), d.data[n.at:n.end]...) // so that its lines are the file's
	list, problems, err := shell.Decode(raw)
	if err != nil {
		p := Problem{Place{File: d.file}, err.Error(), ""}
		if m := lineOfHook.FindStringSubmatch(p.Reason); m != nil {
			line, _ := strconv.Atoi(m[1])
			p.Place, p.Reason = d.inHooks(n, line, m[2]), "hooks: "+m[2]+": "+m[3]
		}
		d.fail(p)
		return
	}
	for _, p := range problems[:min(len(problems), maxProblems)] {
		d.problem(Problem{d.inHooks(n, p.Line, p.Path), "hooks: " + p.Path + ": " + p.Text, ""})
	}
	for _, h := range list {
		h.Claude = d.claude
		line, _ := strconv.Atoi(strings.TrimPrefix(h.Place, "line ")) // 0, the whole file, if it should ever say something else
		h.Place = Place{d.file, line, 0}.String()
		d.add(n, hookEntry(h))
		d.entries[len(d.entries)-1].place = Place{d.file, line, 0}
	}
}

func hookEntry(h shell.Hook) entry {
	text := sayHook(h)
	e := entry{
		key: "hooks." + string(h.Event), text: text, said: writtenHook(h), same: text,
		apply:   func(s *Settings) { s.Hooks = append(s.Hooks, h) },
		loosens: func(*Settings) bool { return true },
	}
	if len(h.Env) > 0 {
		quiet := h
		quiet.Env = hidden(h.Env)
		e.shown = writtenHook(quiet)
	}
	return e
}

// lineOfHook finds the line and the path in an error of shell.Decode.
var lineOfHook = regexp.MustCompile(`(?s)^hook: line (\d+): (.*?): (.*)$`)

// inHooks is the place of a part of a hooks object, with its column if that is on the line.
func (d *decoder) inHooks(n node, line int, path string) Place {
	if found, ok := find(n, path); ok {
		for _, at := range []int{found.keyAt, found.at} {
			if exact := d.place(at); at > 0 && exact.Line == line {
				return exact
			}
		}
	}
	return Place{d.file, line, 0}
}

// sayHook is all of a hook but its place.
func sayHook(h shell.Hook) string {
	h.Place = ""
	m := map[string]any{}
	b, err := json.Marshal(h)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil || v == "" || v == false || v == 0.0 })
	return canonical(m)
}

// writtenHook is a hook as it could stand in a list of its event.
func writtenHook(h shell.Hook) string {
	type command struct {
		Type          string            `json:"type"`
		Name          string            `json:"name,omitempty"`
		Command       string            `json:"command"`
		Args          *[]string         `json:"args,omitempty"`
		Shell         string            `json:"shell,omitempty"`
		If            string            `json:"if,omitempty"`
		Payload       string            `json:"payload,omitempty"`
		Timeout       float64           `json:"timeout,omitempty"` // in seconds
		Env           map[string]string `json:"env,omitempty"`
		Async         bool              `json:"async,omitempty"`
		Once          bool              `json:"once,omitempty"`
		StatusMessage string            `json:"statusMessage,omitempty"`
	}
	c := command{"command", h.Name, h.Command, nil, "", h.If, h.Selector.Payload, h.Timeout.Seconds(), h.Env, h.Async, h.Once, h.StatusMessage}
	if h.Args != nil {
		c.Args = &h.Args
	}
	if h.Command == "bash" && len(h.Args) == 2 && h.Args[0] == "-c" && h.Name != "" { // that is what a shell comes to
		c.Command, c.Args, c.Shell = h.Args[1], nil, "bash"
		title := []rune(oneLine(c.Command))
		if len(title) > 60 {
			title = append(title[:60], '…')
		}
		if string(title) == h.Name {
			c.Name = ""
		}
	}
	return canonical(struct {
		Matcher string    `json:"matcher,omitempty"`
		Hooks   []command `json:"hooks"`
	}{h.Selector.Tool, []command{c}})
}

// written is a value as it was written, but for white space, with what may be secrets as quiet says it; nil: as it is.
func written(n node, path string, quiet func(path, text string) string) string {
	var parts []string
	for _, c := range n.children {
		part := ""
		at := path
		if n.kind == '{' {
			part, at = canonical(c.name)+":", join(path, c.name)
		}
		parts = append(parts, part+written(c, at, quiet))
	}
	text, isText := n.value.(string)
	switch {
	case n.kind == '{':
		return "{" + strings.Join(parts, ",") + "}"
	case n.kind == '[':
		return "[" + strings.Join(parts, ",") + "]"
	case isText && quiet != nil:
		return canonical(quiet(path, text))
	}
	return canonical(n.value)
}

func hidden(m map[string]string) map[string]string {
	out := map[string]string{}
	for name := range m {
		out[name] = "…"
	}
	return out
}

// find looks for the part of a hooks object that shell.Problem.Path names.
func find(n node, path string) (node, bool) {
	if path == "" {
		return n, true
	}
	for i, c := range n.children {
		var rest string
		var ok bool
		switch {
		case n.kind == '[':
			rest, ok = strings.CutPrefix(path, "["+strconv.Itoa(i)+"]")
		case path[0] == '[':
			rest, ok = strings.CutPrefix(path, "["+strconv.Quote(c.name)+"]")
		default:
			rest, ok = strings.CutPrefix(strings.TrimPrefix(path, "."), c.name)
			ok = ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		if ok && len(rest) < len(path) {
			if found, ok := find(c, rest); ok {
				return found, true
			}
		}
	}
	return node{}, false
}

package project

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/sandbox"
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

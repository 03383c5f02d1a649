package project

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// Layer is where a value comes from. Later ones beat earlier ones.
type Layer string

// The layers, the lowest first.
const (
	LayerDefault  Layer = "default"
	LayerUser     Layer = "user"     // ~/.agents
	LayerProject  Layer = "project"  // .agents/settings.json and, with compat, .mcp.json and .claude/settings.json
	LayerLocal    Layer = "local"    // .agents/settings.local.json and, with compat, .claude/settings.local.json
	LayerOuter    Layer = "outer"    // what the settings of a directory above the project forbid: deny and ask rules, disallowed tools, a stricter mode, a narrower sandbox
	LayerOverride Layer = "override" // what the program gave: [WithOverrides]
)

// ofProject reports whether the layer's files come with the project, so that somebody else may have written them.
func (l Layer) ofProject() bool { return l == LayerProject || l == LayerLocal }

// Settings are the merged settings that count. What waits for approval is not in them.
type Settings struct {
	Model           string                // PROVIDER/NAME, the file of scripted/FILE absolute; "" when no layer says
	Retries         int                   // how often a model call that failed for a reason that may pass is tried again
	Permissions     permission.Config     // Mode, Rules with their places, Dir, and Directories in Writable
	Directories     []string              // permissions.additionalDirectories, absolute; they are in Sandbox.Write, too
	Env             map[string]string     // for commands, hooks and MCP servers
	Hooks           []shell.Hook          // the lowest layer's first; none with disableAllHooks
	MCP             []mcp.Server          // by name, with their variables not yet in place
	Sandbox         sandbox.Policy        // Root is the project
	SandboxSet      bool                  // some layer says something of the sandbox, so it is not to be left out silently where there is none
	Reasoning       model.ReasoningLevel  // how much the model thinks; "" when no layer says
	ProviderTools   []string              // that the model's provider runs itself, in the order of the layers
	DisallowedTools []string              // in the order of the layers
	Gitignore       bool                  // searches leave out what git ignores
	Compat          bool                  // .claude was read, too
	disableAllHooks bool                  // Hooks are emptied by it at the end
	mcp             map[string]mcp.Server // while merging
}

// Value is what one line of a settings file says, for who wants to see where a setting comes from.
type Value struct {
	Place Place
	Layer Layer
	Key   string // "model", "permissions.deny", "env.NAME", "hooks.PreToolUse", "mcp.servers.NAME"
	Text  string // as JSON, as somebody would write it; values of variables and headers, passwords and queries of addresses, which may be secrets, are left out
	State State
	// Since says what is other than in the approval before, of what waits for one: see [Project.Untrusted].
	Since Change

	path string
	text string // entry.text
}

// Change is what became of a value since the last approval.
type Change string

// The changes. ChangeNone is also for a project of which nothing was approved yet, or not by a program that noted what it was.
const (
	ChangeNone    Change = ""
	ChangeNew     Change = "new"
	ChangeChanged Change = "changed" // it was another one under this key
	ChangeGone    Change = "gone"    // see [Project.Withdrawn]
)

// State says whether a value counts.
type State string

// The states.
const (
	StateActive     State = "active"
	StateOverridden State = "overridden" // a later value replaces it
	StateWaiting    State = "waiting"    // for approval: see [Project.Untrusted]
	StateRepeated   State = "repeated"   // an earlier one says the same
	StateChanged    State = "changed"    // a rule, a skill or an agent that tools may have changed ([Guard]): it does not count until it is approved. Its Text is the hash of the file's
	StateRemoved    State = "removed"    // the project's files forbade it when they were remembered ([Pin]) and do no longer: it counts until that is approved
)

// entry is what one value of a file does.
type entry struct {
	key    string
	text   string // canonical JSON: what is approved
	said   string // the same as somebody would write it, for people; "" is text
	shown  string // that without secrets; "" is said
	place  Place
	layer  Layer
	single bool // it replaces what an earlier entry with the same key says
	// loosens reports whether it would let more happen than the settings before it; nil: it never does. What has one is a part of what is approved.
	loosens func(*Settings) bool
	apply   func(*Settings)
	same    string // a second entry of the key with the same one is a repetition; "": there is none
	path    string // absolute, if it is about one
	removed *pin   // what it was made of, when no file says it any more
}

// defaults are the lowest layer.
const defaults = `{
  "retries": 3,
  "permissions": {"defaultMode": "default"},
  "disableAllHooks": false,
  "sandbox": {"enabled": true, "network": {"all": true}},
  "respectGitignore": true,
  "compat": false
}`

// merge applies entries in the order of their layers, and says what became of each: State is "" for what was removed and is not missed. What would loosen something and comes with the project is left out
// unless it is approved. pins are what the project's files forbid, or forbade.
func merge(root string, entries []entry, approved bool) (s Settings, values []Value, pins []pin) {
	s = Settings{Env: map[string]string{}, mcp: map[string]mcp.Server{}}
	s.Permissions.Dir, s.Sandbox.Root = root, root
	last := map[string]int{} // of single keys: the value that counts
	seen := map[[2]string]bool{}
	for _, e := range entries {
		v := Value{Place: e.place, Layer: e.layer, Key: e.key, Text: cmp.Or(e.shown, e.said, e.text), State: StateActive, path: e.path, text: e.text}
		switch {
		case (e.removed != nil || e.layer == LayerOuter) && (e.same != "" && seen[[2]string{e.key, e.same}] || e.single && !e.stricter(&s)):
			v.State = ""
		case e.same != "" && seen[[2]string{e.key, e.same}]:
			v.State = StateRepeated
		case e.removed == nil && e.layer.ofProject() && !approved && e.loosens != nil && e.loosens(&s):
			v.State = StateWaiting
		default:
			if e.removed != nil {
				v.State = StateRemoved
			}
			if e.forbids(&s) {
				pins = append(pins, e.pinned())
			}
			if before, ok := last[e.key]; ok && e.single {
				values[before].State = StateOverridden
			}
			last[e.key] = len(values)
			seen[[2]string{e.key, e.same}] = true
			e.apply(&s)
			s.SandboxSet = s.SandboxSet || e.layer != LayerDefault && strings.HasPrefix(e.key, "sandbox.")
		}
		values = append(values, v)
	}
	for _, name := range slices.Sorted(maps.Keys(s.mcp)) {
		s.MCP = append(s.MCP, s.mcp[name])
	}
	if s.disableAllHooks {
		s.Hooks = nil
	}
	return s, values, pins
}

// settle leaves out directories that are not there, which a sandbox could not be made with, and says so.
func (s *Settings) settle(values []Value, r *report) {
	there := func(list []string, key string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(dir string) bool {
			if _, err := os.Stat(dir); err == nil {
				return false
			}
			at := Place{}
			for _, v := range values {
				if v.Key == key && v.path == dir {
					at = v.Place
				}
			}
			r.problem(Problem{at, fmt.Sprintf("%s: there is no %s: it has no effect until the settings are read again", key, clip(dir)), "make it, or remove it here"})
			return true
		})
	}
	s.Directories = there(s.Directories, "permissions.additionalDirectories")
	s.Sandbox.Write = append(there(s.Sandbox.Write, "sandbox.write"), s.Directories...)
	s.Sandbox.Read = there(s.Sandbox.Read, "sandbox.read")
	s.Sandbox.Hide = there(s.Sandbox.Hide, "sandbox.hide")
	s.Sandbox.Protect = there(s.Sandbox.Protect, "sandbox.protect")
	s.Permissions.Writable = slices.Clone(s.Directories)
}

// Lookup finds a variable as it is for MCP servers: of the settings, or else of this process.
func (s Settings) Lookup(name string) (string, bool) {
	if v, ok := s.Env[name]; ok {
		return v, true
	}
	return os.LookupEnv(name)
}

// servers says which MCP servers can't be had, because a variable is not set.
func (s *Settings) servers(values []Value, r *report) {
	for _, m := range s.MCP {
		m.Place = "" // the problem has it
		_, err := m.Expand(s.Lookup)
		if err == nil {
			continue
		}
		at := slices.IndexFunc(values, func(v Value) bool { return v.State == StateActive && v.Key == "mcp.servers."+m.Name })
		for line := range strings.Lines(err.Error()) {
			r.problem(Problem{values[at].Place, "the MCP server " + m.Name + ": " + strings.TrimSpace(line), "it has no tools until then"})
		}
	}
}

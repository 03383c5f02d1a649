package permit

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// Match says whether a rule is about a call.
type Match int

// The answers.
const (
	No  Match = iota
	May       // it can't be told: a value is not known, or a directory may hold what the rule is about
	Yes
)

// Rule is a compiled permission rule.
type Rule struct {
	Text  string // as it was written
	Place string // where: "deny rule 2", "settings.json: permissions.deny[1]"
	Allow string // why a call runs that it permits, as people read it: made once, for most calls are such
	world *World
	tool  string // canonical; may have *
	bare  bool   // without a specifier: the whole tool
	path  *pattern
	cmd   *commands
	url   *address
	name  string // of an agent or a skill; may have *
}

// pathTools are the tools whose specifier is a path.
var pathTools = []string{read, write, edit, glob, grep, notebook, editor}

// Parse compiles a rule: Tool, or Tool(specifier). The error names the text, the place and what would be right.
func (w *World) Parse(text, place string) (*Rule, error) {
	r, err := w.parse(text)
	if err != nil {
		return nil, errdefs.Validation.Errorf("%s: %q is no permission rule: %w", place, text, err)
	}
	r.Place = place
	r.Allow = "allowed by " + r.Said()
	return r, nil
}

func (w *World) parse(text string) (*Rule, error) {
	r := &Rule{Text: text, world: w}
	name, spec, has := strings.Cut(strings.TrimSpace(text), "(")
	if has {
		var closed bool
		if spec, closed = strings.CutSuffix(spec, ")"); !closed {
			return nil, errdefs.Validation.Errorf("its parenthesis is not closed: write Tool(specifier)")
		}
		spec = strings.TrimSpace(spec)
	}
	name = strings.TrimSpace(name)
	if name == "" || strings.ContainsFunc(name, notInNames) {
		return nil, errdefs.Validation.Errorf("%q is no tool's name: write Tool or Tool(specifier), such as Read, Bash(go test:*), Edit(src/**), WebFetch(domain:example.com) or mcp__server__tool", name)
	}
	r.tool = canonical(name)
	r.bare = !has || spec == "*"
	switch {
	case has && spec == "":
		return nil, errdefs.Validation.Errorf("there is nothing between its parentheses: for all of the tool write %s", name)
	case has && strings.HasPrefix(r.tool, mcpPrefix):
		return nil, errdefs.Validation.Errorf("MCP tools take no specifier: write %s", name)
	case r.bare && slices.Contains(pathTools, r.tool):
		r.path = &pattern{all: true}
		return r, nil
	case r.bare:
		return r, nil
	}
	return r, r.specify(name, spec)
}

func notInNames(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-.*:/", c)
}

// specific are the tools whose rules take a specifier, as people write them.
var specific = []string{"Bash", "Read", "Edit", "Write", "Glob", "Grep", "WebFetch", "Task", "Skill"}

func (r *Rule) specify(name, spec string) (err error) {
	switch {
	case slices.Contains(pathTools, r.tool):
		r.path, err = r.world.parsePath(spec)
	case r.tool == bash:
		r.cmd, err = parseCommands(spec)
	case r.tool == fetch:
		r.url, err = parseAddress(spec)
	case r.tool == task, r.tool == skill:
		r.name = strings.ToLower(spec)
	default:
		remedy := "write " + name
		if meant := near.Names(name, specific); len(meant) > 0 {
			remedy = "did you mean " + meant[0] + "? For all of " + name + " write " + name
		}
		return errdefs.Validation.Errorf("the tool %s takes no specifier here: %s; only %s and %s take one", name, remedy, strings.Join(specific[:len(specific)-1], ", "), specific[len(specific)-1])
	}
	return err
}

// Said names the rule for people.
func (r *Rule) Said() string { return "the rule " + r.Text + " (" + r.Place + ")" }

// Specific reports whether the rule is about some commands only, or some paths: then what a command hides matters.
func (r *Rule) Specific() bool { return !r.bare }

// NamesOne reports whether the rule names one thing that is reached: a host or an address of it, one tool of an MCP server. No rule for commands does: what they run and send may have been written since.
func (r *Rule) NamesOne() bool {
	switch {
	case r.tool == fetch:
		return r.url != nil && !r.url.any && !r.url.sub
	case strings.HasPrefix(r.tool, mcpPrefix):
		server, name, ok := strings.Cut(strings.TrimPrefix(r.tool, mcpPrefix), "__")
		return ok && server != "" && name != "" && !strings.Contains(r.tool, "*")
	}
	return false
}

// OfCommands and OfReading say whether the rule is for bash, and for reading files.
func (r *Rule) OfCommands() bool { return r.tool == bash }

// OfReading is for Read, not for what only lists or searches.
func (r *Rule) OfReading() bool { return r.tool == read }

// Hidden reports whether a sandbox keeps what the rule names from being read by programs: see [World.Kept].
func (r *Rule) Hidden() bool {
	hide, _ := r.world.Kept(r)
	return len(hide) > 0
}

// Binds says whether a rule that refuses is about a call, by whatever tool it reaches what the rule names.
func (r *Rule) Binds(c *Call) Match {
	m := No
	switch {
	case r.bare && named(r.tool, c.tool):
		return Yes
	case r.tool == read:
		m = r.bindsPaths(c.reads)
	case r.tool == write, r.tool == edit, r.tool == notebook:
		m = r.bindsPaths(c.writes)
	case r.path != nil:
		if c.tool == r.tool {
			m = max(r.bindsPaths(c.reads), r.bindsPaths(c.writes))
		}
		return m
	case r.tool == bash:
		if c.tool != bash {
			return No
		}
		m = r.bindsCommands(c)
	case r.tool == fetch:
		m = r.bindsURLs(c)
	case r.name != "":
		if c.tool == r.tool && wild(r.name, c.agent) {
			m = Yes
		}
		return m
	}
	if m == No && c.tool == bash && (r.tool == bash || r.path != nil) && len(c.Doubts()) > 0 && r.Specific() {
		return May
	}
	return m
}

func (r *Rule) bindsPaths(paths []Path) (m Match) {
	for _, p := range paths {
		m = max(m, r.world.binds(r.path, p))
	}
	return m
}

// Allows says whether a rule that permits is about all of a call. Scripts are for [World.AllowsScript], but for a rule that permits the whole tool.
func (r *Rule) Allows(c *Call) bool {
	switch {
	case c.Unread != nil:
		return false
	case r.path != nil:
		return r.allowsPaths(c)
	case r.bare:
		return named(r.tool, c.tool)
	case r.tool == fetch:
		return c.tool == fetch && len(c.urls) == 1 && r.url.permits(c.urls[0])
	case r.name != "":
		return c.tool == r.tool && c.agent != "" && wild(r.name, c.agent)
	}
	return false
}

// allowsPaths: Read permits read, and searches of what lies below a directory; Edit and Write permit each other's tools.
func (r *Rule) allowsPaths(c *Call) bool {
	var all []Path
	switch {
	case r.tool == read && (c.tool == read || c.tool == glob || c.tool == grep || c.tool == editor && len(c.writes) == 0), r.tool == glob && c.tool == glob, r.tool == grep && c.tool == grep:
		all = c.reads
	case changes(r.tool) && changes(c.tool):
		all = c.writes
	default:
		return false
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(p Path) bool { return !r.permitsPath(p) })
}

func changes(tool string) bool {
	return tool == edit || tool == write || tool == notebook || tool == editor
}

func (r *Rule) permitsPath(p Path) bool {
	return !p.unknown && (r.bare || r.world.permits(r.path, p))
}

// AllowsReading and AllowsWriting say whether a rule that permits covers a path.
func (r *Rule) AllowsReading(p Path) bool { return r.path != nil && r.tool == read && r.permitsPath(p) }

// AllowsWriting is AllowsReading for files that are changed.
func (r *Rule) AllowsWriting(p Path) bool {
	return r.path != nil && changes(r.tool) && r.permitsPath(p)
}

package permit

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/internal/shell"
)

// Call is what a tool call reaches.
type Call struct {
	Unread error // why a command could not be read: then nobody knows what it reaches

	tool     string // canonical
	searches bool
	reads    []Path
	writes   []Path
	urls     []target
	agent    string // that a task is for, or the skill that is asked for; in lower case
	script   shell.Script
	commands []string // their names
}

// pathMembers are the members of other tools' inputs that are likely to be paths.
var pathMembers = []string{"path", "paths", "file", "files", "file_path", "filepath", "filename", "notebook_path", "dir", "directory", "source", "destination", "src", "dst", "uri"}

// Read says what a call reaches. name and input are the tool's own, checked against its schema; readOnly is what the tool says of itself.
func (w *World) Read(name, input string, readOnly bool) *Call {
	c := &Call{tool: canonical(name), searches: Searches(name)}
	var room [8]member
	in := members(input, room[:0])
	switch file := text(in, "file_path", "path", "notebook_path"); c.tool {
	case bash:
		w.readBash(c, text(in, "command"), text(in, "workdir"))
	case read:
		c.reads = []Path{w.path(file, w.dir)}
	case write, edit, notebook: // their results show what was there
		p := w.path(file, w.dir)
		c.reads, c.writes = []Path{p}, []Path{p}
		if c.tool == write && !slices.ContainsFunc(p.names, exists) {
			c.reads = nil
		}
	case editor:
		c.reads = []Path{w.path(file, w.dir)}
		if text(in, "command") != "view" {
			c.writes = c.reads
		}
	case glob:
		c.reads = []Path{w.globRoot(text(in, "path"), text(in, "pattern"))}
	case grep:
		p := w.path(text(in, "path"), w.dir)
		p.tree, p.any = true, true
		c.reads = []Path{p}
	case fetch:
		c.urls = []target{readURL(text(in, "url"))}
	case task, skill:
		c.agent = strings.ToLower(text(in, "agent", "subagent_type", "skill", "name"))
	case output, kill: // they name a command that was judged
	default:
		w.readOther(c, in, readOnly)
	}
	return c
}

// Searches reports whether a tool is one of ours whose results have a line for what was found, from which [World.Withhold] takes what may not be read: others' may look otherwise.
func Searches(tool string) bool {
	return strings.EqualFold(tool, glob) || strings.EqualFold(tool, grep)
}

// globRoot is the directory that a pattern is looked for in.
func (w *World) globRoot(dir, pattern string) Path {
	front, _ := doublestar.SplitPattern(pattern)
	if !path.IsAbs(front) && !strings.HasPrefix(front, "~") && dir != "" {
		front = dir + "/" + front
	}
	p := w.path(front, w.dir)
	p.tree, p.any = true, true
	return p
}

// readOther looks for paths and URLs in the input of a tool that is not known.
func (w *World) readOther(c *Call, in []member, readOnly bool) {
	for _, m := range in {
		texts(m.value, func(s string) {
			rest, file := strings.CutPrefix(s, "file://")
			switch {
			case s == "":
			case file || !strings.Contains(s, "://") && slices.Contains(pathMembers, strings.ToLower(m.name)):
				p := w.path(rest, w.dir)
				p.guess = true
				c.reads = append(c.reads, p)
				if !readOnly {
					c.writes = append(c.writes, p)
				}
			case strings.Contains(s, "://"):
				c.urls = append(c.urls, readURL(s))
			}
		})
	}
}

// Doubts are why a script may do more than can be seen.
func (c *Call) Doubts() []string {
	if c.Unread != nil {
		return []string{c.Unread.Error()}
	}
	return c.script.Doubts
}

// Tool is the tool's one name, in lower case.
func (c *Call) Tool() string { return c.tool }

// Kind says what sort of call it is.
func (c *Call) Kind() Kind {
	switch c.tool {
	case bash:
		return Command
	case read, glob, grep:
		return Reading
	case write, edit, notebook:
		return Changing
	case editor:
		if len(c.writes) > 0 {
			return Changing
		}
		return Reading
	case task, skill, askUser, output, kill:
		return Inner
	}
	return Other
}

// Looks reports whether the call does nothing by itself but ask a person, get instructions, or look after a command of the session in the background.
func (c *Call) Looks() bool { return c.Kind() == Inner && c.tool != task }

// Listens reports whether the call gives what a command in the background wrote.
func (c *Call) Listens() bool { return c.tool == output }

// Kind is a sort of call.
type Kind int

// The kinds.
const (
	Other    Kind = iota
	Reading       // of files
	Changing      // of files
	Command
	Inner // what it leads to is judged itself, or is a question to a person; what it acts on was judged, if it is a command of the session in the background
)

// Further are directories besides the project: what may be read in, and what may be written in, too.
type Further struct {
	readable, writable [][]string // each by its names
}

// NewFurther takes absolute directories. Where symbolic links in their names lead is looked up now, and not again: one may lie where the model can write.
func NewFurther(readable, writable []string) Further {
	var f Further
	for _, dir := range writable {
		f.writable = append(f.writable, []string{filepath.Clean(dir), resolve(dir)})
	}
	for _, dir := range readable {
		f.readable = append(f.readable, []string{filepath.Clean(dir), resolve(dir)})
	}
	f.readable = append(f.readable, f.writable...)
	return f
}

// Inside reports whether everything that the call reads and changes lies in the project, or in one of the further directories that this may be done in.
func (w *World) Inside(c *Call, further Further) bool {
	return !slices.ContainsFunc(c.writes, func(p Path) bool { return !w.Writable(p, further) }) && !slices.ContainsFunc(c.reads, func(p Path) bool { return !w.Readable(p, further) })
}

// Readable reports whether a path lies in the project or in one of the further directories.
func (w *World) Readable(p Path, further Further) bool { return w.insideOr(p, further.readable) }

// Writable reports whether a path lies in the project, or in one of the further directories that may be written in.
func (w *World) Writable(p Path, further Further) bool { return w.insideOr(p, further.writable) }

func (w *World) insideOr(p Path, further [][]string) bool {
	return w.inside(p) || slices.ContainsFunc(further, func(names []string) bool { return w.within(p, names...) })
}

// Shown names what the call reaches outside of the project, for a person: at most one thing.
func (w *World) Shown(c *Call, further Further) string {
	for _, p := range c.writes {
		if !w.Writable(p, further) {
			return p.Shown
		}
	}
	for _, p := range c.reads {
		if !w.Readable(p, further) {
			return p.Shown
		}
	}
	return ""
}

// Searches reports whether the call's result has a line for what it found, from which [World.Withhold] takes what may not be read.
func (c *Call) Searches() bool { return c.searches }

// Remote reports whether what runs is known to be somewhere else: a tool of an MCP server, or one that fetches.
func (c *Call) Remote() bool { return strings.HasPrefix(c.tool, mcpPrefix) || c.tool == fetch }

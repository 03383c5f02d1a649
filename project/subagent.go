package project

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/hook/permission"
)

// Subagent is what a file of .agents/agents says of an agent that tasks can be given to. Whatever it says, it is bound by the permissions and the sandbox of who gives the task.
type Subagent struct {
	Name            string
	Description     string   // for the model: what it is good for
	Instructions    string   // its system prompt
	Tools           []string // what it may use, in any case: nil is all, empty is none
	DisallowedTools []string // of those what it may not
	Model           string   // PROVIDER/NAME, the file of scripted/FILE absolute; "" is that of who gives the task
	MaxTurns        int      // model calls of a task; 0: the engine's limit
	Timeout         time.Duration
	Layer           Layer
	File            string // as in a [Place]; "" for a built-in one
	Broken          string // why it can't be used; "" for one that can
}

const readOnlyRule = "You change nothing: you look, and report."

// BuiltinSubagents are those that every project has, unless a file defines another one of the name.
func BuiltinSubagents() []Subagent {
	look := func() []string { return []string{"read", "glob", "grep"} }
	return []Subagent{
		{
			Name: "explore", Layer: LayerDefault, Tools: look(), Description: "looks around in the project and answers questions about it; changes nothing",
			Instructions: "You explore a project and answer a question about it. " + readOnlyRule + " Search widely first, then read what matters. Answer with what you found and where: paths and lines. Say what you could not find.",
		},
		{
			Name: "general-purpose", Layer: LayerDefault, Description: "does a task of several steps on its own",
			Instructions: "You do one task on your own and report back. Nobody answers questions while you work. Look before you change, make the smallest change that does what was asked, check that it works, and report what you did and what you found.",
		},
		{
			Name: "plan", Layer: LayerDefault, Tools: look(), Description: "works out how something can be done in the project, step by step; changes nothing",
			Instructions: "You plan a change to a project. " + readOnlyRule + " Read what the change touches, then give the steps in order, each with the files that it is about, what could go wrong, and how to check that it worked.",
		},
	}
}

// ofSubagent are the fields of an agent's file.
var ofSubagent = []string{"name", "description", "tools", "disallowedTools", "model", "maxTurns", "timeout"}

// subagents reads all definitions: of two with a name the nearest layer's counts.
func (l *loader) subagents(p *Project) {
	r := &subagentReader{loader: l, found: BuiltinSubagents()}
	if l.user.fs != nil {
		r.directory(p, l.user, ".agents/agents", LayerUser)
	}
	if p.Settings.Compat {
		r.directory(p, l.project, ".claude/agents", LayerProject)
	}
	r.directory(p, l.project, ".agents/agents", LayerProject)
	slices.SortStableFunc(r.found, func(a, b Subagent) int { return strings.Compare(a.Name, b.Name) })
	p.Subagents = r.found
}

type subagentReader struct {
	*loader
	found []Subagent
}

func (r *subagentReader) directory(p *Project, t tree, dir string, layer Layer) {
	list, err := t.list(dir)
	var broken *fileError
	if errors.As(err, &broken) {
		r.problem(broken.at(t.place(dir)))
	}
	for _, e := range list {
		name, ok := strings.CutSuffix(e.name, ".md")
		if !ok || e.dir || name == "README" {
			continue
		}
		file := path.Join(dir, e.name)
		a := Subagent{Name: name, Layer: layer, File: t.shown + file}
		data, err := r.text(p, t, file, maxSkillFile)
		switch {
		case errors.As(err, &broken):
			r.add(a, broken.at(t.place(file)))
			continue
		case err != nil:
			continue // it went away
		}
		fm, wrong := parseFrontMatter(t.place(file), string(data))
		if wrong == nil {
			a.Instructions = fm.body
			wrong = r.fields(&a, fm)
		}
		if wrong == nil {
			wrong = &Problem{}
			r.named = append(r.named, namedIn(fm)...)
		}
		r.add(a, *wrong)
	}
}

func (r *subagentReader) add(a Subagent, wrong Problem) {
	if wrong.Reason != "" {
		a.Broken = wrong.Reason
		if wrong.Remedy != "" {
			a.Broken += ": " + wrong.Remedy
		}
		r.problem(wrong)
	}
	i := slices.IndexFunc(r.found, func(o Subagent) bool { return o.Name == a.Name })
	switch {
	case i < 0:
		r.found = append(r.found, a)
	case a.Broken != "" && r.found[i].Layer != LayerDefault: // one that works stays
	default: // a broken definition must not be stood in for by a built-in one, which may use more
		if old := r.found[i]; old.Broken == "" && old.Layer != LayerDefault {
			r.problem(Problem{Place{File: old.File}, "there is another agent " + a.Name + ", which counts: " + a.File, "rename one"})
		}
		r.found[i] = a
	}
}

// fields fills in what the front matter says, and gives what makes the agent unusable: a limit that can't be understood is one that would not hold.
func (r *subagentReader) fields(a *Subagent, fm frontMatter) *Problem {
	file, name := a.Name, ""
	for _, f := range fm.fields {
		var wrong *Problem
		switch f.Name {
		case "name":
			if name, wrong = f.text(maxName); wrong == nil && !plainName(name) {
				wrong = &Problem{f.at, fmt.Sprintf("%q is no name for an agent", clip(name)), "use letters, digits, - and _, at most 64"}
			}
		case "description":
			a.Description, wrong = f.text(0)
			a.Description = oneLine(a.Description)
		case "tools":
			if a.Tools, wrong = f.list(); len(a.Tools) == 1 && a.Tools[0] == "*" {
				a.Tools = nil
			}
		case "disallowedTools", "disallowed-tools":
			a.DisallowedTools, wrong = f.list()
		case "model":
			wrong = r.model(a, f)
		case "maxTurns", "max-turns":
			var n string
			if n, wrong = f.text(20); wrong == nil {
				var err error
				if a.MaxTurns, err = strconv.Atoi(n); err != nil || a.MaxTurns < 1 {
					wrong = &Problem{f.at, fmt.Sprintf("maxTurns is %q", clip(n)), "want a whole number, 1 or more"}
				}
			}
		case "timeout":
			var d string
			if d, wrong = f.text(20); wrong == nil {
				var err error
				if a.Timeout, err = time.ParseDuration(d); err != nil || a.Timeout <= 0 {
					wrong = &Problem{f.at, fmt.Sprintf("timeout is %q", clip(d)), "want a time such as 10m"}
				}
			}
		default:
			r.problem(unknownName(f.at, "field", f.Name, ofSubagent))
		}
		if wrong != nil {
			return wrong
		}
	}
	switch {
	case name == "":
		return &Problem{fm.place, "it has no name", "add the line name: " + clip(file)}
	case a.Description == "":
		return &Problem{fm.place, "it has no description", "add one that says what the agent is good for"}
	case strings.TrimSpace(a.Instructions) == "":
		return &Problem{fm.place, "it has no instructions", "write them below the front matter"}
	}
	a.Name = name
	return r.toolNames(a, fm.place)
}

// toolNames refuses what is no tool's name: a rule such as Bash(go test:*) would otherwise be taken for a limit that nobody holds.
func (r *subagentReader) toolNames(a *Subagent, at Place) *Problem {
	for _, name := range slices.Concat(a.Tools, a.DisallowedTools) {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
			return &Problem{at, fmt.Sprintf("%q is no tool's name", clip(name)), "name tools only; what of a tool is permitted is said in settings.json"}
		}
	}
	return nil
}

// model takes PROVIDER/NAME. Other programs' short names are a problem, and the model of who gives the task is used.
func (r *subagentReader) model(a *Subagent, f field) *Problem {
	name, wrong := f.text(0)
	switch {
	case wrong != nil:
		return wrong
	case name == "" || name == "inherit":
	case !strings.Contains(name, "/"):
		r.problem(Problem{f.at, fmt.Sprintf("the model %q names no provider: that of who gives the task is used", clip(name)), "write PROVIDER/NAME, or inherit"})
	default:
		a.Model = name
		if file, ok := strings.CutPrefix(name, scriptedModel); ok && file != "" {
			if a.Layer == LayerProject && !r.trusted { // it is a program, and nobody approves agents' files
				return &Problem{f.at, "its model is a script, which a project's agent is not given", "have the user's agents have it (~/.agents/agents), or the program (pawl.Options.Subagents), or trust all of the project (--trust)"}
			}
			a.Model = scriptedModel + absolute(r.root, r.home, file)
		}
	}
	return nil
}

// Subagent finds a definition that can be used.
func (p *Project) Subagent(name string) (Subagent, bool) {
	for _, a := range p.Subagents {
		if a.Name == name && a.Broken == "" {
			return a, true
		}
	}
	return Subagent{}, false
}

// Gate gives the names of those tools that the agent may use, of all that there are; mcp__server stands for all of that server's, and other programs' names for a tool for ours (see [permission.SameTool]). It is never nil: an agent that may use none gets none.
func (a Subagent) Gate(all []string) []string {
	in := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(o string) bool {
			server := strings.HasPrefix(o, "mcp__") && !strings.Contains(o[len("mcp__"):], "__")
			return permission.SameTool(o, name) || server && strings.HasPrefix(strings.ToLower(name), strings.ToLower(o)+"__")
		})
	}
	out := []string{}
	for _, name := range all {
		if (a.Tools == nil || in(a.Tools, name)) && !in(a.DisallowedTools, name) {
			out = append(out, name)
		}
	}
	return out
}

// plainName reports whether a name is made of letters, digits, - and _, so that it can stand in a permission rule and in a tool's name and means nothing else there.
func plainName(name string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool { return !ok(r) })
}

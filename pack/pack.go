package pack

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Loader reads packs. The zero value is ready; it is safe for concurrent use and must not be copied.
//
// It keeps the last 64 packs that it read, by their content: a file that did not change is not parsed again, and one that did is never mistaken for what it was.
type Loader struct {
	// Validators are types of validators besides the built-in ones. Set it before the first use.
	Validators guard.Types

	mu   sync.Mutex
	kept []kept // the last used last
}

type kept struct {
	sum  [sha256.Size]byte
	pack *Pack
}

const maxKept = 64

// standard is the Loader of Load and Parse.
var standard Loader

// Load reads a pack file with the built-in validators; see [Loader.Load].
func Load(path string) (*Pack, error) { return standard.Load(path) }

// Parse reads a pack with the built-in validators; see [Loader.Parse].
func Parse(data []byte) (*Pack, error) { return standard.Parse(data) }

// Validate says what is wrong with a pack; see [Loader.Validate].
func Validate(data []byte) (problems, warnings []Problem) { return standard.Validate(data) }

// Load reads a pack file, and the skills that it leads to, which are read anew each time. A file that is not there is errdefs.NotFound, one that can't be read NotAvailable, a directory Validation. A file that is no pack, and one with a skill that can't be read, is an [*Error] with all its problems, errdefs.Validation.
func (l *Loader) Load(path string) (*Pack, error) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errdefs.NotFound.Errorf("pack: load: there is no file %s: make it, or name another", path)
	} else if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return nil, errdefs.Validation.Errorf("pack: load: %s is a directory: name the pack's file", path)
	} else if err != nil {
		return nil, errdefs.NotAvailable.Errorf("pack: load: %w", err)
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, errdefs.Validation.Errorf("pack: load: %w", err)
	}
	p, err := l.read(data, file)
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.File = path
	}
	return p, err
}

// read gives the bytes of a file, one too many of a file that is too large.
func read(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	return data, errors.Join(err, f.Close())
}

// Parse reads a pack. What is no pack is an [*Error] with all its problems, errdefs.Validation. Skills that it leads to by a path are not there: a warning says so.
func (l *Loader) Parse(data []byte) (*Pack, error) { return l.read(data, "") }

// Validate says everything that is wrong with a pack, in the order of the text, and warns of what would have no effect, or not the one that somebody may expect. A pack without problems can be
// loaded, if the files of its skills are right: [Load] looks at those.
func (l *Loader) Validate(data []byte) (problems, warnings []Problem) {
	_, problems, warnings = l.look(data, "")
	return problems, warnings
}

// read gives the pack of a text, which lies in a file, or in none.
func (l *Loader) read(data []byte, file string) (*Pack, error) {
	p, problems, warnings := l.look(data, file)
	if len(problems) > 0 {
		return nil, &Error{Problems: problems, Warnings: warnings}
	}
	p.Warnings = warnings
	return p, nil
}

// look reads a text, which was perhaps seen before, and the skills that it leads to.
func (l *Loader) look(data []byte, file string) (p *Pack, problems, warnings []Problem) {
	sum := sha256.Sum256(data)
	p = l.recall(sum)
	if p == nil {
		var r *report
		if p, r = l.parse(data); len(r.problems) == 0 {
			p.Warnings = r.warnings
			l.keep(sum, p)
		}
		problems, warnings = r.problems, r.warnings
	} else {
		warnings = p.Warnings
	}
	own := *p // the same content may lie in several places
	own.File = file
	dir := ""
	if file != "" {
		dir = filepath.Dir(file)
	}
	said := own.load(dir)
	if len(said) == 0 {
		return &own, problems, warnings
	}
	known := &report{problems: problems}
	r := &report{source: newSource(data), problems: slices.Clone(problems), warnings: slices.Clone(warnings)}
	if r.root = r.source.parse(&report{source: r.source}); r.root == nil {
		return &own, problems, warnings
	}
	for _, t := range said {
		switch at := (path{"skills", t.entry}); {
		case t.warning:
			r.warn(at, t.reason, t.remedy)
		case !known.wrong(at) && !r.full(): // of one directory several files may be wrong
			line, column := r.source.place(r.offset(at))
			r.problems = append(r.problems, Problem{at.String(), line, column, t.reason, t.remedy})
		}
	}
	return &own, sorted(r.problems), sorted(r.warnings)
}

// parse is the way of a pack: text, JSON, schema, values, what a schema can't say, what nobody acts on.
func (l *Loader) parse(data []byte) (*Pack, *report) {
	r := &report{source: newSource(data)}
	p := &Pack{}
	if root := r.source.parse(r); root != nil {
		r.root = root
		r.checkSchema()
		decode(r, r.root, nil, reflect.ValueOf(p).Elem())
		c := checker{report: r, pack: p, validators: l.Validators}
		c.check()
		r.ineffective(p)
	}
	r.problems, r.warnings = sorted(r.problems), sorted(r.warnings)
	return p, r
}

func (l *Loader) recall(sum [sha256.Size]byte) *Pack {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.kept, func(k kept) bool { return k.sum == sum })
	if i < 0 {
		return nil
	}
	k := l.kept[i]
	l.kept = append(slices.Delete(l.kept, i, i+1), k)
	return k.pack
}

func (l *Loader) keep(sum [sha256.Size]byte, p *Pack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == maxKept {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	l.kept = append(l.kept, kept{sum, p})
}

// Prompt gives a prompt by its key; one that is not there is errdefs.NotFound.
func (p *Pack) Prompt(name string) (*Prompt, error) {
	if pr := p.Prompts[name]; pr != nil {
		return pr, nil
	}
	known := slices.Sorted(maps.Keys(p.Prompts))
	return nil, errdefs.NotFound.Errorf("pack: there is no prompt %q: %s", name, meant(name, known, "have one of "+strings.Join(known, ", ")))
}

// ToolsOf gives the tools that a prompt has, in its order: without those of its blocklist, and none when its policy says none.
func (p *Pack) ToolsOf(prompt *Prompt) []Tool {
	var out []Tool
	for _, name := range prompt.allowed(prompt.Tools) {
		if t, ok := p.Tools[name]; ok {
			out = append(out, t)
		}
	}
	return out
}

// AgentsOf gives the keys of the agents that a prompt can hand over to: those that it names among its tools, or when it names none and is an agent itself, all others, in the order of their
// names. The policy binds them as it binds tools.
func (p *Pack) AgentsOf(prompt *Prompt) []string {
	if p.Agents == nil {
		return nil
	}
	var named []string
	for _, name := range prompt.Tools {
		if _, tool := p.Tools[name]; !tool && p.agent(name) {
			named = append(named, name)
		}
	}
	if named == nil && p.agent(prompt.ID) {
		named = slices.Sorted(maps.Keys(p.Agents.Members))
	}
	return slices.DeleteFunc(prompt.allowed(named), func(name string) bool { return name == prompt.ID })
}

func (p *Pack) agent(name string) bool {
	_, ok := p.Agent(name)
	return ok
}

// Allows reports whether the prompt's policy lets it call a tool, or hand over to an agent, of that name.
func (p *Prompt) Allows(name string) bool { return len(p.allowed([]string{name})) > 0 }

// allowed are those of some tools or agents that the policy lets the prompt use.
func (p *Prompt) allowed(names []string) []string {
	if p.ToolPolicy.ToolChoice == "none" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(p.ToolPolicy.Blocklist, name) })
}

// Agent gives an agent by the key of its prompt, with the prompt's description where it has none of its own; ok is false when it is no agent of the pack.
func (p *Pack) Agent(name string) (a Agent, ok bool) {
	if p.Agents == nil {
		return a, false
	}
	if a, ok = p.Agents.Members[name]; ok && a.Description == "" && p.Prompts[name] != nil {
		a.Description = p.Prompts[name].Description
	}
	return a, ok
}

// Template is the prompt's template, with its fragments in place.
func (p *Prompt) Template() string {
	var b strings.Builder
	for _, piece := range p.template {
		if piece.name != "" {
			b.WriteString("{{" + piece.text + "}}")
		} else {
			b.WriteString(piece.text)
		}
	}
	return b.String()
}

// Guards are the prompt's validators that are enabled, ready to judge, in their order.
func (p *Prompt) Guards() []*guard.Guard { return slices.Clone(p.guards) }

// ParametersFor are the prompt's parameters for a model: each as its override says, or else the prompt.
func (p *Prompt) ParametersFor(model string) Parameters {
	if name, ok := p.override(model); ok {
		return p.ModelOverrides[name].Parameters.over(p.Parameters)
	}
	return p.Parameters
}

// release is what stands behind a model's name in the name of one of its releases.
var release = regexp.MustCompile(`^-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

// override gives the key of the override for a model: its name, that without provider/, or without the release (-20250219) behind it; the most exact one.
func (p *Prompt) override(model string) (string, bool) {
	if model == "" {
		return "", false
	}
	_, bare, provided := strings.Cut(model, "/")
	for _, name := range []string{model, bare} {
		if _, ok := p.ModelOverrides[name]; ok && name != "" {
			return name, true
		}
	}
	if !provided {
		bare = model
	}
	for _, name := range slices.Sorted(maps.Keys(p.ModelOverrides)) {
		for _, of := range []string{model, bare} {
			if rest, ok := strings.CutPrefix(of, name); ok && name != "" && release.MatchString(rest) {
				return name, true
			}
		}
	}
	return "", false
}

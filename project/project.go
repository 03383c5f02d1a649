package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/permission"
)

// Project is what a directory says, all layers merged. It is a value of one moment and does not change: treat its fields as read-only. Safe for concurrent use.
type Project struct {
	Root      string // absolute, without symbolic links
	Settings  Settings
	Rules     string // of .agents/rules, joined
	Memory    string // of AGENTS.md, from the root to the working directory
	Skills    []Skill
	Subagents []Subagent
	Problems  []Problem // what was read and has no effect; a skill or an agent that can't be used is in its list as well

	rules     []rule // that Rules is made of
	values    []Value
	waiting   []Value
	withdrawn []Value
	named     []namedTool
	wants     []want // what an approval is of
	trust     trustStore
	trustHash string
	forbids   string     // stands for all that the files may forbid
	pins      []pin      // what they forbid, or forbade
	known     []pin      // what was on record of that, with what a person has lifted
	above     []*Project // what has settings further up
	binding   []entry    // of such a one: what binds here, too
	texts     map[string]string
	denied    []string // files that a rule keeps from being read
	guarded   bool
	opts      []Option
}

// Values are all values of all settings files with their layers, the lowest first.
func (p *Project) Values() []Value { return slices.Clone(p.values) }

// Prompt is what the directory adds to a system prompt: the rules, the names and descriptions of the skills, the memory. "" when there is nothing. The same files give the same bytes.
func (p *Project) Prompt() string {
	var parts []string
	for _, part := range []struct{ title, text string }{{"Project Rules", p.Rules}, {"Skills", p.skillList()}, {"Memory", p.Memory}} {
		if part.text != "" {
			parts = append(parts, "## "+part.title+"\n\n"+part.text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Option changes what [Load] and [Watch] read.
type Option func(*loader)

// WithWorkdir says where in the project the work is: AGENTS.md files from the root down to there are read. Default: the root.
func WithWorkdir(dir string) Option { return func(l *loader) { l.workdir = dir } }

// WithHome says where the user's .agents directory is. Default: the home directory.
func WithHome(dir string) Option { return func(l *loader) { l.home = dir } }

// WithOverrides gives the highest layer: settings as they could stand in a settings file. It is the program's own, so nothing in it needs approval.
func WithOverrides(settings json.RawMessage) Option {
	return func(l *loader) { l.overrides = settings }
}

// WithPermissions gives the program's own permissions: what their deny rules for Read name is not read, as with those of the settings. Of use are those rules only.
func WithPermissions(p permission.Config) Option {
	return func(l *loader) { l.permissions = p }
}

// WithTrustFile says where approvals are kept. Default: [DefaultTrustFile].
func WithTrustFile(path string) Option { return func(l *loader) { l.trust.path = path } }

// WithTrusted lets everything count that the project's files want, approved or not. Nothing is remembered.
func WithTrusted() Option { return func(l *loader) { l.trusted = true } }

// Load reads a project directory. It starts nothing and writes nothing.
//
// What is wrong with a rule, a skill, an agent or an included file is a [Problem], and the rest counts. So is one of the project that a deny rule for Read keeps from being read: a prompt shows nothing that tools may not. Settings fail closed: a settings file that can't be read or understood is an
// error that names file, line and column (errdefs.Validation), since what it forbids would be lost. A directory that is not there is errdefs.NotFound.
func Load(ctx context.Context, dir string, opts ...Option) (*Project, error) {
	p, _, err := load(ctx, dir, opts)
	return p, err
}

// loader reads a directory once.
type loader struct {
	report
	home, workdir string
	overrides     json.RawMessage
	permissions   permission.Config // the program's
	denied        func(path string) bool
	trust         trustStore
	trusted       bool
	pins          []pin // besides those on record
	named         []namedTool
	guard         *guard
	textOnly      bool // whatever the settings say, and whatever was changed

	trace   *trace
	root    string
	shown   string // of a directory above the project: put before names in places
	project tree
	user    tree // of no file system when there is no home, or it is the project
}

// load is Load that says what it looked at, whatever it comes to.
func load(ctx context.Context, dir string, opts []Option) (*Project, *trace, error) {
	l := &loader{trace: newTrace(), trust: trustStore{path: DefaultTrustFile()}}
	l.home, _ = os.UserHomeDir() // without one there is no user layer
	for _, o := range opts {
		o(l)
	}
	p, err := l.load(ctx, dir)
	if p != nil {
		p.opts = opts
	}
	return p, l.trace, err
}

func (l *loader) load(ctx context.Context, dir string) (*Project, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		l.trace.watched(abs)
		l.root, err = filepath.EvalSymlinks(abs)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errdefs.NotFound.Errorf("project: load: there is no directory %s: make it, or name another", dir)
	} else if err != nil {
		return nil, errdefs.Validation.Errorf("project: load: %w", err)
	}
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, errdefs.Validation.Errorf("project: load: %s is no directory that can be read: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	l.project = tree{fs: root.FS(), dir: l.root, trace: l.trace}
	if real, err := filepath.EvalSymlinks(l.home); err == nil && filepath.IsAbs(real) && real != l.root {
		l.user = userTree(real, l.trace)
	}
	l.trust.root = l.root

	p := &Project{Root: l.root, trust: l.trust, texts: map[string]string{}}
	if err := l.settings(p); err != nil && !l.textOnly {
		return nil, err
	}
	if err := l.deny(p.Settings); err != nil {
		return nil, err
	}
	for _, read := range []func(*Project){l.rules, l.memory, l.skills, l.subagents} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		read(p)
	}
	p.Problems, p.named, p.guarded = l.problems, l.named, l.guard != nil
	return p, nil
}

// settings reads all layers, asks what is approved, and merges.
func (l *loader) settings(p *Project) error {
	decoded := func(t tree, name string, layer Layer, claude bool) []entry {
		if t.fs == nil {
			return nil
		}
		data, err := t.read(name, maxSettings)
		if err == nil {
			return l.decode(newSource(t.shown+name, data), layer, claude)
		}
		var broken *fileError
		if errors.As(err, &broken) {
			l.fail(broken.at(t.place(name)))
		}
		return nil
	}
	own := LayerProject
	if l.home != "" && l.user.fs == nil { // the project is the home directory: its file is the user's
		if real, err := filepath.EvalSymlinks(l.home); err == nil && real == l.root {
			own = LayerUser
		}
	}
	entries := l.decode(newSource("defaults", []byte(defaults)), LayerDefault, false)
	entries = append(entries, decoded(l.user, ".agents/settings.json", LayerUser, false)...)
	project := decoded(l.project, ".agents/settings.json", own, false)
	local := decoded(l.project, ".agents/settings.local.json", LayerLocal, false)
	var over []entry
	if l.overrides != nil {
		over = l.decode(newSource("overrides", l.overrides), LayerOverride, false)
	}
	settings, _, _ := merge(l.root, slices.Concat(entries, project, local, over), true)
	if settings.Compat { // the directory's own files beat the other program's
		project = slices.Concat(decoded(l.project, ".mcp.json", LayerProject, true), decoded(l.project, ".claude/settings.json", LayerProject, true), project)
		local = append(decoded(l.project, ".claude/settings.local.json", LayerLocal, true), local...)
	}
	if err := l.err(); err != nil {
		return err
	}
	all := slices.Concat(entries, project, local, over)
	wants := wanted(all)
	for _, e := range wants {
		p.wants = append(p.wants, wantOf(e))
	}
	p.trustHash, p.forbids = contentHash(wants), contentHash(slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return !e.mayForbid() }))
	approved, pins, known, before := l.approved(p.trustHash, p.forbids)
	p.known = known
	removed := map[Layer][]entry{}
	for _, e := range l.removed(pins, all) {
		removed[e.layer] = append(removed[e.layer], e)
	}
	outer, err := l.outer(p)
	if err != nil {
		return err
	}
	all = slices.Concat(entries, project, removed[LayerProject], local, removed[LayerLocal], outer, over)
	p.Settings, p.values, p.pins = merge(l.root, all, approved)
	if l.shown != "" {
		p.bind(all, p.values)
	}
	if slices.ContainsFunc(p.values, func(v Value) bool { return v.State == StateWaiting || v.State == StateRemoved }) {
		of := map[int]entry{} // what waits
		for i, e := range all {
			v := p.values[i]
			if v.State == StateRemoved || e.removed == nil && e.wants() && !approved { // all that an approval would be of, also what changes nothing today
				if v.Text = cmp.Or(e.said, e.text); e.removed == nil {
					of[len(p.waiting)] = e
				}
				p.waiting = append(p.waiting, v)
				l.trace.note(v.State, v.Key, v.text)
			}
		}
		p.compare(before, of)
	}
	p.values = slices.DeleteFunc(p.values, func(v Value) bool { return v.State == "" })
	p.Settings.settle(p.values, &l.report)
	p.Settings.servers(p.values, &l.report)
	return nil
}

// maxSettings is the largest settings file.
const maxSettings = 1 << 20

func (l *loader) decode(s *source, layer Layer, claude bool) []entry {
	d := &decoder{source: s, report: &l.report, layer: layer, claude: claude, root: l.root, home: l.home, outer: l.shown != "" && layer.ofProject()}
	if s.file == l.shown+".mcp.json" {
		d.mcpFile()
	} else {
		d.settings()
	}
	return d.entries
}

// approved reports whether what the project's files want counts, what they forbade that stays in force unless they forbid it still, that with what a person has lifted for this content, and what was approved last, as far
// as that is known.
func (l *loader) approved(hash, forbids string) (ok bool, pins, known []pin, last []want) {
	if l.trust.path != "" {
		l.trace.watched(l.trust.path)
	}
	if l.trusted {
		return true, nil, nil, nil
	}
	a, err := l.trust.read()
	if err != nil && hash != "" {
		l.problem(Problem{Place{File: "trust"}, strings.TrimPrefix(err.Error(), "project: trust: "), "nothing that the project's files want counts until then"})
	}
	if g, ok := a.Guards[l.root]; ok && !l.textOnly {
		l.guard = &g
	}
	known = union(a.Pins[l.root], l.pins)
	pins = slices.Clone(known)
	ok = hash == ""
	if list := a.Projects[l.root]; len(list) > 0 {
		last = list[0].Wants
	}
	for _, o := range a.Projects[l.root] {
		ok = ok || o.Hash == hash
		if o.Hash == hash && o.Forbids == forbids {
			pins = slices.DeleteFunc(pins, func(q pin) bool { return slices.Contains(o.Lifts, q) })
		}
	}
	l.trace.note("approved", ok, err)
	return ok, pins, known, last
}

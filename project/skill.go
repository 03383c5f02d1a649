package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/frontmatter"
)

// Skill is a directory with a SKILL.md: instructions that are read when they are needed.
type Skill struct {
	Name          string // of the directory, too
	Description   string
	AllowedTools  []string          // permission rules: while the skill is active, only what they permit may be used; they grant nothing. nil restricts nothing
	License       string            // for programs: the model is not told
	Compatibility string            // what it needs, such as programs or the network; the model is told with the instructions
	Metadata      map[string]string // for programs, like License
	Keywords      []string          // [Project.Match] finds the skill by them
	Paths         []string          // by these patterns of files, too
	Layer         Layer
	Dir           string // absolute
	File          string // its SKILL.md, as in a [Place]
	Body          string // the instructions
	Broken        string // why it can't be used; "" for one that can

	base, rel string // Dir is rel in base, and no link in rel leads out of base
}

// Limits of the Agent Skills format, and ours.
const (
	maxSkillFile   = frontmatter.MaxSkillFile
	maxName        = frontmatter.MaxName
	maxDescription = frontmatter.MaxDescription
	maxSkillDepth  = frontmatter.MaxSkillDepth
	maxSkills      = frontmatter.MaxSkills
)

// supportDirs are the directories of a skill whose files the model is told of.
var supportDirs = []string{"scripts", "references", "assets"}

// skills reads all skills, those of the nearest layer last: of two with a name that one counts.
func (l *loader) skills(p *Project) {
	s := &skillReader{loader: l, of: p}
	if l.user.fs != nil {
		s.directory(l.user, ".agents/skills", LayerUser, 0)
	}
	if p.Settings.Compat {
		s.directory(l.project, ".claude/skills", LayerProject, 0)
	}
	s.directory(l.project, ".agents/skills", LayerProject, 0)
	slices.SortStableFunc(s.found, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	p.Skills = s.found
}

type skillReader struct {
	*loader
	of     *Project
	found  []Skill
	looked int // directories
}

// directory reads the skills below a directory.
func (s *skillReader) directory(t tree, dir string, layer Layer, deep int) {
	if s.looked++; s.looked > maxEntries {
		s.problem(Problem{t.place(dir), fmt.Sprintf("there are more than %d directories: it is not looked at", maxEntries), "have fewer"})
		return
	}
	list, err := t.list(dir)
	var broken *fileError
	if errors.As(err, &broken) {
		s.problem(broken.at(t.place(dir)))
	}
	for _, e := range list {
		at := path.Join(dir, e.name)
		if strings.HasPrefix(e.name, ".") || len(s.found) >= maxSkills {
			continue
		}
		switch {
		case e.err != nil:
			if errors.As(e.err, &broken) {
				s.add(t, Skill{Name: e.name, Layer: layer, Dir: t.abs(at)}, broken.at(t.place(at)))
			}
		case !e.dir:
			if path.Ext(e.name) == ".md" && e.name != "README.md" {
				name := strings.TrimSuffix(e.name, ".md")
				s.add(t, Skill{Name: name, Layer: layer, Dir: t.abs(dir)}, Problem{t.place(at), "a skill is a directory with a SKILL.md", fmt.Sprintf("move it to %s/%s/SKILL.md", t.shown+dir, name)})
			}
		case t.kind(path.Join(at, "SKILL.md")) != 0:
			s.skill(t, at, layer)
		default:
			t.trace.directory(t, at)
			switch before := len(s.found); {
			case t.kind(path.Join(at, "skill.md")) != 0:
				s.add(t, Skill{Name: e.name, Layer: layer, Dir: t.abs(at)}, Problem{t.place(path.Join(at, "skill.md")), "its name is not SKILL.md", "rename it"})
			case deep < maxSkillDepth:
				if s.directory(t, at, layer, deep+1); len(s.found) == before {
					s.add(t, Skill{Name: e.name, Layer: layer, Dir: t.abs(at)}, Problem{t.place(at), "it has no SKILL.md", "add one, or remove the directory"})
				}
			default:
				s.add(t, Skill{Name: e.name, Layer: layer, Dir: t.abs(at)}, Problem{t.place(at), fmt.Sprintf("it is more than %d directories deep", maxSkillDepth), "put it higher up"})
			}
		}
	}
}

// skill reads one SKILL.md.
func (s *skillReader) skill(t tree, dir string, layer Layer) {
	file := path.Join(dir, "SKILL.md")
	k := Skill{Name: path.Base(dir), Layer: layer, Dir: t.abs(dir), File: t.shown + file, base: t.dir, rel: dir}
	if t.shown != "" { // the user's links may lead anywhere
		k.base, k.rel = k.Dir, "."
	}
	data, err := s.text(s.of, t, file, maxSkillFile)
	var broken *fileError
	switch {
	case errors.As(err, &broken):
		s.add(t, k, broken.at(t.place(file)))
		return
	case err != nil:
		return // it went away
	}
	of, idle, broke := frontmatter.ReadSkill(string(data), k.Name)
	for _, p := range idle {
		s.problem(*inFile(t.place(file), &p))
	}
	if broke != nil {
		s.add(t, k, *inFile(t.place(file), broke))
		return
	}
	k.Description, k.License, k.Compatibility, k.Metadata, k.Keywords, k.Paths, k.Body = of.Description, of.License, of.Compatibility, of.Metadata, of.Keywords, of.Paths, of.Body
	k.AllowedTools = slices.DeleteFunc(of.AllowedTools, func(rule string) bool {
		_, err := permission.Only(s.root, rule)
		if err != nil {
			at := of.Places["allowed-tools"]
			s.problem(Problem{Place{t.place(file).File, at.Line, at.Column}, fmt.Sprintf("%q is no permission rule, and allows nothing", clip(rule)), "name a tool, or what of it, such as Bash(go test:*)"})
		}
		return err != nil
	})
	s.add(t, k, Problem{})
}

// add takes a skill in the place of one of a lower layer with the same name.
func (s *skillReader) add(t tree, k Skill, wrong Problem) {
	if k.File == "" {
		k.File = wrong.File
	}
	if wrong.Reason != "" {
		k.Broken = wrong.Reason
		if wrong.Remedy != "" {
			k.Broken += ": " + wrong.Remedy
		}
		s.problem(wrong)
	}
	i := slices.IndexFunc(s.found, func(o Skill) bool { return o.Name == k.Name })
	switch {
	case i < 0:
		s.found = append(s.found, k)
	case k.Broken != "": // one that works stays
	case s.found[i].Broken != "":
		s.found[i] = k
	default:
		s.problem(Problem{Place{File: s.found[i].File}, "there is another skill " + k.Name + ", which counts: " + k.File, "rename one"})
		s.found[i] = k
	}
}

// usable are the skills that can be used.
func (p *Project) usable() []Skill {
	return slices.DeleteFunc(slices.Clone(p.Skills), func(k Skill) bool { return k.Broken != "" })
}

// Skill finds a skill that can be used.
func (p *Project) Skill(name string) (Skill, bool) {
	for _, k := range p.usable() {
		if k.Name == name {
			return k, true
		}
	}
	return Skill{}, false
}

// skillList is what the prompt says of skills: names and descriptions only.
func (p *Project) skillList() string {
	var b strings.Builder
	for _, k := range p.usable() {
		fmt.Fprintf(&b, "\n- %s: %s", k.Name, oneLine(k.Description))
	}
	if b.Len() == 0 {
		return ""
	}
	return "When a task fits one of these, get its instructions with the tool " + SkillToolName + " before you begin.\n" + b.String()
}

// Match finds the skills that a prompt, or a file that it is about, activates: those with a keyword that is a word of the prompt, in any case, or a pattern that is of one of the
// paths, which are relative to the project, with slashes. A skill without keywords and paths is left to the model. The order is that of [Project.Skills].
func (p *Project) Match(prompt string, paths []string) []Skill {
	return slices.DeleteFunc(p.usable(), func(k Skill) bool {
		said := slices.ContainsFunc(k.Keywords, func(word string) bool { return mentions(prompt, word) })
		return !said && !slices.ContainsFunc(k.Paths, func(pattern string) bool {
			return slices.ContainsFunc(paths, func(name string) bool {
				ok, _ := doublestar.Match(pattern, name) // it was checked when it was read
				return ok
			})
		})
	})
}

// mentions reports whether a text has a word, or several, with nothing of a longer word around them. Scripts that put no blanks between words have no such edges.
func mentions(text, word string) bool {
	t, w := []rune(strings.ToLower(text)), []rune(strings.ToLower(strings.TrimSpace(word)))
	part := func(r rune) bool {
		return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Hangul)
	}
	if len(w) == 0 {
		return false
	}
	for i := 0; i+len(w) <= len(t); i++ {
		end := i + len(w)
		goesOn := i > 0 && part(t[i-1]) && part(w[0]) || end < len(t) && part(t[end]) && part(w[len(w)-1])
		if !goesOn && slices.Equal(t[i:end], w) {
			return true
		}
	}
	return false
}

// Check says what is wrong with a skill that a program makes itself, as errdefs.Validation. One needs a Name, a Description and a Body; a Dir only when it has support files.
func (k Skill) Check() error {
	wrong := frontmatter.CheckName(k.Name, "")
	switch {
	case wrong != nil:
	case strings.TrimSpace(k.Description) == "" || len(k.Description) > maxDescription:
		wrong = &frontmatter.Problem{Reason: "its description is empty, or too long", Remedy: fmt.Sprintf("say in %d characters what the skill does, and when to use it", maxDescription)}
	case strings.TrimSpace(k.Body) == "":
		wrong = &frontmatter.Problem{Reason: "it has no instructions", Remedy: "write what is to be done into Body"}
	default:
		wrong = frontmatter.CheckPatterns(k.Paths)
	}
	if wrong != nil {
		return errdefs.Validation.Errorf("project: skill %q: %s: %s", clip(k.Name), wrong.Reason, wrong.Remedy)
	}
	if _, err := permission.Only("", k.AllowedTools...); err != nil {
		return errdefs.Validation.Errorf("project: skill %s: allowed tools: %w", k.Name, err)
	}
	return nil
}

// maxSupport is how many files of a skill are listed.
const maxSupport = 200

// Below is the skill with its Dir shown, and looked for, below a directory that holds it: no link leads out of that one. It fails with errdefs.Validation where Dir does not lie there.
func (k Skill) Below(base string) (Skill, error) {
	rel, err := filepath.Rel(base, k.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return k, errdefs.Validation.Errorf("project: skill %s: its directory %s is not below %s: put it there", k.Name, k.Dir, base)
	}
	k.base, k.rel = base, filepath.ToSlash(rel)
	return k, nil
}

// root opens the skill's directory. fs.ErrNotExist: it has none.
func (k Skill) root() (*os.Root, error) {
	if k.base == "" { // the program's own
		if k.base, k.rel = k.Dir, "."; k.Dir == "" {
			return nil, fs.ErrNotExist
		}
	}
	base, err := os.OpenRoot(k.base)
	if err != nil {
		return nil, err
	}
	defer func() { _ = base.Close() }()
	return base.OpenRoot(filepath.FromSlash(k.rel))
}

// maxSupportFile is how large a support file may be that is read as a whole.
const maxSupportFile = 100 << 10

// ReadFile gives the text of a support file by its name as [Skill.Files] has it. What is no such file, no UTF-8 text or larger than 100 KiB is errdefs.NotFound or Validation.
func (k Skill) ReadFile(name string) (string, error) {
	name = path.Clean(filepath.ToSlash(name))
	if top, _, _ := strings.Cut(name, "/"); !slices.Contains(supportDirs, top) {
		return "", k.noFile(name)
	}
	root, err := k.root()
	if err != nil {
		return "", k.noFile(name)
	}
	defer func() { _ = root.Close() }()
	data, err := tree{fs: root.FS(), dir: k.Dir, trace: newTrace()}.read(name, maxSupportFile)
	var broken *fileError
	switch {
	case errors.As(err, &broken):
		return "", errdefs.Validation.Errorf("%s: %s", clip(name), strings.Replace(broken.reason, "the project", "the skill", 1))
	case err != nil:
		return "", k.noFile(name)
	}
	return string(data), nil
}

func (k Skill) noFile(name string) error {
	return errdefs.NotFound.Errorf("the skill %s has no file %q. Its files are: %s", k.Name, clip(name), cmp.Or(strings.Join(k.Files(), ", "), "none"))
}

// Files lists the support files of a skill that are there now: those in scripts, references and assets, relative to Dir, with slashes.
func (k Skill) Files() []string {
	root, err := k.root()
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	var out []string
	looked := 0
	for _, dir := range supportDirs {
		_ = fs.WalkDir(root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
			looked++
			switch {
			case len(out) >= maxSupport, looked > maxEntries:
				return fs.SkipAll
			case err == nil && e.Type().IsRegular(): // what can't be read is not listed
				out = append(out, name)
			}
			return nil
		})
	}
	return out
}

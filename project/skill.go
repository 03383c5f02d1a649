package project

import (
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
	"github.com/pawl-dev/pawl/hook"
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
	maxSkillFile     = 1 << 20
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxSkillDepth    = 4 // of directories that group skills
	maxSkills        = 500
)

// ofSkill are the fields of a SKILL.md.
var ofSkill = []string{"name", "description", "allowed-tools", "license", "compatibility", "metadata", "keywords", "paths"}

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
	fm, wrong := parseFrontMatter(t.place(file), string(data))
	if wrong == nil {
		wrong = s.fields(&k, fm)
	}
	if wrong != nil {
		s.add(t, k, *wrong)
		return
	}
	k.Body = fm.body
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

// fields fills in what the front matter says, and gives what makes the skill unusable.
func (s *skillReader) fields(k *Skill, fm frontMatter) *Problem {
	dir, name := k.Name, ""
	for _, f := range fm.fields {
		var wrong *Problem
		switch f.name {
		case "name":
			if name, wrong = f.text(maxName); wrong == nil {
				wrong = skillName(name, dir, f.at)
			}
		case "description":
			if k.Description, wrong = f.text(maxDescription); wrong == nil && strings.TrimSpace(k.Description) == "" {
				wrong = &Problem{f.at, "its description is empty", "say what the skill does, and when to use it"}
			}
		case "allowed-tools":
			if k.AllowedTools, wrong = f.list(); wrong == nil {
				k.AllowedTools = slices.DeleteFunc(k.AllowedTools, func(rule string) bool {
					_, err := hook.Only(s.root, rule)
					if err != nil {
						s.problem(Problem{f.at, fmt.Sprintf("%q is no permission rule, and allows nothing", clip(rule)), "name a tool, or what of it, such as Bash(go test:*)"})
					}
					return err != nil
				})
			}
		case "license":
			k.License, wrong = f.text(0)
		case "compatibility":
			k.Compatibility, wrong = f.text(maxCompatibility)
		case "metadata":
			k.Metadata, wrong = f.texts()
		case "keywords":
			k.Keywords, wrong = f.list()
		case "paths":
			if k.Paths, wrong = f.list(); wrong == nil {
				wrong = checkPatterns(k.Paths, f.at)
			}
		default:
			s.problem(unknownName(f.at, "field", f.name, ofSkill))
		}
		if wrong != nil {
			return wrong
		}
	}
	switch {
	case name == "":
		return &Problem{fm.place, "it has no name", "add the line name: " + clip(dir)}
	case k.Description == "":
		return &Problem{fm.place, "it has no description", "add one that says what the skill does, and when to use it"}
	}
	return nil
}

func checkPatterns(list []string, at Place) *Problem {
	for _, pattern := range list {
		if !doublestar.ValidatePattern(pattern) {
			return &Problem{at, fmt.Sprintf("%q is no pattern of paths", clip(pattern)), "want a pattern such as src/**/*.go"}
		}
	}
	return nil
}

// skillName checks a name by the format's rules. It also stands in permission rules, in which ( ) , * would mean something.
func skillName(name, dir string, at Place) *Problem {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	switch {
	case name == "" || len(name) > maxName || strings.ContainsFunc(name, bad) || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--"):
		return &Problem{at, fmt.Sprintf("%q is no name for a skill", clip(name)), "use small letters, digits and single dashes between them, at most 64"}
	case name != dir:
		return &Problem{at, fmt.Sprintf("its name %q is not that of its directory, %q", clip(name), clip(dir)), "rename one"}
	}
	return nil
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
	wrong := skillName(k.Name, k.Name, Place{})
	switch {
	case wrong != nil:
	case strings.TrimSpace(k.Description) == "" || len(k.Description) > maxDescription:
		wrong = &Problem{Reason: "its description is empty, or too long", Remedy: fmt.Sprintf("say in %d characters what the skill does, and when to use it", maxDescription)}
	case strings.TrimSpace(k.Body) == "":
		wrong = &Problem{Reason: "it has no instructions", Remedy: "write what is to be done into Body"}
	default:
		wrong = checkPatterns(k.Paths, Place{})
	}
	if wrong != nil {
		return errdefs.Validation.Errorf("project: skill %q: %s: %s", clip(k.Name), wrong.Reason, wrong.Remedy)
	}
	if _, err := hook.Only("", k.AllowedTools...); err != nil {
		return errdefs.Validation.Errorf("project: skill %s: allowed tools: %w", k.Name, err)
	}
	return nil
}

// maxSupport is how many files of a skill are listed.
const maxSupport = 200

// Files lists the support files of a skill that are there now: those in scripts, references and assets, relative to Dir, with slashes.
func (k Skill) Files() []string {
	if k.base == "" { // the program's own
		if k.base, k.rel = k.Dir, "."; k.Dir == "" {
			return nil
		}
	}
	base, err := os.OpenRoot(k.base)
	if err != nil {
		return nil
	}
	defer func() { _ = base.Close() }()
	root, err := base.OpenRoot(filepath.FromSlash(k.rel))
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

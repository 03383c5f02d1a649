package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	slashes "path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/frontmatter"
)

// SkillTool is the name of the tool that gives a pack's skills. A pack with skills has no other tool of that name, and blocklists may name it.
const SkillTool = "skill"

// LoadedSkill is a skill that an entry of [Pack.Skills] leads to: the entry's own, or what a SKILL.md says.
type LoadedSkill struct {
	Name          string
	Description   string
	Instructions  string   // as they stand there: nothing in them is a placeholder
	AllowedTools  []string // names of tools and agents of the pack: while the skill is active, only these may be used. nil restricts nothing
	Compatibility string   // what it needs; the model is told with the instructions
	Keywords      []string // words of what a user says that activate it
	Preload       bool     // the instructions are in the system prompt from the beginning
	Dir           string   // of its support files, relative to the pack's own, with slashes; "" when it has none
	File          string   // that says all this, likewise; "" for one that stands in the pack
}

// LoadedSkills gives the skills of a pack, in the order of their names. Files are read by [Load]: a pack that came as bytes has those that stand in it.
func (p *Pack) LoadedSkills() []LoadedSkill { return slices.Clone(p.loaded) }

// OffersSkills reports whether the prompt's policy lets the model call [SkillTool], if there are any skills.
func (p *Prompt) OffersSkills() bool { return p.Allows(SkillTool) }

// hasSkills reports whether there is an entry that can lead to a skill.
func (p *Pack) hasSkills() bool {
	return slices.ContainsFunc(p.Skills, func(s Skill) bool { return !s.remote() })
}

// remote says of an entry that it is a package, and lies nowhere here.
func (s Skill) remote() bool { return strings.HasPrefix(s.Path, "@") }

// skillReader follows the entries to their skills.
type skillReader struct {
	pack   *Pack
	root   *os.Root // the pack's directory: no link leads out of it
	entry  int
	told   []told
	found  []found
	looked int // directories
}

// found is a skill with where it is from.
type found struct {
	LoadedSkill
	entry int
}

// told is a problem or a warning about an entry.
type told struct {
	entry          int
	warning        bool
	reason, remedy string
}

// maxLooked is how many directories are looked at, and how many names in one.
const maxLooked = 2000

// SkillsIn gives those of [Pack.LoadedSkills] that a state of a workflow may have: all for "", none for "none", else those from a file or a directory, and what is below it.
func (p *Pack) SkillsIn(scope string) []LoadedSkill {
	at := slashes.Clean(filepath.ToSlash(scope))
	return slices.DeleteFunc(p.LoadedSkills(), func(s LoadedSkill) bool {
		switch {
		case scope == "", at == "." && s.File != "":
			return false
		case scope == "none", s.File == "":
			return true
		}
		return s.File != at && !strings.HasPrefix(s.File, at+"/")
	})
}

// load reads the skills of a pack in a directory; with "", of a pack that is in none.
func (p *Pack) load(dir string) []told {
	if len(p.Skills) == 0 {
		return nil
	}
	s := &skillReader{pack: p}
	if dir != "" {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return []told{{0, false, "its directory can't be read: " + err.Error(), "correct that"}}
		}
		defer func() { _ = root.Close() }() // it was only read
		s.root = root
	}
	for i, e := range p.Skills {
		s.entry = i
		switch {
		case e.remote() || e.Path == "" && e.Name == "":
		case e.Path == "":
			s.add(found{LoadedSkill{Name: e.Name, Description: e.Description, Instructions: e.Instructions}, i})
		case s.root == nil:
			s.warn("it has no effect: paths start at the pack's file, and this pack is in none", "load it from its file")
		default:
			s.follow(e)
		}
	}
	slices.SortStableFunc(s.found, func(a, b found) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range s.found {
		p.loaded = append(p.loaded, f.LoadedSkill)
	}
	return s.told
}

func (s *skillReader) wrong(reason, remedy string) {
	s.told = append(s.told, told{s.entry, false, reason, remedy})
}

func (s *skillReader) warn(reason, remedy string) {
	s.told = append(s.told, told{s.entry, true, reason, remedy})
}

// follow reads what the path of an entry leads to: a skill's directory, directories of such, or a file.
func (s *skillReader) follow(e Skill) {
	name := slashes.Clean(filepath.ToSlash(e.Path))
	if slashes.IsAbs(name) || filepath.IsAbs(e.Path) || !filepath.IsLocal(filepath.FromSlash(name)) {
		s.wrong(fmt.Sprintf("%s leads out of the pack's directory", clip(e.Path)), "put the skill into it, and write a path that is relative to the pack's file")
		return
	}
	info, err := s.root.Stat(filepath.FromSlash(name))
	switch before := len(s.found) + len(s.told); {
	case errors.Is(err, fs.ErrNotExist):
		s.wrong(fmt.Sprintf("there is no %s", clip(e.Path)), "paths are relative to the pack's file: write another one, or add the skill")
	case err != nil:
		s.unreadable(e.Path, err)
	case !info.IsDir() && slashes.Base(name) == "SKILL.md":
		s.skill(slashes.Dir(name), name, e.Preload)
	case !info.IsDir():
		s.skill("", name, e.Preload)
	case s.has(name, "SKILL.md"):
		s.skill(name, slashes.Join(name, "SKILL.md"), e.Preload)
	default:
		if s.directory(name, e.Preload, 0); len(s.found)+len(s.told) == before {
			s.wrong(fmt.Sprintf("there is no SKILL.md in %s, or in a directory of it", clip(e.Path)), "add one, or name another directory")
		}
	}
}

func (s *skillReader) has(dir, name string) bool {
	_, err := s.root.Lstat(filepath.FromSlash(slashes.Join(dir, name)))
	return err == nil
}

// directory reads the skills below a directory that is none itself. One that has none below it is not meant.
func (s *skillReader) directory(dir string, preload bool, deep int) {
	if s.looked++; s.looked > maxLooked {
		if s.looked == maxLooked+1 {
			s.wrong(fmt.Sprintf("there are more than %d directories", maxLooked), "name the directories that have skills")
		}
		return
	}
	list, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		s.unreadable(dir, err)
		return
	}
	if len(list) > maxLooked {
		s.wrong(fmt.Sprintf("%s has more than %d entries", clip(dir), maxLooked), "name the directories that have skills")
		return
	}
	for _, e := range list {
		at := slashes.Join(dir, e.Name())
		is := e.IsDir()
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := s.root.Stat(filepath.FromSlash(at))
			if err != nil {
				s.unreadable(at, err)
				continue
			}
			is = info.IsDir()
		}
		switch {
		case !is:
		case s.has(at, "SKILL.md"):
			s.skill(at, slashes.Join(at, "SKILL.md"), preload)
		case s.has(at, "skill.md"):
			s.wrong(fmt.Sprintf("%s: its name is not SKILL.md", clip(slashes.Join(at, "skill.md"))), "rename it")
		case deep < frontmatter.MaxSkillDepth:
			s.directory(at, preload, deep+1)
		}
	}
}

// skill reads one file; dir is its directory when that is the skill's own.
func (s *skillReader) skill(dir, file string, preload bool) {
	data, err := s.read(file)
	if err != nil {
		s.unreadable(file, err)
		return
	}
	name := slashes.Base(dir)
	switch dir {
	case "":
		name = ""
	case ".":
		name = filepath.Base(s.root.Name())
	}
	k, idle, wrong := frontmatter.ReadSkill(string(bytes.TrimPrefix(data, []byte("\uFEFF"))), name)
	for _, p := range idle {
		s.warn(inFile(file, p), p.Remedy)
	}
	if wrong != nil {
		s.wrong(inFile(file, *wrong), wrong.Remedy)
		return
	}
	if at, ok := k.Places["paths"]; ok {
		s.warn(inFile(file, frontmatter.Problem{Place: at, Reason: "paths has no effect: conversations have no project with files"}), "use keywords")
	}
	k.AllowedTools = slices.DeleteFunc(k.AllowedTools, func(rule string) bool {
		_, known := s.pack.Tools[rule]
		if known = known || rule == SkillTool || s.pack.agent(rule); !known {
			s.warn(inFile(file, frontmatter.Problem{Place: k.Places["allowed-tools"], Reason: fmt.Sprintf("%q is no tool of the pack, and allows nothing", clip(rule))}), "name one of the pack's tools or agents")
		}
		return !known
	})
	s.add(found{LoadedSkill{k.Name, k.Description, k.Body, k.AllowedTools, k.Compatibility, k.Keywords, preload, dir, file}, s.entry})
}

// add takes a skill. One that several entries lead to is preloaded if one of them says so.
func (s *skillReader) add(f found) {
	i := slices.IndexFunc(s.found, func(other found) bool { return other.Name == f.Name })
	switch {
	case i < 0 && len(s.found) == frontmatter.MaxSkills:
		s.wrong(fmt.Sprintf("there are more than %d skills", frontmatter.MaxSkills), "have fewer")
	case i < 0:
		s.found = append(s.found, f)
	case f.File != "" && f.File == s.found[i].File:
		s.found[i].Preload = s.found[i].Preload || f.Preload
	case f.File != "" || s.found[i].File != "": // of two that stand in the pack, its check has told
		where := func(f found) string {
			if f.File != "" {
				return clip(f.File)
			}
			return path{"skills", f.entry}.String()
		}
		s.wrong(fmt.Sprintf("%s has the name %q, as %s has", where(f), clip(f.Name), where(s.found[i])), "rename one")
	}
}

// read gives the text of a file.
func (s *skillReader) read(file string) ([]byte, error) {
	name := filepath.FromSlash(file)
	info, err := s.root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // opening a pipe could wait for ever
		return nil, errors.New("it is no ordinary file")
	}
	f, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, frontmatter.MaxSkillFile+1))
	switch err = errors.Join(err, f.Close()); {
	case err != nil:
		return nil, err
	case len(data) > frontmatter.MaxSkillFile:
		return nil, fmt.Errorf("it has more than %d bytes", frontmatter.MaxSkillFile)
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("it is no UTF-8 text")
	}
	return data, nil
}

// unreadable tells why a file or a directory can't be read.
func (s *skillReader) unreadable(name string, err error) {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if strings.Contains(err.Error(), "escapes") { // os.Root has no error value for it
		s.wrong(fmt.Sprintf("%s: a link leads out of the pack's directory, or is absolute", clip(name)), "put the skill into the directory, and make links relative")
		return
	}
	s.wrong(fmt.Sprintf("%s can't be read: %v", clip(name), err), "correct that")
}

// inFile is the reason of a problem with where it is in a file.
func inFile(file string, p frontmatter.Problem) string {
	at := clip(file)
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Column > 0 {
		at += fmt.Sprintf(":%d", p.Column)
	}
	return at + ": " + p.Reason
}

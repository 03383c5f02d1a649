package frontmatter

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/internal/near"
)

// Limits of the Agent Skills format, and ours.
const (
	MaxSkillFile     = 1 << 20 // bytes of a SKILL.md
	MaxSkillDepth    = 4       // of directories that group skills
	MaxSkills        = 500
	MaxDescription   = 1024
	MaxName          = 64
	maxCompatibility = 500
)

// Skill is what a SKILL.md says.
type Skill struct {
	Name, Description      string
	AllowedTools           []string // nil: it has no such field
	License, Compatibility string
	Metadata               map[string]string
	Keywords, Paths        []string
	Body                   string
	Places                 map[string]Place // of the fields that are there
}

// ofSkill are the fields of a SKILL.md.
var ofSkill = []string{"name", "description", "allowed-tools", "license", "compatibility", "metadata", "keywords", "paths"}

// ReadSkill reads a SKILL.md. Its name has to be that of its directory, unless dir is "". idle is what has no effect; wrong is what makes the skill unusable.
func ReadSkill(text, dir string) (k Skill, idle []Problem, wrong *Problem) {
	t, wrong := Parse(text)
	if wrong != nil {
		return k, nil, wrong
	}
	k = Skill{Body: t.Body, Places: map[string]Place{}}
	for _, f := range t.Fields {
		k.Places[f.Name] = f.Place
		switch f.Name {
		case "name":
			if k.Name, wrong = f.Text(MaxName); wrong == nil {
				wrong = f.wrong(CheckName(k.Name, dir))
			}
		case "description":
			if k.Description, wrong = f.Text(MaxDescription); wrong == nil && strings.TrimSpace(k.Description) == "" {
				wrong = &Problem{f.Place, "its description is empty", "say what the skill does, and when to use it"}
			}
		case "allowed-tools":
			k.AllowedTools, wrong = f.List()
		case "license":
			k.License, wrong = f.Text(0)
		case "compatibility":
			k.Compatibility, wrong = f.Text(maxCompatibility)
		case "metadata":
			k.Metadata, wrong = f.Texts()
		case "keywords":
			k.Keywords, wrong = f.List()
		case "paths":
			if k.Paths, wrong = f.List(); wrong == nil {
				wrong = f.wrong(CheckPatterns(k.Paths))
			}
		default:
			idle = append(idle, unknown(f, ofSkill))
		}
		if wrong != nil {
			return k, idle, wrong
		}
	}
	switch {
	case k.Name == "" && dir != "":
		return k, idle, &Problem{Place{}, "it has no name", "add the line name: " + clip(dir)}
	case k.Name == "":
		return k, idle, &Problem{Place{}, "it has no name", "add the line name: and a name of small letters, digits and dashes"}
	case k.Description == "":
		return k, idle, &Problem{Place{}, "it has no description", "add one that says what the skill does, and when to use it"}
	}
	return k, idle, nil
}

// unknown is the problem of a field that we don't have.
func unknown(f Field, known []string) Problem {
	p := Problem{f.Place, fmt.Sprintf("there is no field %q: it has no effect", clip(f.Name)), "remove it"}
	if names := near.Names(f.Name, known); len(names) > 0 {
		p.Remedy = fmt.Sprintf("did you mean %s?", names[0])
	}
	return p
}

// wrong puts a problem where the field is.
func (f Field) wrong(p *Problem) *Problem {
	if p != nil {
		p.Place = f.Place
	}
	return p
}

// CheckName checks a skill's name by the format's rules. It also stands in permission rules, in which ( ) , * would mean something. dir is the name that it has to be; "": any.
func CheckName(name, dir string) *Problem {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	switch {
	case name == "" || len(name) > MaxName || strings.ContainsFunc(name, bad) || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--"):
		return &Problem{Place{}, fmt.Sprintf("%q is no name for a skill", clip(name)), "use small letters, digits and single dashes between them, at most 64"}
	case dir != "" && name != dir:
		return &Problem{Place{}, fmt.Sprintf("its name %q is not that of its directory, %q", clip(name), clip(dir)), "rename one"}
	}
	return nil
}

// CheckPatterns checks patterns of paths.
func CheckPatterns(list []string) *Problem {
	for _, pattern := range list {
		if !doublestar.ValidatePattern(pattern) {
			return &Problem{Place{}, fmt.Sprintf("%q is no pattern of paths", clip(pattern)), "want a pattern such as src/**/*.go"}
		}
	}
	return nil
}

// clip keeps a text of somebody else's from filling a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/tool"
)

// withSkills adds the program's skills to those of the project, whose skills of the same name they beat.
func withSkills(p *project.Project, skills []project.Skill) (*project.Project, error) {
	if len(skills) == 0 {
		return p, nil
	}
	known := map[string]bool{}
	for _, k := range skills {
		if err := k.Check(); err != nil {
			return nil, fmt.Errorf("pawl: Options.Skills: %w", err)
		}
		if known[k.Name] {
			return nil, errdefs.Conflict.Errorf("pawl: Options.Skills: two have the name %s: rename one", k.Name)
		}
		known[k.Name] = true
	}
	all := &project.Project{}
	if p != nil {
		*all = *p
	}
	all.Skills = slices.Concat(slices.DeleteFunc(slices.Clone(all.Skills), func(k project.Skill) bool { return known[k.Name] }), skills)
	slices.SortStableFunc(all.Skills, func(a, b project.Skill) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// skills holds runs to what their active skills allow, and activates those that a prompt matches. Which are active is read from the journal, so that it is the same when a run goes on in another process.
type skills struct {
	journal func() journal.Store // it is opened after the first assembly
	project *project.Project
	dir     string
	may     hook.Middleware // the permissions
	tool    tool.Definition // of the tool that activates a skill
	offered bool            // it is among the tools
	always  []string        // skills that are active from the beginning of each run
	alone   bool            // they are a conversation's: runs above, of somebody else's skills, have gates of their own
	// elsewhere has skills that are not there be another state's of a workflow, whose turn it is not any more.
	elsewhere bool
	allow     func(rules ...string) (func(*hook.ToolUse) bool, error)
}

// newSkills gives what stands at the points of a run for its skills: nothing when the tool of that name is the program's own. Where no skill is left, a run that goes on may have activated one.
func (r *Runtime) newSkills(p *project.Project, tools []tool.Tool, may hook.Middleware) []hook.Middleware {
	if p == nil {
		return nil
	}
	s := &skills{journal: r.Journal, project: p, dir: r.dir, may: may, tool: tool.Definition{Tool: model.Tool{Name: project.SkillToolName}}}
	s.allow = func(rules ...string) (func(*hook.ToolUse) bool, error) { return permission.Only(s.dir, rules...) }
	own, ok := p.SkillTool()
	if ok {
		s.tool = own.Definition()
	}
	if s.offered = slices.Contains(namesOf(tools), s.tool.Name); s.offered && !ok {
		return nil
	}
	return s.hooks()
}

func (s *skills) hooks() []hook.Middleware {
	return []hook.Middleware{{Name: "skills", PreGeneration: s.match, PreToolUse: s.judge, Below: s.below}}
}

// activated is which skills a run has activated.
type activated struct {
	names []string
	seq   int64 // of the entry up to which the journal was read
	none  bool  // the run began here, and nothing was activated since
	// by are its calls of the tool, by their ids, with the skills that they name.
	by    map[string]string
	only  func(*hook.ToolUse) bool // what names allow; nil: to be made
	above []*activated             // of the runs above, when each began what led here
}

// mark is in the message that activates a skill at the beginning of a run.
type mark struct {
	Skill string `json:"skill"`
	Run   string `json:"run"`
}

// match activates the skills that the prompt is about, unless the permissions would refuse them or ask.
func (s *skills) match(ctx context.Context, g *hook.Generation) error {
	a, err := s.fresh(ctx, g)
	if err != nil {
		return err
	}
	prompt := g.Messages.Last()
	if prompt.Role() != message.RoleUser || !s.offered {
		return nil
	}
	n := g.Messages.Len() - 1
	for _, k := range s.project.Match(prompt.Text(), s.paths(prompt.Text())) {
		if slices.Contains(s.always, k.Name) {
			continue
		}
		input, err := json.Marshal(map[string]string{"name": k.Name})
		if err != nil {
			return err
		}
		use := &hook.ToolUse{Where: g.Where, Tool: s.tool, Call: message.ToolCall{Name: s.tool.Name, Input: string(input)}, Values: g.Values}
		if d := hook.Judge(ctx, []hook.Middleware{s.may}, use, nil); d.Verdict >= hook.Ask {
			continue
		}
		extra, err := json.Marshal(mark{k.Name, g.Run})
		if err != nil {
			return err
		}
		text := "This prompt activates a skill.\n\n" + k.Instructions()
		if s.stands(g.Messages, k.Name, text) {
			text = "This prompt activates the skill " + k.Name + " again: its instructions stand above."
		}
		said := message.New(message.RoleUser, message.Text{Text: text, Origin: message.Origin{Provider: "pawl", Extra: string(extra)}})
		g.Messages = g.Messages.Slice(0, n).Append(said).Append(g.Messages.Slice(n, g.Messages.Len()).Messages()...)
		n++
		a.none = false
	}
	return nil
}

// stands reports whether the transcript has the instructions already.
func (s *skills) stands(h message.History, skill, text string) bool {
	for _, m := range h.All() {
		if by, ok := activatedBy(m); ok && by.Skill == skill && m.Text() == text {
			return true
		}
	}
	return false
}

// ActivatedSkills names the skills that an entry of a run activated because its prompt matches them: see [project.Project.Match]. Those that the model activates are calls of the tool skill.
func ActivatedSkills(d journal.Data) (names []string) {
	p, ok := d.(journal.Prepared)
	if !ok {
		return nil
	}
	for _, m := range slices.Concat(p.Edit.Head, p.Edit.Tail) {
		if by, ok := activatedBy(m); ok {
			names = append(names, by.Skill)
		}
	}
	return names
}

func activatedBy(m message.Message) (by mark, ok bool) {
	if m.Role() != message.RoleUser {
		return by, false
	}
	for t := range message.Of[message.Text](m) {
		if t.Provider == "pawl" && strings.HasPrefix(t.Extra, `{"skill":`) && json.Unmarshal([]byte(t.Extra), &by) == nil {
			return by, true
		}
	}
	return by, false
}

// paths are the words of a prompt that name files of the project, there already or not: they have a slash or an ending, or are there.
func (s *skills) paths(prompt string) (out []string) {
	if !slices.ContainsFunc(s.project.Skills, func(k project.Skill) bool { return len(k.Paths) > 0 }) {
		return nil
	}
	for word := range strings.FieldsSeq(prompt) {
		word = strings.TrimRight(strings.Trim(word, "`'\"()[]{}<>,;:!?*"), ".")
		word = strings.TrimPrefix(word, "@")
		if rel, err := filepath.Rel(s.dir, filepath.FromSlash(word)); err == nil && filepath.IsAbs(word) {
			word = filepath.ToSlash(rel)
		}
		if word == "" || strings.Contains(word, "://") {
			continue
		}
		if word = path.Clean(word); !filepath.IsLocal(filepath.FromSlash(word)) || slices.Contains(out, word) || len(out) >= maxPaths {
			continue
		}
		looks := strings.Contains(word, "/") || path.Ext(word) != ""
		if !looks {
			info, err := os.Stat(filepath.Join(s.dir, filepath.FromSlash(word)))
			looks = err == nil && !info.IsDir()
		}
		if looks {
			out = append(out, word)
		}
	}
	return out
}

// maxPaths is how many words of a prompt are taken for files.
const maxPaths = 1000

// key is where a run's activated are among the values of its hooks.
func (s *skills) key() string {
	if s.alone {
		return "pawl.skills.pack"
	}
	return "pawl.skills"
}

// judge refuses what the run's active skills don't allow.
func (s *skills) judge(ctx context.Context, u *hook.ToolUse) (d hook.Decision, err error) {
	a, ok := u.Values[s.key()].(*activated)
	if !ok { // the run goes on here, or is below
		if a, err = s.begin(ctx); err != nil {
			return d, err
		}
		u.Values[s.key()] = a
	}
	for _, of := range a.above {
		if d = s.held(of, u); d.Verdict == hook.Deny {
			return d, nil
		}
	}
	if a.none {
		a.none = !strings.EqualFold(u.Call.Name, s.tool.Name) // from here on one may be active
		return d, nil
	}
	if err := s.read(ctx, a, s.journal(), u.Session, u.Run, ""); err != nil {
		return d, err
	}
	return s.held(a, u), nil
}

// below is for a run below that begins here: nothing of its own is active yet. What a task is about a model says, so it activates nothing.
func (s *skills) below(hook.Where, string) hook.Middleware {
	return hook.Middleware{Name: "skills", PreGeneration: func(ctx context.Context, g *hook.Generation) error {
		_, err := s.fresh(ctx, g)
		return err
	}}
}

// fresh is begin for a run that begins here.
func (s *skills) fresh(ctx context.Context, g *hook.Generation) (*activated, error) {
	a, err := s.begin(ctx)
	if err == nil {
		a.none, g.Values[s.key()] = len(s.always) == 0, a
	}
	return a, err
}

// begin makes the activated of a run, with those of the runs above.
func (s *skills) begin(ctx context.Context) (*activated, error) {
	a := &activated{names: slices.Clone(s.always)}
	for at, below := engine.InsideOf(ctx); below && !s.alone; at, below = at.Above() {
		if at.Run.Log == nil {
			continue
		}
		of := &activated{}
		if err := s.read(ctx, of, at.Run.Log.Store(), at.Run.Session, at.Run.ID, at.Key.ID); err != nil {
			return nil, err
		}
		a.above = append(a.above, of)
	}
	return a, nil
}

// held says what an activated makes of a call.
func (s *skills) held(a *activated, u *hook.ToolUse) hook.Decision {
	if a.only == nil {
		a.only = s.only(a.names)
	}
	if a.only(u) {
		return hook.Decision{}
	}
	return hook.Denied(fmt.Sprintf("this call of %s is not among what the active skills allow (%s): until the run ends, keep to that, or activate a skill that allows it", u.Call.Name, s.allowed(a.names)))
}

// only is the test of what skills allow together. One that is not there any more allows nothing, and what it allowed is not known: so nothing is.
func (s *skills) only(names []string) func(*hook.ToolUse) bool {
	var rules []string
	restricted := false
	for _, name := range names {
		k, ok := s.project.Skill(name)
		if ok && k.AllowedTools == nil || !ok && s.elsewhere {
			continue
		}
		restricted = true
		rules = append(rules, k.AllowedTools...)
	}
	if !restricted {
		return func(*hook.ToolUse) bool { return true }
	}
	only, err := s.allow(rules...)
	if err != nil {
		return func(*hook.ToolUse) bool { return false }
	}
	return only
}

func (s *skills) allowed(names []string) string {
	var all []string
	for _, name := range names {
		switch k, ok := s.project.Skill(name); {
		case !ok && s.elsewhere:
		case !ok:
			all = append(all, name+": it is not there any more")
		case k.AllowedTools != nil:
			all = append(all, name+": "+cmp.Or(strings.Join(k.AllowedTools, ", "), "none"))
		}
	}
	return strings.Join(all, "; ")
}

// read goes on reading which skills a run has activated, up to where it began a call, if one is named.
func (s *skills) read(ctx context.Context, a *activated, store journal.Store, session, run, call string) error {
	for e, err := range store.Read(ctx, session, a.seq) {
		if err != nil {
			return fmt.Errorf("which skills are active: %w", err)
		}
		a.seq = e.Seq
		if e.Run != run {
			continue
		}
		switch d := e.Data.(type) {
		case journal.RunStarted: // an attempt begins with no others
			a.names, a.by, a.only = slices.Clone(s.always), map[string]string{}, nil
		case journal.Prepared:
			for _, m := range slices.Concat(d.Edit.Head, d.Edit.Tail) {
				if by, ok := activatedBy(m); ok && by.Run == run {
					a.add(by.Skill)
				}
			}
		case journal.ToolStarted:
			if d.Call.ID == call {
				return nil
			}
			var in struct {
				Name string `json:"name"`
				File string `json:"file"` // such a call gives a file, and no instructions
			}
			if strings.EqualFold(d.Call.Name, s.tool.Name) && json.Unmarshal([]byte(d.Call.Input), &in) == nil && in.File == "" {
				a.by[d.Call.ID] = in.Name
			}
		case journal.ToolFinished:
			if name, ok := a.by[d.Call]; ok && d.Outcome == journal.OutcomeOK {
				a.add(name)
			}
		}
	}
	return nil
}

func (a *activated) add(name string) {
	if !slices.Contains(a.names, name) {
		a.names, a.only = append(a.names, name), nil
	}
}

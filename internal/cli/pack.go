package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/pack"
)

func packCommand(s streams, p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pack",
		Short:   "Check, show and try PromptPack files",
		Example: "  pawl pack validate support.pack.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("pack what? validate FILE, show FILE, or run FILE PROMPT TEXT")
		},
	}
	cmd.AddCommand(packValidateCommand(s), packShowCommand(s), packRunCommand(s, p))
	return cmd
}

// oneFile says what is wrong with a command line that does not name one pack.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("name a pack, such as support.pack.json")
	}
	return nil
}

func packValidateCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say what is wrong with packs, and what of them has no effect",
		Long: `Prints a line for each problem: where it is (as in prompts.chat.validators[0].type), what is wrong, and what would be right; with several
files, the file stands before it. Lines that begin with "warning:" are about what the format allows and Pawl does not act on, or what may
be a mistake; they don't count. The skills that a pack leads to are read, too. The exit code is 1 when there is a problem, and 2 when a
file can't be read. A pack without problems and warnings prints nothing.`,
		Example: "  pawl pack validate support.pack.json\n  pawl pack validate packs/*.pack.json",
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			wrong := false
			for _, name := range args {
				p, err := pack.Load(name)
				var problems, warnings []pack.Problem
				var invalid *pack.Error
				switch {
				case errors.As(err, &invalid):
					problems, warnings = invalid.Problems, invalid.Warnings
				case err != nil:
					return wrongUse(err)
				default:
					warnings = p.Warnings
				}
				file := ""
				if len(args) > 1 {
					file = name + ": "
				}
				var lines strings.Builder
				for _, p := range problems {
					lines.WriteString(clean(file+p.String()) + "\n")
				}
				for _, w := range warnings {
					lines.WriteString("warning: " + clean(file+w.String()) + "\n")
				}
				if _, err := io.WriteString(s.out, lines.String()); err != nil {
					return &exitError{exitFailed, err}
				}
				wrong = wrong || len(problems) > 0
			}
			if wrong {
				return &exitError{exitFailed, nil}
			}
			return nil
		},
	}
}

func packShowCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE [PROMPT]",
		Short: "Show what a pack has",
		Long: `Prints the pack's prompts, or one of them, with their variables and what their values have to be like, tools and how these may be used, the agents that it can
hand over to, parameters, validators, what they judge and how much of a reply each holds back, the files that users may send, and templates with their fragments in place;
then the pack's tools with their parameters, agents, workflow and skills. Warnings go to standard error. A pack with problems is wrong use.`,
		Example: "  pawl pack show support.pack.json\n  pawl pack show support.pack.json chat",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage("want a file and a prompt, got %d arguments", len(args))
			}
			return oneFile(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := pack.Load(args[0])
			if err != nil {
				return wrongUse(err)
			}
			for _, w := range p.Warnings {
				fmt.Fprintln(s.err, "pawl: warning:", clean(w.String()))
			}
			o := &outline{}
			if len(args) == 2 {
				prompt, err := p.Prompt(args[1])
				if err != nil {
					return wrongUse(err)
				}
				o.prompt(p, prompt)
			} else {
				o.pack(p)
			}
			if _, err := io.WriteString(s.out, printable(strings.Join(o.lines, "\n")+"\n")); err != nil {
				return &exitError{exitFailed, err}
			}
			return nil
		},
	}
}

// outline writes down what a pack has.
type outline struct{ lines []string }

// line writes one line, so deep; of a text with several, blanks stand in place of the breaks.
func (o *outline) line(deep int, format string, args ...any) {
	o.lines = append(o.lines, strings.Repeat("  ", deep)+clean(fmt.Sprintf(format, args...)))
}

// about is what stands behind a name, unless it is empty.
func about(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func (o *outline) pack(p *pack.Pack) {
	o.line(0, "%s %s: %s", p.ID, p.Version, p.Name)
	if p.Description != "" {
		o.line(1, "%s", p.Description)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Prompts)) {
		o.lines = append(o.lines, "")
		o.prompt(p, p.Prompts[name])
	}
	for i, name := range slices.Sorted(maps.Keys(p.Tools)) {
		if i == 0 {
			o.lines = append(o.lines, "")
			o.line(0, "tools")
		}
		o.line(1, "%s%s", name, about(p.Tools[name].Description))
		o.schema(p.Tools[name].Parameters)
	}
	if p.Agents != nil {
		o.list("agents, the first is "+p.Agents.Entry, slices.Sorted(maps.Keys(p.Agents.Members)), func(name string) string {
			a, _ := p.Agent(name)
			return name + about(a.Description)
		})
	}
	if p.Workflow != nil {
		o.workflow(p.Workflow)
	}
	o.list("skills", skills(p), func(text string) string { return text })
}

func (o *outline) workflow(w *pack.Workflow) {
	o.list("workflow, it begins with "+w.Entry, slices.Sorted(maps.Keys(w.States)), func(name string) string {
		s := w.States[name]
		more := []string{"prompt " + s.PromptTask}
		for _, text := range []string{s.Persistence, s.Orchestration} {
			if text != "" {
				more = append(more, text)
			}
		}
		if s.Skills != "" {
			more = append(more, "skills "+s.Skills)
		}
		if s.MaxVisits > 0 {
			text := fmt.Sprintf("at most %d visits", s.MaxVisits)
			if s.OnMaxVisits != "" {
				text += ", then " + s.OnMaxVisits
			}
			more = append(more, text)
		}
		var leads []string
		for _, event := range slices.Sorted(maps.Keys(s.OnEvent)) {
			leads = append(leads, event+" to "+s.OnEvent[event])
		}
		switch {
		case s.Final():
			more = append(more, "the end")
		default:
			more = append(more, strings.Join(leads, ", "))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Artifacts)) {
			more = append(more, fmt.Sprintf("artifact %s (%s, %s)", name, s.Artifacts[name].Type, s.Artifacts[name].Mode))
		}
		return name + " (" + strings.Join(more, "; ") + ")" + about(s.Description)
	})
	if w.Engine == nil || w.Engine.Budget == nil {
		return
	}
	for _, b := range []struct {
		what string
		n    int
	}{{"visits", w.Engine.Budget.MaxTotalVisits}, {"tool calls", w.Engine.Budget.MaxToolCalls}, {"seconds", w.Engine.Budget.MaxWallTimeSec}} {
		if b.n > 0 {
			o.line(1, "at most %d %s", b.n, b.what)
		}
	}
}

// skills are those that can be used, and then the packages that nobody fetches.
func skills(p *pack.Pack) (all []string) {
	for _, k := range p.LoadedSkills() {
		var more []string
		if k.Dir != "" {
			more = append(more, k.Dir)
		}
		if k.Preload {
			more = append(more, "preloaded")
		}
		if k.AllowedTools != nil {
			more = append(more, "allows "+cmp.Or(strings.Join(k.AllowedTools, " "), "no tool"))
		}
		name := k.Name
		if len(more) > 0 {
			name += " (" + strings.Join(more, ", ") + ")"
		}
		all = append(all, name+about(k.Description))
	}
	for _, s := range p.Skills {
		if strings.HasPrefix(s.Path, "@") {
			all = append(all, s.Path)
		}
	}
	return all
}

// list is a section of its own, if there is anything in it.
func (o *outline) list(title string, names []string, of func(string) string) {
	if len(names) == 0 {
		return
	}
	o.lines = append(o.lines, "")
	o.line(0, "%s", title)
	for _, name := range names {
		o.line(1, "%s", of(name))
	}
}

func (o *outline) prompt(p *pack.Pack, pr *pack.Prompt) {
	o.line(0, "prompt %s %s: %s", pr.ID, pr.Version, pr.Name)
	if pr.Description != "" {
		o.line(1, "%s", pr.Description)
	}
	for _, v := range pr.Variables {
		what := "optional"
		if v.Required {
			what = "required"
		} else if v.Default != nil {
			what = "default " + inJSON(v.Default)
		}
		if rules := validation(v.Validation); rules != "" {
			what += "; " + rules
		}
		o.line(1, "variable %s (%s, %s)%s", v.Name, v.Type, what, about(v.Description))
	}
	agents := p.AgentsOf(pr)
	if len(pr.Tools)+len(agents) > 0 {
		var names []string
		for _, t := range p.ToolsOf(pr) {
			names = append(names, t.Name)
		}
		if names == nil {
			names = []string{"none"}
		}
		o.line(1, "tools %s; choice %s, at most %d rounds and %d calls a turn", strings.Join(names, ", "), pr.ToolPolicy.ToolChoice, pr.ToolPolicy.MaxRounds, pr.ToolPolicy.MaxToolCallsPerTurn)
	}
	if len(agents) > 0 {
		o.line(1, "hands over to %s", strings.Join(agents, ", "))
	}
	if len(pr.ToolPolicy.Blocklist) > 0 {
		o.line(1, "blocklist %s", strings.Join(pr.ToolPolicy.Blocklist, ", "))
	}
	if text := parameters(pr.Parameters); text != "" {
		o.line(1, "parameters %s", text)
	}
	for _, g := range pr.Guards() {
		what := "notes a violation"
		if g.FailOnViolation {
			what = "blocks"
		}
		if g.Input {
			what += " in what users say"
			if g.Output {
				what += " and in replies"
			}
		}
		if g.FailOnViolation && g.Output {
			what += "; holds back " + g.Holds()
		}
		o.line(1, "validator %s: %s", g.Type, what)
	}
	if pr.Media != nil {
		o.media(pr.Media)
	}
	for _, name := range slices.Sorted(maps.Keys(pr.ModelOverrides)) {
		o.line(1, "another template or parameters for %s", name)
	}
	o.line(1, "template")
	for line := range strings.Lines(pr.Template()) {
		o.lines = append(o.lines, "    | "+strings.TrimRight(line, "\r\n"))
	}
}

// validation is what a variable's values have to be like.
func validation(v *pack.Validation) string {
	if v == nil {
		return ""
	}
	var out []string
	add := func(given bool, format string, value any) {
		if given {
			out = append(out, fmt.Sprintf(format, value))
		}
	}
	add(v.Pattern != "", "matches %s", v.Pattern)
	add(v.MinLength != nil, "at least %v characters", value(v.MinLength))
	add(v.MaxLength != nil, "at most %v characters", value(v.MaxLength))
	add(v.Minimum != nil, "%v or more", value(v.Minimum))
	add(v.Maximum != nil, "%v or less", value(v.Maximum))
	var all []string
	for _, e := range v.Enum {
		all = append(all, inJSON(e))
	}
	add(len(all) > 0, "one of %s", strings.Join(all, ", "))
	return strings.Join(out, "; ")
}

// media is which files users may send.
func (o *outline) media(m *pack.Media) {
	if !m.Enabled {
		o.line(1, "files none")
		return
	}
	kinds := "of any type"
	if len(m.SupportedTypes) > 0 {
		kinds = strings.Join(m.SupportedTypes, ", ")
	}
	o.line(1, "files %s", kinds)
	of := func(kind string, formats []string, megabytes int, limit string, most int) {
		if len(m.SupportedTypes) > 0 && !slices.Contains(m.SupportedTypes, kind) {
			return
		}
		var rules []string
		if len(formats) > 0 {
			rules = append(rules, strings.Join(formats, ", "))
		}
		if megabytes > 0 {
			rules = append(rules, fmt.Sprintf("at most %d MiB", megabytes))
		}
		if most > 0 {
			rules = append(rules, fmt.Sprintf(limit, most))
		}
		if len(rules) > 0 {
			o.line(2, "%s: %s", kind, strings.Join(rules, "; "))
		}
	}
	if i := m.Image; i != nil {
		of("image", i.AllowedFormats, i.MaxSizeMB, "at most %d in a message", i.MaxPerMessage)
	}
	if a := m.Audio; a != nil {
		of("audio", a.AllowedFormats, a.MaxSizeMB, "at most %d seconds of wav", a.MaxDurationSec)
	}
	if v := m.Video; v != nil { // how long it lasts is not looked at: a warning says so
		of("video", v.AllowedFormats, v.MaxSizeMB, "", 0)
	}
	if d := m.Document; d != nil {
		of("document", d.AllowedFormats, d.MaxSizeMB, "", 0)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Other)) {
		of(name, m.Other[name].AllowedFormats, m.Other[name].MaxSizeMB, "", 0)
	}
}

// schema is what a tool takes: a line for each parameter, with what its schema says besides type and description as it is written.
func (o *outline) schema(parameters json.RawMessage) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(parameters) == 0 || json.Unmarshal(parameters, &s) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		kind, what, description := "any", "optional", ""
		if slices.Contains(s.Required, name) {
			what = "required"
		}
		var rules map[string]any
		if json.Unmarshal(s.Properties[name], &rules) == nil {
			switch t := rules["type"].(type) {
			case string:
				kind = t
			case []any:
				kind = inJSON(t)
			}
			description, _ = rules["description"].(string)
			delete(rules, "type")
			delete(rules, "description")
			if len(rules) > 0 {
				what += "; " + inJSON(rules)
			}
		}
		o.line(2, "%s (%s, %s)%s", name, kind, what, about(description))
	}
}

func inJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func parameters(p pack.Parameters) string {
	var out []string
	add := func(name string, v any, given bool) {
		if given {
			out = append(out, fmt.Sprintf("%s %v", name, v))
		}
	}
	add("temperature", value(p.Temperature), p.Temperature != nil)
	add("max_tokens", value(p.MaxTokens), p.MaxTokens != nil)
	add("top_p", value(p.TopP), p.TopP != nil)
	add("top_k", value(p.TopK), p.TopK != nil && *p.TopK > 0)
	add("frequency_penalty", value(p.FrequencyPenalty), p.FrequencyPenalty != nil)
	add("presence_penalty", value(p.PresencePenalty), p.PresencePenalty != nil)
	return strings.Join(out, ", ")
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

package pack

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/schema"
	"github.com/pawl-dev/pawl/pack/guard"
)

// checker looks for what a schema can't see: names that lead nowhere, values that don't fit, templates; and puts what it compiles on the way into the prompts.
type checker struct {
	*report
	pack       *Pack
	validators guard.Types
	size       int // of the templates, with their fragments
}

func (c *checker) check() {
	if s := c.pack.TemplateEngine.Syntax; s != "" && (!strings.Contains(s, "{{") || !strings.Contains(s, "}}")) {
		c.problem(path{"template_engine", "syntax"}, fmt.Sprintf("templates of the form %s can't be filled", clip(s)), "write them, and this, as {{variable}}")
	}
	for _, name := range slices.Sorted(maps.Keys(c.pack.Tools)) {
		c.tool(path{"tools", name}, name, c.pack.Tools[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.pack.Prompts)) {
		c.prompt(path{"prompts", name}, name, c.pack.Prompts[name])
	}
	c.fragments()
	c.evals(path{"evals"}, c.pack.Evals)
	if c.pack.Workflow != nil {
		c.workflow(path{"workflow"}, c.pack.Workflow)
	}
	if c.pack.Agents != nil {
		c.agents(path{"agents"}, c.pack.Agents)
	}
	c.skills(path{"skills"}, c.pack.Skills)
}

// to is a path further down.
func (p path) to(steps ...any) path { return append(slices.Clip(p), steps...) }

func (c *checker) tool(at path, key string, t Tool) {
	if t.Name != key && t.Name != "" {
		c.problem(at.to("name"), fmt.Sprintf("it is %q, and its key is %q", clip(t.Name), clip(key)), "give both the same name")
	}
	if t.Parameters == nil {
		return
	}
	if _, err := schema.Compile(t.Parameters); err != nil {
		c.problem(at.to("parameters"), "it is no JSON Schema: "+clip(err.Error()), "correct it")
	}
	properties := c.find(at.to("parameters", "properties"))
	required := c.find(at.to("parameters", "required"))
	if properties == nil || required == nil {
		return
	}
	for i, n := range required.children {
		if name, ok := n.value.(string); ok && properties.member(name) == nil {
			var known []string
			for _, p := range properties.children {
				known = append(known, p.name)
			}
			c.warn(at.to("parameters", "required", i), fmt.Sprintf("there is no parameter %q", clip(name)), meant(name, known, "add it to properties"))
		}
	}
}

func (c *checker) prompt(at path, key string, p *Prompt) {
	if p.ID != key && p.ID != "" {
		c.problem(at.to("id"), fmt.Sprintf("it is %q, and its key is %q", clip(p.ID), clip(key)), "give both the same name")
	}
	for i := range p.Variables {
		c.variable(at.to("variables", i), p, i)
	}
	c.templates(at, key, p)
	tools := slices.Sorted(maps.Keys(c.pack.Tools)) // and agents, which a prompt may name among its tools
	if c.pack.Agents != nil {
		tools = append(tools, slices.Sorted(maps.Keys(c.pack.Agents.Members))...)
	}
	if c.pack.Workflow != nil {
		tools = append(tools, TransitionTool, ArtifactTool)
	}
	for i, name := range p.Tools {
		if name == SkillTool && c.pack.hasSkills() && !slices.Contains(tools, name) {
			c.problem(at.to("tools", i), "the tool for skills is no tool of the pack", "remove it: every prompt has it unless its blocklist names it")
		} else if !slices.Contains(tools, name) {
			c.problem(at.to("tools", i), fmt.Sprintf("there is no tool %q in the pack", clip(name)), meant(name, tools, "add it to the pack's tools"))
		} else if slices.Index(p.Tools, name) < i {
			c.problem(at.to("tools", i), fmt.Sprintf("%q is there twice", name), "leave one")
		} else if _, tool := c.pack.Tools[name]; name == key && !tool {
			c.warn(at.to("tools", i), "it is the prompt itself, which can't hand over to itself", "remove it")
		}
	}
	c.names(at, p)
	if c.pack.hasSkills() {
		tools = append(tools, SkillTool)
	}
	for i, name := range p.ToolPolicy.Blocklist {
		if !slices.Contains(tools, name) { // a misspelt name would block nothing
			c.problem(at.to("tool_policy", "blocklist", i), fmt.Sprintf("there is no tool %q in the pack", clip(name)), meant(name, tools, "remove it"))
		}
	}
	if p.ToolPolicy.ToolChoice == "required" && c.pack.Workflow == nil && len(c.pack.ToolsOf(p))+len(c.pack.AgentsOf(p)) == 0 && (!c.pack.hasSkills() || !p.OffersSkills()) {
		c.problem(at.to("tool_policy", "tool_choice"), "a call is required, and there is no tool that may be called", "give the prompt a tool, or write auto")
	}
	for i, v := range p.Validators {
		c.validator(at.to("validators", i), p, v)
	}
	c.evals(at.to("evals"), p.Evals)
	if p.Media != nil {
		c.media(at.to("media"), p.Media)
	}
}

// names looks for names that collide in what a model is offered: of an agent that the prompt can hand over to, that is the name of the handoff's tool. Providers take no two that differ in case alone.
func (c *checker) names(at path, p *Prompt) {
	own := map[string]string{}
	for _, t := range c.pack.ToolsOf(p) {
		own[strings.ToLower(t.Name)] = t.Name
	}
	of := map[string]string{}
	for _, id := range c.pack.AgentsOf(p) {
		name := handoffTool(id)
		if tool, ok := own[name]; ok {
			c.problem(path{"tools", tool}, fmt.Sprintf("it has the name of the tool by which %s hands over to %q", at, clip(id)), "give it another name")
		}
		if other, ok := of[name]; ok {
			c.problem(path{"agents", "members", id}, fmt.Sprintf("%s hands over to it and to %q by tools of one name, %s", at, clip(other), clip(name)), "give its prompt another name")
		}
		of[name] = id
	}
}

// handoffTool is the name of the tool that hands over to an agent, as agent.DefaultHandoffToolName has it, which is of a floor above.
func handoffTool(id string) string {
	return "transfer_to_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, id)
}

func (c *checker) variable(at path, p *Prompt, i int) {
	v := &p.Variables[i]
	if slices.ContainsFunc(p.Variables[:i], func(w Variable) bool { return w.Name == v.Name && v.Name != "" }) {
		c.problem(at.to("name"), fmt.Sprintf("%q is there twice", v.Name), "leave one")
	}
	if v.Name == "fragments" {
		c.problem(at.to("name"), "fragments are called so", "give it another name")
	}
	if v.Type != "" && !slices.Contains(types, v.Type) {
		c.warn(at.to("type"), fmt.Sprintf("there is no type %q: values are not checked", clip(v.Type)), meant(v.Type, types, "have one of "+strings.Join(types, ", ")))
	}
	if rules := v.Validation; rules != nil {
		if rules.Pattern != "" {
			re, err := regexp.Compile(rules.Pattern)
			if err != nil {
				c.problem(at.to("validation", "pattern"), clip(err.Error()), "write it in RE2 syntax, which has no lookaround and no backreferences")
			}
			v.pattern = re
		}
		if rules.MinLength != nil && rules.MaxLength != nil && *rules.MinLength > *rules.MaxLength {
			c.problem(at.to("validation", "min_length"), "it is more than max_length", "correct one of them")
		}
		if rules.Minimum != nil && rules.Maximum != nil && *rules.Minimum > *rules.Maximum {
			c.problem(at.to("validation", "minimum"), "it is more than maximum", "correct one of them")
		}
		for j, e := range rules.Enum {
			if err := (Variable{Type: v.Type}).check(e); err != nil {
				c.problem(at.to("validation", "enum", j), err.Error(), "correct it, or the variable's type")
			}
		}
		c.idle(at.to("validation"), v)
	}
	if c.wrong(at.to("validation")) || c.wrong(at.to("type")) {
		return
	}
	if v.Default != nil {
		if v.Required {
			c.problem(at.to("default"), "a required variable has no default", "remove it, or write \"required\": false")
		} else if err := v.check(v.Default); err != nil {
			c.problem(at.to("default"), "it does not fit the variable: "+err.Error(), "correct it")
		}
	}
	if v.Example != nil {
		if err := v.check(v.Example); err != nil {
			c.warn(at.to("example"), "it does not fit the variable: "+err.Error(), "correct it")
		}
	}
}

// idle warns of rules that are for other types.
func (c *checker) idle(at path, v *Variable) {
	text, number := v.Type == "string", v.Type == "number" || v.Type == "integer"
	if !slices.Contains(types, v.Type) {
		return
	}
	for name, of := range map[string]bool{"pattern": text, "min_length": text, "max_length": text, "minimum": number, "maximum": number} {
		if !of && c.find(at.to(name)) != nil {
			c.warn(at.to(name), fmt.Sprintf("it has no effect on %s", article(v.Type)), "remove it")
		}
	}
}

// templates compiles the prompt's template and its overrides, and warns of places that nothing in the pack fills.
func (c *checker) templates(at path, key string, p *Prompt) {
	declared := map[string]bool{}
	for _, v := range p.Variables {
		declared[v.Name] = true
	}
	artifacts, led := c.pack.Workflow.fills(key)
	compile := func(at path, text string) template {
		t := &templates{fragments: c.pack.Fragments, size: &c.size, bad: c.faults(at)}
		out := t.parse(nil, text)
		for _, piece := range out {
			switch {
			case piece.name == "" || declared[piece.name] || led && piece.name == "workflow_context":
			case led && piece.name == "artifacts":
				if len(piece.path) == 0 {
					break // all of them, as JSON
				}
				if name, ok := piece.path[0].(string); ok && !slices.Contains(artifacts, name) && !declared[piece.text] {
					declared[piece.text] = true
					c.warn(at, fmt.Sprintf("{{%s}}: no state has the artifact %q: without a value there is an error", piece.text, clip(name)), meant(name, artifacts, "add it to the artifacts of a state"))
				}
			default:
				declared[piece.name] = true
				c.warn(at, fmt.Sprintf("{{%s}} is no variable of the prompt: without a value from the program there is an error", piece.text), meant(piece.name, variables(p), "add it to the prompt's variables"))
			}
		}
		return out
	}
	p.template = compile(at.to("system_template"), p.SystemTemplate)
	p.overrides = map[string]template{}
	for _, name := range slices.Sorted(maps.Keys(p.ModelOverrides)) {
		o := p.ModelOverrides[name]
		below := at.to("model_overrides", name)
		base := p.template
		if o.SystemTemplate != "" {
			base = compile(below.to("system_template"), o.SystemTemplate)
		}
		t := compile(below.to("system_template_prefix"), o.Prefix)
		t = append(t, base...)
		p.overrides[name] = append(t, compile(below.to("system_template_suffix"), o.Suffix)...)
	}
}

// faults tells of what is wrong with one template: all of it, each once, unless something else is wrong with the value.
func (c *checker) faults(at path) func(reason, remedy string) {
	own, told := at.String(), !c.covered(at.String())
	return func(reason, remedy string) {
		again := func(p Problem) bool { return p.Path == own && p.Reason == reason }
		if told && !c.full() && !slices.ContainsFunc(c.problems, again) {
			line, column := c.source.place(c.offset(at))
			c.problems = append(c.problems, Problem{own, line, column, reason, remedy})
		}
	}
}

func variables(p *Prompt) (names []string) {
	for _, v := range p.Variables {
		names = append(names, v.Name)
	}
	return names
}

// fragments are checked also when no template has them.
func (c *checker) fragments() {
	for _, name := range slices.Sorted(maps.Keys(c.pack.Fragments)) {
		at := path{"fragments", name}
		t := &templates{fragments: c.pack.Fragments, size: &c.size, open: []string{name}, own: 1, bad: c.faults(at)}
		t.parse(nil, c.pack.Fragments[name])
	}
}

func (c *checker) validator(at path, p *Prompt, v Validator) {
	g, err := guard.New(v.config(), c.validators)
	var wrong *guard.Error
	if errors.As(err, &wrong) {
		for _, f := range wrong.Faults {
			below := at.to("type")
			if f.Param != "" {
				below = at.to("params", f.Param)
			}
			c.problem(below, f.Reason, f.Remedy)
		}
		return
	}
	if v.Enabled {
		p.guards = append(p.guards, g)
	}
}

func (c *checker) evals(at path, evals []Eval) {
	for i, e := range evals {
		if e.ID != "" && slices.ContainsFunc(evals[:i], func(other Eval) bool { return other.ID == e.ID }) {
			c.problem(at.to(i, "id"), fmt.Sprintf("%q is there twice", clip(e.ID)), "give each its own")
		}
		switch {
		case slices.Contains(evalsElsewhere, e.Type):
			c.warn(at.to(i, "type"), fmt.Sprintf("it has no effect: evals of type %s can't be run here", e.Type), "")
		case e.Type != "" && !slices.Contains(evalTypes, e.Type):
			c.warn(at.to(i, "type"), fmt.Sprintf("there is no eval %q", clip(e.Type)), meant(e.Type, evalTypes, ""))
		}
		c.oneOf(c.warn, at.to(i, "trigger"), e.Trigger, "every_turn", "on_session_complete", "on_conversation_complete", "on_workflow_step", "sample_turns", "sample_sessions")
		if e.Threshold != nil {
			c.oneOf(c.warn, at.to(i, "threshold", "operator"), e.Threshold.Operator, "gte", "lte", "gt", "lt", "eq")
		}
	}
}

// oneOf tells of a text that is none of some words, unless it is empty.
func (c *checker) oneOf(tell func(at path, reason, remedy string), at path, text string, words ...string) {
	if text != "" && !slices.Contains(words, text) {
		tell(at, fmt.Sprintf("%q is none of %s", clip(text), strings.Join(words, ", ")), meant(text, words, "write one of them"))
	}
}

func (c *checker) workflow(at path, w *Workflow) {
	for _, name := range slices.Sorted(maps.Keys(c.pack.Tools)) {
		if strings.EqualFold(name, TransitionTool) || strings.EqualFold(name, ArtifactTool) {
			c.problem(path{"tools", name}, "it has the name of a tool by which models lead the workflow on", "give it another name")
		}
	}
	if w.Version > 2 {
		c.problem(at.to("version"), fmt.Sprintf("there is no version %d", w.Version), "write 1 or 2")
	}
	states := slices.Sorted(maps.Keys(w.States))
	c.leads(at.to("entry"), w.Entry, "state", states)
	for _, name := range states {
		s, at := w.States[name], at.to("states", name)
		c.leads(at.to("prompt_task"), s.PromptTask, "prompt", slices.Sorted(maps.Keys(c.pack.Prompts)))
		for _, event := range slices.Sorted(maps.Keys(s.OnEvent)) {
			c.leads(at.to("on_event", event), s.OnEvent[event], "state", states)
		}
		c.leads(at.to("on_max_visits"), s.OnMaxVisits, "state", states)
		c.oneOf(c.problem, at.to("persistence"), s.Persistence, "transient", "persistent")
		c.oneOf(c.problem, at.to("orchestration"), s.Orchestration, "internal", "external", "hybrid")
		if s.Terminal && len(s.OnEvent) > 0 {
			c.warn(at.to("on_event"), "a terminal state is not left", "remove it, or terminal")
		}
		if s.OnMaxVisits != "" && s.MaxVisits == 0 {
			c.warn(at.to("on_max_visits"), "it has no effect without max_visits", "add max_visits")
		}
		for _, artifact := range slices.Sorted(maps.Keys(s.Artifacts)) {
			c.mime(at.to("artifacts", artifact, "type"), s.Artifacts[artifact].Type)
		}
		prompt := c.pack.Prompts[s.PromptTask]
		if prompt == nil {
			continue
		}
		if s.Leads(true) && s.Orchestration != "hybrid" && s.Orchestration != "" && !prompt.Allows(TransitionTool) {
			c.warn(at.to("on_event"), fmt.Sprintf("the prompt %q may not call %s, so nobody leaves the state", clip(s.PromptTask), TransitionTool), "let the prompt's tool_policy have it, or write orchestration external")
		}
		for i, id := range prompt.Tools {
			if _, own := c.pack.Tools[id]; !own && c.pack.agent(id) {
				c.warn(path{"prompts", s.PromptTask, "tools", i}, fmt.Sprintf("in the state %q it has no effect: a workflow goes by events, and its prompts hand over to no agent", clip(name)), "add an event")
			}
		}
	}
	if len(w.States[w.Entry].PromptTask) > 0 {
		ahead := w.Ahead(w.Entry)
		for _, name := range states {
			if !slices.Contains(ahead, name) {
				c.warn(at.to("states", name), "nothing leads to it", "name it in an on_event, or remove it")
			}
		}
	}
}

// leads reports a name of something that is not there.
func (c *checker) leads(at path, name, what string, names []string) {
	if n := c.find(at); n != nil && len(names) > 0 && !slices.Contains(names, name) { // that there are none is told elsewhere
		c.problem(at, fmt.Sprintf("there is no %s %q", what, clip(name)), meant(name, names, "have one of "+clip(strings.Join(names, ", "))))
	}
}

func (c *checker) mime(at path, mime string) {
	if kind, name, ok := strings.Cut(mime, "/"); mime != "" && (!ok || kind == "" || name == "" || strings.Contains(name, "/")) {
		c.problem(at, fmt.Sprintf("%q is no MIME type", clip(mime)), "write one, such as text/plain")
	}
}

func (c *checker) agents(at path, a *Agents) {
	members := slices.Sorted(maps.Keys(a.Members))
	c.leads(at.to("entry"), a.Entry, "member", members)
	for _, name := range members {
		if _, ok := c.pack.Tools[name]; ok {
			c.problem(path{"tools", name}, "an agent has the same name, and prompts that name it would not hand over to that", "give it another name")
		}
		if prompts := slices.Sorted(maps.Keys(c.pack.Prompts)); !slices.Contains(prompts, name) {
			c.problem(at.to("members", name), fmt.Sprintf("there is no prompt %q", clip(name)), meant(name, prompts, "call it as its prompt is called"))
		}
		for field, modes := range map[string][]string{"input_modes": a.Members[name].InputModes, "output_modes": a.Members[name].OutputModes} {
			for i, mode := range modes {
				c.mime(at.to("members", name, field, i), mode)
			}
		}
	}
}

func (c *checker) media(at path, m *Media) {
	configured := append(slices.Collect(maps.Keys(m.Other)), "image", "audio", "video", "document")
	slices.Sort(configured)
	for i, name := range m.SupportedTypes {
		if name != "" && !slices.Contains(configured, name) {
			c.warn(at.to("supported_types", i), fmt.Sprintf("there is no member %q that says what such files are", clip(name)), meant(name, configured, "add it to media"))
		}
	}
	for kind, names := range m.formats() {
		for i, name := range names {
			if known := knownFormats[kind]; !slices.Contains(known, format(name)) {
				c.warn(at.to(kind, "allowed_formats", i), fmt.Sprintf("there is no known format %q of %s files", clip(name), kind), meant(format(name), known, "correct it, unless such files have that type or ending"))
			}
		}
	}
	for i, example := range m.Examples {
		for j, part := range example.Parts {
			if part.Media != nil {
				c.mime(at.to("examples", i, "parts", j, "media", "mime_type"), part.Media.MIMEType)
			}
		}
	}
}

func (c *checker) skills(at path, skills []Skill) {
	for _, name := range slices.Sorted(maps.Keys(c.pack.Tools)) {
		if strings.EqualFold(name, SkillTool) && c.pack.hasSkills() {
			c.problem(path{"tools", name}, "it has the name of the tool that gives the pack's skills", "give it another name")
		}
	}
	for i, s := range skills {
		if s.Name != "" && slices.ContainsFunc(skills[:i], func(other Skill) bool { return other.Name == s.Name }) {
			c.problem(at.to(i, "name"), fmt.Sprintf("%q is there twice", clip(s.Name)), "give each its own")
		}
		if n := c.find(at.to(i)); s.Name == "" && s.Path == "" && n != nil && (n.kind == '"' || n.member("path") != nil) {
			c.problem(at.to(i), "its path is empty", "write a path, such as ./skills")
		}
	}
}

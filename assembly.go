package pawl

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/internal/steady"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// assembly is what runs are made of, for one state of the project directory. It does not change: a run keeps the one that it began with, and a change of the directory makes another one.
type assembly struct {
	revision    int              // how many there were before it
	read        *project.Project // as the directory's files are; nil: they are not read
	project     *project.Project // the same, with what a change has spoiled as it was before
	agent       agent.Agent
	subagents   agent.Subagents // that it can give tasks to
	engine      engine.Engine
	calls       calls // of tools, that no model asks for
	policy      sandbox.Policy
	editable    []string          // what policy protects from commands, and people are asked about
	permissions permission.Config // of the hook that is the agent's first
	servers     servers
	shells      *shell.Hooks // nil: there are no shell hooks
	hooking     *shared      // their hold
	hooks       []shell.Hook // that shells was made of, with
	env         map[string]string
	exposed     bool     // commands can change what the project tells models
	warning     string   // for who listens to a run
	broken      string   // the same: why this is not what the directory says now
	problems    []string // what of the directory has no effect, besides what warning says: each is told once in a session
}

// assemble makes an assembly of the options and a project, which its caller holds. before is the one in force, if there is one: its caller holds it, too.
func (r *Runtime) assemble(ctx context.Context, read *project.Project, before *assembly) (_ *assembly, err error) {
	p, unusable := r.opts.sound(read, before)
	o, a := r.opts, &assembly{read: read, project: p, problems: problems(p, unusable)}
	if before != nil {
		a.revision = before.revision + 1
	}
	defer func() {
		if err != nil {
			r.drop(a)
		}
	}()
	settings := project.Settings{Gitignore: true}
	if p != nil {
		settings = p.Settings
	}
	known, err := withSkills(p, o.Skills)
	if err != nil {
		return nil, err
	}
	if o.Model, err = o.model(settings); err != nil {
		return nil, err
	}
	rules, fence, err := o.bounds(r.dir, settings)
	if err != nil {
		return nil, err
	}
	a.permissions, a.policy, a.editable, a.warning = rules, fence.policy, fence.editable, join(fence.warning, waits(p), remembered(p), join(unusable...))
	a.exposed = a.isExposed(o.Trusted)
	var without []string
	o.Settings, without = o.calls(settings, rules)
	a.problems = append(a.problems, without...)
	if can, ok := model.CapabilitiesOf(o.Model); ok { // before subagents, which have the same
		if err := can.Admit(model.Request{Settings: o.Settings}); err != nil {
			return nil, fmt.Errorf("pawl: %w", err)
		}
	}
	if err := r.connect(ctx, a, before, settings); err != nil {
		return nil, err
	}
	tools, readable := r.tools(ctx, o, a, known, settings)
	if tools, a.subagents, err = withTasks(o, p, tools); err != nil {
		return nil, err
	}
	tools = permitted(settings, tools) // the tool for tasks, too
	if !slices.Contains(namesOf(tools), agent.TaskName) {
		a.subagents = nil
	}
	if prompt := promptOf(known, tools); prompt != "" {
		o.System += "\n\n" + prompt
	}
	if p != nil {
		for _, problem := range p.UnknownTools(append(o.toolNames(tools), project.SkillToolName, agent.TaskName, loop.SearchName)) {
			if problem.Remedy != "" { // another name was meant; what is meant for another program is not told of
				a.problems = append(a.problems, problem.String())
			}
		}
	}
	a.permissions.Readable = append(a.permissions.Readable, readable...)
	judged, err := permission.New(a.permissions)
	if err != nil {
		return nil, err
	}
	cfg := loop.Config{Model: o.Model, Settings: o.Settings, Output: o.Output, Tools: tools, Limits: o.Limits, Compact: *o.Compact, Prices: o.Prices, Logger: o.Logger, Revision: a.revision}
	if a.engine, err = o.engine(cfg); err != nil {
		return nil, err
	}
	a.calls = newCalls(cfg, known)
	shells, err := r.shellHooks(a, before, slices.Concat(settings.Hooks, o.ShellHooks), settings.Env) //nolint:contextcheck // those that are replaced have the time that their hooks in the background take
	if err != nil {
		return nil, err
	}
	a.agent = agent.Agent{ID: o.ID, Instructions: o.System, Hooks: slices.Concat([]hook.Middleware{judged}, shells, o.Middleware, r.newSkills(known, tools, judged)), Observers: []agent.Observer{naming{rt: r, problems: a.problems}}}
	return a, nil
}

// promptOf is what the system prompt has of a project. Without the tool that gives them, it has no skills.
func promptOf(p *project.Project, tools []tool.Tool) string {
	if p == nil {
		return ""
	}
	told := *p
	if !slices.Contains(namesOf(tools), project.SkillToolName) {
		told.Skills = nil
	}
	return told.Prompt()
}

// model is the program's, or the one that the settings name.
func (o *Options) model(s project.Settings) (model.Model, error) {
	switch {
	case o.Model != nil:
		return o.Model, nil
	case s.Model != "":
		m, err := OpenModel(s.Model)
		if err != nil {
			return nil, errdefs.Validation.Errorf("pawl: the settings: %w", err)
		}
		return steady.Around(m, s.Retries), nil
	}
	return nil, errdefs.Validation.Errorf("pawl: Options.Model is needed, or a model in the settings: see pawl.OpenModel; a script that the project's settings name has to be approved: see pawl trust")
}

// sound gives a project without what this Runtime has no use for, and with what a change has spoiled as it was before. unusable says what can't be used.
func (o *Options) sound(read *project.Project, before *assembly) (p *project.Project, unusable []string) {
	if read == nil {
		return nil, nil
	}
	now, last := *read, (*project.Project)(nil)
	if before != nil {
		last = before.project
	}
	left := map[string]bool{} // files
	now.Skills = slices.DeleteFunc(slices.Clone(read.Skills), func(k project.Skill) bool {
		out := slices.ContainsFunc(o.Skills, func(own project.Skill) bool { return own.Name == k.Name })
		left[k.File] = left[k.File] || out
		return out
	})
	now.Subagents = slices.DeleteFunc(slices.Clone(read.Subagents), func(def project.Subagent) bool {
		out := o.NoBuiltins || o.NoSubagents || slices.ContainsFunc(o.Subagents, func(own agent.Subagent) bool { return own.Agent.ID == def.Name })
		left[def.File] = left[def.File] || out
		return out
	})
	now.Problems = slices.DeleteFunc(slices.Clone(read.Problems), func(problem project.Problem) bool { return left[problem.File] })
	for i, def := range now.Subagents {
		if def.Broken != "" || def.Model == "" {
			continue
		}
		if _, err := OpenModel(def.Model); err != nil {
			now.Subagents[i].Broken = err.Error()
			now.Problems = append(now.Problems, project.Problem{Place: project.Place{File: def.File}, Reason: err.Error()})
		}
	}
	return now.Keep(last)
}

// problems are those of a project, without what is said already: what unusable says, and which MCP servers can't be had.
func problems(p *project.Project, unusable []string) (all []string) {
	if p == nil {
		return nil
	}
	for _, problem := range p.Problems {
		text := problem.String()
		if slices.ContainsFunc(p.Settings.MCP, func(m mcp.Server) bool {
			return strings.HasPrefix(problem.Reason, "the MCP server "+m.Name+": ")
		}) {
			continue
		}
		if !slices.ContainsFunc(unusable, func(said string) bool { return strings.HasSuffix(said, ": "+text) }) {
			all = append(all, text)
		}
	}
	return all
}

// waits says that something of the project waits for approval.
func waits(p *project.Project) string {
	if p == nil {
		return ""
	}
	n := map[project.State]int{}
	for _, v := range p.Untrusted() {
		n[v.State]++
	}
	var wait, removed string
	if n := n[project.StateWaiting]; n > 0 {
		wait = fmt.Sprintf("%d settings of this project wait for approval and do not count: see pawl trust", n)
	}
	if n := n[project.StateRemoved]; n > 0 {
		removed = fmt.Sprintf("%d restrictions are no longer in this project's files, and count until that is approved: see pawl trust", n)
	}
	return join(wait, removed)
}

// remembered has what the project forbids outlive its files, which tools may write.
func remembered(p *project.Project) string {
	if p == nil {
		return ""
	}
	if err := project.Pin(p); err != nil {
		return fmt.Sprintf("what this project forbids lasts only as long as its files and this process: %v", err)
	}
	return ""
}

func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// tools are the built-in ones, the program's, and that for skills, without those that the settings disallow. readable are directories outside of the project that they may read.
func (r *Runtime) tools(ctx context.Context, o Options, a *assembly, p *project.Project, s project.Settings) (tools []tool.Tool, readable []string) {
	if r.workspace != nil {
		ws := r.workspace.With(builtin.WithEnv(environment(s.Env)), builtin.WithSandbox(a.policy), builtin.WithGitignore(s.Gitignore), builtin.WithDirectories(o.further(s)...), builtin.WithOutside(), builtin.WithEditable(a.editable...))
		readable = append(readable, ws.OutputDir())
		tools = ws.Tools()
		if !a.policy.Network.None() || a.policy.Off {
			tools = append(tools, ws.WebFetch())
		}
	}
	tools = append(tools, o.Tools...)
	if a.servers.client != nil {
		tools = append(tools, a.servers.client.Tools(ctx)...)
	}
	if p != nil && (!o.NoBuiltins || len(o.Skills) > 0) {
		if skill, ok := p.SkillTool(); ok {
			tools = append(tools, skill)
		}
	}
	return permitted(s, tools), readable
}

// permitted are tools without those that the settings disallow.
func permitted(s project.Settings, tools []tool.Tool) []tool.Tool {
	allowed := project.Subagent{DisallowedTools: s.DisallowedTools}.Gate(namesOf(tools))
	return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return !slices.Contains(allowed, t.Definition().Name) })
}

func namesOf(tools []tool.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Definition().Name)
	}
	return names
}

// withTasks adds the tool that gives tasks to the program's subagents and the project's. They have all tools but that one, and know the project's rules and memory behind their instructions.
func withTasks(o Options, p *project.Project, tools []tool.Tool) (with []tool.Tool, subs agent.Subagents, err error) {
	knows := func(instructions string) string { return instructions }
	if p != nil {
		if of := (&project.Project{Rules: p.Rules, Memory: p.Memory}).Prompt(); of != "" {
			knows = func(instructions string) string {
				return strings.TrimSpace(strings.TrimSpace(instructions) + "\n\n" + of)
			}
		}
	}
	for _, s := range o.Subagents {
		if s.Engine == nil {
			s.Agent.Instructions = knows(s.Agent.Instructions)
			if s.Engine, err = o.below(s.Agent.ID, nil, o.Limits, tools); err != nil {
				return nil, nil, err
			}
		}
		subs = append(subs, s)
	}
	if p != nil && !slices.Contains(namesOf(tools), agent.TaskName) {
		for _, def := range p.Subagents { // those that this Runtime has a use for: see sound
			if def.Broken != "" {
				continue
			}
			var m model.Model
			limits, err := o.Limits, error(nil)
			if def.Model != "" {
				if m, err = OpenModel(def.Model); err != nil {
					return nil, nil, errdefs.Validation.Errorf("pawl: %s: %w", def.File, err)
				}
				m = steady.Around(m, p.Settings.Retries)
			}
			if def.MaxTurns > 0 {
				limits.Steps = def.MaxTurns
			}
			eng, err := o.below(def.Name, m, limits, tools)
			if err != nil {
				return nil, nil, err
			}
			subs = append(subs, agent.Subagent{
				Agent: agent.Agent{ID: def.Name, Instructions: knows(def.Instructions), Tools: def.Gate(o.toolNames(tools))}, Engine: eng, Description: def.Description, Timeout: def.Timeout,
			})
		}
	}
	if len(subs) == 0 {
		return tools, nil, nil
	}
	var opts []agent.TaskOption
	if o.DisableSubagentSummary {
		opts = append(opts, agent.WithoutSummary())
	}
	task, err := agent.Task(subs, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("pawl: subagents: %w", err)
	}
	return append(slices.Clip(tools), task), subs, nil
}

// engine makes the engine of the runs.
func (o *Options) engine(cfg loop.Config) (engine.Engine, error) {
	if o.Engine == nil {
		return loop.New(cfg)
	}
	eng, err := o.Engine(cfg)
	if err == nil && eng == nil {
		err = errdefs.Validation.Errorf("pawl: Options.Engine gave neither an engine nor an error")
	}
	return eng, err
}

// below makes the engine of a subagent. m is its own model; nil: the Runtime's.
func (o *Options) below(name string, m model.Model, limits loop.Limits, tools []tool.Tool) (*loop.Engine, error) {
	cfg := loop.Config{Model: o.Model, Settings: o.Settings, Tools: tools, Limits: limits, Compact: *o.Compact, Prices: o.Prices, Logger: o.Logger}
	if m != nil {
		cfg = cfg.For(m)
	} else if s, ok := o.Model.(*scripted.Model); ok {
		cfg.Model = s.For(name)
	}
	eng, err := loop.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("pawl: subagent %s: %w", name, err)
	}
	return eng, nil
}

// environment is that of commands, hooks and MCP servers: this process', without the providers' keys, and what the settings give.
func environment(settings map[string]string) []string {
	env := withoutKeys(os.Environ())
	for name, value := range settings {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// watch keeps the assembly in step with the project directory: what changes there counts from the next run on. What can't be understood leaves the last good state in force.
func (r *Runtime) watch(next func() (*project.Project, error, bool), stop func()) {
	defer stop()
	for {
		p, err, ok := next()
		if !ok {
			return
		}
		if err == nil && r.suspects(p) {
			continue
		}
		before := r.hold()
		after, what := before, "the project's settings can't be read"
		if err == nil {
			what = "what has changed in the project can't take effect"
			after, err = r.assemble(r.ctx, p, before)
		}
		if err != nil {
			kept := *before
			kept.broken = what + ", and what was before stays in force: " + err.Error()
			after = r.share(&kept)
		}
		r.replace(nil, after)
		r.drop(before)
	}
}

// open reads the project directory for the first time.
func (r *Runtime) open(ctx context.Context) (next func() (*project.Project, error, bool), stop func(), err error) {
	opts := []project.Option{project.WithOverrides(r.opts.Overrides), project.WithPermissions(r.opts.Permissions)}
	if r.opts.Trusted {
		opts = append(opts, project.WithTrusted())
	}
	if r.opts.Workdir != "" {
		opts = append(opts, project.WithWorkdir(r.opts.Workdir))
	}
	next, stop = iter.Pull2(project.Watch(r.ctx, r.dir, opts...)) //nolint:contextcheck // it lasts until Close
	p, err, ok := next()
	if err == nil && !ok {
		err = ctx.Err()
	}
	if err == nil {
		var a *assembly
		if a, err = r.assemble(ctx, p, nil); err == nil {
			r.now.Store(a)
			return next, stop, nil
		}
	}
	stop()
	return nil, nil, err
}

// runOptions are those of every run of an assembly.
func (r *Runtime) runOptions(a *assembly, session string, more []agent.RunOption) []agent.RunOption {
	warnings := append([]string{join(a.warning, a.broken, a.servers.warnings())}, r.untold(session, a.problems)...)
	opts := []agent.RunOption{agent.WithEngineHost(r.opts.Host), agent.WithJournal(r.opts.Journal), agent.WithOpen(r.reopen), agent.WithDir(r.dir), agent.WithTimeout(r.opts.Timeout), agent.WithWarning(warnings...)}
	if r.opts.Tracer != nil {
		opts = append(opts, agent.WithTracer(r.opts.Tracer))
	}
	if r.opts.Budget != nil {
		opts = append(opts, agent.WithBudget(r.opts.Budget))
	}
	if !a.policy.Off {
		opts = append(opts, agent.WithSandbox(a.policy)) // for tools of the caller's own, and those of subagents
	}
	return append(append(opts, more...), agent.WithTerms(r.terms(a)))
}

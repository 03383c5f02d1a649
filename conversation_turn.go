package pawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/judged"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
	"github.com/pawl-dev/pawl/tool"
)

// crew are the prompts that a conversation may come to, as the handlers make them.
type crew struct {
	members []member      // the first one is the conversation's own prompt
	graph   engine.Engine // of a workflow, whose states they are
}

// member is a prompt of the conversation: its own, an agent's that it may come to, or a state's.
type member struct {
	state    string // of a workflow
	prompt   *pack.Prompt
	skills   *packSkills
	card     agent.AgentCard
	engine   *loop.Engine // nil for a state: the graph has it
	handoffs []agent.Handoff
	missing  []string // tools without a handler
}

// of is the member of a workflow's state.
func (c *crew) of(state string) (member, bool) {
	for _, m := range c.members {
		if m.state == state {
			return m, true
		}
	}
	return member{}, false
}

// members makes engines of the prompts and the handlers, once for each change of those.
func (c *Conversation) members() (*crew, error) {
	c.mu.Lock()
	handlers, known, version := c.handlers, c.crew, c.version
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		if _, ok := c.pack.Tools[name]; !ok {
			return nil, errdefs.Validation.Errorf("pawl: there is a handler for %q, which is no tool of the pack: it has %s", name, strings.Join(slices.Sorted(maps.Keys(c.pack.Tools)), ", "))
		}
	}
	of := c.agents
	if c.flow != nil {
		of = c.states
	}
	crew, err := of(handlers)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version == c.version {
		c.crew = crew
	}
	return crew, nil
}

// agents are the conversation's prompt, and all that it can hand over to.
func (c *Conversation) agents(handlers map[string]handler) (*crew, error) {
	var all crew
	todo, listed := []*pack.Prompt{c.prompt}, map[string]bool{c.prompt.ID: true}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		m := member{prompt: p, skills: c.skills[""], card: agent.AgentCard{Name: p.Name, Description: p.Description}}
		if a, ok := c.pack.Agent(p.ID); ok {
			m.card.Description = a.Description
		}
		var over []tool.Tool
		for _, id := range c.pack.AgentsOf(p) {
			a, _ := c.pack.Agent(id)
			h := agent.Handoff{ToAgentID: id, Description: a.Description}
			m.handoffs, over = append(m.handoffs, h), append(over, agent.HandoffTool(h))
			if to, err := c.pack.Prompt(id); err != nil {
				return nil, err
			} else if !listed[id] {
				listed[id] = true
				todo = append(todo, to)
			}
		}
		var err error
		if m.engine, err = loop.New(c.config(&m, handlers, over)); err != nil {
			return nil, fmt.Errorf("pawl: prompt %s: %w", p.ID, err)
		}
		all.members = append(all.members, m)
	}
	return &all, nil
}

// states are those of the workflow.
func (c *Conversation) states(handlers map[string]handler) (*crew, error) {
	var all crew
	loops := map[string]loop.Config{}
	for _, name := range slices.Sorted(maps.Keys(c.flow.def.States)) {
		s := c.flow.def.States[name]
		p, err := c.pack.Prompt(s.PromptTask)
		if err != nil {
			return nil, err
		}
		m := member{state: name, prompt: p, skills: c.skills[s.Skills]}
		loops[name] = c.config(&m, handlers, c.flow.led(s, p))
		if _, err := loop.New(loops[name]); err != nil { // the graph would say so of a node, by its number
			return nil, fmt.Errorf("pawl: state %s: %w", name, err)
		}
		all.members = append(all.members, m)
	}
	g, err := c.flow.compile(loops)
	all.graph = g
	return &all, err
}

// config is how a member's loop is made; more are tools besides the pack's. It notes what has no handler.
func (c *Conversation) config(m *member, handlers map[string]handler, more []tool.Tool) loop.Config {
	p := m.prompt
	all, missing := tools(c.pack.ToolsOf(p), handlers)
	m.missing = missing
	all = slices.Concat(all, more, m.skills.offered(p))
	cfg := loop.Config{
		Model: c.model, Settings: p.ParametersFor(c.modelName()).Settings(), Tools: all, Compact: c.opts.compact, Middleware: []model.Middleware{c.rules(p)},
		Hooks: slices.Concat([]hook.Middleware{rounds(p.ToolPolicy)}, m.skills.hooks(p, c.opts.store, m.handoffs, c.flow != nil), []hook.Middleware{asking(handlers)}),
	}
	if len(all) > 0 {
		cfg.Settings.ToolChoice = p.ToolPolicy.Choice()
		cfg.Limits = loop.Limits{Steps: p.ToolPolicy.MaxRounds + 1, ToolCalls: p.ToolPolicy.MaxToolCallsPerTurn}
	}
	return cfg
}

// modelName is what overrides for models go by; "" where the model doesn't say.
func (c *Conversation) modelName() string {
	caps, _ := model.CapabilitiesOf(c.model)
	return caps.Name
}

// driver runs a turn: an agent, or a team where the prompt can hand over.
type driver struct {
	run    func(ctx context.Context, req agent.Request, opts ...agent.RunOption) (*agent.Result, error)
	resume func(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error)
}

// driver renders the prompts with the variables of this moment.
func (c *Conversation) driver(ctx context.Context) (driver, error) {
	crew, err := c.members()
	if err != nil {
		return driver{}, err
	}
	vars := c.values()
	if turn, ok := ctx.Value(turnKey{c}).(*found); ok {
		turn.vars, turn.crew = vars, crew
	}
	due := crew.members
	if c.flow != nil {
		if due, vars, err = c.flow.due(ctx, crew, vars); err != nil {
			return driver{}, err
		}
	}
	var team []agent.Member
	var wrong []error
	for _, m := range due {
		if len(m.missing) > 0 {
			wrong = append(wrong, errdefs.Validation.Errorf("pawl: nobody answers the tools of prompt %s: %s: give each an OnTool before Send", m.prompt.ID, strings.Join(m.missing, ", ")))
		}
		system, err := c.render(m, vars)
		if err != nil {
			wrong = append(wrong, err)
		}
		team = append(team, agent.Member{Agent: agent.Agent{ID: m.prompt.ID, Card: m.card, Instructions: system}, Engine: m.engine, Handoffs: m.handoffs})
	}
	if len(wrong) > 0 {
		return driver{}, errors.Join(wrong...)
	}
	if c.flow != nil {
		return drives(agent.Agent{ID: c.pack.ID, Card: agent.AgentCard{Name: c.pack.Name, Description: c.pack.Description}}, crew.graph), nil
	}
	if len(team) == 1 {
		return drives(team[0].Agent, team[0].Engine), nil
	}
	t, err := agent.NewTeam(agent.TeamConfig{Members: team})
	if err != nil {
		return driver{}, err
	}
	return driver{t.Run, t.Resume}, nil
}

// drives is the driver of one agent.
func drives(a agent.Agent, e engine.Engine) driver {
	return driver{
		func(ctx context.Context, req agent.Request, opts ...agent.RunOption) (*agent.Result, error) {
			return agent.Run(ctx, a, e, req, opts...)
		},
		func(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
			return agent.Resume(ctx, a, e, session, opts...)
		},
	}
}

// values are the variables as they are now.
func (c *Conversation) values() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.vars)
}

// render is the system prompt of a member.
func (c *Conversation) render(m member, vars map[string]any) (string, error) {
	system, err := m.prompt.Render(c.modelName(), vars)
	if told := m.skills.told(m.prompt); told != "" {
		system = strings.TrimPrefix(system+"\n\n"+told, "\n\n")
	}
	return system, err
}

// take takes a turn.
func (c *Conversation) take(ctx context.Context, opts []agent.RunOption, f func(context.Context, driver, ...agent.RunOption) (*agent.Result, error)) (resp *Response, err error) {
	inside, leave, err := c.enter(ctx)
	if err != nil {
		c.tell(ctx, nil, err)
		return nil, err
	}
	defer leave()
	seen, runs := &found{}, &hops{session: c.session}
	inside, opts = context.WithValue(inside, turnKey{c}, seen), append(slices.Clip(opts), agent.WithObserver(runs))
	res, err := c.drive(inside, opts, f)
	for err == nil && c.answered(inside, res) {
		res, err = c.drive(inside, opts, c.resume)
	}
	if res != nil {
		res = runs.together(res, err)
		resp = &Response{Result: res}
		var blocked *guard.Violation
		resp.Violations, blocked = seen.all()
		switch {
		case err != nil:
		case res.Status == agent.StatusInterrupted && len(res.Pending) > 0:
		case blocked != nil && errdefs.Refused.Is(res.Err):
			err = blocked
		default:
			err = res.Err
		}
	}
	c.tell(ctx, res, err)
	return resp, err
}

// hops has what came of the runs of a turn, of which there are several when agents hand over.
type hops struct {
	agent.BaseObserver
	session string
	all     []*agent.Result
}

// OnRunEnd implements agent.Observer. A run that went on is in its last Result as a whole.
func (h *hops) OnRunEnd(_ context.Context, info agent.RunInfo, res *agent.Result) {
	if info.ContextID != h.session || res == nil {
		return
	}
	for i, r := range h.all {
		if r.RunID == res.RunID {
			h.all[i] = res
			return
		}
	}
	h.all = append(h.all, res)
}

// together is what came of the turn: last, with what the runs before it said and took. With an error behind a completed run, the turn failed.
func (h *hops) together(last *agent.Result, err error) *agent.Result {
	out := *last
	if err != nil && out.Status == agent.StatusCompleted {
		out.Status, out.Err = agent.StatusFailed, err
	}
	if len(h.all) < 2 {
		return &out
	}
	zero := int64(0)
	out.Messages, out.Artifacts, out.Usage, out.Cost, out.Steps = nil, nil, model.Usage{}, &zero, 0
	for _, r := range h.all {
		out.Messages, out.Artifacts = append(out.Messages, r.Messages...), append(out.Artifacts, r.Artifacts...)
		out.Usage, out.Steps = out.Usage.Add(r.Usage), out.Steps+r.Steps
		switch {
		case r.Cost == nil || out.Cost == nil:
			out.Cost = nil
		default:
			sum := *out.Cost + *r.Cost
			out.Cost = &sum
		}
	}
	return &out
}

// answered reports whether a turn waits for people who have answered already: while it was being parked, or in the loop over its stream. What still waits is in res from then on.
func (c *Conversation) answered(ctx context.Context, res *agent.Result) bool {
	if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson {
		return false
	}
	if st, err := c.state(ctx); err == nil {
		c.toldTo = st.Seq
	}
	all, err := c.PendingTools(ctx)
	if err != nil { // the next turn will tell
		return false
	}
	res.Pending = all
	return len(all) == 0
}

// resume goes on with the turn, once listeners have heard what people said meanwhile, wherever they said it.
func (c *Conversation) resume(ctx context.Context, d driver, opts ...agent.RunOption) (*agent.Result, error) {
	if c.toldTo > 0 && c.bus.Listening() {
		for e, err := range c.opts.store.Read(ctx, c.session, c.toldTo) {
			if err != nil {
				return nil, err
			}
			if _, ok := e.Data.(journal.Answered); ok {
				c.bus.Publish(ctx, event.Event{Entry: e})
			}
		}
	}
	c.toldTo = 0
	return d.resume(ctx, c.session, opts...)
}

func (c *Conversation) drive(ctx context.Context, opts []agent.RunOption, f func(context.Context, driver, ...agent.RunOption) (*agent.Result, error)) (*agent.Result, error) {
	d, err := c.driver(ctx)
	if err != nil {
		return nil, err
	}
	return f(ctx, d, slices.Concat(c.opts.run, []agent.RunOption{agent.WithEngineHost(c.host()), agent.WithJournal(c.opts.store), agent.WithOpen(c.open)}, opts)...)
}

// heard has the validators of a prompt judge what a user says.
func (c *Conversation) heard(ctx context.Context, p *pack.Prompt, text string) error {
	for _, g := range p.Guards() {
		if !g.Input {
			continue
		}
		v := g.With(c.ask).Judge(ctx, text)
		switch {
		case v == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case g.FailOnViolation:
			return v
		default:
			c.notes(ctx, nil, v)
		}
	}
	return nil
}

// ask asks a model on behalf of a validator.
func (c *Conversation) ask(ctx context.Context, q guard.Question) (string, error) {
	m := c.model
	if q.Model != "" {
		var err error
		if m, err = c.opts.judging(q.Model); err != nil {
			return "", err
		}
	}
	return judged.Ask(ctx, m, q)
}

// found is what a turn goes by, and what validators found in it.
type found struct {
	vars    map[string]any // of the conversation, as they were when it began, or went on
	crew    *crew
	mu      sync.Mutex
	noted   []*guard.Violation
	blocked *guard.Violation
}

func (f *found) all() ([]*guard.Violation, *guard.Violation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.noted)
	if f.blocked != nil {
		out = append(out, f.blocked)
	}
	return out, f.blocked
}

// notes keeps what was found in the turn that ctx is of.
func (c *Conversation) notes(ctx context.Context, blocked *guard.Violation, noted ...*guard.Violation) {
	if f, ok := ctx.Value(turnKey{c}).(*found); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.noted = append(f.noted, noted...)
		if blocked != nil {
			f.blocked = blocked
		}
	}
}

// rounds refuses calls that a model makes although it was told to make none.
func rounds(policy pack.ToolPolicy) hook.Middleware {
	return hook.Middleware{Name: "tool_policy", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if judged.Round(u.Messages) > policy.MaxRounds {
			return hook.Denied(fmt.Sprintf("this turn had its %d rounds of tools: answer without", policy.MaxRounds)), nil
		}
		return hook.Decision{}, nil
	}}
}

// rules puts the prompt's tool policy and validators around the model.
func (c *Conversation) rules(p *pack.Prompt) model.Middleware {
	r := judged.Rules{MaxRounds: p.ToolPolicy.MaxRounds, Found: c.notes}
	for _, g := range p.Guards() {
		if g.Output {
			r.Guards = append(r.Guards, g.With(c.ask))
		}
	}
	return r.Middleware
}

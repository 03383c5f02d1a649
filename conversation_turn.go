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
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// member is a prompt of the conversation: its own, or an agent's that it may come to.
type member struct {
	prompt   *pack.Prompt
	card     agent.AgentCard
	engine   *loop.Engine
	handoffs []agent.Handoff
	missing  []string // tools without a handler
}

// members makes engines of the prompts and the handlers, once for each change of those. The first one is the conversation's own prompt.
func (c *Conversation) members() ([]member, error) {
	c.mu.Lock()
	handlers, crew, version := c.handlers, c.crew, c.version
	c.mu.Unlock()
	if crew != nil {
		return crew, nil
	}
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		if _, ok := c.pack.Tools[name]; !ok {
			return nil, errdefs.Validation.Errorf("pawl: there is a handler for %q, which is no tool of the pack: it has %s", name, strings.Join(slices.Sorted(maps.Keys(c.pack.Tools)), ", "))
		}
	}
	name := c.modelName()
	todo, known := []*pack.Prompt{c.prompt}, map[string]bool{c.prompt.ID: true}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		m := member{prompt: p, card: agent.AgentCard{Name: p.Name, Description: p.Description}}
		if a, ok := c.pack.Agent(p.ID); ok {
			m.card.Description = a.Description
		}
		for _, id := range c.pack.AgentsOf(p) {
			a, _ := c.pack.Agent(id)
			m.handoffs = append(m.handoffs, agent.Handoff{ToAgentID: id, Description: a.Description})
			if to, err := c.pack.Prompt(id); err != nil {
				return nil, err
			} else if !known[id] {
				known[id] = true
				todo = append(todo, to)
			}
		}
		all, missing := tools(c.pack.ToolsOf(p), handlers)
		m.missing = missing
		all = append(all, agent.HandoffTools(context.Background(), nil, m.handoffs)...)
		cfg := loop.Config{
			Model: c.model, Settings: p.ParametersFor(name).Settings(), Tools: all,
			Middleware: []model.Middleware{c.rules(p)}, Hooks: []hook.Middleware{rounds(p.ToolPolicy), asking(handlers)},
		}
		if len(all) > 0 {
			cfg.Settings.ToolChoice = p.ToolPolicy.Choice()
			cfg.Limits = loop.Limits{Steps: p.ToolPolicy.MaxRounds + 1, ToolCalls: p.ToolPolicy.MaxToolCallsPerTurn}
		}
		var err error
		if m.engine, err = loop.New(cfg); err != nil {
			return nil, fmt.Errorf("pawl: prompt %s: %w", p.ID, err)
		}
		crew = append(crew, m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version == c.version {
		c.crew = crew
	}
	return crew, nil
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
func (c *Conversation) driver() (driver, error) {
	crew, err := c.members()
	if err != nil {
		return driver{}, err
	}
	c.mu.Lock()
	vars := maps.Clone(c.vars)
	c.mu.Unlock()
	name := c.modelName()
	var team []agent.Member
	var wrong []error
	for _, m := range crew {
		if len(m.missing) > 0 {
			wrong = append(wrong, errdefs.Validation.Errorf("pawl: nobody answers the tools of prompt %s: %s: give each an OnTool before Send", m.prompt.ID, strings.Join(m.missing, ", ")))
		}
		system, err := m.prompt.Render(name, vars)
		if err != nil {
			wrong = append(wrong, err)
		}
		team = append(team, agent.Member{Agent: agent.Agent{ID: m.prompt.ID, Card: m.card, Instructions: system}, Engine: m.engine, Handoffs: m.handoffs})
	}
	if len(wrong) > 0 {
		return driver{}, errors.Join(wrong...)
	}
	if len(team) == 1 {
		one := team[0]
		return driver{
			func(ctx context.Context, req agent.Request, opts ...agent.RunOption) (*agent.Result, error) {
				return agent.Run(ctx, one.Agent, one.Engine, req, opts...)
			},
			func(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
				return agent.Resume(ctx, one.Agent, one.Engine, session, opts...)
			},
		}, nil
	}
	t, err := agent.NewTeam(agent.TeamConfig{Members: team})
	if err != nil {
		return driver{}, err
	}
	return driver{t.Run, t.Resume}, nil
}

// take takes a turn.
func (c *Conversation) take(ctx context.Context, opts []agent.RunOption, f func(context.Context, driver, ...agent.RunOption) (*agent.Result, error)) (resp *Response, err error) {
	inside, leave, err := c.enter(ctx)
	if err != nil {
		c.tell(ctx, nil, err)
		return nil, err
	}
	defer leave()
	seen := &found{}
	res, err := c.drive(context.WithValue(inside, turnKey{c}, seen), opts, f)
	if res != nil {
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

func (c *Conversation) drive(ctx context.Context, opts []agent.RunOption, f func(context.Context, driver, ...agent.RunOption) (*agent.Result, error)) (*agent.Result, error) {
	d, err := c.driver() //nolint:contextcheck // nothing is called yet
	if err != nil {
		return nil, err
	}
	return f(ctx, d, slices.Concat(c.opts.run, []agent.RunOption{agent.WithEngineHost(c.host()), agent.WithJournal(c.opts.store)}, opts)...)
}

// heard has the validators judge what a user says.
func (c *Conversation) heard(ctx context.Context, text string) error {
	for _, g := range c.prompt.Guards() {
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
			noteOf(ctx, c, v)
		}
	}
	return nil
}

// ask asks a model on behalf of a validator.
func (c *Conversation) ask(ctx context.Context, q guard.Question) (string, error) {
	m := c.model
	if q.Model != "" {
		var err error
		if m, err = c.opts.named(q.Model); err != nil {
			return "", err
		}
	}
	resp, err := m.Complete(ctx, model.Request{System: q.System, Messages: message.NewHistory(message.User(q.Prompt))})
	if err != nil {
		return "", err
	}
	return resp.Message.Text(), nil
}

// found is what validators found in a turn.
type found struct {
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

func noteOf(ctx context.Context, c *Conversation, vs ...*guard.Violation) {
	if f, ok := ctx.Value(turnKey{c}).(*found); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.noted = append(f.noted, vs...)
	}
}

func blockOf(ctx context.Context, c *Conversation, v *guard.Violation) {
	if f, ok := ctx.Value(turnKey{c}).(*found); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.blocked = v
	}
}

// round counts the replies with tool calls since a person said something.
func round(talk message.History) (n int) {
	for i := talk.Len() - 1; i >= 0; i-- {
		switch m := talk.At(i); m.Role() {
		case message.RoleAssistant:
			if len(m.ToolCalls()) > 0 {
				n++
			}
		case message.RoleUser:
			if !ours(m) {
				return n
			}
		}
	}
	return n
}

// ours reports whether the loop said a message, on its own account.
func ours(m message.Message) bool {
	for p := range m.Parts() {
		if t, ok := p.(message.Text); !ok || t.Provider != "pawl" {
			return false
		}
	}
	return true
}

// rounds refuses calls that a model makes although it was told to make none.
func rounds(policy pack.ToolPolicy) hook.Middleware {
	return hook.Middleware{Name: "tool_policy", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if round(u.Messages) > policy.MaxRounds {
			return hook.Denied(fmt.Sprintf("this turn had its %d rounds of tools: answer without", policy.MaxRounds)), nil
		}
		return hook.Decision{}, nil
	}}
}

// rules puts the prompt's tool policy and validators around the model.
func (c *Conversation) rules(p *pack.Prompt) model.Middleware {
	r := ruled{conversation: c, policy: p.ToolPolicy}
	for _, g := range p.Guards() {
		if g.Output {
			r.guards = append(r.guards, g.With(c.ask))
		}
	}
	return func(m model.Model) model.Model {
		r.Model = m
		if d, ok := m.(model.Describer); ok {
			return struct {
				ruled
				model.Describer
			}{r, d}
		}
		return r
	}
}

// ruled is a model whose replies are judged before anybody sees them.
type ruled struct {
	model.Model
	conversation *Conversation
	policy       pack.ToolPolicy
	guards       []*guard.Guard
}

// choose lets the model answer in words once it has called tools, and makes it when it may call no more.
func (r ruled) choose(req model.Request) model.Request {
	if len(req.Tools) == 0 {
		return req
	}
	switch n := round(req.Messages); {
	case n >= r.policy.MaxRounds:
		req.ToolChoice = model.ToolsNone
	case n > 0 && req.ToolChoice == model.ToolsRequired:
		req.ToolChoice = model.ToolsAuto
	}
	return req
}

// Complete implements model.Model.
func (r ruled) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	resp, err := r.Model.Complete(ctx, r.choose(req))
	if err != nil || resp == nil || len(r.guards) == 0 {
		return resp, err
	}
	j := r.judge()
	j.take(resp.Message.Text())
	return j.end(ctx, resp)
}

// CompleteStream implements model.Model.
func (r ruled) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	req = r.choose(req)
	if len(r.guards) == 0 {
		return r.Model.CompleteStream(ctx, req, cb)
	}
	j := r.judge()
	return r.Model.CompleteStream(ctx, req, func(s model.StreamResult) (err error) {
		s.Text = j.take(s.Text)
		if s.Final && s.Response != nil {
			if !j.heard { // a model that does not stream
				s.Text += j.take(s.Response.Message.Text())
			}
			shown := j.shown.Len()
			if s.Response, err = j.end(ctx, s.Response); err != nil {
				return err
			}
			s.Text += j.shown.String()[shown:]
		}
		if s.Text == "" && s.Reasoning == "" && !s.Final {
			return nil
		}
		return cb(s)
	})
}

// judged is a reply that is being judged.
type judged struct {
	ruled
	filter  *guard.Filter
	shown   strings.Builder
	heard   bool
	blocked *guard.Violation
}

func (r ruled) judge() *judged { return &judged{ruled: r, filter: guard.NewFilter(r.guards...)} }

// take gives what may be shown now that piece has come.
func (j *judged) take(piece string) string {
	if piece == "" || j.blocked != nil {
		return ""
	}
	j.heard = true
	return j.show(j.filter.Write(piece))
}

// show notes what is shown, and says in place of the rest what a violation has to say.
func (j *judged) show(text string, err error) string {
	if errors.As(err, &j.blocked) {
		if before := j.shown.String() + text; before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\n") {
			text += " "
		}
		text += j.blocked.Message()
	}
	j.shown.WriteString(text)
	return text
}

// end judges the whole reply, and gives it as it may be on record: one that is blocked has what was shown of it, and no calls. Its calls alone say nothing to anybody.
func (j *judged) end(ctx context.Context, resp *model.Response) (*model.Response, error) {
	if j.blocked == nil && (j.heard || len(resp.Message.ToolCalls()) == 0) {
		text, err := j.filter.End(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err() // nobody judged it
		}
		j.show(text, err)
	}
	noteOf(ctx, j.conversation, j.filter.Noted()...)
	if j.blocked == nil {
		return resp, nil
	}
	blockOf(ctx, j.conversation, j.blocked)
	out := *resp
	out.Message, out.Stop, out.Reason = message.Assistant(j.shown.String()), model.StopFilter, j.blocked.Error()
	return &out, nil
}

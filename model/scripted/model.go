package scripted

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

const provider = "scripted"

// Summary is what every script says when the loop asks for a summary of the conversation.
const Summary = "A script was played up to here."

// Model plays a script. It has no state: the same request gets the same reply, from every Model of the same script. Make one with
// [New] or [Script.Model]. It is safe for concurrent use.
type Model struct {
	script string // the script's name
	agent  string // whose turns these are; "" for the agent itself
	turns  []Turn
	agents map[string][]Turn
	err    error // what is wrong with turns; every call fails with it
}

// New makes a model of turns, named "scripted/test". It never fails: what is wrong with a turn is said by the first call, with class
// errdefs.Validation. It has no turns for child agents: make a [Script] where there are some.
func New(turns ...Turn) *Model { return (&Script{Name: "test", Turns: turns}).Model() }

// Model makes a model that plays s. Later changes to s don't reach it.
func (s *Script) Model() *Model { return newModel(s.Name, "", s.Turns, maps.Clone(s.Agents)) }

func newModel(script, agent string, turns []Turn, agents map[string][]Turn) *Model {
	m := &Model{script: script, agent: agent, agents: agents}
	m.turns, m.err = ready(turns)
	if m.err != nil {
		m.err = errdefs.Validation.Errorf("%s: %w", m.name(), m.err)
	}
	return m
}

// For gives the model of a child agent: the script's part under agents with this name. If there is none, every call of what For
// gives fails with errdefs.Validation and says which there are.
func (m *Model) For(agent string) *Model {
	turns, ok := m.agents[agent]
	if ok {
		return newModel(m.script, agent, turns, m.agents)
	}
	names := strings.Join(slices.Sorted(maps.Keys(m.agents)), ", ")
	child := &Model{script: m.script, agent: agent, agents: m.agents}
	child.err = errdefs.Validation.Errorf("%s: the script has nothing for the agent %q (it has: %s): add it under agents", m.name(), agent, cmp.Or(names, "none"))
	return child
}

func (m *Model) name() string {
	if m.agent != "" {
		return provider + "/" + m.script + "#" + m.agent
	}
	return provider + "/" + m.script
}

// Capabilities says that a script can do everything.
func (m *Model) Capabilities() model.Capabilities {
	return model.Capabilities{
		Name: m.name(), Provider: provider,
		Tools: true, Images: true, Documents: true, Audio: true, Schema: true, TopK: true, Seed: true, Stop: true, MaxTokens: true, Penalties: true,
		Reasoning: model.ReasoningLevels(), ProviderTools: []string{model.WebSearch, model.WebFetch, model.CodeExecution},
	}
}

// Complete gives the reply of the entry that the transcript has come to.
func (m *Model) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if why(req.Messages.Last()).Why == "summarize" {
		return &model.Response{Message: message.Assistant(Summary), Stop: model.StopEnd, Model: m.name()}, ctx.Err()
	}
	i, err := m.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	if m.turns[i].Error != nil {
		return nil, m.failure(i)
	}
	return m.response(i), nil
}

// CompleteStream streams the reply of the entry that the transcript has come to: its reasoning and its text word by word.
func (m *Model) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if why(req.Messages.Last()).Why == "summarize" {
		resp, err := m.Complete(ctx, req)
		if err != nil {
			return err
		}
		return cb(model.StreamResult{Final: true, Response: resp})
	}
	i, err := m.begin(ctx, req)
	if err != nil {
		return err
	}
	t := &m.turns[i]
	var pieces []model.StreamResult
	for _, w := range words(t.Reasoning) {
		pieces = append(pieces, model.StreamResult{Reasoning: w})
	}
	for _, w := range words(t.Text) {
		pieces = append(pieces, model.StreamResult{Text: w})
	}
	switch {
	case t.Error == nil:
		pieces = append(pieces, model.StreamResult{Final: true, Response: m.response(i)})
	case t.Error.MidStream:
		pieces = pieces[:(len(pieces)+1)/2]
	}
	for _, p := range pieces {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := cb(p); err != nil {
			return err
		}
	}
	if t.Error != nil {
		return m.failure(i)
	}
	return nil
}

// begin finds the entry to play and waits for its delay.
func (m *Model) begin(ctx context.Context, req model.Request) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if req.Messages.Len() == 0 {
		return 0, errdefs.Validation.Errorf("%s: a request needs a message", m.name())
	}
	i, played := next(m.turns, req.Messages, model.Attempt(ctx))
	if i == len(m.turns) {
		return 0, m.spent(played)
	}
	return i, wait(ctx, m.turns[i].Delay)
}

// spent is the error for a request that is one too many.
func (m *Model) spent(played int) error {
	if played < len(m.turns) {
		return errdefs.Validation.Errorf("%s: the script has %d turns; %d were played, and none of the others is for now (its when is not true, or its error was played): add a turn",
			m.name(), len(m.turns), played)
	}
	return errdefs.Validation.Errorf("%s: the script has %d turns and all were played: add a turn", m.name(), len(m.turns))
}

func (m *Model) response(i int) *model.Response {
	t := &m.turns[i]
	parts := make([]message.Part, 0, 2+len(t.Calls))
	if t.Reasoning != "" {
		parts = append(parts, message.Reasoning{Text: t.Reasoning, Origin: message.Origin{Provider: provider}})
	}
	if t.Text != "" {
		parts = append(parts, message.Text{Text: t.Text})
	}
	for _, c := range t.Calls {
		parts = append(parts, message.ToolCall{ID: c.ID, Name: c.Name, Input: c.Input})
	}
	return &model.Response{
		Message: message.New(message.RoleAssistant, parts...),
		Usage:   t.Usage, Stop: t.Stop, Model: m.name(), ID: "turn_" + strconv.Itoa(i+1),
	}
}

func (m *Model) failure(i int) error {
	f := m.turns[i].Error
	status := cmp.Or(f.Status, 500)
	return &model.Error{
		Provider: provider, Kind: model.ClassOfStatus(status), Status: status, Code: f.Code, RetryAfter: f.RetryAfter,
		Message: cmp.Or(f.Message, "turn "+strconv.Itoa(i+1)+" of the script is an error"),
	}
}

// wait sleeps for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// words cuts s before each word but the first; together they are s.
func words(s string) (out []string) {
	space := false
	start := 0
	for i, r := range s {
		if space && !unicode.IsSpace(r) {
			out = append(out, s[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

package script

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/choice"
	"github.com/pawl-dev/pawl/internal/star"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// builtins are what a program has beside the language. They have no state: the thread's part has it.
var builtins = starlark.StringDict{
	"generate": starlark.NewBuiltin("generate", generate),
	"tool":     starlark.NewBuiltin("tool", useTool),
	"agent":    starlark.NewBuiltin("agent", useAgent),
	"ask":      starlark.NewBuiltin("ask", ask),
	"emit":     starlark.NewBuiltin("emit", emit),
	"parallel": starlark.NewBuiltin("parallel", parallel),
	"board": star.NewStruct(starlark.StringDict{
		"get":     starlark.NewBuiltin("board.get", boardGet),
		"set":     starlark.NewBuiltin("board.set", boardSet),
		"vars":    starlark.NewBuiltin("board.vars", boardVars),
		"channel": starlark.NewBuiltin("board.channel", boardChannel),
		"append":  starlark.NewBuiltin("board.append", boardAppend),
	}),
}

type (
	args   = starlark.Tuple
	kwargs = []starlark.Tuple
)

// outcome is what an effect came to: true or false, with fields.
type outcome struct {
	*star.Struct
	kind string
	ok   bool
}

// Truth says whether it went well.
func (o outcome) Truth() starlark.Bool { return starlark.Bool(o.ok) }

// Type is "reply", "result" or "answer".
func (o outcome) Type() string { return o.kind }

func (o outcome) String() string { return o.kind + strings.TrimPrefix(o.Struct.String(), "struct") }

// An effect counts as much of the limits: what is put on record takes room and time that are nobody's step.
const (
	effectBytes = 4096
	effectSteps = 100
)

// counts an effect with what it is given.
func counts(t *starlark.Thread, given int) error {
	if err := star.CountSteps(t, effectSteps); err != nil {
		return err
	}
	return star.CountBytes(t, effectBytes+given)
}

// generate has a model work on a channel, with tools, until it is done.
func generate(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var prompt, system, name, tools, schema starlark.Value
	channel, check := engine.MainChannel, true
	if err := starlark.UnpackArgs(b.Name(), as, kws, "prompt?", &prompt, "system?", &system, "model?", &name, "tools?", &tools,
		"channel?", &channel, "output_schema?", &schema, "check?", &check); err != nil {
		return nil, err
	}
	p := partOf(t)
	want, err := p.wanted(name, tools, schema, channel)
	if err != nil {
		return nil, err
	}
	if _, replay := p.run.Steps.(*engine.Replay); replay { // what is on record needs neither the model nor the tools
		want.Model, want.Only, want.Tools = "", false, nil
	}
	l, err := p.engine.loopOf(want.key(), want.change(p.engine))
	if err != nil {
		return nil, err
	}
	run := p.run
	if s, set, err := text("system", system); err != nil {
		return nil, err
	} else if set {
		run.System = s
	}
	if err := counts(t, size(prompt)+size(system)+len(want.schema)); err != nil {
		return nil, err
	}
	before := p.board.Snapshot()
	board := engine.NewBoard(before)
	if s, set, err := text("prompt", prompt); err != nil {
		return nil, err
	} else if set {
		if strings.TrimSpace(s) == "" {
			return nil, fmt.Errorf("the prompt is empty")
		}
		board.Append(channel, message.User(s))
	}
	from := board.Channel(channel)
	var saw seen
	err = p.do.Branch(p.ctx, engine.Branch{Scope: p.next("generate"), Run: func(ctx context.Context, do engine.Steps) error {
		do = through{do, l, &saw}
		if !check {
			do = engine.Keep(do)
		}
		return l.Converse(ctx, do, run, board)
	}})
	if err != nil {
		if c := errdefs.Of(err); !check && saw.failed == nil && goesOn(c) { // what was said is dropped: it may be tried otherwise
			return failedReply(err, c, saw.usage), nil
		}
		p.board.Apply(journal.Diff(before, board.Snapshot()))
		return nil, &ends{err}
	}
	said := behind(from, board.Channel(channel))
	if err := p.keep(journal.Diff(before, board.Snapshot())); err != nil {
		return nil, err
	}
	return reply(t, said, saw.usage, want.schema != nil)
}

// goesOn reports whether a program may go on after a failure of this class: not after what ends the run.
func goesOn(c *errdefs.Class) bool {
	return c != nil && !slices.Contains([]*errdefs.Class{errdefs.Interrupted, errdefs.Conflict, errdefs.BudgetExceeded, errdefs.Aborted}, c)
}

// behind is what stands in now behind what was kept of before.
func behind(before, now message.History) []message.Message { return message.Diff(before, now).Tail }

func reply(t *starlark.Thread, said []message.Message, usage model.Usage, parse bool) (starlark.Value, error) {
	answer := engine.Answer(said)
	var data starlark.Value = starlark.None
	if parse {
		v, err := star.DecodeJSON(answer)
		if err != nil {
			return nil, errdefs.Validation.Errorf("the reply is no JSON: %w", err)
		}
		data = v
	}
	messages, err := star.To(said)
	if err != nil {
		return nil, err
	}
	used, err := star.To(usage)
	if err != nil {
		return nil, err
	}
	if err := star.Count(t, messages, data); err != nil {
		return nil, err
	}
	return outcome{kind: "reply", ok: true, Struct: star.NewStruct(starlark.StringDict{
		"ok": starlark.True, "text": starlark.String(answer), "data": data, "messages": messages, "usage": used, "error": starlark.String(""), "error_class": starlark.String(""),
	})}, nil
}

func failedReply(err error, c *errdefs.Class, usage model.Usage) starlark.Value {
	used, _ := star.To(usage)
	return outcome{kind: "reply", Struct: star.NewStruct(starlark.StringDict{
		"ok": starlark.False, "text": starlark.String(""), "data": starlark.None, "messages": starlark.NewList(nil), "usage": used,
		"error": starlark.String(err.Error()), "error_class": starlark.String(c.Error()),
	})}
}

// wanted is what decides which loop a generate takes.
type wanted struct {
	Model, Channel string
	Tools          []string // nil: all
	Only           bool     // Tools holds, though it is empty
	schema         json.RawMessage
}

func (p *part) wanted(name, tools, schema starlark.Value, channel string) (w wanted, err error) {
	if w.Channel = channel; channel == "" {
		return w, fmt.Errorf("the channel has no name")
	}
	if w.Model, _, err = text("model", name); err != nil {
		return w, err
	}
	if tools != nil && tools != starlark.None {
		w.Only = true
		if w.Tools, err = texts("tools", tools); err != nil {
			return w, err
		}
	}
	if schema != nil && schema != starlark.None {
		if w.schema, err = encode(schema); err != nil {
			return w, fmt.Errorf("output_schema: %w", err)
		}
	}
	return w, nil
}

func (w wanted) key() string {
	b, _ := json.Marshal(w) // of strings
	return string(b) + string(w.schema)
}

// change makes the config of the loop.
func (w wanted) change(e *Engine) func(cfg *loop.Config) error {
	return func(cfg *loop.Config) error {
		cfg.Channel = w.Channel
		if w.schema != nil {
			cfg.Output = w.schema
		}
		if w.Only {
			all, theirs := cfg.Tools, cfg.Settings.ProviderTools
			cfg.Tools, cfg.Settings.ProviderTools = nil, nil
			for _, name := range w.Tools {
				if i := slices.IndexFunc(all, func(t tool.Tool) bool { return strings.EqualFold(t.Definition().Name, name) }); i >= 0 {
					cfg.Tools = append(cfg.Tools, all[i])
				} else if i := slices.IndexFunc(theirs, func(t model.ProviderTool) bool { return strings.EqualFold(t.Name, name) }); i >= 0 {
					cfg.Settings.ProviderTools = append(cfg.Settings.ProviderTools, theirs[i])
				} else {
					return errdefs.NotFound.Errorf("there is no tool %q", name)
				}
			}
		}
		if w.Model == "" {
			return nil
		}
		if e.cfg.Models == nil {
			return errdefs.NotFound.Errorf("there is no model %q: this engine has one model only", w.Model)
		}
		m, err := e.cfg.Models(w.Model)
		if err != nil {
			return fmt.Errorf("the model %q: %w", w.Model, err)
		}
		*cfg = cfg.For(m)
		return nil
	}
}

// useTool makes a call, with its arguments by name or as a dict.
func useTool(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	if len(as) != 1 {
		return nil, fmt.Errorf("%s: want the tool's name, and its arguments by their names: tool(\"search\", query = \"…\")", b.Name())
	}
	name, ok := starlark.AsString(as[0])
	if !ok {
		return nil, fmt.Errorf("%s: the tool's name is a %s", b.Name(), as[0].Type())
	}
	parse, check := false, true
	input := starlark.NewDict(len(kws))
	for _, kw := range kws {
		v := kw[1]
		switch k, _ := starlark.AsString(kw[0]); k {
		case "json", "check":
			set, ok := v.(starlark.Bool)
			if !ok {
				return nil, fmt.Errorf("%s: %s is a %s, want a bool", b.Name(), k, v.Type())
			}
			if k == "json" {
				parse = bool(set)
			} else {
				check = bool(set)
			}
		case "args":
			more, ok := v.(*starlark.Dict)
			if !ok {
				return nil, fmt.Errorf("%s: args is a %s, want a dict", b.Name(), v.Type())
			}
			for k, v := range more.Entries() {
				if err := input.SetKey(k, v); err != nil {
					return nil, err
				}
			}
		default:
			if err := input.SetKey(kw[0], v); err != nil {
				return nil, err
			}
		}
	}
	return partOf(t).use(t, name, name, input, parse, check)
}

// use makes a call that goes the way of a model's.
func (p *part) use(t *starlark.Thread, what, name string, input *starlark.Dict, parse, check bool) (starlark.Value, error) {
	body, err := encode(input)
	if err != nil {
		return nil, err
	}
	if err := counts(t, len(body)); err != nil {
		return nil, err
	}
	var saw seen
	rs, err := p.engine.base.Use(p.ctx, through{p.do, p.engine.base, &saw}, p.run, message.ToolCall{ID: p.name(what), Name: name, Input: string(body)})
	if err != nil {
		return nil, &ends{err}
	}
	r := rs[0]
	if r.IsError && check {
		return nil, saw.classOf().Errorf("%s: %s", what, r.Content)
	}
	var content starlark.Value = starlark.String(r.Content)
	if parse && !r.IsError {
		if content, err = star.DecodeJSON(r.Content); err != nil {
			return nil, errdefs.Validation.Errorf("%s: the result is no JSON: %w", what, err)
		}
		if err := star.Count(t, content); err != nil {
			return nil, err
		}
	}
	if check {
		return content, nil
	}
	return outcome{kind: "result", ok: !r.IsError, Struct: star.NewStruct(starlark.StringDict{
		"ok": starlark.Bool(!r.IsError), "content": content, "outcome": starlark.String(saw.outcome), "error_class": starlark.String(saw.class),
	})}, nil
}

// classOf is what a failed call fails the program with.
func (s *seen) classOf() *errdefs.Class {
	switch s.outcome {
	case string(journal.OutcomeDenied), string(journal.OutcomeRejected):
		return errdefs.PolicyDenied
	case string(journal.OutcomeUnknown):
		return errdefs.NotAvailable
	}
	if c := errdefs.Named(s.class); goesOn(c) || c == errdefs.BudgetExceeded { // others say how a run ends, not how a call did
		return c
	}
	return errdefs.Validation
}

// taskName is agent.TaskName, which stands on a higher floor.
const taskName = "task"

// useAgent gives a task to another agent, by the tool task.
func useAgent(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var name, prompt string
	check := true
	if err := starlark.UnpackArgs(b.Name(), as, kws, "name", &name, "prompt", &prompt, "check?", &check); err != nil {
		return nil, err
	}
	input := starlark.NewDict(2)
	_ = input.SetKey(starlark.String("agent"), starlark.String(name))
	_ = input.SetKey(starlark.String("prompt"), starlark.String(prompt))
	return partOf(t).use(t, "agent "+name, taskName, input, false, check)
}

// ask puts a question to a person; nobody there parks the run.
func ask(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var prompt string
	var choices starlark.Value
	words := false
	if err := starlark.UnpackArgs(b.Name(), as, kws, "prompt", &prompt, "choices?", &choices, "words?", &words); err != nil {
		return nil, err
	}
	if strings.TrimSpace(prompt) == "" {
		return nil, fmt.Errorf("the prompt is empty")
	}
	among, err := choicesOf(choices)
	if err != nil {
		return nil, err
	}
	if words && among != nil {
		return nil, fmt.Errorf("choices and words: want one of the two")
	}
	p := partOf(t)
	shown := choice.Prompt(prompt, among)
	for try := 1; ; try++ {
		if err := counts(t, len(shown)); err != nil {
			return nil, err
		}
		q := engine.Ask{Asked: journal.Asked{ID: p.run.CallID(p.name("ask")), Prompt: shown, Confirm: among == nil && !words, TTL: p.run.AskTTL.Milliseconds()}}
		a, err := engine.Do[journal.Answered](p.ctx, p.do, q)
		if err != nil {
			return nil, &ends{err}
		}
		said, ok := choice.Of(among, a.Text)
		switch {
		case !a.Approved:
			said = a.Text
		case !ok && try == choice.Tries:
			return nil, choice.None(a.Text)
		case !ok:
			shown = choice.Again(prompt, among, a.Text)
			continue
		}
		return outcome{kind: "answer", ok: a.Approved, Struct: star.NewStruct(starlark.StringDict{
			"approved": starlark.Bool(a.Approved), "text": starlark.String(said), "by": starlark.String(a.By),
		})}, nil
	}
}

func choicesOf(v starlark.Value) ([]string, error) {
	if v == nil || v == starlark.None {
		return nil, nil
	}
	all, err := texts("choices", v)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, choice.Check(all)
}

// emit says something to the user: an assistant's message on the main channel.
func emit(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var said string
	if err := starlark.UnpackArgs(b.Name(), as, kws, "text", &said); err != nil {
		return nil, err
	}
	return starlark.None, partOf(t).append(t, engine.MainChannel, message.RoleAssistant, said)
}

func (p *part) append(t *starlark.Thread, channel string, role message.Role, said string) error {
	if strings.TrimSpace(said) == "" {
		return fmt.Errorf("the text is empty")
	}
	if channel == "" {
		return fmt.Errorf("the channel has no name")
	}
	if err := counts(t, len(said)); err != nil {
		return err
	}
	m := message.User(said)
	if role == message.RoleAssistant {
		m = message.Assistant(said)
	}
	return p.say(channel, m)
}

func boardAppend(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	channel, said, role := "", "", string(message.RoleUser)
	if err := starlark.UnpackArgs(b.Name(), as, kws, "channel", &channel, "text", &said, "role?", &role); err != nil {
		return nil, err
	}
	if r := message.Role(role); r != message.RoleUser && r != message.RoleAssistant {
		return nil, fmt.Errorf("%s: the role is %q, want user or assistant", b.Name(), role)
	}
	return starlark.None, partOf(t).append(t, channel, message.Role(role), said)
}

func boardGet(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var name string
	var otherwise starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), as, kws, "name", &name, "default?", &otherwise); err != nil {
		return nil, err
	}
	vars := partOf(t).board.Snapshot().Vars
	v, set := vars[name]
	if !set {
		return otherwise, nil
	}
	out, err := star.To(v)
	if err != nil {
		return nil, fmt.Errorf("the var %s: %w", name, err)
	}
	return out, star.Count(t, out)
}

func boardSet(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var name string
	var v starlark.Value
	if err := starlark.UnpackArgs(b.Name(), as, kws, "name", &name, "value", &v); err != nil {
		return nil, err
	}
	if err := star.CountBytes(t, 200); err != nil {
		return nil, err
	}
	if err := star.Count(t, v); err != nil {
		return nil, err
	}
	board := partOf(t).board
	now, err := star.Back(v, board.Var(name))
	if err != nil {
		return nil, fmt.Errorf("the var %s: %w", name, err)
	}
	board.SetVar(name, now)
	return starlark.None, nil
}

func boardVars(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), as, kws); err != nil {
		return nil, err
	}
	out, err := star.To(map[string]any(partOf(t).board.Snapshot().Vars))
	if err != nil {
		return nil, err
	}
	return out, star.Count(t, out)
}

func boardChannel(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	channel := engine.MainChannel
	if err := starlark.UnpackArgs(b.Name(), as, kws, "name?", &channel); err != nil {
		return nil, err
	}
	h := partOf(t).board.Channel(channel)
	if err := star.CountBytes(t, 32*h.Len()); err != nil {
		return nil, err
	}
	return star.To(h.Messages())
}

// size of a text; 0 of anything else.
func size(v starlark.Value) int {
	s, _ := starlark.AsString(v)
	return len(s)
}

// text is an argument that may be None.
func text(what string, v starlark.Value) (s string, set bool, err error) {
	if v == nil || v == starlark.None {
		return "", false, nil
	}
	s, ok := starlark.AsString(v)
	if !ok {
		return "", false, fmt.Errorf("%s is a %s, want a string", what, v.Type())
	}
	return s, true, nil
}

func texts(what string, v starlark.Value) ([]string, error) {
	l, ok := v.(starlark.Indexable)
	if _, isText := v.(starlark.String); !ok || isText {
		return nil, fmt.Errorf("%s is a %s, want a list of strings", what, v.Type())
	}
	out := make([]string, l.Len())
	for i := range out {
		if out[i], ok = starlark.AsString(l.Index(i)); !ok {
			return nil, fmt.Errorf("%s[%d] is a %s, want a string", what, i, l.Index(i).Type())
		}
	}
	return out, nil
}

// encode is a value as JSON, with the keys of dicts in their order.
func encode(v starlark.Value) (json.RawMessage, error) {
	in, err := star.From(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(in); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

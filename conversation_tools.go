package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/tool"
)

// Pending says that a call has to wait for a person, and why; the zero Pending lets it run.
type Pending struct {
	Reason  string // in short: "high_value_refund"
	Message string // for the person; "": Reason
}

// handler answers a tool of the pack.
type handler struct {
	run        func(ctx context.Context, input json.RawMessage) (any, error) // nil: nothing does yet
	idempotent bool
	check      func(ctx context.Context, args map[string]any) Pending // nil: no person is asked
	unchecked  bool                                                   // somebody was to be asked, and nothing says when
}

// OnTool has fn answer the calls of a tool of the pack, from the next turn on. The arguments are checked against the tool's parameters before, and are what JSON gives: numbers are float64. A text is shown to the model as it is, as are bytes that are UTF-8, a tool.Result
// (or a pointer to one) whole, anything else as JSON; an error, also as the value, or a panic, as an error. A later handler takes the place of an earlier one, and is asked about as that was; nil takes it away. A name that no tool of the pack has is an error of the next Send,
// as is a tool without a handler.
func (c *Conversation) OnTool(name string, fn func(args map[string]any) (any, error)) {
	if fn == nil {
		c.handle(name, handler{})
		return
	}
	c.handle(name, handler{run: withArgs(func(_ context.Context, args map[string]any) (any, error) { return fn(args) })})
}

// OnTools is OnTool for several tools at once.
func (c *Conversation) OnTools(fns map[string]func(args map[string]any) (any, error)) {
	for name, fn := range fns {
		c.OnTool(name, fn)
	}
}

// OnToolCtx is OnTool with the context of the call, which ends with the turn: tool.FromContext has the call.
func (c *Conversation) OnToolCtx(name string, fn func(ctx context.Context, args map[string]any) (any, error)) {
	if fn == nil {
		c.handle(name, handler{})
		return
	}
	c.handle(name, handler{run: withArgs(fn)})
}

// OnTyped is OnToolCtx with the arguments as a T, read as JSON: what does not fit T is an error to the model.
func OnTyped[T any](c *Conversation, name string, fn func(ctx context.Context, args T) (any, error)) {
	if fn == nil {
		c.handle(name, handler{})
		return
	}
	c.handle(name, handler{run: func(ctx context.Context, input json.RawMessage) (any, error) {
		var args T
		if err := exact.Unmarshal(input, &args); err != nil { // a check sees the names as they are written
			return nil, errdefs.Validation.Errorf("the arguments of %s don't fit: %w", name, err)
		}
		return fn(ctx, args)
	}})
}

// OnToolAsync is OnTool and AskBefore: check looks at each call before fn runs. With a nil check the tool is as one without a handler, until AskBefore says who is asked.
func (c *Conversation) OnToolAsync(name string, check func(args map[string]any) Pending, fn func(args map[string]any) (any, error)) {
	if check == nil {
		c.change(name, func(h *handler) { h.check, h.unchecked = nil, true })
		c.OnTool(name, fn)
		return
	}
	c.AskBefore(name, func(_ context.Context, args map[string]any) Pending { return check(args) })
	c.OnTool(name, fn)
}

// AskBefore has check look at each call of a tool before it runs, whichever handler answers it, now or later: with the zero Pending it runs at once; else the turn ends with the call in Response.Pending and stays so, over restarts too, until
// ResolveTool or RejectTool and then Continue. The call is on record, and the handler runs when it was approved, in the process that continues. A check that panics refuses the call. Another check takes the place of the one before; nil asks nobody.
func (c *Conversation) AskBefore(name string, check func(ctx context.Context, args map[string]any) Pending) {
	c.change(name, func(h *handler) { h.check, h.unchecked = check, false })
}

// handle has h answer a tool; who is asked before stays as it is.
func (c *Conversation) handle(name string, h handler) {
	c.change(name, func(old *handler) { old.run, old.idempotent = h.run, h.idempotent })
}

func (c *Conversation) change(name string, how func(*handler)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	handlers := maps.Clone(c.handlers) // a turn under way keeps its own
	h := handlers[name]
	how(&h)
	handlers[name] = h
	c.handlers, c.crew = handlers, nil
	c.version++
}

func withArgs(fn func(context.Context, map[string]any) (any, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		args := map[string]any{}
		if err := json.Unmarshal(input, &args); err != nil {
			return nil, err
		}
		return fn(ctx, args)
	}
}

// packTool is a tool of the pack with its handler.
type packTool struct {
	def tool.Definition
	run func(context.Context, json.RawMessage) (any, error)
}

// Definition implements tool.Tool.
func (t packTool) Definition() tool.Definition { return t.def }

// Execute implements tool.Tool.
func (t packTool) Execute(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	out, err := t.run(ctx, input)
	if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && v.IsNil() { // an error of a pointer's type that is none, for one
		out = nil
	}
	switch out := out.(type) {
	case tool.Result:
		return out, err
	case *tool.Result:
		return *out, err
	case string:
		return tool.Result{Content: out}, err
	case []byte:
		if utf8.Valid(out) {
			return tool.Result{Content: string(out)}, err
		}
	case error:
		if err == nil {
			err = out
		}
	}
	if err != nil {
		return tool.Result{}, err
	}
	b, err := json.Marshal(out)
	if err != nil {
		return tool.Result{}, errdefs.Internal.Errorf("the result of %s is not JSON: %w", t.def.Name, err)
	}
	return tool.Result{Content: string(b)}, nil
}

// tools gives the tools of a prompt with their handlers, and the names of those that have none.
func tools(tools []pack.Tool, handlers map[string]handler) (all []tool.Tool, missing []string) {
	for _, t := range tools {
		h := handlers[t.Name]
		name := t.Name
		if h.unchecked {
			name, h.run = t.Name+" (OnToolAsync got no check: give one, or none with AskBefore)", nil
		}
		if h.run == nil {
			missing = append(missing, name)
			h.run = func(context.Context, json.RawMessage) (any, error) {
				return nil, errdefs.NotFound.Errorf("nobody answers %s", t.Name)
			}
		}
		all = append(all, packTool{tool.Definition{Tool: t.Model(), Annotations: tool.Annotations{Idempotent: h.idempotent}}, h.run})
	}
	return all, missing
}

// asking is the gate of AskBefore.
func asking(handlers map[string]handler) hook.Middleware {
	return hook.Middleware{Name: "AskBefore", PreToolUse: func(ctx context.Context, u *hook.ToolUse) (hook.Decision, error) {
		check := handlers[u.Call.Name].check
		if check == nil {
			return hook.Decision{}, nil
		}
		args := map[string]any{}
		if err := json.Unmarshal([]byte(u.Call.Input), &args); err != nil {
			return hook.Decision{}, err
		}
		switch p := check(ctx, args); {
		case p == Pending{}:
			return hook.Decision{}, nil
		case p.Message == "":
			return hook.Asking(p.Reason), nil
		default:
			return hook.Asking(p.Message), nil
		}
	}}
}

// PendingTools are the calls that wait for a person, read from the journal: any process has the same. Each has the ID that it is answered by, what to ask the person, and the call.
func (c *Conversation) PendingTools(ctx context.Context) ([]journal.Pending, error) {
	return agent.Pending(ctx, c.opts.store, c.session)
}

// ResolveTool approves a call that waits. It runs when the conversation continues. One answer wins, whoever gives it: any other gets errdefs.Conflict.
func (c *Conversation) ResolveTool(ctx context.Context, id string) error {
	return agent.Answer(ctx, c.opts.store, c.session, journal.Answered{ID: id, Approved: true})
}

// ResolveToolWithArgs approves a call with other arguments: those in args take the place of the model's, the others stay, nil takes one away. What it comes to is checked against the tool's parameters first: where it breaks them, that is
// errdefs.Validation, nothing is on record, and the call still waits. The gates judge it before it runs.
func (c *Conversation) ResolveToolWithArgs(ctx context.Context, id string, args map[string]any) error {
	pending, err := c.PendingTools(ctx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if p.ID != id || p.Call == nil {
			continue
		}
		all := map[string]json.RawMessage{} // numbers stay as the model wrote them
		if err := json.Unmarshal([]byte(p.Call.Input), &all); err != nil {
			return errdefs.Validation.Errorf("pawl: resolve %s: the arguments of the call are no object: %w", id, err)
		}
		for name, v := range args {
			if v == nil {
				delete(all, name)
				continue
			}
			b, err := json.Marshal(v)
			if err != nil {
				return errdefs.Validation.Errorf("pawl: resolve %s: argument %s: %w", id, name, err)
			}
			all[name] = b
		}
		b, err := json.Marshal(all)
		if err != nil {
			return errdefs.Validation.Errorf("pawl: resolve %s: %w", id, err)
		}
		if err := c.fits(ctx, p.Call.Name, string(b)); err != nil {
			return fmt.Errorf("pawl: resolve %s: %w", id, err)
		}
		return agent.Answer(ctx, c.opts.store, c.session, journal.Answered{ID: id, Approved: true, Input: string(b)})
	}
	return errdefs.Conflict.Errorf("pawl: resolve %s: no such call waits in session %s: it was answered, or never asked about", id, c.session)
}

// fits checks arguments against the parameters of a tool of the pack, or of one that leads its workflow on, as the loop does before a call. Those of agents and skills the loop alone can check.
func (c *Conversation) fits(ctx context.Context, name, input string) error {
	var known []tool.Tool
	for _, t := range c.pack.Tools {
		known = append(known, packTool{def: tool.Definition{Tool: t.Model()}})
	}
	if c.flow != nil && leads(name) {
		now, err := c.flow.read(ctx)
		if err != nil {
			return err
		}
		s := c.flow.def.States[now.at.State]
		if p, err := c.pack.Prompt(s.PromptTask); err == nil {
			known = c.flow.led(s, p)
		}
	}
	for _, t := range known {
		if !strings.EqualFold(t.Definition().Name, name) { // as tools are found
			continue
		}
		set, err := tool.NewSet(t)
		if err != nil {
			return err
		}
		_, err = set.Check(message.ToolCall{Name: name, Input: input})
		return err
	}
	return nil
}

// RejectTool refuses a call that waits; the model is told why when the conversation continues. As with ResolveTool, one answer wins.
func (c *Conversation) RejectTool(ctx context.Context, id, reason string) error {
	return agent.Answer(ctx, c.opts.store, c.session, journal.Answered{ID: id, Text: reason})
}

// asked names what waits for a person.
func asked(all []journal.Pending) string {
	var names []string
	for _, p := range all {
		name := p.ID
		if p.Call != nil {
			name = p.Call.Name + " (" + p.ID + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Handoff lets a model pass the conversation on to another agent by calling a tool. Give an engine the [HandoffTools] and the run the
// [HandoffDecider] of the same handoffs, and look at [HandoffFromResult]; a [Team] does that, and runs who is next. Its JSON leaves the functions out.
type Handoff struct {
	ToAgentID   string `json:"to_agent_id"`           // required
	Description string `json:"description,omitempty"` // what the model is told of the tool; "" is a general one
	// ToolName is DefaultHandoffToolName(ToAgentID) when empty. Names of handoffs that are open at the same time must differ in more than case: else
	// loop.New fails with errdefs.Conflict on their tools, and so does the HandoffDecider on every run.
	ToolName string `json:"tool_name,omitempty"`
	// OpenWorld says that the other agent works elsewhere: what it is told leaves, and permissions judge the tool as such. See tool.Annotations.OpenWorld. A [Team] asks for it where the other's engine says so of itself.
	OpenWorld bool `json:"open_world,omitempty"`
	// Filter says whether the handoff is open to a request; nil is always. It is asked where tools are listed, again when the tool runs, and at the end
	// of the run: a call that it does not admit gets an error, and does not count.
	Filter func(ctx context.Context, req *Request) bool `json:"-"`
	// OnInvoke is called when the tool runs. Its error fails the call, which then does not count; the model may try again.
	OnInvoke func(ctx context.Context, args HandoffArgs) error `json:"-"`
}

// HandoffArgs is what a model says when it hands over.
type HandoffArgs struct {
	Reason string `json:"reason,omitempty"` // why
	Note   string `json:"note,omitempty"`   // what the next agent should read first
}

// HandoffEvent is a handoff that took place.
type HandoffEvent struct {
	ToAgentID  string      `json:"to_agent_id"`
	ToolName   string      `json:"tool_name"` // as the model wrote it
	ToolCallID string      `json:"tool_call_id"`
	Args       HandoffArgs `json:"args,omitempty"` // as the model wrote them; zero when they can't be read
}

const (
	// HandoffStateKey is where Result.State has the HandoffEvent; the journal has it in journal.RunFinished.
	HandoffStateKey = "handoff"
	// HandoffFinalizeReason begins the reason of a run that handed over; the id of the next agent follows.
	HandoffFinalizeReason = "handoff:"
)

// DefaultHandoffToolName is "transfer_to_" and the agent's id in lower case, with _ for everything but a-z, 0-9 and _. Different ids may have
// the same name: see [Handoff].
func DefaultHandoffToolName(agentID string) string {
	if agentID == "" {
		agentID = "unknown"
	}
	return "transfer_to_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, agentID)
}

func (h Handoff) toolName() string {
	if h.ToolName != "" {
		return h.ToolName
	}
	return DefaultHandoffToolName(h.ToAgentID)
}

// open reports whether the handoff is open to req; nil is no request in particular.
func (h Handoff) open(ctx context.Context, req *Request) bool {
	return h.Filter == nil || req == nil || h.Filter(ctx, req)
}

// HandoffTool is the tool of h. It only confirms, and its result is final: the model has no further word. Who runs next is for the caller of [Run] to see. It panics when h has no target.
func HandoffTool(h Handoff) tool.Tool {
	if h.ToAgentID == "" {
		panic("agent: HandoffTool: the handoff has no ToAgentID")
	}
	t := handoffTool{h: h}
	t.def.Tool = model.Tool{Name: h.toolName(), Description: h.Description, Schema: handoffSchema}
	if h.Description == "" {
		t.def.Description = "Transfer the conversation to " + h.ToAgentID
	}
	t.def.OpenWorld = h.OpenWorld
	t.def.Idempotent = h.OnInvoke == nil // what OnInvoke does is not known
	return t
}

// HandoffTools are the tools of those handoffs that are open to req; nil leaves none out. It does not look whether their names differ: see [Handoff].
func HandoffTools(ctx context.Context, req *Request, hs []Handoff) []tool.Tool {
	var tools []tool.Tool
	for _, h := range hs {
		if h.open(ctx, req) {
			tools = append(tools, HandoffTool(h))
		}
	}
	return tools
}

var handoffSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"reason":{"type":"string","description":"Why the conversation is transferred, in a sentence."},` +
	`"note":{"type":"string","description":"What the next agent should know first."}},"additionalProperties":false}`)

type handoffTool struct {
	h   Handoff
	def tool.Definition
}

func (t handoffTool) Definition() tool.Definition { return t.def }

// Execute confirms, unless the handoff is not open to the request of the run around it.
func (t handoffTool) Execute(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	var args HandoffArgs
	if len(bytes.TrimSpace(input)) > 0 {
		if err := json.Unmarshal(input, &args); err != nil {
			return tool.Result{}, errdefs.Validation.Errorf("agent: hand over to %s: arguments: %w", t.h.ToAgentID, err)
		}
	}
	req, _ := ctx.Value(requestKey{}).(*Request)
	if !t.h.open(ctx, req) {
		return tool.Result{}, errdefs.PolicyDenied.Errorf("agent: hand over to %s: it is not open to this request", t.h.ToAgentID)
	}
	if t.h.OnInvoke != nil {
		if err := t.h.OnInvoke(ctx, args); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.Result{Content: "Handoff initiated to " + t.h.ToAgentID, Final: true}, nil
}

// requestKey has the request of the run around a tool, for filters.
type requestKey struct{}

// HandoffDecider looks for the first call of a tool of hs in a completed run, and puts a [HandoffEvent] into Result.State, with a Reason. Later
// calls are passed over; so is a call whose result is an error: it was denied, rejected, filtered, or its OnInvoke failed. A run that did not complete hands
// nothing over. The output is kept: whoever wants to drop the words around a handoff adds a decider that says so.
func HandoffDecider(hs []Handoff) Decider {
	if len(hs) == 0 {
		return BaseDecider{}
	}
	return handoffDecider(slices.Clone(hs))
}

type handoffDecider []Handoff

// BeforeFinalize implements [Decider].
func (hs handoffDecider) BeforeFinalize(ctx context.Context, _ RunInfo, req *Request, res *Result) (FinalizeDecision, error) {
	if res == nil || res.Status != "" && res.Status != StatusCompleted {
		return FinalizeDecision{}, nil
	}
	var open []Handoff
	for _, h := range hs {
		if h.open(ctx, req) {
			open = append(open, h)
		}
	}
	targets, err := byTool(open)
	if err != nil {
		return FinalizeDecision{}, err
	}
	confirmed := map[string]bool{} // by call: the tool ran, and had no error
	for _, m := range res.Messages {
		for r := range message.Of[message.ToolResult](m) {
			confirmed[r.Call] = !r.IsError
		}
	}
	for _, m := range res.Messages {
		for c := range message.Of[message.ToolCall](m) {
			to := targets[strings.ToLower(c.Name)]
			if to == "" || !confirmed[c.ID] {
				continue
			}
			ev := HandoffEvent{ToAgentID: to, ToolName: c.Name, ToolCallID: c.ID}
			if json.Unmarshal([]byte(c.Input), &ev.Args) != nil {
				ev.Args = HandoffArgs{}
			}
			return FinalizeDecision{Reason: HandoffFinalizeReason + to, State: map[string]any{HandoffStateKey: ev}}, nil
		}
	}
	return FinalizeDecision{}, nil
}

// byTool gives the target of each tool, by its name in lower case: a loop finds tools in any case. Two of one name are a Conflict.
func byTool(hs []Handoff) (map[string]string, error) {
	targets := make(map[string]string, len(hs))
	for _, h := range hs {
		name := strings.ToLower(h.toolName())
		if other, dup := targets[name]; dup {
			return nil, errdefs.Conflict.Errorf("agent: the handoffs to %q and %q have the same tool name, %s: give one of them a ToolName", other, h.ToAgentID, name)
		}
		targets[name] = h.ToAgentID
	}
	return targets, nil
}

// HandoffFromResult gives the handoff of a run; ok is false when there was none. It also reads a Result that went through JSON.
func HandoffFromResult(res *Result) (ev HandoffEvent, ok bool) {
	if res == nil {
		return ev, false
	}
	switch v := res.State[HandoffStateKey].(type) {
	case HandoffEvent:
		return v, true
	case map[string]any:
		b, err := json.Marshal(v)
		if err != nil || json.Unmarshal(b, &ev) != nil || ev.ToAgentID == "" {
			return HandoffEvent{}, false
		}
		return ev, true
	}
	return ev, false
}

// handedOver is the handoff for the journal; nil when there was none.
func handedOver(res *Result) json.RawMessage {
	ev, ok := HandoffFromResult(res)
	if !ok {
		return nil
	}
	b, err := json.Marshal(ev)
	if err != nil {
		return nil // strings only: it can't be
	}
	return b
}

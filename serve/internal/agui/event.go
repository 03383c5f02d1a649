package agui

import (
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

// Event is one of the protocol's. Which members it has depends on its type.
type Event struct {
	Type            string         `json:"type"`
	Timestamp       int64          `json:"timestamp,omitempty"` // milliseconds since 1970
	ThreadID        string         `json:"threadId,omitempty"`
	RunID           string         `json:"runId,omitempty"`
	ProtocolVersion string         `json:"protocolVersion,omitempty"`
	ParentRunID     string         `json:"parentRunId,omitempty"`
	StepName        string         `json:"stepName,omitempty"`
	MessageID       string         `json:"messageId,omitempty"`
	Role            string         `json:"role,omitempty"`
	Delta           any            `json:"delta,omitempty"` // a text, or the operations of a patch
	ToolCallID      string         `json:"toolCallId,omitempty"`
	ToolCallName    string         `json:"toolCallName,omitempty"`
	ParentMessageID string         `json:"parentMessageId,omitempty"`
	Content         *string        `json:"content,omitempty"`
	Snapshot        map[string]any `json:"snapshot,omitempty"`
	Messages        []any          `json:"messages,omitempty"`
	Name            string         `json:"name,omitempty"`
	Value           any            `json:"value,omitempty"`
	Result          any            `json:"result,omitempty"`
	Outcome         *Outcome       `json:"outcome,omitempty"`
	Usage           []Usage        `json:"usage,omitempty"`
	Message         string         `json:"message,omitempty"`
	Code            string         `json:"code,omitempty"`
}

// Outcome is how a run ended.
type Outcome struct {
	Type       string      `json:"type"`
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

// Interrupt is what a run waits for.
type Interrupt struct {
	ID         string         `json:"id"`
	Reason     string         `json:"reason"`
	Message    string         `json:"message,omitempty"`
	ToolCallID string         `json:"toolCallId,omitempty"`
	Schema     map[string]any `json:"responseSchema"`
	ExpiresAt  string         `json:"expiresAt,omitempty"`
}

// Usage counts the tokens of one model.
type Usage struct {
	Model      string `json:"model,omitempty"`
	Input      int    `json:"inputTokens"` // cached ones included
	Output     int    `json:"outputTokens"`
	Total      int    `json:"totalTokens"`
	Reasoning  int    `json:"reasoningTokens"`
	CacheRead  int    `json:"cachedInputTokens"`
	CacheWrite int    `json:"cacheWriteInputTokens"`
}

// plus adds what a call took, in the entry of its model.
func plus(all []Usage, name string, u model.Usage) []Usage {
	if u == (model.Usage{}) {
		return all
	}
	for i := range all {
		if a := &all[i]; a.Model == name {
			a.Input, a.Output, a.Total = a.Input+u.Input+u.CacheRead+u.CacheWrite, a.Output+u.Output, a.Total+u.Total()
			a.Reasoning, a.CacheRead, a.CacheWrite = a.Reasoning+u.Reasoning, a.CacheRead+u.CacheRead, a.CacheWrite+u.CacheWrite
			return all
		}
	}
	return plus(append(all, Usage{Model: name}), name, u)
}

// InterruptOf is a question in the words of the protocol. Its answer is true or false for a call, a text for a question, or an object that says more.
func InterruptOf(p journal.Pending) Interrupt {
	i := Interrupt{ID: p.ID, Reason: "question", Message: p.Prompt}
	properties := map[string]any{"text": map[string]any{"type": "string", "description": "the answer"}}
	i.Schema = map[string]any{"type": []string{"string", "object"}, "properties": properties, "required": []string{"text"}, "additionalProperties": false}
	if p.Call != nil || p.Confirm {
		i.Reason, i.Schema["type"], i.Schema["required"] = "confirmation", []string{"boolean", "object"}, []string{"approved"}
		properties["text"] = map[string]any{"type": "string", "description": "why not, for the model"}
	}
	properties["approved"] = map[string]any{"type": "boolean"}
	if p.Call != nil {
		i.Reason, i.ToolCallID = "tool_call", p.Call.ID
		properties["input"] = map[string]any{"type": "object", "description": "what the call is to run with instead"}
		properties["session"] = map[string]any{"type": "boolean", "description": "the like is not asked again in this session"}
		properties["rule"] = map[string]any{"type": "string", "description": "with session: a permission rule that says what the like is"}
	}
	if d := p.Deadline(); !d.IsZero() {
		i.ExpiresAt = d.Format(time.RFC3339)
	}
	return i
}

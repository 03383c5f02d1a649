package model

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Settings shape the sampling of a reply. The zero value leaves everything to the provider. A setting that the provider can't
// honour is an error before the call, never ignored: see [Capabilities].
type Settings struct {
	MaxTokens   int      // output limit in tokens; 0: the model's own (from the provider, or the catalogue where the provider needs one)
	Temperature *float64 // provider's range, usually 0 to 2
	TopP        *float64 // 0 to 1
	TopK        *int
	Seed        *int64
	Stop        []string // texts that end the reply
	ToolChoice  ToolChoice

	// Reasoning is how much a model thinks before it answers. See [Capabilities].Reasoning for what a model takes.
	Reasoning ReasoningLevel
	// ProviderTools are tools that the provider runs itself, in a stable order like Tools; read-only.
	ProviderTools []ProviderTool

	FrequencyPenalty *float64 // -2 to 2: against tokens, the more often they were said
	PresencePenalty  *float64 // -2 to 2: against tokens that were said at all
}

// ToolChoice says whether and which tool has to be called: [ToolsAuto], [ToolsNone], [ToolsRequired], or the name of a tool.
type ToolChoice string

// The choices that are no names. They begin with a character that no tool's name has.
const (
	ToolsAuto     ToolChoice = ""          // the model decides
	ToolsNone     ToolChoice = "#none"     // no call
	ToolsRequired ToolChoice = "#required" // at least one call, of any tool
)

// ReasoningLevel says how much a model thinks before it answers. Providers put it in words of their own, or in tokens: docs/models.md
// has what each level is for each of them.
type ReasoningLevel string

// The levels, from least to most.
const (
	ReasoningDefault ReasoningLevel = "" // the provider's own
	ReasoningNone    ReasoningLevel = "none"
	ReasoningMinimal ReasoningLevel = "minimal"
	ReasoningLow     ReasoningLevel = "low"
	ReasoningMedium  ReasoningLevel = "medium"
	ReasoningHigh    ReasoningLevel = "high"
	ReasoningMax     ReasoningLevel = "max" // as much as the model can
)

// ReasoningLevels are all levels but the default, from least to most.
func ReasoningLevels() []ReasoningLevel {
	return []ReasoningLevel{ReasoningNone, ReasoningMinimal, ReasoningLow, ReasoningMedium, ReasoningHigh, ReasoningMax}
}

// ProviderTool is a tool that the provider runs on its own machines while it makes the reply. Its calls are in the reply as
// message.ProviderCall, after they were made: no rule, hook or sandbox of this machine stands before them, and what they found is in the reply as it is.
// Who may not use one is not offered it: a loop leaves out those that are not among an agent's tools, where it has a list of them.
type ProviderTool struct {
	Name    string          `json:"name"`              // [WebSearch], [WebFetch], [CodeExecution], or what else is in Capabilities.ProviderTools
	Options json.RawMessage `json:"options,omitempty"` // a JSON object: the provider's own members for it, such as max_uses
}

// Tools that several providers run.
const (
	WebSearch     = "web_search"
	WebFetch      = "web_fetch"
	CodeExecution = "code_execution"
)

// Equal reports whether s and t ask for the same.
func (s Settings) Equal(t Settings) bool {
	return s.MaxTokens == t.MaxTokens && s.ToolChoice == t.ToolChoice && s.Reasoning == t.Reasoning && slices.Equal(s.Stop, t.Stop) &&
		same(s.Temperature, t.Temperature) && same(s.TopP, t.TopP) && same(s.TopK, t.TopK) && same(s.Seed, t.Seed) &&
		same(s.FrequencyPenalty, t.FrequencyPenalty) && same(s.PresencePenalty, t.PresencePenalty) &&
		slices.EqualFunc(s.ProviderTools, t.ProviderTools, func(a, b ProviderTool) bool { return a.Name == b.Name && bytes.Equal(a.Options, b.Options) })
}

// Clone copies what s refers to, so that later changes to that don't reach the copy.
func (s Settings) Clone() Settings {
	s.Temperature, s.TopP, s.TopK, s.Seed = clone(s.Temperature), clone(s.TopP), clone(s.TopK), clone(s.Seed)
	s.FrequencyPenalty, s.PresencePenalty = clone(s.FrequencyPenalty), clone(s.PresencePenalty)
	s.Stop, s.ProviderTools = slices.Clone(s.Stop), slices.Clone(s.ProviderTools)
	for i := range s.ProviderTools {
		s.ProviderTools[i].Options = bytes.Clone(s.ProviderTools[i].Options)
	}
	return s
}

func same[T comparable](p, q *T) bool { return p == q || p != nil && q != nil && *p == *q }

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

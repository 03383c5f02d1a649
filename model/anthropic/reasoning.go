package anthropic

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

// minBudget is the smallest number of tokens that a model can be given to think with, by the API's page on extended thinking.
const minBudget = 1024

// budgets are the tokens that a level stands for where the API wants a number. The least is the API's own; above 32000, its page says, more is of little use.
var budgets = map[model.ReasoningLevel]int{
	model.ReasoningMinimal: minBudget, model.ReasoningLow: 4096, model.ReasoningMedium: 8192, model.ReasoningHigh: 16384, model.ReasoningMax: 32000,
}

// efforts are the API's words for levels. It has "xhigh", too, between the last two.
var efforts = map[model.ReasoningLevel]string{
	model.ReasoningMinimal: "low", model.ReasoningLow: "low", model.ReasoningMedium: "medium", model.ReasoningHigh: "high", model.ReasoningMax: "max",
}

// thought is what a request says of thinking.
type thought struct {
	limit  int    // max_tokens, which thoughts count against
	kind   string // thinking.type; "" says nothing of it
	budget int    // thinking.budget_tokens; 0 for none
	effort string // output_config.effort; "" for none
}

// thinking says how f is told to think as s wants it, and which output limit that takes.
func (f *family) thinking(s model.Settings) (t thought, err error) {
	if t.limit = s.MaxTokens; t.limit <= 0 {
		t.limit = f.maxTokens
	}
	switch {
	case s.Reasoning == model.ReasoningDefault, f.thinks == never:
		return t, nil
	case s.Reasoning == model.ReasoningNone:
		t.kind = f.off
		return t, nil
	}
	if no := f.refuses(s); len(no) > 0 {
		return t, errdefs.Validation.Errorf("reasoning %q can't go with %s: leave one of them out", s.Reasoning, strings.Join(no, ", "))
	}
	if f.thinks == byEffort {
		t.kind, t.effort = "adaptive", efforts[s.Reasoning]
		if s.MaxTokens <= 0 && f.most > 0 && (s.Reasoning == model.ReasoningHigh || s.Reasoning == model.ReasoningMax) {
			t.limit = f.most
		}
		return t, nil
	}
	t.kind, t.budget = "enabled", budgets[s.Reasoning]
	if s.MaxTokens <= 0 { // what would be left for the answer without thoughts is left with them
		t.limit = min(t.limit+t.budget, f.most)
	}
	t.budget = max(minBudget, min(t.budget, t.limit-t.limit/4)) // a quarter is for the answer
	if f.effort {
		if t.effort = efforts[s.Reasoning]; t.effort == "max" {
			t.effort = "high"
		}
	}
	return t, nil
}

// append appends it. Thoughts are asked for as summaries: from Claude Opus 4.7 on, the API sends them without their text otherwise.
func (t thought) append(b []byte) []byte {
	if t.kind == "" {
		return b
	}
	b = append(append(append(b, `,"thinking":{"type":"`...), t.kind...), '"')
	if t.budget > 0 {
		b = strconv.AppendInt(append(b, `,"budget_tokens":`...), int64(t.budget), 10)
	}
	if t.kind == "adaptive" {
		b = append(b, `,"display":"summarized"`...)
	}
	return append(b, '}')
}

// refuses names what the API refuses in s beside thinking.
func (f *family) refuses(s model.Settings) (no []string) {
	if s.Temperature != nil && *s.Temperature != 1 {
		no = append(no, "a temperature other than 1")
	}
	if s.TopP != nil && *s.TopP < 0.95 {
		no = append(no, "a top_p below 0.95")
	}
	if s.TopK != nil {
		no = append(no, "top_k")
	}
	if !f.forced && s.ToolChoice != model.ToolsAuto && s.ToolChoice != model.ToolsNone {
		no = append(no, "a tool choice that forces a call")
	}
	if f.thinks == byBudget && s.MaxTokens > 0 && s.MaxTokens <= minBudget {
		no = append(no, "an output limit of 1024 tokens or fewer")
	}
	return no
}

// interleaved is the beta with which models that came before adaptive thinking think between calls, too.
const interleaved = "interleaved-thinking-2025-05-14"

// header has what a request says besides its body: which form of reply it wants, and which betas it needs, behind those that the caller asked for. It is read only.
func (m *Model) header(req model.Request, accept string) http.Header {
	h := httpapi.Accept(accept)
	thinks := req.Reasoning != model.ReasoningDefault && req.Reasoning != model.ReasoningNone
	if m.family.interleaved && thinks && len(req.Tools)+len(req.ProviderTools) > 0 {
		const name = "Anthropic-Beta"
		asked := m.api.Header[name]
		if !slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(s, interleaved) }) {
			asked = append(slices.Clip(asked), interleaved)
		}
		h = maps.Clone(h)
		h[name] = asked
	}
	return h
}

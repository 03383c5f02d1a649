package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/model"
)

// family is what is known of a model by its name.
type family struct {
	maxTokens int  // the output limit where the request has none; see New
	most      int  // the largest output limit that it takes; 0: not known
	schema    bool // it can follow a schema

	thinks      thinks
	off         string // the type of thinking that is none; "" where it can't be switched off
	effort      bool   // thinks byBudget, and has output_config.effort besides
	interleaved bool   // thinks byBudget, and between calls with a beta only
	forced      bool   // thinks although a call is forced, or is not known to refuse it
	levels      []model.ReasoningLevel

	tools   map[string]string // the types of the tools that the API runs itself
	filters bool              // code of the model's may use them, too
}

// thinks is how a model is told to think.
type thinks uint8

const (
	never    thinks = iota
	byBudget        // thinking.budget_tokens
	byEffort        // thinking.type "adaptive" and output_config.effort
)

// The tools' types by the API's reference of tools. What came with Claude 4.6 can be used by the model's code, too; earlier models
// refuse it ("does not support programmatic tool calling"), and have what came before.
var (
	oldTools = map[string]string{model.WebSearch: "web_search_20250305", model.WebFetch: "web_fetch_20250910", model.CodeExecution: "code_execution_20250825"}
	newTools = map[string]string{model.WebSearch: "web_search_20260318", model.WebFetch: "web_fetch_20260318", model.CodeExecution: "code_execution_20260521"}
)

// toolNames are the keys of both, in the order that Capabilities lists them.
var toolNames = []string{model.WebSearch, model.WebFetch, model.CodeExecution}

// providerTools lists the tools that the model has.
func (f *family) providerTools() []string {
	if f.tools == nil {
		return nil
	}
	return toolNames
}

// familyOf tells what is known of a model. Its sources are the API's pages on thinking, on effort and on what is new in each model, and, for forced calls
// beside thinking before Claude 5.1, the messages with which the API refuses them. A model that is none of these is one that came later, or is somebody else's: it is
// told everything in the newest form.
func familyOf(name string) family {
	line, v := version(name)
	f := family{maxTokens: 32000, thinks: byEffort, off: "disabled", forced: true, levels: model.ReasoningLevels(), schema: line != "" && v >= 405, tools: newTools, filters: true}
	switch {
	case v == 0:
		f.maxTokens = 8192
		return f
	case v < 305:
		return family{maxTokens: 4096, most: 4096, levels: []model.ReasoningLevel{model.ReasoningNone}}
	case v < 307:
		return family{maxTokens: 8192, most: 8192, levels: []model.ReasoningLevel{model.ReasoningNone}}
	case v < 406:
		f.thinks, f.most, f.forced, f.tools, f.filters = byBudget, 64000, false, oldTools, false
		f.interleaved, f.effort = v >= 400, line == "opus" && v == 405
		if line == "opus" && v < 405 {
			f.most = 32000
		}
		return f
	}
	f.most = 64000 // more, but no more is asked for
	switch {
	case v <= 407:
		f.forced = false
	case v == 408, v == 500 && (line == "opus" || line == "sonnet"), v == 505 && line == "haiku":
	case v == 500 && (line == "fable" || line == "mythos"):
		f.off = ""
	case v <= 502 && (line == "fable" || line == "mythos"), v == 505 && line == "opus":
		f.off, f.forced = "", false
	case v == 505 && line == "sonnet":
		f.off, f.forced = "between_tools", false
	default:
		return f
	}
	// The API has no word below "low".
	f.levels = slices.DeleteFunc(model.ReasoningLevels(), func(l model.ReasoningLevel) bool {
		return l == model.ReasoningMinimal || l == model.ReasoningNone && f.off == ""
	})
	return f
}

// version gives the line and version of a model, 405 for 4.5, wherever they stand in its name: claude-3-5-sonnet-20241022,
// anthropic/claude-opus-4.5, claude-sonnet-4@20250514. The line is "" when it is none that is known, the version 0 when there is none.
func version(name string) (line string, v int) {
	_, rest, ok := strings.Cut(strings.ToLower(name), "claude-")
	if !ok {
		return "", 0
	}
	n := 0
	for word := range strings.FieldsFuncSeq(rest, func(c rune) bool { return strings.ContainsRune("-.@:[", c) }) {
		d, err := strconv.Atoi(word)
		if err != nil && n == 0 {
			continue
		}
		if err != nil || len(word) > 2 || n == 2 { // a date follows, or "latest"
			break
		}
		if n++; n == 1 {
			d *= 100
		}
		v += d
	}
	for _, l := range []string{"opus", "sonnet", "haiku", "fable", "mythos"} {
		if strings.Contains(rest, l) {
			line = l
		}
	}
	return line, v
}

package anthropic

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func hi(s model.Settings) model.Request {
	return model.Request{Messages: message.NewHistory(message.User("Hi")), Settings: s}
}

// said gives what a request says of thinking: its limit, thinking, output_config.
func said(t *testing.T, name string, req model.Request) string {
	t.Helper()
	var body struct {
		Max      json.RawMessage `json:"max_tokens"`
		Thinking json.RawMessage `json:"thinking"`
		Output   json.RawMessage `json:"output_config"`
	}
	if err := json.Unmarshal([]byte(joined(t, New(name), req, false)), &body); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.Join([]string{string(body.Max), string(body.Thinking), string(body.Output)}, " "))
}

func TestLevelsAreSaidInTheWordsOfTheModel(t *testing.T) {
	const none, minimal, low, medium, high, most = model.ReasoningNone, model.ReasoningMinimal, model.ReasoningLow, model.ReasoningMedium, model.ReasoningHigh, model.ReasoningMax
	adaptive := func(limit, effort string) string {
		return limit + ` {"type":"adaptive","display":"summarized"} {"effort":"` + effort + `"}`
	}
	efforts := map[model.ReasoningLevel]string{low: adaptive("32000", "low"), medium: adaptive("32000", "medium"), high: adaptive("64000", "high"), most: adaptive("64000", "max")}
	with := func(m map[model.ReasoningLevel]string, l model.ReasoningLevel, s string) map[model.ReasoningLevel]string {
		out := map[model.ReasoningLevel]string{l: s}
		for k, v := range m {
			out[k] = v
		}
		return out
	}
	budgets := map[model.ReasoningLevel]string{
		none: `32000 {"type":"disabled"}`, minimal: `33024 {"type":"enabled","budget_tokens":1024}`, low: `36096 {"type":"enabled","budget_tokens":4096}`,
		medium: `40192 {"type":"enabled","budget_tokens":8192}`, high: `48384 {"type":"enabled","budget_tokens":16384}`, most: `64000 {"type":"enabled","budget_tokens":32000}`,
	}
	off := with(efforts, none, `32000 {"type":"disabled"}`)
	for name, want := range map[string]map[model.ReasoningLevel]string{
		"claude-3-haiku-20240307":  {none: "4096"},
		"claude-3-5-sonnet-latest": {none: "8192"},
		"claude-3-7-sonnet-latest": budgets,
		"claude-sonnet-4-5":        budgets,
		"claude-haiku-4-5":         budgets,
		"claude-opus-4-1": {
			none: `32000 {"type":"disabled"}`, minimal: `32000 {"type":"enabled","budget_tokens":1024}`, low: `32000 {"type":"enabled","budget_tokens":4096}`,
			medium: `32000 {"type":"enabled","budget_tokens":8192}`, high: `32000 {"type":"enabled","budget_tokens":16384}`, most: `32000 {"type":"enabled","budget_tokens":24000}`,
		},
		"claude-opus-4-5": {
			none: budgets[none], minimal: budgets[minimal] + ` {"effort":"low"}`, low: budgets[low] + ` {"effort":"low"}`,
			medium: budgets[medium] + ` {"effort":"medium"}`, high: budgets[high] + ` {"effort":"high"}`, most: budgets[most] + ` {"effort":"high"}`,
		},
		"claude-sonnet-4-6": off, "claude-opus-4-7": off, "claude-opus-4-8": off, "claude-opus-5": off, "claude-sonnet-5": off, "claude-haiku-5-5": off,
		"claude-sonnet-5-5": with(efforts, none, `32000 {"type":"between_tools"}`),
		"claude-opus-5-5":   efforts, "claude-fable-5": efforts, "claude-mythos-5": efforts, "claude-fable-5-1": efforts, "claude-mythos-5-2": efforts,
		"claude-opus-6": with(off, minimal, adaptive("32000", "low")), // not known yet
		"kimi-k2": {
			none: `8192 {"type":"disabled"}`, minimal: adaptive("8192", "low"), low: adaptive("8192", "low"),
			medium: adaptive("8192", "medium"), high: adaptive("8192", "high"), most: adaptive("8192", "max"),
		},
	} {
		got := map[model.ReasoningLevel]string{}
		for _, l := range New(name).Capabilities().Reasoning {
			got[l] = said(t, name, hi(model.Settings{Reasoning: l}))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if s := said(t, name, hi(model.Settings{})); strings.Contains(s, " ") {
			t.Errorf("%s: by default %s", name, s)
		}
	}
}

func TestAnAnswerHasRoomBesideThoughts(t *testing.T) {
	for limit, want := range map[int]string{
		1025:  `1025 {"type":"enabled","budget_tokens":1024}`,
		8000:  `8000 {"type":"enabled","budget_tokens":6000}`,
		64000: `64000 {"type":"enabled","budget_tokens":32000}`,
	} {
		if got := said(t, "claude-sonnet-4-5", hi(model.Settings{Reasoning: model.ReasoningMax, MaxTokens: limit})); got != want {
			t.Errorf("%d: %s", limit, got)
		}
	}
	if got := said(t, "claude-opus-5", hi(model.Settings{Reasoning: model.ReasoningMax, MaxTokens: 100})); got != `100 {"type":"adaptive","display":"summarized"} {"effort":"max"}` {
		t.Error(got)
	}
}

func TestEffortAndSchemaStandTogether(t *testing.T) {
	req := hi(model.Settings{Reasoning: model.ReasoningLow})
	req.Output = json.RawMessage(`{"type":"object"}`)
	if got, want := said(t, "claude-opus-5", req), `32000 {"type":"adaptive","display":"summarized"} {"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatThinkingIsRefusedWithIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		s     model.Settings
		named []string // none: it goes
	}{
		"a temperature":            {"claude-sonnet-4-5", model.Settings{Temperature: ptr(0.5)}, []string{"temperature"}},
		"the only temperature":     {"claude-sonnet-4-5", model.Settings{Temperature: ptr(1.0)}, nil},
		"a low top_p":              {"claude-opus-4-6", model.Settings{TopP: ptr(0.9)}, []string{"top_p"}},
		"a high top_p":             {"claude-opus-4-6", model.Settings{TopP: ptr(0.95)}, nil},
		"top_k and a forced call":  {"claude-sonnet-4-5", model.Settings{TopK: ptr(5), ToolChoice: model.ToolsRequired}, []string{"top_k", "tool choice"}},
		"a forced tool":            {"claude-opus-4-7", model.Settings{ToolChoice: "read"}, []string{"tool choice"}},
		"a forced tool of later":   {"claude-opus-5-5", model.Settings{ToolChoice: "read"}, []string{"tool choice"}},
		"a forced tool in between": {"claude-opus-5", model.Settings{ToolChoice: "read"}, nil},
		"a forced tool, unknown":   {"kimi-k2", model.Settings{ToolChoice: "read"}, nil},
		"no tool":                  {"claude-opus-4-7", model.Settings{ToolChoice: model.ToolsNone}, nil},
		"no room to think":         {"claude-sonnet-4-5", model.Settings{MaxTokens: 1024}, []string{"1024"}},
	} {
		req := hi(c.s)
		req.Tools, req.Reasoning = readTool, model.ReasoningHigh
		_, err := New(c.model).body(req, false)
		if len(c.named) == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, errdefs.Validation) || slices.ContainsFunc(append(c.named, `reasoning "high"`, c.model), func(s string) bool { return !strings.Contains(err.Error(), s) }) {
			t.Errorf("%s: %v", name, err)
		}
		req.Reasoning = model.ReasoningDefault
		if _, err := New(c.model).body(req, false); err != nil {
			t.Errorf("%s, without reasoning: %v", name, err)
		}
		if req.Reasoning = model.ReasoningNone; slices.Contains(New(c.model).can.Reasoning, req.Reasoning) {
			if _, err := New(c.model).body(req, false); err != nil {
				t.Errorf("%s, with reasoning none: %v", name, err)
			}
		}
	}
}

func TestThinkingBetweenCallsIsABetaBesideTheCallersOwn(t *testing.T) {
	think := func(l model.ReasoningLevel) model.Settings { return model.Settings{Reasoning: l} }
	for name, c := range map[string]struct {
		model string
		req   model.Request
		asked []string // by the caller
		want  []string
	}{
		"with tools":                     {"claude-sonnet-4-5", model.Request{Tools: readTool, Settings: think("low")}, nil, []string{interleaved}},
		"beside another":                 {"claude-sonnet-4-5", model.Request{Tools: readTool, Settings: think("low")}, []string{"context-1m-2025-08-07"}, []string{"context-1m-2025-08-07", interleaved}},
		"once":                           {"claude-sonnet-4-5", model.Request{Tools: readTool, Settings: think("low")}, []string{"x," + interleaved}, []string{"x," + interleaved}},
		"with tools of the API":          {"claude-opus-4-1", model.Request{Settings: model.Settings{Reasoning: "low", ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}}}, nil, []string{interleaved}},
		"without tools":                  {"claude-sonnet-4-5", model.Request{Settings: think("low")}, []string{"x"}, []string{"x"}},
		"without thoughts":               {"claude-sonnet-4-5", model.Request{Tools: readTool, Settings: think("none")}, nil, nil},
		"by default":                     {"claude-sonnet-4-5", model.Request{Tools: readTool}, nil, nil},
		"which later models do":          {"claude-opus-5", model.Request{Tools: readTool, Settings: think("low")}, nil, nil},
		"which earlier models can't":     {"claude-3-7-sonnet-latest", model.Request{Tools: readTool, Settings: think("low")}, nil, nil},
		"with what a name doesn't say  ": {"kimi-k2", model.Request{Tools: readTool, Settings: think("low")}, nil, nil},
	} {
		m := New(c.model)
		for _, a := range c.asked {
			m.api.Header.Add("Anthropic-Beta", a)
		}
		for range 2 { // what is added for one call is not there for the next
			h := m.api.Header.Clone()
			for k, v := range m.header(c.req, "text/event-stream") {
				h[k] = v
			}
			if d := cmp.Diff(c.want, h["Anthropic-Beta"]); d != "" || h.Get("Accept") != "text/event-stream" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
	}
}

package openai

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// families says which words OpenAI's models take for how much they think (reasoning_effort, reasoning.effort), by their names; the first line that
// fits counts. None of them: the model doesn't think. The words up to GPT-5.2, GPT-5.5 and GPT-5.6-sol are those that the API listed when it
// refused others, as the threads community.openai.com/t/1371738, anomalyco/opencode#26268 and the page of that model report; those of GPT-6 are from
// pages of models at developers.openai.com, of LiteLLM and of BerriAI/litellm-docs#1173 (2026-09 to 11). gpt-oss: its model card.
var families = []struct {
	names string // a model's name is one of them, or goes on with something else than a version
	has   string // what else is in it
	words string
}{
	{"gpt-3.5 gpt-4 gpt-4.1 gpt-4.5 chatgpt gpt-audio", "", ""},
	{"gpt-oss", "", "low medium high"},
	{"o3 o4-mini", "-deep-research", "medium"},
	{"o1 o3 o4-mini codex-mini", "", "low medium high"},
	{"gpt-5", "-chat", ""},
	{"gpt-5", "-search-api", ""},
	{"gpt-5", "-pro", "high"},
	{"gpt-5", "-codex", "low medium high"},
	{"gpt-5", "", "minimal low medium high"},
	{"gpt-5.1 gpt-5.2 gpt-5.3", "-chat", "medium"},
	{"gpt-5.1", "-codex-max", "low medium high xhigh"},
	{"gpt-5.1", "-codex", "low medium high"},
	{"gpt-5.1", "", "none low medium high"},
	{"gpt-5.2 gpt-5.3 gpt-5.4 gpt-5.5", "-codex", "low medium high xhigh"},
	{"gpt-5.2 gpt-5.3 gpt-5.4 gpt-5.5", "-pro", "medium high xhigh"},
	{"gpt-5.2 gpt-5.3 gpt-5.4 gpt-5.5", "", "none low medium high xhigh"},
	{"gpt-5.6 gpt-6-sol gpt-6-luna gpt-6.1-terra", "", "none low medium high xhigh max"},
	{"gpt-6-astra gpt-6.1-sol", "", "low medium high xhigh max"},
}

// effort is how a model is told how much to think.
type effort struct {
	levels []model.ReasoningLevel
	most   string // the word for model.ReasoningMax
	known  bool   // the model is one of OpenAI's that the table has
	thinks bool
}

// effortOf looks a model up by its name, which may have a provider's before it. One that isn't in the table takes all levels. most is the word that
// the protocol has for as much as possible, if the model knows it: where it takes xhigh alone, that is it.
func effortOf(name, most string) effort {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, f := range families {
		if !strings.Contains(name, f.has) || !slices.ContainsFunc(strings.Fields(f.names), func(begin string) bool { return isOf(name, begin) }) {
			continue
		}
		words := strings.Fields(f.words)
		if len(words) == 0 {
			return effort{levels: []model.ReasoningLevel{model.ReasoningNone}, known: true}
		}
		e := effort{most: "xhigh", known: true, thinks: true}
		if slices.Contains(words, most) {
			e.most = most
		}
		for _, l := range model.ReasoningLevels() {
			if slices.Contains(words, e.word(l)) {
				e.levels = append(e.levels, l)
			}
		}
		return e
	}
	return effort{levels: model.ReasoningLevels(), most: most, thinks: true}
}

// isOf reports whether a model's name begins with that of its family: gpt-5-mini is of gpt-5, and gpt-5.1 is not.
func isOf(name, family string) bool {
	rest, ok := strings.CutPrefix(name, family)
	return ok && (rest == "" || rest[0] != '.' && (rest[0] < '0' || rest[0] > '9'))
}

// word is the provider's word for a level; "" where nothing is to be said: for the default, and to a model that doesn't think anyway.
func (e effort) word(l model.ReasoningLevel) string {
	switch {
	case l == model.ReasoningMax:
		return e.most
	case !e.thinks:
		return ""
	}
	return string(l)
}

// admitReasoning refuses what OpenAI's models refuse together with thinking, where a level is asked for and its own servers are: with the default, only
// they know whether the model thinks.
func (c *client) admitReasoning(req *model.Request) error {
	if req.Reasoning == model.ReasoningDefault || req.Reasoning == model.ReasoningNone || !c.effort.known || !c.own() {
		return nil
	}
	var with []string
	for _, s := range []struct {
		name string
		set  bool
	}{
		{"temperature (but 1)", req.Temperature != nil && *req.Temperature != 1},
		{"top_p", req.TopP != nil},
		{"frequency_penalty", req.FrequencyPenalty != nil},
		{"presence_penalty", req.PresencePenalty != nil},
		{"the tool web_search", req.Reasoning == model.ReasoningMinimal && slices.ContainsFunc(req.ProviderTools, func(t model.ProviderTool) bool { return t.Name == model.WebSearch })},
	} {
		if s.set {
			with = append(with, s.name)
		}
	}
	if len(with) == 0 {
		return nil
	}
	return errdefs.Validation.Errorf("%s: %s doesn't take %s together with reasoning %q: leave one of them out", c.vendor.Name, c.name, strings.Join(with, ", "), req.Reasoning)
}

// noTools are the families that Chat Completions lets use tools only where they don't think.
var noTools = []string{"gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6", "gpt-6.1"}

// admitChatTools refuses tools together with thinking where OpenAI does: "Function tools with reasoning_effort are not supported for … in
// /v1/chat/completions".
func (m *Model) admitChatTools(req *model.Request) error {
	if len(req.Tools) == 0 || req.Reasoning == model.ReasoningDefault || req.Reasoning == model.ReasoningNone || !m.own() {
		return nil
	}
	if !slices.ContainsFunc(noTools, func(f string) bool { return isOf(m.name, f) }) {
		return nil
	}
	return errdefs.Validation.Errorf("%s: over Chat Completions, %s doesn't take tools together with reasoning %q: ask it over Responses (openai.NewResponses, openai-responses/%s)", m.vendor.Name, m.name, req.Reasoning, m.name)
}

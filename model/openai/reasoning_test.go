package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

func TestAModelTakesTheLevelsOfItsFamily(t *testing.T) {
	for name, want := range map[string]string{
		"o1": "low medium high", "o3-pro": "low medium high", "o4-mini-2025-04-16": "low medium high", "o3-deep-research": "medium",
		"gpt-5": "minimal low medium high", "gpt-5-mini-2025-08-07": "minimal low medium high", "gpt-5-pro-2025-10-06": "high", "gpt-5-codex": "low medium high",
		"gpt-5-chat-latest": "none", "gpt-5-search-api": "none",
		"gpt-5.1": "none low medium high", "gpt-5.1-codex-mini": "low medium high", "gpt-5.1-codex-max": "low medium high max", "gpt-5.1-chat-latest": "medium",
		"gpt-5.2": "none low medium high max", "gpt-5.2-pro": "medium high max", "gpt-5.3-codex": "low medium high max", "gpt-5.4-mini": "none low medium high max",
		"gpt-5.5-pro-2026-04-23": "medium high max", "gpt-5.6": "none low medium high max", "gpt-5.6-terra": "none low medium high max",
		"gpt-6-astra": "low medium high max", "gpt-6-luna": "none low medium high max", "gpt-6.1-sol-2026-09-29": "low medium high max", "gpt-6.1-terra": "none low medium high max",
		"gpt-4o": "none", "gpt-4.1-mini": "none", "gpt-4-turbo": "none", "gpt-3.5-turbo-0125": "none", "chatgpt-4o-latest": "none",
		"openai/gpt-5": "minimal low medium high", "openai/gpt-oss-120b": "low medium high", "gpt-oss:20b": "low medium high",
		"gpt-7": "none minimal low medium high max", "gpt-5.7": "none minimal low medium high max", "gpt-6.2-sol": "none minimal low medium high max", "qwen3:8b": "none minimal low medium high max",
	} {
		for _, m := range []model.Describer{New(name), NewResponses(name)} {
			if got := strings.Trim(fmt.Sprint(m.Capabilities().Reasoning), "[]"); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

func TestALevelIsSaidInTheWordsOfTheProtocol(t *testing.T) {
	for _, c := range []struct {
		name            string
		level           model.ReasoningLevel
		chat, responses string
	}{
		{"gpt-5", model.ReasoningDefault, "", ""},
		{"gpt-5", model.ReasoningMinimal, "minimal", "minimal"},
		{"gpt-5.1", model.ReasoningNone, "none", "none"},
		{"gpt-4o", model.ReasoningNone, "", ""},
		{"gpt-5.2", model.ReasoningMax, "xhigh", "xhigh"},
		{"gpt-5.6-sol", model.ReasoningMax, "xhigh", "max"},
		{"somebody-elses", model.ReasoningMax, "xhigh", "max"},
		{"somebody-elses", model.ReasoningNone, "none", "none"},
	} {
		req := hi()
		req.Reasoning = c.level
		member := func(format, word string) string {
			if word == "" {
				return ""
			}
			return fmt.Sprintf(format, word)
		}
		for body, want := range map[string]string{
			string(New(c.name).begin(nil, &req, false)):          member(`,"reasoning_effort":%q`, c.chat),
			string(NewResponses(c.name).begin(nil, &req, false)): member(`,"reasoning":{"effort":%q}`, c.responses),
		} {
			if !strings.Contains(body, want) || want == "" && (strings.Contains(body, `effort"`) || strings.Contains(body, `"reasoning"`)) {
				t.Errorf("%s, %q: want %q in %s", c.name, c.level, want, body)
			}
		}
	}
}

func TestWhatOpenAIRefusesTogetherWithThinkingIsRefusedBeforeACall(t *testing.T) {
	tools := []model.Tool{{Name: "read"}}
	for name, c := range map[string]struct {
		name, base string
		s          model.Settings
		tools      []model.Tool
		chat, resp string // what the error names; "" for none
	}{
		"a temperature":               {"gpt-5", "", model.Settings{Reasoning: "low", Temperature: ptr(0.2)}, nil, "temperature", "temperature"},
		"the only temperature":        {"gpt-5", "", model.Settings{Reasoning: "low", Temperature: ptr(1.0)}, nil, "", ""},
		"top_p":                       {"o3", "", model.Settings{Reasoning: "high", TopP: ptr(0.9)}, nil, "top_p", "top_p"},
		"a penalty":                   {"o3", "", model.Settings{Reasoning: "high", PresencePenalty: ptr(0.9)}, nil, "presence_penalty", "presence_penalty"},
		"a search, hardly thinking":   {"gpt-5", "", model.Settings{Reasoning: "minimal", ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}}, nil, "", "web_search"},
		"a search, thinking":          {"gpt-5", "", model.Settings{Reasoning: "low", ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}}, nil, "", ""},
		"without thinking":            {"gpt-5.1", "", model.Settings{Reasoning: "none", Temperature: ptr(0.2)}, nil, "", ""},
		"with the default":            {"gpt-5.1", "", model.Settings{Temperature: ptr(0.2)}, nil, "", ""},
		"a model that isn't known":    {"gpt-7", "", model.Settings{Reasoning: "low", Temperature: ptr(0.2)}, nil, "", ""},
		"another server":              {"gpt-5", "http://x/v1", model.Settings{Reasoning: "low", Temperature: ptr(0.2)}, nil, "", ""},
		"tools":                       {"gpt-5.4", "", model.Settings{Reasoning: "low"}, tools, "openai-responses/gpt-5.4", ""},
		"tools, of the newest":        {"gpt-6-luna", "", model.Settings{Reasoning: "max"}, tools, "openai-responses/gpt-6-luna", ""},
		"tools without thinking":      {"gpt-5.6", "", model.Settings{Reasoning: "none"}, tools, "", ""},
		"tools of an older model":     {"gpt-5.1", "", model.Settings{Reasoning: "high"}, tools, "", ""},
		"tools of another server":     {"gpt-5.4", "http://x/v1", model.Settings{Reasoning: "low"}, tools, "", ""},
		"a level that it hasn't":      {"gpt-5", "", model.Settings{Reasoning: "none"}, nil, `["minimal" "low" "medium" "high"]`, `["minimal" "low" "medium" "high"]`},
		"a level of one that doesn't": {"gpt-4o", "", model.Settings{Reasoning: "low"}, nil, `["none"]`, `["none"]`},
	} {
		req := hi()
		req.Settings, req.Tools = c.s, c.tools
		both := map[model.Model]string{}
		s := &server{status: 200, body: chatOK}
		both[New(c.name, s.option(), model.WithKey("k"), model.WithBaseURL(c.base))] = c.chat
		if c.s.ProviderTools != nil {
			clear(both)
		}
		if c.s.PresencePenalty == nil {
			r := &server{status: 200, body: responsesOK}
			both[NewResponses(c.name, r.option(), model.WithKey("k"), model.WithBaseURL(c.base))] = c.resp
		}
		for m, want := range both {
			_, err := m.Complete(t.Context(), req)
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %v", name, err)
			case want != "" && (!errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("%q", string(c.s.Reasoning)))):
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

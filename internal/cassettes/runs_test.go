package cassettes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// calls is what the tools of a run were called with, in order.
type calls []block

// noted makes a tool that does f and notes its calls.
func noted[In any](log *calls, name string, f func(In) string) tool.Tool {
	return tool.Func(name, "As in the recording.", func(_ context.Context, in In) (string, error) {
		input, err := json.Marshal(in)
		*log = append(*log, block{Kind: "tool_call", Name: name, Input: argued(string(input))})
		return f(in), err
	})
}

type numbers struct {
	A int `json:"a" jsonschema:"first number"`
	B int `json:"b" jsonschema:"second number"`
}

func calculator(log *calls) []tool.Tool {
	return []tool.Tool{
		noted(log, "add", func(n numbers) string { return fmt.Sprint(n.A + n.B) }),
		noted(log, "multiply", func(n numbers) string { return fmt.Sprint(n.A * n.B) }),
	}
}

func weather(log *calls) []tool.Tool {
	type place struct {
		Location string `json:"location"`
	}
	return []tool.Tool{noted(log, "weather", func(place) string { return "40 C" })}
}

// country is a tool without input.
func country(name string) func(*calls) []tool.Tool {
	return func(log *calls) []tool.Tool {
		return []tool.Tool{noted(log, name, func(struct{}) string { return "Mexico" })}
	}
}

func family(log *calls) []tool.Tool {
	type person struct {
		Name string `json:"name"`
	}
	about := map[string]string{
		"Alice": "alice is bob's wife", "Bob": "bob is alice's husband", "Charlie": "charlie is alice's son",
		"Daisy": "daisy is bob's daughter and charlie's younger sister",
	}
	return []tool.Tool{noted(log, "retrieve_entity_info", func(p person) string { return about[p.Name] })}
}

func files(log *calls) []tool.Tool {
	type path struct {
		Path string `json:"path"`
	}
	return []tool.Tool{
		noted(log, "delete_file", func(path) string { return "true" }),
		noted(log, "create_file", func(path) string { return "Success" }),
	}
}

func exchange(log *calls) []tool.Tool {
	type currencies struct {
		From string `json:"from_currency"`
		To   string `json:"to_currency"`
	}
	return []tool.Tool{noted(log, "get_exchange_rate", func(currencies) string { return "1 USD = 0.92 EUR" })}
}

func forecast(log *calls) []tool.Tool {
	type place struct {
		City string `json:"city"`
	}
	return []tool.Tool{noted(log, "get_weather", func(p place) string {
		if p.City == "NYC" {
			return "Sunny, 72F"
		}
		return "Location not recognized. The tool only supports the airport code \"NYC\". Call again with city=\"NYC\".\n\nFix the errors and try again."
	})}
}

func none(*calls) []tool.Tool { return nil }

// TestAgentsEndAsTheRecordedOnesDid runs the loop with real tools against the recorded answers: one run for each thing that a person
// said, all in one session.
func TestAgentsEndAsTheRecordedOnesDid(t *testing.T) {
	cassettes.Dir(t) // or skip it all
	for name, tools := range map[string]func(*calls) []tool.Tool{
		"fantasy__TestAnthropicCommon__claude-sonnet-4__multi_tool_streaming":                                              calculator,
		"fantasy__TestOpenAICommon__openai-gpt-5__multi_tool_streaming":                                                    calculator,
		"fantasy__TestOpenAICommon__openai-gpt-4o__multi_tool_streaming":                                                   calculator,
		"fantasy__TestOpenAIResponsesCommon__openai-gpt-5__multi_tool_streaming":                                           calculator,
		"fantasy__TestGoogleCommon__gemini-3-pro-preview__multi_tool_streaming":                                            calculator,
		"fantasy__TestAnthropicThinking__claude-sonnet-4__thinking-streaming":                                              weather,
		"fantasy__TestGoogleThinking__gemini-2.5-flash__thinking-streaming":                                                weather,
		"fantasy__testdata__TestAnthropicWebSearch__stream":                                                                none,
		"pydantic-ai__cassettes__test_anthropic__test_anthropic_cache_real_api":                                            none,
		"pydantic-ai__cassettes__test_anthropic__test_anthropic_tool_with_thinking":                                        country("get_user_country"),
		"pydantic-ai__cassettes__test_anthropic__test_multiple_parallel_tool_calls":                                        family,
		"pydantic-ai__cassettes__test_tool_search__test_anthropic_native_tool_search_streaming":                            exchange,
		"pydantic-ai__cassettes__test_dbos__test_dbos_agent_with_hitl_tool":                                                files,
		"pydantic-ai__cassettes__test_openai__test_openai_native_output":                                                   country("get_user_country"),
		"pydantic-ai__cassettes__test_google__test_google_streaming_tool_call_thought_signature":                           country("get_country"),
		"pydantic-ai__cassettes__test_openai_responses__test_openai_responses_compact_stateful_mode_stream":                none,
		"pydantic-ai__cassettes__test_openai_responses__test_openai_previous_response_id_seed_auto_chains_through_retries": forecast,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replay(t, cassettes.Named(t, name), tools)
		})
	}
}

// listener makes the loop stream.
type listener struct{ engine.NoopHost }

func (listener) Listening() bool { return true }

func replay(t *testing.T, c cassettes.Cassette, tools func(*calls) []tool.Tool) {
	asked, replies, whole := recordedRun(t, c)
	var log calls
	s := cassettes.Serve(t, c.Exchanges)
	l, err := loop.New(loop.Config{Model: open(t, c.Exchanges[0], s), Tools: tools(&log)})
	if err != nil {
		t.Fatal(err)
	}
	opts := []agent.RunOption{agent.WithJournal(journal.Memory())}
	if c.Exchanges[0].Streamed() {
		opts = append(opts, agent.WithEngineHost(listener{}))
	}
	var res *agent.Result
	for _, prompt := range prompts(whole) {
		req := agent.Request{ContextID: "session", Message: message.User(prompt)}
		res, err = agent.Run(t.Context(), agent.Agent{ID: "replay"}, l, req, opts...)
		if err != nil || res.Status != agent.StatusCompleted {
			t.Fatalf("%s: %v, %v", res.Status, res.Err, err)
		}
	}
	var wantCalls calls
	for _, r := range replies {
		for _, b := range r {
			if b.Kind == "tool_call" {
				wantCalls = append(wantCalls, block{Kind: b.Kind, Name: b.Name, Input: b.Input})
			}
		}
	}
	if diff := cmp.Diff(wantCalls, log); diff != "" {
		t.Errorf("calls of tools (-recorded +made):\n%s", diff)
	}
	if want := answer(replies[len(replies)-1]); res.Text() != want || want == "" {
		t.Errorf("the run ended with %q, recorded is %q", res.Text(), want)
	}
	got := s.Requests()
	if len(got) != len(asked) {
		t.Fatalf("%d requests, recorded are %d", len(got), len(asked))
	}
	answers := answersOf(c)
	for i, want := range asked {
		sent := dialects[c.API].turns(parse(t, got[i].Body))
		if diff := cmp.Diff(plainly(c.API, want, answers), plainly(c.API, sent, answers)); diff != "" {
			t.Errorf("request %d (-recorded +sent):\n%s", i+1, diff)
		}
	}
}

// recordedRun reads what was said before each recorded request, what the model replied to it, and the whole conversation up to the last
// reply.
func recordedRun(t *testing.T, c cassettes.Cassette) (asked [][]turn, replies [][]block, whole []turn) {
	t.Helper()
	for _, x := range c.Exchanges {
		whole = recordedTurns(t, c, x, whole)
		asked = append(asked, whole)
		reply := turnsOfReply(c.API, replyOf(t, x).Content)
		replies = append(replies, reply)
		whole = say(clone(whole), "assistant", reply...)
	}
	return asked, replies, whole
}

// turnsOfReply reads a reply as if it stood in a request.
func turnsOfReply(api string, content []any) (blocks []block) {
	request := map[string]object{
		cassettes.Anthropic: {"messages": []any{object{"role": "assistant", "content": content}}},
		cassettes.OpenAI:    {"messages": content},
		cassettes.Responses: {"input": content},
		cassettes.Gemini:    {"contents": []any{object{"role": "model", "parts": content}}},
	}[api]
	for _, t := range dialects[api].turns(request) {
		blocks = append(blocks, t.Blocks...)
	}
	return blocks
}

// clone keeps what is said later out of turns.
func clone(turns []turn) (out []turn) {
	for _, t := range turns {
		out = append(out, turn{t.Role, slices.Clone(t.Blocks)})
	}
	return out
}

// prompts is what a person said.
func prompts(turns []turn) (out []string) {
	for _, t := range turns {
		for _, b := range t.Blocks {
			if t.Role == "user" && b.Kind == "text" {
				out = append(out, b.Text)
			}
		}
	}
	return out
}

func answer(blocks []block) (s string) {
	for _, b := range blocks {
		if b.Kind == "text" {
			s += b.Text
		}
	}
	return s
}

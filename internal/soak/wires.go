package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// turn is a message of a request.
type turn struct {
	assistant bool
	texts     []string
	calls     []string // ids
	results   []string // of the calls that they answer
}

// asked is a call in a reply.
type asked struct{ id, name, input string }

// wire is a format of requests and streams.
type wire struct {
	path  string
	turns func(body []byte) ([]turn, error)
	// begin, word and end are a reply's events. A text goes word by word, calls follow it.
	begin string
	word  func(text string) string
	end   func(calls []asked) string
}

var wires = []wire{anthropicWire, chatWire}

// texts reads what is a text, or parts of which some are.
type content []struct {
	Type, Text, ID string
	Use            string `json:"tool_use_id"`
}

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = append(*c, struct {
			Type, Text, ID string
			Use            string `json:"tool_use_id"`
		}{Type: "text", Text: text})
		return nil
	}
	type plain content
	return json.Unmarshal(b, (*plain)(c))
}

func sse(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

var anthropicWire = wire{
	path: "/v1/messages",
	turns: func(body []byte) (all []turn, err error) {
		var req struct {
			Messages []struct {
				Role    string
				Content content
			}
		}
		if err := json.Unmarshal(body, &req); err != nil {
			return nil, err
		}
		for _, m := range req.Messages {
			t := turn{assistant: m.Role == "assistant"}
			for _, c := range m.Content {
				switch c.Type {
				case "text":
					t.texts = append(t.texts, c.Text)
				case "tool_use":
					t.calls = append(t.calls, c.ID)
				case "tool_result":
					t.results = append(t.results, c.Use)
				}
			}
			all = append(all, t)
		}
		return all, nil
	},
	begin: sse("message_start", `{"type":"message_start","message":{"id":"msg_soak","type":"message","role":"assistant","model":"soak","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`) +
		sse("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	word: func(text string) string {
		return sse("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+strconv.Quote(text)+`}}`)
	},
	end: func(calls []asked) string {
		var b strings.Builder
		stop := func(i int) string {
			return sse("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		}
		b.WriteString(stop(0))
		reason := "end_turn"
		for i, c := range calls {
			reason = "tool_use"
			b.WriteString(sse("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i+1, c.id, c.name)))
			b.WriteString(sse("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i+1, c.input)))
			b.WriteString(stop(i + 1))
		}
		b.WriteString(sse("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":20}}`))
		return b.String() + sse("message_stop", `{"type":"message_stop"}`)
	},
}

func chunk(delta, finish string) string {
	return `data: {"id":"chatcmpl-soak","object":"chat.completion.chunk","created":1,"model":"soak","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n"
}

var chatWire = wire{
	path: "/v1/chat/completions",
	turns: func(body []byte) (all []turn, err error) {
		var req struct {
			Messages []struct {
				Role    string
				Content content
				Calls   []struct{ ID string } `json:"tool_calls"`
				Call    string                `json:"tool_call_id"`
			}
		}
		if err := json.Unmarshal(body, &req); err != nil {
			return nil, err
		}
		for _, m := range req.Messages {
			t := turn{assistant: m.Role == "assistant"}
			switch m.Role {
			case "system", "developer":
				continue
			case "tool":
				t.results = []string{m.Call}
			default:
				for _, c := range m.Content {
					t.texts = append(t.texts, c.Text)
				}
				for _, c := range m.Calls {
					t.calls = append(t.calls, c.ID)
				}
			}
			all = append(all, t)
		}
		return all, nil
	},
	begin: chunk(`{"role":"assistant","content":""}`, "null"),
	word:  func(text string) string { return chunk(`{"content":`+strconv.Quote(text)+`}`, "null") },
	end: func(calls []asked) string {
		var b strings.Builder
		reason := `"stop"`
		for i, c := range calls {
			reason = `"tool_calls"`
			b.WriteString(chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, i, c.id, c.name, c.input), "null"))
		}
		b.WriteString(chunk(`{}`, reason))
		return b.String() + `data: {"id":"chatcmpl-soak","object":"chat.completion.chunk","created":1,"model":"soak","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}` + "\n\ndata: [DONE]\n\n"
	},
}

// unanswered is what is wrong with a transcript; "" for nothing. Every call has to have one result before the assistant speaks again.
func unanswered(all []turn) string {
	open := map[string]bool{}
	for _, t := range all {
		for _, r := range t.results {
			if !open[r] {
				return "a result of a call that is not open: " + r
			}
			delete(open, r)
		}
		if len(open) > 0 && (t.assistant || len(t.results) == 0) {
			return fmt.Sprintf("calls without a result: %v", open)
		}
		for _, c := range t.calls {
			open[c] = true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls without a result: %v", open)
	}
	return ""
}

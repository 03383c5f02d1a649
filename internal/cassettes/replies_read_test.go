package cassettes_test

import (
	"encoding/json"
	"maps"

	"github.com/pawl-dev/pawl/model"
)

// Anthropic Messages.

func gatherAnthropic(events []object) object {
	var msg object
	blocks := []any{}
	inputs := map[int]string{}
	for _, e := range events {
		i := number(e["index"])
		switch text(e["type"]) {
		case "message_start":
			msg = member(e["message"])
		case "content_block_start":
			blocks = append(blocks, e["content_block"])
		case "content_block_delta":
			b, delta := member(blocks[i]), member(e["delta"])
			switch text(delta["type"]) {
			case "text_delta":
				b["text"] = text(b["text"]) + text(delta["text"])
			case "thinking_delta":
				b["thinking"] = text(b["thinking"]) + text(delta["thinking"])
			case "signature_delta":
				b["signature"] = delta["signature"]
			case "citations_delta":
				b["citations"] = append(list(b["citations"]), delta["citation"])
			case "input_json_delta":
				inputs[i] += text(delta["partial_json"])
			}
		case "message_delta":
			maps.Copy(msg, member(e["delta"]))
			maps.Copy(member(msg["usage"]), member(e["usage"]))
		}
	}
	for i, input := range inputs {
		var v any
		if json.Unmarshal([]byte(input), &v) == nil {
			member(blocks[i])["input"] = v
		}
	}
	msg["content"] = blocks
	return msg
}

func readAnthropic(d object) reply {
	u := member(d["usage"])
	return reply{
		ID: text(d["id"]), Model: text(d["model"]), Stop: model.StopReason(text(d["stop_reason"])), Content: list(d["content"]),
		Usage: model.Usage{
			Input: number(u["input_tokens"]), Output: number(u["output_tokens"]),
			CacheRead: number(u["cache_read_input_tokens"]), CacheWrite: number(u["cache_creation_input_tokens"]),
		},
	}
}

func sentAnthropic(request object) []any {
	for _, m := range list(request["messages"]) {
		if m := member(m); text(m["role"]) == "assistant" {
			return list(m["content"])
		}
	}
	return nil
}

// OpenAI Chat Completions.

func gatherChat(events []object) object {
	msg, choice, whole := object{}, object{"index": 0.0}, object{}
	calls := []any{}
	for _, e := range events {
		maps.Copy(whole, e)
		if u := e["usage"]; u != nil {
			choice["usage"] = u
		}
		c := first(e["choices"])
		if c["finish_reason"] != nil {
			choice["finish_reason"] = c["finish_reason"]
		}
		for name, v := range member(c["delta"]) {
			switch name {
			case "tool_calls":
				for _, piece := range list(v) {
					calls = gatherCall(calls, member(piece))
				}
			case "content", "reasoning", "reasoning_content", "refusal":
				if v != nil || msg[name] == nil {
					msg[name] = join(msg[name], v)
				}
			default:
				msg[name] = v
			}
		}
	}
	if len(calls) > 0 {
		msg["tool_calls"] = calls
	}
	choice["message"], whole["usage"], whole["choices"] = msg, choice["usage"], []any{choice}
	return whole
}

func join(a, b any) any {
	if a == nil {
		return b
	}
	return text(a) + text(b)
}

func gatherCall(calls []any, piece object) []any {
	i := number(piece["index"])
	delete(piece, "index")
	if i == len(calls) {
		return append(calls, piece)
	}
	fn := member(member(calls[i])["function"])
	fn["arguments"] = text(fn["arguments"]) + text(member(piece["function"])["arguments"])
	return calls
}

func readChat(d object) reply {
	c, u := first(d["choices"]), member(d["usage"])
	in, out := member(u["prompt_tokens_details"]), member(u["completion_tokens_details"])
	stop := map[string]model.StopReason{"stop": model.StopEnd, "tool_calls": model.StopTools, "length": model.StopLength}[text(c["finish_reason"])]
	if len(list(member(c["message"])["tool_calls"])) > 0 {
		stop = model.StopTools // a reply that had to call a tool says "stop"
	}
	cached, written := number(in["cached_tokens"]), number(in["cache_write_tokens"])
	return reply{
		ID: text(d["id"]), Model: text(d["model"]), Stop: stop, Content: []any{c["message"]},
		Usage: model.Usage{
			Input: number(u["prompt_tokens"]) - cached - written, Output: number(u["completion_tokens"]),
			CacheRead: cached, CacheWrite: written, Reasoning: number(out["reasoning_tokens"]),
		},
	}
}

func sentChat(request object) []any {
	for _, m := range list(request["messages"]) {
		if text(member(m)["role"]) == "assistant" {
			return []any{m}
		}
	}
	return nil
}

// OpenAI Responses.

// gatherResponses takes the last event, which has it all. OpenAI encrypts a thought anew in each event that has it, so the finished items
// say the same in other bytes.
func gatherResponses(events []object) object {
	for _, e := range events {
		switch text(e["type"]) {
		case "response.completed", "response.incomplete", "response.failed":
			return member(e["response"])
		}
	}
	return nil
}

func readResponses(d object) reply {
	u := member(d["usage"])
	cached := number(member(u["input_tokens_details"])["cached_tokens"])
	stop := model.StopEnd
	for _, item := range list(d["output"]) {
		if text(member(item)["type"]) == "function_call" {
			stop = model.StopTools
		}
	}
	return reply{
		ID: text(d["id"]), Model: text(d["model"]), Stop: stop, Content: list(d["output"]),
		Usage: model.Usage{
			Input: number(u["input_tokens"]) - cached, Output: number(u["output_tokens"]), CacheRead: cached,
			Reasoning: number(member(u["output_tokens_details"])["reasoning_tokens"]),
		},
	}
}

// sentResponses gives the items between the first user message and what comes after the reply.
func sentResponses(request object) (items []any) {
	for _, item := range list(request["input"])[1:] {
		o := member(item)
		if text(o["role"]) == "user" || text(o["type"]) == "function_call_output" {
			break
		}
		items = append(items, item)
	}
	return items
}

// Gemini generateContent.

func gatherGemini(events []object) object {
	whole, candidate := object{}, object{}
	var parts []any
	for _, e := range events {
		maps.Copy(whole, e)
		c := first(e["candidates"])
		maps.Copy(candidate, c)
		parts = append(parts, list(member(c["content"])["parts"])...)
	}
	candidate["content"] = object{"parts": parts}
	whole["candidates"] = []any{candidate}
	return whole
}

func readGemini(d object) reply {
	c, u := first(d["candidates"]), member(d["usageMetadata"])
	parts := list(member(c["content"])["parts"])
	stop := map[string]model.StopReason{"STOP": model.StopEnd, "MAX_TOKENS": model.StopLength}[text(c["finishReason"])]
	if member(d["promptFeedback"])["blockReason"] != nil {
		stop = model.StopFilter
	}
	for _, p := range parts {
		if member(p)["functionCall"] != nil {
			stop = model.StopTools
		}
	}
	cached, thoughts := number(u["cachedContentTokenCount"]), number(u["thoughtsTokenCount"])
	return reply{
		ID: text(d["responseId"]), Model: text(d["modelVersion"]), Stop: stop, Content: joinTexts(parts),
		Usage: model.Usage{
			Input: number(u["promptTokenCount"]) - cached, Output: number(u["candidatesTokenCount"]) + thoughts,
			CacheRead: cached, Reasoning: thoughts,
		},
	}
}

// joinTexts puts pieces of text together, as a stream has them. A signed one stays by itself: Google asks for that.
func joinTexts(parts []any) (out []any) {
	kind := func(p object) string {
		switch {
		case p["text"] == nil || p["thoughtSignature"] != nil:
			return ""
		case truth(p["thought"]):
			return "thought"
		}
		return "text"
	}
	for _, p := range parts {
		p := maps.Clone(member(p))
		if n := len(out); n > 0 && kind(p) != "" && kind(p) == kind(member(out[n-1])) {
			last := member(out[n-1])
			last["text"] = text(last["text"]) + text(p["text"])
			continue
		}
		out = append(out, p)
	}
	return out
}

func sentGemini(request object) []any {
	for _, c := range list(request["contents"]) {
		if c := member(c); text(c["role"]) == "model" {
			return list(c["parts"])
		}
	}
	return nil
}

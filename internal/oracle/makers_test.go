package oracle

import (
	"encoding/base64"
	"encoding/json"
	"maps"
)

// makeAnthropic makes a message up.
func makeAnthropic(g *generator) (whole any, events []any) {
	usage := object{"input_tokens": g.IntN(100), "output_tokens": 10 + g.IntN(100)}
	if g.maybe() {
		usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"] = g.IntN(100), g.IntN(100)
	}
	if g.maybe() {
		usage["output_tokens_details"] = object{"thinking_tokens": g.IntN(10)}
	}
	end := object{"stop_reason": pick(g, "end_turn", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded"), "stop_sequence": nil}
	if end["stop_reason"] == "refusal" {
		end["stop_details"] = object{"type": "refusal", "category": "cyber", "explanation": g.text()}
	}
	m := object{"id": g.id("msg"), "type": "message", "role": "assistant", "model": "m", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	start := maps.Clone(m)
	start["usage"] = object{"input_tokens": usage["input_tokens"], "output_tokens": 1, "cache_read_input_tokens": usage["cache_read_input_tokens"]}
	events = append(events, object{"type": "message_start", "message": start})
	var content []any
	blocks := g.IntN(5)
	for i := range 1 + blocks {
		block, begin, deltas := g.anthropicBlock(pick(g, "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result", "text", "text"))
		if i == blocks { // thoughts alone are no message to send back
			block, begin, deltas = g.anthropicBlock("text")
		}
		content = append(content, block)
		events = append(events, object{"type": "content_block_start", "index": i, "content_block": begin})
		for _, d := range deltas {
			events = append(events, object{"type": "content_block_delta", "index": i, "delta": d})
		}
		events = append(events, object{"type": "content_block_stop", "index": i})
		if block["type"] == "tool_use" {
			end["stop_reason"] = "tool_use"
			delete(end, "stop_details")
		}
	}
	m["content"] = content
	maps.Copy(m, end)
	return m, append(events, object{"type": "message_delta", "delta": end, "usage": usage}, object{"type": "message_stop"})
}

// anthropicBlock gives a block, what its stream begins with, and what is added.
func (g *generator) anthropicBlock(kind string) (block, begin object, deltas []any) {
	pieces := func(text, delta, member string) {
		for _, piece := range g.cut(text) {
			deltas = append(deltas, object{"type": delta, member: piece})
		}
	}
	switch kind {
	case "thinking":
		block = object{"type": "thinking", "thinking": pick(g, g.text(), ""), "signature": g.id("sig")}
		pieces(block["thinking"].(string), "thinking_delta", "thinking")
		deltas = append(deltas, object{"type": "signature_delta", "signature": block["signature"]})
		return block, object{"type": "thinking", "thinking": "", "signature": ""}, deltas
	case "redacted_thinking":
		block = object{"type": "redacted_thinking", "data": g.id("secret")}
		return block, block, nil
	case "web_search_tool_result":
		found := func() object {
			return object{"type": "web_search_result", "url": "https://example.com/?a=1&b=2", "title": g.text(), "encrypted_content": g.id("secret"), "page_age": pick[any](g, nil, "1 day")}
		}
		block = object{"type": kind, "tool_use_id": g.id("srvtoolu"), "content": pick[any](g, several(g, 0, 3, found), object{"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"})}
		return block, block, nil
	case "tool_use", "server_tool_use":
		input := g.input()
		block = object{"type": kind, "id": g.id("toolu"), "name": "web_search"}
		if g.maybe() {
			block["caller"] = object{"type": "direct"}
		}
		begin = maps.Clone(block)
		begin["input"], block["input"] = object{}, input
		raw, _ := json.Marshal(input)
		deltas = append(deltas, object{"type": "input_json_delta", "partial_json": ""})
		pieces(string(raw), "input_json_delta", "partial_json")
		return block, begin, deltas
	}
	block = object{"type": "text", "text": "x" + g.text()}
	pieces(block["text"].(string), "text_delta", "text")
	if g.maybe() {
		citation := g.citation()
		block["citations"] = []any{citation}
		deltas = append(deltas, object{"type": "citations_delta", "citation": citation})
	}
	return block, object{"type": "text", "text": ""}, deltas
}

func (g *generator) citation() object {
	c := pick(g,
		object{"type": "char_location", "start_char_index": 1, "end_char_index": 2, "file_id": pick[any](g, nil, "file_1")},
		object{"type": "page_location", "start_page_number": 1, "end_page_number": 2, "file_id": nil},
		object{"type": "content_block_location", "start_block_index": 1, "end_block_index": 2, "file_id": nil},
		object{"type": "search_result_location", "start_block_index": 0, "end_block_index": 1, "search_result_index": 0, "source": "s", "title": pick[any](g, nil, g.text())},
		object{"type": "web_search_result_location", "encrypted_index": g.id("index"), "url": "https://example.com", "title": pick[any](g, nil, g.text())},
	)
	if c["file_id"] != nil || c["source"] == nil && c["url"] == nil {
		c["document_index"], c["document_title"] = 0, pick[any](g, nil, g.text())
	}
	c["cited_text"] = g.text()
	return c
}

// makeChat makes a completion up.
func makeChat(g *generator) (whole any, events []any) {
	prompt, answer := 100+g.IntN(100), 100+g.IntN(100)
	usage := object{"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
	if g.maybe() {
		usage["prompt_tokens_details"] = object{"cached_tokens": g.IntN(100), "audio_tokens": 0}
		usage["completion_tokens_details"] = object{"reasoning_tokens": 1 + g.IntN(100), "audio_tokens": 0}
	}
	base := object{"id": g.id("chatcmpl"), "created": 1, "model": "m"}
	chunk := func(delta object, finish any) {
		c := maps.Clone(base)
		c["object"], c["usage"], c["choices"] = "chat.completion.chunk", nil, []any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		events = append(events, c)
	}
	chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	said := object{"role": "assistant", "content": nil, "refusal": nil}
	finish, calls := pick(g, "stop", "stop", "length", "content_filter"), g.IntN(4)
	refused := finish == "stop" && g.IntN(4) == 0
	if g.maybe() || calls == 0 && !refused { // nothing is no message to send back
		text := "x" + g.text()
		said["content"] = text
		for _, piece := range g.cut(text) {
			chunk(object{"content": piece}, nil)
		}
	}
	if refused {
		text := g.text()
		said["refusal"] = text
		for _, piece := range g.cut(text) {
			chunk(object{"refusal": piece}, nil)
		}
	} else if calls > 0 {
		var list []any
		for i := range calls {
			id, args := g.id("call"), g.inputText()
			list = append(list, object{"id": id, "type": "function", "function": object{"name": "read", "arguments": args}})
			chunk(object{"tool_calls": []any{object{"index": i, "id": id, "type": "function", "function": object{"name": "read", "arguments": ""}}}}, nil)
			for _, piece := range g.cut(args) {
				chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil)
			}
		}
		said["tool_calls"], finish = list, pick(g, "tool_calls", "stop", "length")
	}
	chunk(object{}, finish)
	last := maps.Clone(base)
	last["object"], last["choices"], last["usage"] = "chat.completion.chunk", []any{}, usage
	w := maps.Clone(base)
	w["object"], w["usage"], w["choices"] = "chat.completion", usage, []any{object{"index": 0, "message": said, "logprobs": nil, "finish_reason": finish}}
	return w, append(events, last)
}

// makeResponses makes a response up.
func makeResponses(g *generator) (whole any, events []any) {
	in, out := 100+g.IntN(100), 100+g.IntN(100)
	status := pick(g, "completed", "completed", "incomplete")
	r := object{
		"id": g.id("resp"), "object": "response", "created_at": 1, "model": "m", "status": status, "error": nil, "incomplete_details": nil,
		"usage": object{
			"input_tokens": in, "input_tokens_details": object{"cached_tokens": g.IntN(50), "cache_write_tokens": g.IntN(50)},
			"output_tokens": out, "output_tokens_details": object{"reasoning_tokens": 1 + g.IntN(100)}, "total_tokens": in + out,
		},
	}
	if status == "incomplete" {
		r["incomplete_details"] = object{"reason": pick(g, "max_output_tokens", "content_filter")}
	}
	start := maps.Clone(r)
	start["status"], start["output"], start["usage"] = "in_progress", []any{}, nil
	events = append(events, object{"type": "response.created", "response": start})
	output := append(several(g, 0, 4, func() object { return g.responsesItem(g.IntN(4)) }), g.responsesItem(1+g.IntN(3))) // thoughts lead to something
	for i, item := range output {
		events = append(events, object{"type": "response.output_item.added", "output_index": i, "item": item})
		if content, ok := item["content"].([]object); ok {
			kind := "response.output_text.delta"
			if item["type"] == "reasoning" {
				kind = "response.reasoning_text.delta"
			}
			for j, c := range content {
				for _, piece := range g.cut(c["text"].(string)) {
					events = append(events, object{"type": kind, "output_index": i, "content_index": j, "item_id": item["id"], "delta": piece, "logprobs": []any{}})
				}
			}
		}
		events = append(events, object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	r["output"] = output
	return r, append(events, object{"type": "response." + status, "response": r})
}

func (g *generator) responsesItem(kind int) object {
	switch kind {
	case 0:
		return object{
			"type": "reasoning", "id": g.id("rs"), "encrypted_content": g.id("secret"), "status": pick(g, "completed", "incomplete"),
			"content": several(g, 0, 2, func() object { return object{"type": "reasoning_text", "text": g.text()} }),
			"summary": several(g, 0, 3, func() object { return object{"type": "summary_text", "text": g.text()} }),
		}
	case 1:
		return object{"type": "function_call", "id": g.id("fc"), "call_id": g.id("call"), "name": "read", "arguments": g.inputText(), "status": "completed"}
	case 2:
		return pick(g,
			object{"type": "web_search_call", "id": g.id("ws"), "status": "completed", "action": object{"type": "search", "query": g.text()}},
			object{"type": "file_search_call", "id": g.id("fs"), "status": "completed", "queries": []any{g.text()}},
			object{"type": "code_interpreter_call", "id": g.id("ci"), "status": "completed", "code": g.text(), "container_id": "c", "outputs": []any{object{"type": "logs", "logs": g.text()}}},
			object{"type": "image_generation_call", "id": g.id("ig"), "status": "completed", "result": "aGk="},
			object{"type": "custom_tool_call", "id": g.id("ct"), "call_id": g.id("call"), "name": "x", "input": g.text()},
		)
	}
	m := object{"type": "message", "id": g.id("msg"), "role": "assistant", "status": "completed"}
	if g.maybe() {
		m["phase"] = pick(g, "commentary", "final_answer")
	}
	m["content"] = several(g, 1, 3, func() object {
		text := object{"type": "output_text", "text": g.text(), "annotations": []any{}, "logprobs": []any{}}
		if g.maybe() {
			text["annotations"] = []any{object{"type": "url_citation", "url": "https://example.com/?a=1&b=2", "title": g.text(), "start_index": 0, "end_index": 1}}
		}
		return text
	})
	return m
}

// makeGemini makes a reply up.
func makeGemini(g *generator) (whole any, events []any) {
	prompt, answer, thoughts := 100+g.IntN(100), g.IntN(100), g.IntN(100)
	usage := object{"promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer}
	if g.maybe() {
		usage["cachedContentTokenCount"], usage["thoughtsTokenCount"], usage["toolUsePromptTokenCount"] = g.IntN(100), thoughts, g.IntN(10)
	}
	head := object{"modelVersion": "m", "responseId": g.id("resp")}
	chunk := func(part object, finish any) object {
		c := maps.Clone(head)
		candidate := object{"index": 0, "content": object{"role": "model", "parts": []any{part}}}
		if finish != nil {
			candidate["finishReason"] = finish
		}
		c["candidates"], c["usageMetadata"] = []any{candidate}, object{"promptTokenCount": prompt, "totalTokenCount": prompt}
		return c
	}
	parts := several(g, 1, 5, g.geminiPart)
	for _, p := range parts {
		text, _ := p["text"].(string)
		if text == "" || p["thoughtSignature"] != nil {
			events = append(events, chunk(p, nil))
			continue
		}
		for _, piece := range g.cut(text) {
			p := maps.Clone(p)
			p["text"] = piece
			events = append(events, chunk(p, nil))
		}
	}
	finish := pick(g, "STOP", "STOP", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL")
	last := chunk(object{"text": ""}, finish)
	last["usageMetadata"] = usage
	w := maps.Clone(head)
	w["candidates"] = []any{object{"index": 0, "finishReason": finish, "content": object{"role": "model", "parts": parts}}}
	w["usageMetadata"] = usage
	return w, append(events, last)
}

func (g *generator) geminiPart() object {
	signed := func(p object) object {
		if g.maybe() {
			p["thoughtSignature"] = base64.StdEncoding.EncodeToString([]byte(g.text()))
		}
		return p
	}
	switch g.IntN(6) {
	case 5:
		return signed(object{"inlineData": object{"mimeType": "image/png", "data": "aGk="}})
	case 0:
		return signed(object{"text": g.text(), "thought": true})
	case 1:
		return signed(object{"functionCall": object{"id": g.id("call"), "name": "read", "args": g.input()}})
	case 2:
		return object{"executableCode": object{"language": "PYTHON", "code": g.text()}}
	case 3:
		return object{"codeExecutionResult": object{"outcome": "OUTCOME_OK", "output": g.text()}}
	}
	return signed(object{"text": g.text()})
}

package upstream

import (
	"fmt"
	"strconv"
	"strings"
)

// wire is a format of requests and replies: what calls and results look like in a request, and replies with places that are filled in.
type wire struct {
	call, result string                     // stand once for each of them in a request
	callID       string                     // what stands before the id of a call; "": this wire's calls have none
	resultID     string                     // what stands before the id of the call that a result is for
	tools        func(d Directive) string   // a reply that calls the tool, as a document
	answer       func(text string) string   // a reply in words, as a document
	calls        func(d Directive) []string // the same as the events of a stream, which calls follow one another in
	begin, end   string                     // of an answer's stream
	delta        string                     // of an answer's stream, with one %s for the text
}

// hole is filled in with a number of six digits: see [fill].
const hole = "######"

// Of a reply that calls the tool.
const (
	said1, said2 = "Let me look at that, ", "it takes one call."
	item         = "item "
	input1       = `{"value":"` + item
	input2       = hole + `"}`
	usage        = `{"input_tokens":100,"output_tokens":20}`
)

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
func data(s string) string           { return "data: " + s + "\n\n" }
func quoted(s string) string         { return strconv.Quote(s) }

var wires = map[string]*wire{"anthropic": &anthropic, "chat": &chat, "responses": &responses, "gemini": &gemini}

const anthropicStart = `{"type":"message_start","message":{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`

func anthropicEnd(i int, stop string) []string {
	return []string{
		event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i)),
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":20}}`),
		event("message_stop", `{"type":"message_stop"}`),
	}
}

var anthropic = wire{
	call: `"type":"tool_use"`, result: `"type":"tool_result"`, callID: `"id":"`, resultID: `"tool_use_id":"`,
	tools: func(d Directive) string {
		calls := ""
		for i := range d.Par {
			calls += fmt.Sprintf(`,{"type":"tool_use","id":"toolu_%s_%d","name":%q,"input":%s}`, hole, i, d.Tool, input1+input2)
		}
		return `{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":` + quoted(said1+said2) + `}` + calls + `],"stop_reason":"tool_use","stop_sequence":null,"usage":` + usage + `}`
	},
	answer: func(text string) string {
		return `{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":` + quoted(text) + `}],"stop_reason":"end_turn","stop_sequence":null,"usage":` + usage + `}`
	},
	calls: func(d Directive) []string {
		block := func(i int, s string) string {
			return event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, s))
		}
		delta := func(i int, kind, field, s string) string {
			return event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, field, quoted(s)))
		}
		out := []string{event("message_start", anthropicStart), block(0, `{"type":"text","text":""}`), delta(0, "text_delta", "text", said1), delta(0, "text_delta", "text", said2)}
		for i := range d.Par {
			out = append(out, event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i)),
				block(i+1, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s_%d","name":%q,"input":{}}`, hole, i, d.Tool)),
				delta(i+1, "input_json_delta", "partial_json", input1), delta(i+1, "input_json_delta", "partial_json", input2))
		}
		return append(out, anthropicEnd(d.Par, "tool_use")...)
	},
	begin: event("message_start", anthropicStart) + event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	delta: event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`),
	end:   strings.Join(anthropicEnd(0, "end_turn"), ""),
}

func chatChunk(delta, finish string) string {
	return data(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`)
}

func chatReply(message, finish string) string {
	return `{"id":"chatcmpl-bench","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"message":` + message + `,"finish_reason":` + quoted(finish) + `}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`
}

var chatEnd = data(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`) + data("[DONE]")

var chat = wire{
	call: `"arguments":`, result: `"role":"tool"`, callID: `"id":"`, resultID: `"tool_call_id":"`,
	tools: func(d Directive) string {
		calls := make([]string, d.Par)
		for i := range calls {
			calls[i] = fmt.Sprintf(`{"id":"call_%s_%d","type":"function","function":{"name":%q,"arguments":%s}}`, hole, i, d.Tool, quoted(input1+input2))
		}
		return chatReply(`{"role":"assistant","content":`+quoted(said1+said2)+`,"tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls")
	},
	answer: func(text string) string { return chatReply(`{"role":"assistant","content":`+quoted(text)+`}`, "stop") },
	calls: func(d Directive) []string {
		out := []string{chatChunk(`{"role":"assistant","content":""}`, "null"), chatChunk(`{"content":`+quoted(said1)+`}`, "null"), chatChunk(`{"content":`+quoted(said2)+`}`, "null")}
		for i := range d.Par {
			part := func(s string) string { return chatChunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s}]}`, i, s), "null") }
			out = append(out, part(fmt.Sprintf(`"id":"call_%s_%d","type":"function","function":{"name":%q,"arguments":""}`, hole, i, d.Tool)),
				part(`"function":{"arguments":`+quoted(input1)+`}`), part(`"function":{"arguments":`+quoted(input2)+`}`))
		}
		return append(out, chatChunk(`{}`, `"tool_calls"`), chatEnd)
	},
	begin: chatChunk(`{"role":"assistant","content":""}`, "null"),
	delta: chatChunk(`{"content":"%s"}`, "null"),
	end:   chatChunk(`{}`, `"stop"`) + chatEnd,
}

func responsesReply(status, output string) string {
	return `{"id":"resp_bench","object":"response","created_at":1,"status":"` + status + `","model":"bench","output":[` + output + `],"usage":{"input_tokens":100,"output_tokens":20,"total_tokens":120}}`
}

func responsesMessage(status, text string) string {
	content := ""
	if text != "" {
		content = `{"type":"output_text","annotations":[],"text":` + quoted(text) + `}`
	}
	return `{"type":"message","id":"msg_bench","status":"` + status + `","role":"assistant","content":[` + content + `]}`
}

func responsesCall(d Directive, i int, status, input string) string {
	return fmt.Sprintf(`{"type":"function_call","id":"fc_%s_%d","call_id":"call_%s_%d","name":%q,"status":%q,"arguments":%s}`, hole, i, hole, i, d.Tool, status, quoted(input))
}

// responsesEvent writes an event of which name is the type.
func responsesEvent(name, fields string) string { return event(name, `{"type":"`+name+`",`+fields+`}`) }

func responsesCalls(d Directive) (all string) {
	all = responsesMessage("completed", said1+said2)
	for i := range d.Par {
		all += "," + responsesCall(d, i, "completed", input1+input2)
	}
	return all
}

var responsesBegin = responsesEvent("response.created", `"response":`+responsesReply("in_progress", "")) +
	responsesEvent("response.output_item.added", `"output_index":0,"item":`+responsesMessage("in_progress", "")) +
	responsesEvent("response.content_part.added", `"item_id":"msg_bench","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}`)

const responsesDelta = `"item_id":"msg_bench","output_index":0,"content_index":0,"delta":`

var responses = wire{
	call: `"type":"function_call"`, result: `"type":"function_call_output"`, callID: `"call_id":"`, resultID: `"call_id":"`,
	tools:  func(d Directive) string { return responsesReply("completed", responsesCalls(d)) },
	answer: func(text string) string { return responsesReply("completed", responsesMessage("completed", text)) },
	calls: func(d Directive) []string {
		out := []string{
			responsesBegin, responsesEvent("response.output_text.delta", responsesDelta+quoted(said1)), responsesEvent("response.output_text.delta", responsesDelta+quoted(said2)),
			responsesEvent("response.output_item.done", `"output_index":0,"item":`+responsesMessage("completed", said1+said2)),
		}
		for i := range d.Par {
			args := func(s string) string {
				return responsesEvent("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%s_%d","output_index":%d,"delta":%s`, hole, i, i+1, quoted(s)))
			}
			out = append(out, responsesEvent("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i+1, responsesCall(d, i, "in_progress", ""))), args(input1), args(input2),
				responsesEvent("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i+1, responsesCall(d, i, "completed", input1+input2))))
		}
		return append(out, responsesEvent("response.completed", `"response":`+responsesReply("completed", responsesCalls(d))))
	},
	begin: responsesBegin,
	delta: responsesEvent("response.output_text.delta", responsesDelta+`"%s"`),
	end:   "", // it repeats the whole text: see [wire.ending]
}

func geminiReply(parts, finish string) string {
	if finish != "" {
		finish = `,"finishReason":"` + finish + `"`
	}
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + finish + `,"index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"totalTokenCount":120},"modelVersion":"bench"}`
}

func geminiCall(d Directive) string {
	return fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, d.Tool, input1+input2)
}

var gemini = wire{
	call: `"functionCall":`, result: `"functionResponse":`,
	tools: func(d Directive) string {
		return geminiReply(`{"text":`+quoted(said1+said2)+`}`+strings.Repeat(","+geminiCall(d), d.Par), "STOP")
	},
	answer: func(text string) string { return geminiReply(`{"text":`+quoted(text)+`}`, "STOP") },
	calls: func(d Directive) []string { // a call comes whole
		out := []string{data(geminiReply(`{"text":`+quoted(said1)+`}`, "")), data(geminiReply(`{"text":`+quoted(said2)+`}`, ""))}
		for range d.Par {
			out = append(out, data(geminiReply(geminiCall(d), "")))
		}
		return append(out, data(geminiReply(`{"text":""}`, "STOP")))
	},
	delta: data(geminiReply(`{"text":"%s"}`, "")),
	end:   data(geminiReply(`{"text":""}`, "STOP")),
}

// ending is what comes after the last piece of a streamed answer.
func (w *wire) ending(text string) string {
	if w == &responses {
		return responsesEvent("response.output_text.done", `"item_id":"msg_bench","output_index":0,"content_index":0,"text":`+quoted(text)) +
			responsesEvent("response.output_item.done", `"output_index":0,"item":`+responsesMessage("completed", text)) +
			responsesEvent("response.completed", `"response":`+responsesReply("completed", responsesMessage("completed", text)))
	}
	return w.end
}

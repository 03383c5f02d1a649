package openai

import (
	"strconv"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// begin appends the part of a body before its messages; the system prompt is the first of them on the wire.
func (m *Model) begin(dst []byte, req *model.Request, stream bool) []byte {
	dst = wire.AppendString(append(dst, `{"model":`...), m.name)
	if stream {
		dst = append(dst, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	if req.MaxTokens > 0 {
		name := `,"max_tokens":`
		if m.own() {
			name = `,"max_completion_tokens":` // OpenAI's reasoning models refuse max_tokens
		}
		dst = strconv.AppendInt(append(dst, name...), int64(req.MaxTokens), 10)
	}
	if word := m.effort.word(req.Reasoning); word != "" {
		dst = wire.AppendString(append(dst, `,"reasoning_effort":`...), word)
	}
	dst = appendSampling(dst, &req.Settings)
	if req.FrequencyPenalty != nil {
		dst = strconv.AppendFloat(append(dst, `,"frequency_penalty":`...), *req.FrequencyPenalty, 'g', -1, 64)
	}
	if req.PresencePenalty != nil {
		dst = strconv.AppendFloat(append(dst, `,"presence_penalty":`...), *req.PresencePenalty, 'g', -1, 64)
	}
	if req.Seed != nil {
		dst = strconv.AppendInt(append(dst, `,"seed":`...), *req.Seed, 10)
	}
	dst = appendArray(dst, "stop", req.Stop, wire.AppendString)
	dst = appendChatTools(dst, req)
	if len(req.Output) > 0 {
		dst = append(appendSchema(append(dst, `,"response_format":{"type":"json_schema","json_schema":{`...), req.Output), "}}"...)
	}
	dst = append(dst, `,"messages":[`...)
	if req.System != "" {
		dst = append(wire.AppendString(append(dst, `{"role":"system","content":`...), req.System), '}')
	}
	return dst
}

func appendChatTools(dst []byte, req *model.Request) []byte {
	dst = appendArray(dst, "tools", req.Tools, func(dst []byte, t model.Tool) []byte {
		return append(appendFunction(append(dst, `{"type":"function","function":{`...), t), "}}"...)
	})
	switch c := req.ToolChoice; {
	case c == model.ToolsAuto, c == model.ToolsNone && len(req.Tools) == 0: // a choice without tools is refused
	case c == model.ToolsNone:
		dst = append(dst, `,"tool_choice":"none"`...)
	case c == model.ToolsRequired:
		dst = append(dst, `,"tool_choice":"required"`...)
	default:
		dst = wire.AppendString(append(dst, `,"tool_choice":{"type":"function","function":{"name":`...), string(c))
		dst = append(dst, "}}"...)
	}
	return dst
}

// encode gives a message as the wire has it, each of its wire messages after a comma. Neighbours of one role are allowed.
func (f chatFormat) encode(m message.Message) []byte {
	return httpapi.Encode(m, func(b []byte) []byte {
		switch m.Role() {
		case message.RoleAssistant:
			return appendChatAssistant(b, m, f.own)
		case message.RoleTool:
			b = f.appendResults(b, m)
		}
		return f.appendUser(b, m)
	})
}

// appendResults makes a message of each result. A tool message holds only text, so the files of all follow in a user message.
func (f chatFormat) appendResults(dst []byte, m message.Message) []byte {
	for i := range m.Len() { // without Parts, here and below: an iterator would be on the heap
		if r, ok := m.Part(i).(message.ToolResult); ok {
			dst = appendChatID(append(dst, `,{"role":"tool","tool_call_id":`...), r.Call, f.own)
			dst = append(wire.AppendString(append(dst, `,"content":`...), r.Content), '}')
		}
	}
	return dst
}

// appendUser appends a user message of the texts and files of m, those of its results too; nothing when there are none. A single text is sent as a
// string, which every server understands.
func (f chatFormat) appendUser(dst []byte, m message.Message) []byte {
	n, files, only := 0, false, ""
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case message.Text:
			if p.Text != "" {
				n, only = n+1, p.Text
			}
		case message.File:
			n, files = n+1, true
		case message.ToolResult:
			n, files = n+len(p.Files), files || len(p.Files) > 0
		}
	}
	if n == 0 {
		return dst
	}
	dst = append(dst, `,{"role":"user","content":`...)
	if n == 1 && !files {
		return append(wire.AppendString(dst, only), '}')
	}
	dst = append(dst, '[')
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case message.Text:
			if p.Text != "" {
				dst = append(wire.AppendString(append(dst, `{"type":"text","text":`...), p.Text), "},"...)
			}
		case message.File:
			dst = append(f.appendFile(dst, p), ',')
		case message.ToolResult:
			for _, file := range p.Files {
				dst = append(f.appendFile(dst, file), ',')
			}
		}
	}
	return append(dst[:len(dst)-1], "]}"...)
}

// chatFile tells why a file can't be sent; "" when it can.
func (m *Model) chatFile(f message.File) string {
	if keptPDF(f, m.keeper) {
		return ""
	}
	switch kindOf(f) {
	case "image":
		return misplaced(f, true)
	case "audio":
		if audioFormat(f) == "" {
			return "only WAV and MP3 can be sent"
		}
		return misplaced(f, false)
	case "text", "pdf":
		return misplaced(f, false)
	}
	return "only images, sound, text and PDF can be sent"
}

// keptPDF reports whether a file is sent by its ID: the protocol has that for PDF alone.
func keptPDF(f message.File, keeper string) bool { return kept(f, keeper) && kindOf(f) == "pdf" }

func (f chatFormat) appendFile(dst []byte, file message.File) []byte {
	if keptPDF(file, f.files) {
		return append(wire.AppendString(append(dst, `{"type":"file","file":{"file_id":`...), file.ID), "}}"...)
	}
	return appendChatData(dst, file)
}

func appendChatData(dst []byte, f message.File) []byte {
	switch kindOf(f) {
	case "image":
		dst = appendAddress(append(dst, `{"type":"image_url","image_url":{"url":`...), f)
		return append(dst, "}}"...)
	case "audio":
		dst = wire.AppendBase64(append(dst, `{"type":"input_audio","input_audio":{"data":`...), f.Data)
		return append(wire.AppendString(append(dst, `,"format":`...), audioFormat(f)), "}}"...)
	case "pdf":
		dst = wire.AppendString(append(dst, `{"type":"file","file":{"filename":`...), fileName(f))
		return append(appendDataURL(append(dst, `,"file_data":`...), f), "}}"...)
	}
	return append(wire.AppendString(append(dst, `{"type":"text","text":`...), textOf(f)), '}')
}

func appendChatAssistant(dst []byte, m message.Message, own bool) []byte {
	text := m.Text()
	dst = append(dst, `,{"role":"assistant","content":`...)
	if text == "" {
		dst = append(dst, "null"...)
	} else {
		dst = wire.AppendString(dst, text)
	}
	says := text != ""
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case message.ToolCall:
			says = true
		case message.Opaque:
			if p.Provider == chat {
				dst = appendExtra(dst, p.JSON, "role", "content", "tool_calls")
				says = true
			}
		}
	}
	if !says {
		return nil
	}
	for i := range m.Len() {
		if r, ok := m.Part(i).(message.Reasoning); ok && !own {
			dst = appendChatReasoning(dst, r)
		}
	}
	calls := 0
	for i := range m.Len() {
		c, ok := m.Part(i).(message.ToolCall)
		if !ok {
			continue
		}
		if dst = append(dst, ','); calls == 0 {
			dst = append(dst, `"tool_calls":[`...)
		}
		calls++
		dst = appendChatCall(dst, c, own)
	}
	if calls > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendChatReasoning sends reasoning back in the field that it came in. DeepSeek wants that of every assistant message of a turn with calls, the
// answer that ends it included; without calls it ignores it, and so do the others.
func appendChatReasoning(dst []byte, r message.Reasoning) []byte {
	if r.Provider != chat {
		return dst
	}
	if field := note(r.Extra, noteField); field != nil {
		dst = append(append(append(dst, ','), field...), ':')
		dst = wire.AppendString(dst, r.Text)
	}
	return appendExtra(dst, r.Extra, "role", "content", "tool_calls")
}

// appendChatID appends the id of a call. OpenAI refuses one of more than 40 characters, as other providers make them. Other servers get
// theirs back as they gave it: some models read it.
func appendChatID(dst []byte, id string, own bool) []byte {
	if own || id == "" {
		return wire.AppendWord(dst, id, 40)
	}
	return wire.AppendString(dst, id)
}

func appendChatCall(dst []byte, c message.ToolCall, own bool) []byte {
	extra := extraOf(c.Origin, chat)
	dst = appendChatID(append(dst, `{"id":`...), c.ID, own)
	dst = wire.AppendWord(append(dst, `,"type":"function","function":{"name":`...), c.Name, longestName)
	dst = append(dst, `,"arguments":`...)
	if args := arguments(c, extra); validObject(args) {
		dst = wire.AppendString(dst, args)
	} else {
		invalid := append(wire.AppendString([]byte(`{"INVALID_JSON":`), args), '}')
		dst = wire.AppendString(dst, string(invalid)) // servers that parse it refuse the whole request otherwise
	}
	dst = append(dst, '}')
	if !own {
		dst = appendExtra(dst, extra, "id", "type", "function", "index")
	}
	return append(dst, '}')
}

package openai

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// begin appends the part of a body before its items.
func (m *Responses) begin(dst []byte, req *model.Request, stream bool) []byte {
	dst = wire.AppendString(append(dst, `{"model":`...), m.name)
	dst = append(dst, `,"store":false`...)
	dst = appendArray(dst, "include", included(m.name, req.ProviderTools), wire.AppendString)
	if stream {
		dst = append(dst, `,"stream":true`...)
	}
	if req.MaxTokens > 0 {
		dst = strconv.AppendInt(append(dst, `,"max_output_tokens":`...), int64(req.MaxTokens), 10)
	}
	dst = appendSampling(dst, &req.Settings)
	return m.beginInput(dst, req)
}

// beginInput appends the members that say what the model reads, which a count has, too.
func (m *Responses) beginInput(dst []byte, req *model.Request) []byte {
	if word := m.effort.word(req.Reasoning); word != "" {
		dst = append(wire.AppendString(append(dst, `,"reasoning":{"effort":`...), word), '}')
	}
	dst = appendResponsesTools(dst, req)
	if len(req.Output) > 0 {
		dst = append(appendSchema(append(dst, `,"text":{"format":{"type":"json_schema",`...), req.Output), "}}"...)
	}
	if req.System != "" {
		dst = wire.AppendString(append(dst, `,"instructions":`...), req.System)
	}
	return append(dst, `,"input":[`...)
}

// reasons reports whether a model may reason. OpenAI refuses to be asked for the encrypted reasoning of one that doesn't, with
// status 400 "Encrypted content is not supported with this model."; the models that it says so of have these names.
func reasons(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, old := range []string{"gpt-3.5", "gpt-4", "chatgpt-"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return !strings.HasSuffix(name, "-chat-latest")
}

func appendResponsesTools(dst []byte, req *model.Request) []byte {
	none := len(req.Tools)+len(req.ProviderTools) == 0
	if n := len(dst); !none {
		for _, t := range req.Tools {
			dst = append(appendFunction(append(dst, `,{"type":"function","strict":false,`...), t), '}') // strict is the default here
		}
		for _, t := range req.ProviderTools {
			dst = appendProviderTool(append(dst, ','), t)
		}
		dst[n] = '[' // where the first comma was
		dst = append(slices.Insert(dst, n, []byte(`,"tools":`)...), ']')
	}
	switch c := req.ToolChoice; {
	case c == model.ToolsAuto, c == model.ToolsNone && none:
	case c == model.ToolsNone:
		dst = append(dst, `,"tool_choice":"none"`...)
	case c == model.ToolsRequired:
		dst = append(dst, `,"tool_choice":"required"`...)
	case providerChoice(req) != nil:
		dst = appendProviderChoice(append(dst, `,"tool_choice":`...), *providerChoice(req))
	default:
		dst = append(wire.AppendString(append(dst, `,"tool_choice":{"type":"function","name":`...), string(c)), '}')
	}
	return dst
}

// encode gives a message as items, each after a comma.
func (f responsesFormat) encode(m message.Message) []byte {
	return httpapi.Encode(m, func(b []byte) []byte {
		if m.Role() == message.RoleAssistant {
			return appendResponsesAssistant(b, m)
		}
		if m.Role() == message.RoleTool {
			b = f.appendResults(b, m)
		}
		return f.appendUser(b, m)
	})
}

// appendUser appends a message of the texts and files of m; nothing when there are none.
func (f responsesFormat) appendUser(dst []byte, m message.Message) []byte {
	before := len(dst)
	dst = append(dst, `,{"type":"message","role":"user","content":`...)
	open := len(dst)
	for i := range m.Len() { // without Parts, here and below: an iterator would be on the heap
		switch p := m.Part(i).(type) {
		case message.Text:
			dst = appendInputText(dst, p.Text)
		case message.File:
			dst = f.appendFile(dst, p)
		}
	}
	if len(dst) == open {
		return dst[:before]
	}
	dst[open] = '[' // where the first comma was
	return append(dst, "]}"...)
}

func appendInputText(dst []byte, text string) []byte {
	if text == "" {
		return dst
	}
	return append(wire.AppendString(append(dst, `,{"type":"input_text","text":`...), text), '}')
}

// appendResults makes an item of each result.
func (f responsesFormat) appendResults(dst []byte, m message.Message) []byte {
	for i := range m.Len() {
		r, ok := m.Part(i).(message.ToolResult)
		if !ok {
			continue
		}
		dst = wire.AppendWord(append(dst, `,{"type":"function_call_output","call_id":`...), r.Call, longestCallID)
		dst = append(dst, `,"output":`...)
		open := len(dst)
		if len(r.Files) > 0 {
			dst = appendInputText(dst, r.Content)
			for _, file := range r.Files {
				dst = f.appendFile(dst, file)
			}
		}
		if len(dst) == open {
			dst = append(wire.AppendString(dst, r.Content), '}')
			continue
		}
		dst[open] = '[' // where the first comma was
		dst = append(dst, "]}"...)
	}
	return dst
}

// longestCallID is the most bytes of a call's id that the Responses API takes.
const longestCallID = 64

// responsesFile tells why a file can't be sent; "" when it can.
func (m *Responses) responsesFile(f message.File) string {
	switch kindOf(f) {
	case "image", "text", "pdf":
		if kept(f, m.keeper) {
			return ""
		}
		return misplaced(f, true)
	}
	return "only images, text and PDF can be sent"
}

func (f responsesFormat) appendFile(dst []byte, file message.File) []byte {
	kind := kindOf(file)
	switch {
	case kept(file, f.files) && kind == "image":
		dst = wire.AppendString(append(dst, `,{"type":"input_image","detail":"auto","file_id":`...), file.ID)
	case kept(file, f.files):
		dst = wire.AppendString(append(dst, `,{"type":"input_file","file_id":`...), file.ID)
	case kind == "image":
		dst = appendAddress(append(dst, `,{"type":"input_image","detail":"auto","image_url":`...), file)
	case file.Data == "":
		dst = wire.AppendString(append(dst, `,{"type":"input_file","file_url":`...), file.URL)
	case kind == "text":
		return appendInputText(dst, textOf(file))
	default:
		dst = wire.AppendString(append(dst, `,{"type":"input_file","filename":`...), fileName(file))
		dst = appendDataURL(append(dst, `,"file_data":`...), file)
	}
	return append(dst, '}')
}

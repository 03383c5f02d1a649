package cassettes_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
)

// turn is what one side says, however many messages it takes.
type turn struct {
	Role   string // user or assistant; results are the user's
	Blocks []block
}

// block is a piece of a turn in neutral words.
type block struct {
	Kind      string // text, reasoning, tool_call, tool_result, opaque
	Text      string
	ID, Name  string
	Input     string // canonical JSON
	Signature string // what the provider signed or encrypted
	Raw       any    // of an opaque one
}

// say adds blocks to a conversation. Neighbours of one role are one turn.
func say(turns []turn, role string, blocks ...block) []turn {
	if n := len(turns); n > 0 && turns[n-1].Role == role {
		turns[n-1].Blocks = append(turns[n-1].Blocks, blocks...)
		return turns
	}
	return append(turns, turn{role, blocks})
}

// opaque is a block that no common word is for.
func opaque(o object) block {
	id := text(o["id"]) + text(o["tool_use_id"])
	b := block{Kind: "opaque", ID: id, Name: text(o["type"]) + " " + text(o["name"]), Signature: secrets(o), Raw: o}
	if o["input"] != nil {
		b.Input = canonical(o["input"])
	}
	return b
}

// secrets gives everything encrypted in v, in the order of the members.
func secrets(v any) (s string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s += secrets(e)
		}
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "encrypted_content" || name == "data" {
				s += text(v[name])
			} else {
				s += secrets(v[name])
			}
		}
	}
	return s
}

// plain joins the texts of a content that is a text or a list of parts.
func plain(content any) string {
	s := text(content)
	for _, p := range list(content) {
		s += text(member(p)["text"])
	}
	return s
}

// texts gives a block for each text of a content that is a text or a list of parts.
func texts(content any) (blocks []block) {
	if s := text(content); s != "" {
		return []block{{Kind: "text", Text: s}}
	}
	for _, p := range list(content) {
		blocks = append(blocks, block{Kind: "text", Text: text(member(p)["text"])})
	}
	return blocks
}

func turnsAnthropic(request object) (turns []turn) {
	for _, m := range list(request["messages"]) {
		role, content := text(member(m)["role"]), member(m)["content"]
		if s := text(content); s != "" {
			turns = say(turns, role, block{Kind: "text", Text: s})
		}
		for _, b := range list(content) {
			b := member(b)
			switch text(b["type"]) {
			case "text":
				turns = say(turns, role, block{Kind: "text", Text: text(b["text"])})
			case "thinking":
				turns = say(turns, role, block{Kind: "reasoning", Text: text(b["thinking"]), Signature: text(b["signature"])})
			case "tool_use":
				turns = say(turns, role, block{Kind: "tool_call", ID: text(b["id"]), Name: text(b["name"]), Input: canonical(b["input"])})
			case "tool_result":
				turns = say(turns, role, block{Kind: "tool_result", ID: text(b["tool_use_id"]), Text: plain(b["content"])})
			default:
				turns = say(turns, role, opaque(b))
			}
		}
	}
	return turns
}

func turnsChat(request object) (turns []turn) {
	for _, m := range list(request["messages"]) {
		m := member(m)
		switch role := text(m["role"]); role {
		case "system", "developer":
		case "tool":
			turns = say(turns, "user", block{Kind: "tool_result", ID: text(m["tool_call_id"]), Text: plain(m["content"])})
		default:
			turns = say(turns, role, texts(m["content"])...)
			for _, c := range list(m["tool_calls"]) {
				fn := member(member(c)["function"])
				turns = say(turns, role, block{Kind: "tool_call", ID: text(member(c)["id"]), Name: text(fn["name"]), Input: argued(text(fn["arguments"]))})
			}
		}
	}
	return turns
}

func turnsResponses(request object) (turns []turn) {
	return sayItems(nil, list(request["input"]))
}

func sayItems(turns []turn, items []any) []turn {
	for _, item := range items {
		o := member(item)
		switch kind := text(o["type"]); {
		case kind == "function_call":
			turns = say(turns, "assistant", block{Kind: "tool_call", ID: text(o["call_id"]), Name: text(o["name"]), Input: argued(text(o["arguments"]))})
		case kind == "function_call_output":
			turns = say(turns, "user", block{Kind: "tool_result", ID: text(o["call_id"]), Text: plain(o["output"])})
		case kind == "reasoning":
			turns = say(turns, "assistant", block{Kind: "reasoning", Text: plain(o["summary"]), Signature: text(o["encrypted_content"])})
		case kind == "tool_search_output": // the client's answer to a tool_search_call
			turns = say(turns, "user", opaque(o))
		case kind != "" && kind != "message":
			turns = say(turns, "assistant", opaque(o))
		case text(o["role"]) == "user", text(o["role"]) == "assistant":
			turns = say(turns, text(o["role"]), texts(o["content"])...)
		}
	}
	return turns
}

func turnsGemini(request object) (turns []turn) {
	for _, c := range list(request["contents"]) {
		role := map[string]string{"user": "user", "model": "assistant"}[text(member(c)["role"])]
		for _, p := range list(member(c)["parts"]) {
			p := member(p)
			call, result, signature := member(p["functionCall"]), member(p["functionResponse"]), text(p["thoughtSignature"])
			switch {
			case call != nil:
				turns = say(turns, role, block{Kind: "tool_call", ID: text(call["id"]), Name: text(call["name"]), Input: canonical(call["args"]), Signature: signature})
			case result != nil:
				b := block{Kind: "tool_result", ID: text(result["id"]), Name: text(result["name"])}
				for _, v := range member(result["response"]) { // one member, whose name is the client's choice
					b.Text = text(v)
				}
				turns = say(turns, role, b)
			case truth(p["thought"]):
				turns = say(turns, role, block{Kind: "reasoning", Text: text(p["text"]), Signature: signature})
			case p["text"] != nil:
				turns = say(turns, role, block{Kind: "text", Text: text(p["text"]), Signature: signature})
			default:
				turns = say(turns, role, opaque(p))
			}
		}
	}
	return turns
}

// conversation makes messages of recorded turns. What the model said is taken from said, as far as that goes: the replies to the requests
// before, as the provider decoded them.
func conversation(api string, turns []turn, said []message.Message) (h message.History) {
	calls := map[string]message.ToolCall{} // by their recorded ids
	for _, t := range turns {
		if t.Role != "assistant" {
			h = h.Append(answered(api, t.Blocks, calls)...)
			continue
		}
		m := message.New(message.RoleAssistant, partsOf(api, t.Blocks, nil)...)
		if len(said) > 0 {
			m, said = said[0], said[1:]
		}
		h = h.Append(m)
		made := m.ToolCalls()
		for _, b := range t.Blocks {
			if b.Kind == "tool_call" && len(made) > 0 {
				calls[b.ID], made = made[0], made[1:]
			}
		}
	}
	return h
}

// answered makes the messages of a user's turn: results, what answers a call of the provider's own kind, and what people say.
func answered(api string, blocks []block, calls map[string]message.ToolCall) (ms []message.Message) {
	by := map[message.Role][]message.Part{}
	for i, p := range partsOf(api, blocks, calls) {
		role := message.RoleUser
		switch blocks[i].Kind {
		case "tool_result":
			role = message.RoleTool
		case "opaque":
			role = message.RoleAssistant
		}
		by[role] = append(by[role], p)
	}
	for _, role := range []message.Role{message.RoleTool, message.RoleAssistant, message.RoleUser} {
		if len(by[role]) > 0 {
			ms = append(ms, message.New(role, by[role]...))
		}
	}
	return ms
}

func partsOf(api string, blocks []block, calls map[string]message.ToolCall) (parts []message.Part) {
	for _, b := range blocks {
		switch b.Kind {
		case "text":
			parts = append(parts, message.Text{Text: b.Text})
		case "reasoning":
			parts = append(parts, message.Reasoning{Text: b.Text, Signature: b.Signature, Origin: message.Origin{Provider: api}})
		case "tool_call":
			parts = append(parts, message.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input})
		case "tool_result":
			parts = append(parts, message.ToolResult{Call: calls[b.ID].ID, Name: calls[b.ID].Name, Content: b.Text})
		default:
			parts = append(parts, message.Opaque{Provider: api, JSON: canonical(b.Raw)})
		}
	}
	return parts
}

// plainly takes out of turns what clients and recorders are free to do in their own way, so that the rest can be compared. answers is all
// that the provider said.
func plainly(api string, turns []turn, answers string) (out []turn) {
	for _, t := range turns {
		blocks := []block{}
		for _, b := range t.Blocks {
			b.Raw, b.Text = nil, quotes.Replace(b.Text)
			if api == cassettes.Gemini {
				if b.Kind == "reasoning" && b.Signature == "" {
					continue // fantasy leaves thoughts out that nothing signs; we send them back
				}
				if !strings.Contains(answers, `"`+b.ID+`"`) {
					b.ID = "" // Gemini gave none: fantasy and pydantic-ai make one up, we send none
				}
				b.Signature = alphabet.Replace(b.Signature)
			}
			blocks = append(blocks, b)
		}
		if len(blocks) > 0 {
			out = append(out, turn{t.Role, blocks})
		}
	}
	return out
}

var (
	quotes   = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "—", "--", "–", "-", "…", "...") // pydantic-ai records requests so
	alphabet = strings.NewReplacer("-", "+", "_", "/")                                                      // Google's Python SDK writes base64 so, and Google reads both
)

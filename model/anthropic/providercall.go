package anthropic

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// outcome ends the types of blocks that say what came of a call which the API made: web_search_tool_result, mcp_tool_result.
const outcome = "_tool_result"

// called reports whether the block is a call that the API made of a tool that it runs itself.
func (b *block) called() bool { return b.kind == "server_tool_use" || b.kind == "mcp_tool_use" }

// ran gives the part of a block with a step of a tool that the API ran itself; ok is false for any other block. What came of a call has the name of the
// call, where names has it by its id.
func (b *block) ran(json string, names map[string]string) (c message.ProviderCall, ok bool) {
	c.Opaque = message.Opaque{Provider: provider, JSON: json}
	if b.called() {
		c.Call, c.Name, c.Input = b.id, known(b.name), string(wire.Get([]byte(json), "input"))
		return c, c.Call != ""
	}
	tool, ok := strings.CutSuffix(b.kind, outcome)
	if !ok {
		return c, false
	}
	raw := []byte(json)
	if c.Call = wire.String(wire.Get(raw, "tool_use_id")); c.Call == "" {
		return c, false
	}
	if c.Name = names[c.Call]; c.Name == "" {
		c.Name = known(tool)
	}
	came(&c, wire.Get(raw, "content"))
	c.IsError = c.IsError || wire.Bool(wire.Get(raw, "is_error"))
	return c, true
}

// known gives the name under which a tool was asked for: code is run by two tools under names of their own.
func known(name string) string {
	if name == "bash_code_execution" || name == "text_editor_code_execution" {
		return model.CodeExecution
	}
	return name
}

// came reads what came of a call: a list of pages or texts, or one thing with what a program wrote, a file or a page has, or why it failed.
func came(c *message.ProviderCall, content []byte) {
	var said []byte
	switch {
	case len(content) == 0:
	case content[0] == '"':
		said = say(said, content)
	case content[0] == '[':
		for e := wire.Array(content); e.Next(); {
			if e.Value[0] == '{' {
				said = one(c, said, e.Value)
			}
		}
	case content[0] == '{':
		said = one(c, said, content)
	}
	c.Output = string(said)
}

// one reads one thing that came of a call, and appends what it says.
func one(c *message.ProviderCall, said, raw []byte) []byte {
	var page message.Citation
	for m := wire.Object(raw); m.Next(); {
		switch string(m.Key) {
		case "error_code", "error_message":
			c.IsError = c.IsError || !wire.IsNull(m.Value)
			said = say(said, m.Value)
		case "text", "stdout", "stderr":
			said = say(said, m.Value)
		case "return_code":
			c.IsError = c.IsError || wire.Int(m.Value) != 0
		case "url":
			page.URL = wire.String(m.Value)
		case "title":
			page.Title = wire.String(m.Value)
		case "lines": // of a file that was changed
			for e := wire.Array(m.Value); e.Next(); {
				said = say(said, e.Value)
			}
		case "tool_references":
			for e := wire.Array(m.Value); e.Next(); {
				said = say(said, wire.Get(e.Value, "tool_name"))
			}
		case "content": // of a file that was read; or a page, whose text is not repeated
			if m.Value[0] == '"' {
				said = say(said, m.Value)
			} else if title := wire.String(wire.Get(m.Value, "title")); title != "" {
				page.Title = title
			}
		}
	}
	if page.URL != "" {
		c.Sources = append(c.Sources, page)
	}
	return said
}

// say appends a text to what came of a call, on a line of its own.
func say(said, raw []byte) []byte {
	text := wire.String(raw)
	if text != "" && len(said) > 0 && said[len(said)-1] != '\n' {
		said = append(said, '\n')
	}
	return append(said, text...)
}

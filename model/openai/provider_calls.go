package openai

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// providerCall reads an item of a tool that the provider ran; false for any other one. The item goes back as it came, so nothing is read of it that only a
// provider needs, and no file: an image that it made is in the item alone.
func providerCall(kind string, data []byte) (c message.ProviderCall, ok bool) {
	switch kind {
	case "web_search_call":
		c.Name = model.WebSearch
		action := wire.Get(data, "action")
		c.Input, c.Sources = members(action, "sources"), searched(wire.Get(action, "sources"))
	case "code_interpreter_call":
		c.Name, c.Input = model.CodeExecution, wire.String(wire.Get(data, "code"))
		c.Output = logs(wire.Get(data, "outputs"))
	case "file_search_call":
		c.Name, c.Input = "file_search", pick(data, "queries")
		c.Sources = searched(wire.Get(data, "results"))
	case "image_generation_call":
		c.Name, c.Input = "image_generation", pick(data, "revised_prompt")
	case "mcp_call":
		c.Name = wire.String(wire.Get(data, "name"))
		c.Input, _ = input(wire.String(wire.Get(data, "arguments")))
		c.Output = wire.String(wire.Get(data, "output"))
	case "mcp_list_tools":
		c.Name, c.Input, c.Output = kind, pick(data, "server_label"), toolNames(wire.Get(data, "tools"))
	case "mcp_approval_request":
		c.Name, c.Input = kind, members(data, "id", "type")
	default:
		return c, false
	}
	c.Call = wire.String(wire.Get(data, "id"))
	failure := wire.Get(data, "error")
	c.IsError = wire.String(wire.Get(data, "status")) == "failed" || !wire.IsNull(failure)
	if c.IsError && c.Output == "" {
		c.Output = failureText(failure)
	}
	raw, _ := wire.AppendCompact(nil, data)
	c.Opaque = message.Opaque{Provider: responses, JSON: string(raw)}
	return c, true
}

// members gives an object without some of its members; "" for none.
func members(object []byte, but ...string) string {
	var x extra
	for o := wire.Object(object); o.Next(); {
		if key := string(o.Key); !slices.Contains(but, key) {
			x = x.add(key, o.Value)
		}
	}
	return x.String()
}

// pick gives an object of one of the members; "" if there is none.
func pick(object []byte, name string) string {
	value := wire.Get(object, name)
	if wire.IsNull(value) {
		return ""
	}
	var x extra
	x = x.add(name, value)
	return x.String()
}

// searched reads what a search found: pages, or pieces of files.
func searched(list []byte) (found []message.Citation) {
	for e := wire.Array(list); e.Next(); {
		var c message.Citation
		for o := wire.Object(e.Value); o.Next(); {
			switch string(o.Key) {
			case "url":
				c.URL = wire.String(o.Value)
			case "title", "filename", "name":
				c.Title = wire.String(o.Value)
			case "text":
				c.Quote = wire.String(o.Value)
			}
		}
		if c != (message.Citation{}) {
			found = append(found, c)
		}
	}
	return found
}

// logs joins what code wrote.
func logs(list []byte) string {
	var text []byte
	for e := wire.Array(list); e.Next(); {
		text = wire.AppendText(text, wire.Get(e.Value, "logs"))
	}
	return string(text)
}

// toolNames lists tools by their names, one a line.
func toolNames(list []byte) string {
	var names []string
	for e := wire.Array(list); e.Next(); {
		names = append(names, wire.String(wire.Get(e.Value, "name")))
	}
	return strings.Join(names, "\n")
}

// failureText gives the text of an error: the error itself, its message, the text that it has as content, or else what it is as JSON.
func failureText(data []byte) string {
	if wire.IsNull(data) {
		return ""
	}
	if s := wire.String(data); s != "" {
		return s
	}
	if s := wire.String(wire.Get(data, "message")); s != "" {
		return s
	}
	var text []byte
	for e := wire.Array(wire.Get(data, "content")); e.Next(); {
		text = wire.AppendText(text, wire.Get(e.Value, "text"))
	}
	if len(text) == 0 {
		text, _ = wire.AppendCompact(nil, data)
	}
	return string(text)
}

package project

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/hook/shell"
)

// inHooks is the place of a part of a hooks object, with its column if that is on the line.
func (d *decoder) inHooks(n node, line int, path string) Place {
	if found, ok := find(n, path); ok {
		for _, at := range []int{found.keyAt, found.at} {
			if exact := d.place(at); at > 0 && exact.Line == line {
				return exact
			}
		}
	}
	return Place{d.file, line, 0}
}

// sayHook is all of a hook but its place.
func sayHook(h shell.Hook) string {
	h.Place = ""
	m := map[string]any{}
	b, err := json.Marshal(h)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil || v == "" || v == false || v == 0.0 })
	return canonical(m)
}

// writtenHook is a hook as it could stand in a list of its event.
func writtenHook(h shell.Hook) string {
	type command struct {
		Type          string            `json:"type"`
		Name          string            `json:"name,omitempty"`
		Command       string            `json:"command"`
		Args          *[]string         `json:"args,omitempty"`
		Shell         string            `json:"shell,omitempty"`
		If            string            `json:"if,omitempty"`
		Payload       string            `json:"payload,omitempty"`
		Timeout       float64           `json:"timeout,omitempty"` // in seconds
		Env           map[string]string `json:"env,omitempty"`
		Async         bool              `json:"async,omitempty"`
		Once          bool              `json:"once,omitempty"`
		StatusMessage string            `json:"statusMessage,omitempty"`
	}
	c := command{"command", h.Name, h.Command, nil, "", h.If, h.Selector.Payload, h.Timeout.Seconds(), h.Env, h.Async, h.Once, h.StatusMessage}
	if h.Args != nil {
		c.Args = &h.Args
	}
	if h.Command == "bash" && len(h.Args) == 2 && h.Args[0] == "-c" && h.Name != "" { // that is what a shell comes to
		c.Command, c.Args, c.Shell = h.Args[1], nil, "bash"
		title := []rune(oneLine(c.Command))
		if len(title) > 60 {
			title = append(title[:60], '…')
		}
		if string(title) == h.Name {
			c.Name = ""
		}
	}
	return canonical(struct {
		Matcher string    `json:"matcher,omitempty"`
		Hooks   []command `json:"hooks"`
	}{h.Selector.Tool, []command{c}})
}

// written is a value as it was written, but for white space, with what may be secrets as quiet says it; nil: as it is.
func written(n node, path string, quiet func(path, text string) string) string {
	var parts []string
	for _, c := range n.children {
		part := ""
		at := path
		if n.kind == '{' {
			part, at = canonical(c.name)+":", join(path, c.name)
		}
		parts = append(parts, part+written(c, at, quiet))
	}
	text, isText := n.value.(string)
	switch {
	case n.kind == '{':
		return "{" + strings.Join(parts, ",") + "}"
	case n.kind == '[':
		return "[" + strings.Join(parts, ",") + "]"
	case isText && quiet != nil:
		return canonical(quiet(path, text))
	}
	return canonical(n.value)
}

func hidden(m map[string]string) map[string]string {
	out := map[string]string{}
	for name := range m {
		out[name] = "…"
	}
	return out
}

// find looks for the part of a hooks object that shell.Problem.Path names.
func find(n node, path string) (node, bool) {
	if path == "" {
		return n, true
	}
	for i, c := range n.children {
		var rest string
		var ok bool
		switch {
		case n.kind == '[':
			rest, ok = strings.CutPrefix(path, "["+strconv.Itoa(i)+"]")
		case path[0] == '[':
			rest, ok = strings.CutPrefix(path, "["+strconv.Quote(c.name)+"]")
		default:
			rest, ok = strings.CutPrefix(strings.TrimPrefix(path, "."), c.name)
			ok = ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		if ok && len(rest) < len(path) {
			if found, ok := find(c, rest); ok {
				return found, true
			}
		}
	}
	return node{}, false
}

package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// Problem is a part of a hooks object that has no effect here.
type Problem struct {
	Line int    // in the JSON, from 1
	Path string // of the part: PreToolUse[0].hooks[1].type
	Text string // what is wrong, and what to do
}

// String gives the line, the path and the text.
func (p Problem) String() string { return fmt.Sprintf("line %d: %s: %s", p.Line, p.Path, p.Text) }

// foreign are Claude Code's events that we don't have.
var foreign = []string{
	"Setup", "UserPromptSubmit", "UserPromptExpansion", "PermissionRequest", "PermissionDenied", "PostToolUseFailure", "PostToolBatch", "Notification",
	"MessageDisplay", "TaskCreated", "TaskCompleted", "StopFailure", "TeammateIdle", "InstructionsLoaded", "ConfigChange", "CwdChanged", "DirectoryAdded",
	"FileChanged", "WorktreeCreate", "WorktreeRemove", "PreCompact", "PostCompact", "Elicitation", "ElicitationResult",
}

// instead says what does the work of a foreign event here, where something does.
var instead = map[string]string{
	"PostToolUseFailure": "PostToolUse is fired for tools that fail too, with is_error",
	"PermissionRequest":  "PreToolUse can allow, deny and ask",
}

// Decode reads a hooks object as it stands in settings files, in Claude Code's form
//
//	{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 60}]}]}
//
// or in the older one, a matcher and its command: {"PreToolUse": {"Bash": "./check.sh"}}. Both may stand side by side, and a list of commands for the one. Hooks come out in the order of the text. A
// timeout is in seconds. Of a hook: type ("command"), command, args, timeout, if, env, async, once, name, statusMessage, shell ("bash" instead of /bin/sh), payload (a pattern, see [Selector]).
//
// What we don't have is a Problem, and nothing else of its file is touched by it: events that are not among the seven, types other than command, other shells, other members. What
// can't be understood is an error (errdefs.Validation) with its line, since a hook that is silently not there guards nothing: broken JSON, another shape, a bad pattern, no command.
func Decode(data []byte) ([]Hook, []Problem, error) {
	d := decoder{data: data}
	err := d.hooks()
	if err != nil {
		return nil, d.problems, err
	}
	return d.out, d.problems, nil
}

type decoder struct {
	data     []byte
	out      []Hook
	problems []Problem
}

// node is a piece of the JSON: where it stands, and its bytes.
type node struct {
	at   int // in decoder.data
	path string
	raw  json.RawMessage
}

func (d *decoder) line(at int) int { return 1 + bytes.Count(d.data[:at], []byte{'\n'}) }

func (d *decoder) wrong(n node, format string, args ...any) error {
	return errdefs.Validation.Errorf("hook: line %d: %s: %w", d.line(n.at), n.path, fmt.Errorf(format, args...))
}

func (d *decoder) problem(n node, format string, args ...any) {
	d.problems = append(d.problems, Problem{d.line(n.at), n.path, fmt.Sprintf(format, args...)})
}

func (d *decoder) hooks() error {
	raw := bytes.TrimSpace(d.data)
	root := node{max(0, bytes.Index(d.data, raw)), "hooks", raw}
	var v any
	if err := json.Unmarshal(d.data, &v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			root.at = max(0, int(syntax.Offset)-1)
		}
		return d.wrong(root, "not JSON: %w: correct it", err)
	}
	if v == nil {
		return nil
	}
	members, err := d.members(root)
	if err != nil {
		return err
	}
	for _, m := range members {
		event := EventType(m.path)
		switch {
		case m.path == "hooks":
			return d.wrong(m, "this is the file around the hooks: give what stands behind \"hooks\"")
		case !slices.Contains(events, event):
			d.unknown(m)
		default:
			if err := d.event(event, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *decoder) unknown(n node) {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e)
	}
	switch close := near.Names(n.path, names); {
	case instead[n.path] != "":
		d.problem(n, "Claude Code's event %s is not supported: %s", n.path, instead[n.path])
	case slices.Contains(foreign, n.path):
		d.problem(n, "Claude Code's event %s is not supported: its hooks don't run", n.path)
	case len(close) > 0:
		d.problem(n, "there is no event %s, did you mean %s? Its hooks don't run", n.path, close[0])
	default:
		d.problem(n, "there is no event %s: its hooks don't run; the events are %s", n.path, strings.Join(names, ", "))
	}
}

// event reads the groups of an event, or its commands by matcher.
func (d *decoder) event(e EventType, n node) error {
	switch kind(n) {
	case 'n': // null
		return nil
	case '{':
		members, err := d.members(n)
		for _, m := range members {
			matcher := m.path
			m.path = fmt.Sprintf("%s[%q]", n.path, matcher)
			if err == nil {
				err = d.older(e, matcher, m)
			}
		}
		return err
	case '[':
		groups, err := d.elements(n)
		for _, g := range groups {
			if err == nil {
				err = d.group(e, g)
			}
		}
		return err
	}
	return d.wrong(n, "want a list of {matcher, hooks}")
}

// older is a matcher with a command, or several.
func (d *decoder) older(e EventType, matcher string, n node) error {
	list := []node{n}
	if kind(n) == '[' {
		var err error
		if list, err = d.elements(n); err != nil {
			return err
		}
	}
	for _, c := range list {
		var command string
		if err := d.value(c, &command, "a command in quotes"); err != nil {
			return err
		}
		if err := d.add(c, Hook{Event: e, Command: command, Selector: Selector{Tool: matcher}}); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) group(e EventType, n node) error {
	members, err := d.own(n)
	if err != nil {
		return err
	}
	matcher, own := "", n.path
	var list *node
	for _, m := range members {
		name := m.path
		m.path = own + "." + name
		switch name {
		case "matcher":
			if err := d.value(m, &matcher, "a pattern in quotes"); err != nil {
				return err
			}
		case "hooks":
			list = &m
		default:
			d.problem(m, "there is no member %s: it has no effect", name)
		}
	}
	if list == nil {
		return d.wrong(n, "has no hooks: give it a list of them")
	}
	hooks, err := d.elements(*list)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if err := d.hook(e, matcher, h); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) hook(e EventType, matcher string, n node) error {
	members, err := d.own(n)
	if err != nil {
		return err
	}
	h := Hook{Event: e, Selector: Selector{Tool: matcher}}
	typ, shell, place := "", "", n
	var timeout *float64
	var rest []node
	for _, m := range members {
		name := m.path
		m.path = n.path + "." + name
		var err error
		switch name {
		case "type":
			place = m
			err = d.value(m, &typ, "a text")
		case "command":
			err = d.value(m, &h.Command, "a command in quotes")
		case "args":
			if err = d.value(m, &h.Args, "a list of texts"); err == nil && h.Args == nil && string(m.raw) != "null" {
				h.Args = []string{}
			}
		case "timeout":
			if err = d.value(m, &timeout, "a number of seconds"); err == nil && timeout != nil {
				if h.Timeout, err = seconds(*timeout); err != nil {
					err = d.wrong(m, "%w", err)
				}
			}
		case "if":
			err = d.value(m, &h.If, "a permission rule in quotes")
		case "payload":
			err = d.value(m, &h.Selector.Payload, "a pattern in quotes")
		case "env":
			err = d.value(m, &h.Env, "an object of texts")
		case "async":
			err = d.value(m, &h.Async, "true or false")
		case "once":
			err = d.value(m, &h.Once, "true or false")
		case "name":
			err = d.value(m, &h.Name, "a text")
		case "statusMessage":
			err = d.value(m, &h.StatusMessage, "a text")
		case "shell":
			if err = d.value(m, &shell, "a text"); shell != "" && shell != "bash" && shell != "sh" && err == nil {
				d.problem(m, "the shell %s is not supported: this hook does not run", shell)
				return nil
			}
		case "asyncRewake":
			var rewake bool
			if err = d.value(m, &rewake, "true or false"); rewake {
				h.Async = true
				d.problem(m, "waking the model is not supported: the hook runs in the background, and what it says decides nothing")
			}
		case "description": // for people
		default:
			rest = append(rest, m)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case typ == "" && h.Command == "":
		return d.wrong(n, `has neither a type nor a command: want {"type": "command", "command": "…"}`)
	case typ != "" && typ != "command":
		d.problem(place, "hooks of the type %s are not supported, only command is: this one does not run", typ)
		return nil
	}
	for _, m := range rest {
		d.problem(m, "a command has no such member: it has no effect")
	}
	if shell == "bash" && h.Args == nil {
		h.Name = h.title()
		h.Command, h.Args = "bash", []string{"-c", h.Command}
	}
	return d.add(n, h)
}

// add takes a hook that could run. A matcher where there is nothing to match has no effect, with Claude Code too.
func (d *decoder) add(n node, h Hook) error {
	if !h.Event.matches() && !h.Selector.all() {
		d.problem(n, "there is nothing to match in %s: the matcher %q has no effect", h.Event, h.Selector.Tool)
		h.Selector.Tool = ""
	}
	if h.If != "" && !h.Event.tool() {
		d.problem(n, "a permission rule (%s) is for tool events: in %s this hook never runs", h.If, h.Event)
		return nil
	}
	if h.Event == SessionEnd && h.Timeout > sessionEndMost {
		d.problem(n, "SessionEnd has %v at most: its timeout is that", sessionEndMost)
		h.Timeout = sessionEndMost
	}
	h.Place, h.Claude = fmt.Sprintf("line %d", d.line(n.at)), true // the form is Claude Code's: so are the names that its matchers and scripts have
	if strings.TrimSpace(h.Command) == "" {
		return d.wrong(n, "has no command: give one")
	}
	if _, err := h.Selector.compile(); err != nil {
		return d.wrong(n, "%w", err)
	}
	d.out = append(d.out, h)
	return nil
}

func kind(n node) byte {
	if len(n.raw) == 0 {
		return 0
	}
	return n.raw[0]
}

func (d *decoder) value(n node, to any, want string) error {
	if err := json.Unmarshal(n.raw, to); err != nil {
		return d.wrong(n, "want %s", want)
	}
	return nil
}

// members are those of an object, in the order of the text. Their path is their name alone.
func (d *decoder) members(n node) (out []node, err error) {
	if kind(n) != '{' {
		return nil, d.wrong(n, "want an object in braces")
	}
	err = d.walk(n, func(dec *json.Decoder) error {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		v, err := d.next(dec, n)
		v.path = fmt.Sprint(name)
		out = append(out, v)
		return err
	})
	return out, err
}

// own are the members of an object that has each but once: the last of two would hide what the first says.
func (d *decoder) own(n node) ([]node, error) {
	members, err := d.members(n)
	for i, m := range members {
		if slices.ContainsFunc(members[:i], func(o node) bool { return o.path == m.path }) {
			return nil, d.wrong(m, "it is there twice in %s: leave one", n.path)
		}
	}
	return members, err
}

func (d *decoder) elements(n node) (out []node, err error) {
	if kind(n) != '[' {
		return nil, d.wrong(n, "want a list in brackets")
	}
	err = d.walk(n, func(dec *json.Decoder) error {
		v, err := d.next(dec, n)
		v.path = fmt.Sprintf("%s[%d]", n.path, len(out))
		out = append(out, v)
		return err
	})
	return out, err
}

// next is the next value in n.
func (d *decoder) next(dec *json.Decoder, n node) (v node, err error) {
	err = dec.Decode(&v.raw)
	v.at = n.at + int(dec.InputOffset()) - len(v.raw)
	return v, err
}

// walk calls next for everything in an object or a list.
func (d *decoder) walk(n node, next func(*json.Decoder) error) error {
	dec := json.NewDecoder(bytes.NewReader(n.raw))
	_, err := dec.Token()
	for err == nil && dec.More() {
		err = next(dec)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return d.wrong(n, "%w", err)
	}
	return nil
}

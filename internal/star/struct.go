package star

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/message"
)

// Struct is a value with fields that can't be set: what struct(a = 1) makes, and what builtins give.
type Struct struct {
	names  []string // sorted
	values []starlark.Value
}

// NewStruct makes a struct of its fields.
func NewStruct(fields starlark.StringDict) *Struct {
	s := &Struct{names: fields.Keys()}
	for _, n := range s.names {
		s.values = append(s.values, fields[n])
	}
	return s
}

// Attr gives a field.
func (s *Struct) Attr(name string) (starlark.Value, error) {
	if i, ok := slices.BinarySearch(s.names, name); ok {
		return s.values[i], nil
	}
	return nil, nil
}

// AttrNames lists the fields.
func (s *Struct) AttrNames() []string { return slices.Clone(s.names) }

func (s *Struct) String() string {
	var b strings.Builder
	b.WriteString("struct(")
	for i, n := range s.names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n + " = " + s.values[i].String())
	}
	b.WriteByte(')')
	return b.String()
}

// Type is "struct".
func (s *Struct) Type() string { return "struct" }

// Freeze freezes the fields.
func (s *Struct) Freeze() {
	for _, v := range s.values {
		v.Freeze()
	}
}

// Truth is true.
func (s *Struct) Truth() starlark.Bool { return true }

// Hash is refused: fields may change.
func (s *Struct) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: struct") }

// Message is an utterance as scripts see it: role ("user", "assistant" or "tool"), text, and calls, a list of structs with id, name and input (JSON).
type Message struct{ message.Message }

// Attr gives a field.
func (m Message) Attr(name string) (starlark.Value, error) {
	switch name {
	case "role":
		return starlark.String(m.Role()), nil
	case "text":
		return starlark.String(m.Text()), nil
	case "calls":
		var all []starlark.Value
		for _, c := range m.ToolCalls() {
			all = append(all, NewStruct(starlark.StringDict{
				"id": starlark.String(c.ID), "name": starlark.String(c.Name), "input": starlark.String(c.Input),
			}))
		}
		return starlark.NewList(all), nil
	}
	return nil, nil
}

// AttrNames lists the fields.
func (m Message) AttrNames() []string { return []string{"calls", "role", "text"} }

func (m Message) String() string { return "message(" + m.Message.String() + ")" }

// Type is "message".
func (m Message) Type() string { return "message" }

// Freeze does nothing: a message never changes.
func (m Message) Freeze() {}

// Truth is false for no message.
func (m Message) Truth() starlark.Bool { return starlark.Bool(!m.IsZero()) }

// Hash is refused.
func (m Message) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: message") }

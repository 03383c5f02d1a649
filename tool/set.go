package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/internal/near"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Set is an immutable set of tools in a stable order: what models are told of them is a part of the cached prefix. A reload
// makes another Set; a run under way keeps its own. The zero Set is empty.
type Set struct {
	list   []member
	models []model.Tool
	byName map[string]int // exact and lower-case names
}

type member struct {
	Tool
	def   Definition
	names names
	check *checker
	exact bool // a member under a name of the schema's means that one
}

// takes reports whether providers take a name.
func takes(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return name != "" && len(name) <= 64 && strings.IndexFunc(name, other) < 0
}

// NewSet makes a set, in the order given. It fails with errdefs.Conflict on two tools whose names differ at most in case, and with
// errdefs.Validation on a name that providers don't take or a schema that isn't JSON. A schema that is JSON but doesn't compile
// (they come from other people's servers) means that inputs are only checked to be objects.
func NewSet(tools ...Tool) (Set, error) {
	s := Set{byName: make(map[string]int, len(tools))}
	for i, t := range tools {
		if t == nil {
			return Set{}, errdefs.Validation.Errorf("tool: tool %d is nil", i+1)
		}
		def := t.Definition()
		if !takes(def.Name) {
			return Set{}, errdefs.Validation.Errorf("tool: %q is no name that providers take: 1 to 64 of a-z, A-Z, 0-9, _ and -", def.Name)
		}
		if j, dup := s.byName[strings.ToLower(def.Name)]; dup {
			return Set{}, errdefs.Conflict.Errorf("tool: two tools are named %q and %q", s.list[j].def.Name, def.Name)
		}
		if len(def.Schema) == 0 {
			def.Schema = json.RawMessage(`{"type":"object"}`)
		}
		m := member{Tool: t, def: def}
		if f, ok := t.(*funcTool); ok {
			m.check, m.names = f.check, f.names
		} else if !json.Valid(def.Schema) {
			return Set{}, errdefs.Validation.Errorf("tool: the schema of %s is not JSON: %s", def.Name, quote(def.Schema))
		} else if c, err := compile(def.Schema); err == nil {
			m.check = c
		}
		if _, ok := t.(*funcTool); !ok {
			m.names = namesOf(def.Schema, nil)
		}
		m.exact = m.names.exact()
		s.byName[strings.ToLower(def.Name)], s.byName[def.Name] = i, i
		s.list = append(s.list, m)
		s.models = append(s.models, def.Tool)
	}
	return s, nil
}

// Lookup finds a tool by name; a name in another case finds it too, as models write Read for read.
func (s Set) Lookup(name string) (Tool, Definition, bool) {
	i, ok := s.find(name)
	if !ok {
		return nil, Definition{}, false
	}
	return s.list[i].Tool, s.list[i].def, true
}

func (s Set) find(name string) (int, bool) {
	i, ok := s.byName[name]
	if !ok {
		i, ok = s.byName[strings.ToLower(name)]
	}
	return i, ok
}

// Len is the number of tools.
func (s Set) Len() int { return len(s.list) }

// Models is what a model is told of the tools that allowed admits; nil admits all, and then the slice is the same at every call.
// Read-only.
func (s Set) Models(allowed func(string) bool) []model.Tool {
	if allowed == nil {
		return s.models
	}
	out := make([]model.Tool, 0, len(s.models))
	for _, t := range s.models {
		if allowed(t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// Check gives the input of a call as its tool is to get it: each member under the name that the schema has for it and none given twice, so that whoever looks at it
// reads what the tool reads; checked against the schema. The error is for the model: each place that is wrong, and why. The tool must be in the set.
func (s Set) Check(call message.ToolCall) (input string, err error) {
	i, ok := s.find(call.Name)
	if !ok {
		return "", s.Unknown(call.Name, nil)
	}
	m := &s.list[i]
	if m.exact && m.check.accepts(wire.View(call.Input)) {
		return call.Input, nil
	}
	raw := json.RawMessage(call.Input)
	if raw, err = m.names.canonical(raw); err == nil {
		err = exact.Once(raw)
	}
	if err != nil {
		return "", errdefs.Validation.Errorf("%s: %w", m.def.Name, err)
	}
	if err := m.check.check(raw); err != nil {
		return "", errdefs.Validation.Errorf("%s: %w", m.def.Name, err)
	}
	if string(raw) == call.Input {
		return call.Input, nil
	}
	return string(raw), nil
}

// Vet asks the call's tool whether it would take input that [Set.Check] gave: see [WithCheck]. For whoever runs tools, when hooks have no objection, and before a person is asked. ctx is the call's.
func (s Set) Vet(ctx context.Context, call message.ToolCall) error {
	i, ok := s.find(call.Name)
	if !ok {
		return s.Unknown(call.Name, nil)
	}
	if f, ok := s.list[i].Tool.(*funcTool); ok && f.vet != nil {
		if err := f.vet(ctx, json.RawMessage(call.Input)); err != nil {
			return fmt.Errorf("%s: %w", f.def.Name, err)
		}
	}
	return nil
}

// Unknown is the error for a name that no admitted tool has; it names the nearest ones, or all when none is near.
func (s Set) Unknown(name string, allowed func(string) bool) error {
	var all []string
	for _, t := range s.Models(allowed) {
		all = append(all, t.Name)
	}
	if len(all) == 0 {
		return errdefs.NotFound.Errorf("there is no tool %q: there are no tools", quote([]byte(name)))
	}
	if meant := near.Names(name, all); len(meant) > 0 {
		return errdefs.NotFound.Errorf("there is no tool %q; did you mean %s?", name, strings.Join(meant, " or "))
	}
	slices.Sort(all)
	return errdefs.NotFound.Errorf("there is no tool %q; there are %s", quote([]byte(name)), strings.Join(all, ", "))
}

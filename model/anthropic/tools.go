package anthropic

import (
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// appendTools appends the caller's tools, those that the API runs itself, and which of them has to be called. With marked the last one ends with a cache mark.
func (f *family) appendTools(b []byte, tools []model.Tool, own []model.ProviderTool, choice model.ToolChoice, marked bool) ([]byte, error) {
	if len(tools)+len(own) == 0 {
		if choice != model.ToolsAuto && choice != model.ToolsNone {
			return b, errdefs.Validation.Errorf("the choice of tool %q needs tools", choice)
		}
		return b, nil // the API takes no choice without tools
	}
	var err error
	b = append(b, `,"tools":[`...)
	for _, t := range tools {
		b = wire.AppendString(append(next(b), `{"name":`...), t.Name)
		if t.Description != "" {
			b = wire.AppendString(append(b, `,"description":`...), t.Description)
		}
		b = append(b, `,"input_schema":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object"}`...)
		} else if b, err = appendObject(b, t.Schema, "the schema of tool "+strconv.Quote(t.Name)); err != nil {
			return b, err
		}
		b = append(b, '}')
	}
	for i, t := range own {
		if slices.ContainsFunc(tools, func(o model.Tool) bool { return o.Name == t.Name }) || slices.ContainsFunc(own[:i], func(o model.ProviderTool) bool { return o.Name == t.Name }) {
			return b, errdefs.Validation.Errorf("two tools are named %q: the API can't tell them apart", t.Name)
		}
		if b, err = f.appendProviderTool(next(b), t); err != nil {
			return b, err
		}
	}
	if n := len(own); marked && (n == 0 || wire.Get(own[n-1].Options, "cache_control") == nil) {
		b = append(append(b[:len(b)-1], mark...), '}')
	}
	b = append(b, ']')
	switch choice {
	case model.ToolsAuto:
	case model.ToolsNone:
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	case model.ToolsRequired:
		b = append(b, `,"tool_choice":{"type":"any"}`...)
	default:
		b = append(wire.AppendString(append(b, `,"tool_choice":{"type":"tool","name":`...), string(choice)), '}')
	}
	return b, nil
}

// appendProviderTool appends a tool that the API runs itself. A type among its options asks for another version of it. Searches and pages are for the model, not for
// code that it has written: while such code waits, the API takes a reply back with the id of its container only, which a reply that calls a tool of ours doesn't always have.
func (f *family) appendProviderTool(b []byte, t model.ProviderTool) ([]byte, error) {
	var options []byte
	if len(t.Options) > 0 {
		var err error
		if options, err = appendObject(nil, t.Options, "what tool "+strconv.Quote(t.Name)+" has as options"); err != nil {
			return b, err
		}
	}
	if wire.Get(options, "name") != nil {
		return b, errdefs.Validation.Errorf("the options of tool %q have a name: leave it out", t.Name)
	}
	b = wire.AppendString(append(b, `{"name":`...), t.Name)
	if wire.Get(options, "type") == nil {
		b = wire.AppendString(append(b, `,"type":`...), f.tools[t.Name])
		if f.filters && t.Name != model.CodeExecution && wire.Get(options, "allowed_callers") == nil {
			b = append(b, `,"allowed_callers":["direct"]`...)
		}
	}
	if len(options) > len(`{}`) {
		return append(append(b, ','), options[1:]...), nil
	}
	return append(b, '}'), nil
}

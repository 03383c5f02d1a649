package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/tool"
)

// led are the tools by which a state's model leads the workflow on.
func (f *flow) led(s pack.State, p *pack.Prompt) (all []tool.Tool) {
	if s.Leads(true) && p.Allows(pack.TransitionTool) {
		all = append(all, transitionTool(f.def, s))
	}
	if len(s.Artifacts) > 0 && p.Allows(pack.ArtifactTool) {
		all = append(all, artifactTool(s))
	}
	return all
}

func transitionTool(w *pack.Workflow, s pack.State) tool.Tool {
	events := slices.Sorted(maps.Keys(s.OnEvent))
	var about strings.Builder
	about.WriteString("Move the conversation on by an event. Whoever is responsible then goes on at once: call it last, and alone. The events:")
	for _, e := range events {
		fmt.Fprintf(&about, "\n- %s: to %s", e, s.OnEvent[e])
		if text := w.States[s.OnEvent[e]].Description; text != "" {
			about.WriteString(": " + text)
		}
	}
	return leadingTool(pack.TransitionTool, about.String(), map[string]any{
		"event":   map[string]any{"type": "string", "enum": events, "description": "What happened."},
		"context": map[string]any{"type": "string", "maxLength": mostOfArtifact, "description": "What the next one should know, in short."},
	}, []string{"event"}, func(context.Context, json.RawMessage) (any, error) {
		return tool.Result{Content: "The event is noted.", Final: true}, nil
	})
}

func artifactTool(s pack.State) tool.Tool {
	names := slices.Sorted(maps.Keys(s.Artifacts))
	about := "Keep a small result for the states that follow. The artifacts:"
	for _, n := range names {
		a := s.Artifacts[n]
		about += fmt.Sprintf("\n- %s (%s)", n, a.Type)
		if a.Mode == "append" {
			about += ", appended to what is there"
		}
		if a.Description != "" {
			about += ": " + a.Description
		}
	}
	return leadingTool(pack.ArtifactTool, about, map[string]any{
		"name":  map[string]any{"type": "string", "enum": names},
		"value": map[string]any{"type": "string", "maxLength": mostOfArtifact},
	}, []string{"name", "value"}, func(_ context.Context, input json.RawMessage) (any, error) {
		var in struct{ Name, Value string }
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, err
		}
		if kind := s.Artifacts[in.Name].Type; (kind == "application/json" || strings.HasSuffix(kind, "+json")) && !json.Valid([]byte(in.Value)) {
			return nil, errdefs.Validation.Errorf("the value of %s is no JSON, and it is %s", in.Name, kind)
		}
		return "It is kept.", nil
	})
}

// leadingTool takes strings, and does nothing but be on record.
func leadingTool(name, about string, properties map[string]any, required []string, run func(context.Context, json.RawMessage) (any, error)) tool.Tool {
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		panic(err) // strings and numbers
	}
	return packTool{tool.Definition{Tool: model.Tool{Name: name, Description: about, Schema: schema}, Annotations: tool.Annotations{Idempotent: true}}, run}
}

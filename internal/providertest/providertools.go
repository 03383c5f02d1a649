package providertest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// providerTools asks for the tools that a provider runs itself, of those that several have.
func (p Provider) providerTools(t *testing.T) {
	can, _ := model.CapabilitiesOf(p.New())
	var names []string
	var run []model.ProviderTool
	for _, name := range []string{model.CodeExecution, model.WebFetch, model.WebSearch} {
		if slices.Contains(can.ProviderTools, name) {
			names, run = append(names, name), append(run, model.ProviderTool{Name: name})
		}
	}
	with := func(own []model.Tool, c model.ToolChoice, run ...model.ProviderTool) model.Request {
		r := hi()
		r.Tools, r.ToolChoice, r.ProviderTools = own, c, run
		return r
	}
	t.Run("one that is not known", func(t *testing.T) {
		p.refused(t, with(nil, model.ToolsAuto, model.ProviderTool{Name: "time_travel"}))
	})
	if p.lacks("provider_tools") {
		if len(can.ProviderTools) > 0 {
			t.Errorf("the model has %q", can.ProviderTools)
		}
		p.refused(t, with(nil, model.ToolsAuto, model.ProviderTool{Name: model.WebSearch}))
		return
	}
	t.Run("beside ours", func(t *testing.T) {
		got, _ := p.ask(t, with(tools, model.ToolsAuto, run...))
		equal(t, "tools", []string{"read", "bash"}, got.Tools)
		equal(t, "tools of the provider", names, got.ProviderTools)
	})
	t.Run("alone", func(t *testing.T) {
		for choice, want := range map[model.ToolChoice]string{model.ToolsAuto: "auto", model.ToolsRequired: "required", model.ToolsNone: "none"} {
			if choice == model.ToolsRequired && p.lacks("provider_tools_required") {
				p.refused(t, with(nil, choice, run...))
				continue
			}
			got, _ := p.ask(t, with(nil, choice, run...))
			if got.ToolChoice == "" {
				got.ToolChoice = "auto"
			}
			equal(t, "tool choice", want, got.ToolChoice)
			equal(t, "tools of the provider", names, got.ProviderTools)
		}
	})
	t.Run("options", func(t *testing.T) {
		_, body := p.ask(t, with(nil, model.ToolsAuto, model.ProviderTool{Name: names[0], Options: json.RawMessage(`{"pawl_option": {"a": [1.50, "é"]}}`)}))
		if !bytes.Contains(body, []byte(`"pawl_option":{"a":[1.50,"é"]}`)) {
			t.Errorf("the option is not there, compact and as it was: %s", body)
		}
	})
	t.Run("options that are none", func(t *testing.T) {
		for _, o := range []string{`[1]`, `"x"`, `null`, `{`, `{} {}`} {
			p.refused(t, with(nil, model.ToolsAuto, model.ProviderTool{Name: names[0], Options: json.RawMessage(o)}))
		}
	})
}

// wantProviderTools reads a search and code that ran, and sends them back.
func wantProviderTools(t *testing.T, p Provider, got *model.Response) {
	t.Helper()
	said := map[string]message.ProviderCall{} // what was asked and what came of it, together
	var back []string
	for c := range message.Of[message.ProviderCall](got.Message) {
		if c.Provider != p.Name || c.JSON != "" && !compact(c.JSON) || c.IsError {
			t.Errorf("%+v", c)
		}
		s := said[c.Name]
		s.Input, s.Output, s.Sources = s.Input+c.Input, s.Output+c.Output, append(s.Sources, c.Sources...)
		said[c.Name] = s
		if c.JSON != "" {
			back = append(back, c.JSON)
		}
	}
	if s := said[model.WebSearch]; !strings.Contains(s.Input, "go release") || !slices.ContainsFunc(s.Sources, func(c message.Citation) bool { return c.URL == "https://go.dev/dl/" }) {
		t.Errorf("the search: %+v", s)
	}
	if s := said[model.CodeExecution]; !strings.Contains(s.Input, "print(6*7)") || strings.TrimSpace(s.Output) != "42" {
		t.Errorf("the code: %+v", s)
	}
	seen, _ := p.ask(t, model.Request{Messages: message.NewHistory(message.User("Hi"), got.Message, message.User("Go on"))})
	for _, m := range seen.Messages {
		for _, part := range m.Parts {
			if len(back) > 0 && part.Kind == "opaque" && equalJSON(part.Data, back[0]) {
				back = back[1:]
			}
		}
	}
	if len(back) > 0 {
		t.Errorf("not sent back, or not in order: %s", back)
	}
}

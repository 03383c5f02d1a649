package providertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// providerTools checks how tools that the provider runs itself are asked for.
func (p Provider) providerTools(t *testing.T) {
	can, _ := model.CapabilitiesOf(p.New())
	if len(can.ProviderTools) == 0 && !p.lacks("provider_tools") {
		t.Error("the model has none")
	}
	for _, mine := range [][]model.Tool{nil, tools} { // require_approval is what OpenAI's mcp needs
		for i, name := range can.ProviderTools {
			r := hi()
			r.Tools, r.ProviderTools = mine, []model.ProviderTool{{Name: name, Options: json.RawMessage(`{ "a": [1, {"b": "c"}], "require_approval": "never", "z": null }`)}}
			if i > 0 { // those before it, too, without options
				r.ProviderTools = append(r.ProviderTools, model.ProviderTool{Name: can.ProviderTools[0], Options: json.RawMessage(` {} `)})
			}
			if mine != nil && p.lacks("provider_tools_beside") {
				p.refused(t, r)
				continue
			}
			got, _ := p.ask(t, r)
			want := []model.ProviderTool{{Name: name, Options: json.RawMessage(`{"a":[1,{"b":"c"}],"require_approval":"never","z":null}`)}}
			if i > 0 {
				want = append(want, model.ProviderTool{Name: can.ProviderTools[0]})
			}
			equal(t, "tools of the provider's own", want, got.ProviderTools)
			equal(t, "tools", len(mine), len(got.Tools))
		}
	}
	for _, odd := range []model.ProviderTool{{Name: "no_such_tool"}, {Name: ""}} {
		p.refusesTool(t, odd)
	}
	for _, name := range can.ProviderTools {
		for _, options := range []string{`[]`, `"x"`, `null`, `{"a":`} {
			p.refusesTool(t, model.ProviderTool{Name: name, Options: json.RawMessage(options)})
		}
	}
}

func (p Provider) refusesTool(t *testing.T, tool model.ProviderTool) {
	t.Helper()
	r := hi()
	r.ProviderTools = []model.ProviderTool{tool}
	p.refused(t, r)
}

// wantSteps checks what a reply tells of the provider's own tools, that it looks like no call of ours, and that it goes back as it came.
func wantSteps(t *testing.T, p Provider, got *model.Response) {
	t.Helper()
	var input, output, failed string
	var sources []string
	var steps []message.ProviderCall
	for c := range message.Of[message.ProviderCall](got.Message) {
		steps = append(steps, c)
		switch c.Name {
		case model.WebSearch:
			input += c.Input
			for _, s := range c.Sources {
				sources = append(sources, s.URL)
			}
		case model.CodeExecution:
			output += c.Output
			if c.IsError {
				failed += c.Output
			}
		default:
			t.Errorf("a step of %q", c.Name)
		}
	}
	if !p.lacks("provider_search") {
		if !strings.Contains(input, "pawl") {
			t.Errorf("what was looked for: %q", input)
		}
		equal(t, "sources", []string{"https://example.com/pawl"}, sources)
	}
	if !p.lacks("provider_code") && (!strings.Contains(output, "42\n") || failed == "" || strings.Contains(failed, "42")) {
		t.Errorf("what code wrote: %q; when it failed: %q", output, failed)
	}
	if len(steps) == 0 {
		t.Fatal("there are no steps")
	}
	seen, _ := p.ask(t, model.Request{Messages: message.NewHistory(message.User("Hi"), got.Message, message.User("Go on"))})
	for _, s := range steps {
		back := s.JSON == "" // the provider told of it beside the reply's parts, and wants nothing back
		for _, m := range seen.Messages {
			for _, part := range m.Parts {
				back = back || part.Kind == "opaque" && equalJSON(part.Data, s.JSON)
			}
		}
		if !back {
			t.Errorf("not sent back: %s", s.JSON)
		}
	}
}

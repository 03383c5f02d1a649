package cassettes_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// TestWhatProvidersToolsDidIsRead looks for what recorded replies tell of tools that their providers ran.
func TestWhatProvidersToolsDidIsRead(t *testing.T) {
	cassettes.Dir(t) // or skip it all
	for name, want := range map[string][]struct{ name, input, output string }{
		"pydantic-ai__cassettes__test_openai_responses__test_openai_responses_model_mcp_server_tool_stream": {
			{"mcp_list_tools", "deepwiki", "ask_question"}, {"ask_question", "pydantic/pydantic-ai", "Pydantic AI"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cassettes.Named(t, name)
			m := open(t, c.Exchanges[0], cassettes.Serve(t, c.Exchanges))
			var got []message.ProviderCall
			err := m.CompleteStream(t.Context(), model.Request{Messages: message.NewHistory(message.User("Hi"))}, func(r model.StreamResult) error {
				if r.Final {
					for p := range message.Of[message.ProviderCall](r.Response.Message) {
						got = append(got, p)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want {
				if len(got) == 0 {
					t.Fatalf("no %s", w.name)
				}
				if p := got[0]; p.Name != w.name || p.Call == "" || p.IsError || !strings.Contains(p.Input, w.input) || !strings.Contains(p.Output, w.output) {
					t.Errorf("%+v", p)
				}
				got = got[1:]
			}
			if len(got) > 0 {
				t.Errorf("more: %+v", got)
			}
		})
	}
}

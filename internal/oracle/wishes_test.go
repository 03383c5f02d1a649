package oracle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// families are models that are told what they are to think, and with which tools, in different words.
var families = map[string][]string{
	"anthropic":        {"claude-3-7-sonnet-latest", "claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-5-5"},
	"openai":           {"gpt-5", "gpt-5.1", "gpt-5.2"},
	"openai-responses": {"gpt-5", "gpt-5.2", "gpt-5.6"},
	"gemini":           {"gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-flash-preview"},
}

// wishes are what else a model can be asked for: each level that it takes, each tool that its provider runs, alone and beside one of ours, and files that the provider keeps.
func wishes(m model.Model) (cases []providertest.Case) {
	can, _ := model.CapabilitiesOf(m)
	add := func(name string, s model.Settings, tools []model.Tool, parts ...message.Part) {
		cases = append(cases, providertest.Case{Name: name, Request: model.Request{
			Messages: message.NewHistory(message.New(message.RoleUser, append(parts, message.Text{Text: "Hi"})...)), Settings: s, Tools: tools,
		}})
	}
	for _, level := range can.Reasoning {
		add("reasoning "+string(level), model.Settings{Reasoning: level}, nil)
	}
	options := map[string]string{
		"mcp":         `{"server_label":"games","server_url":"https://example.com/mcp","require_approval":"never"}`,
		"file_search": `{"vector_store_ids":["vs_1"]}`,
	}
	if can.Provider == "gemini" {
		options["file_search"] = `{"fileSearchStoreNames":["fileSearchStores/a"]}`
	}
	mine := []model.Tool{{Name: "look", Description: "Look.", Schema: json.RawMessage(`{"type":"object","properties":{},"required":[]}`)}}
	for _, name := range can.ProviderTools {
		tool := []model.ProviderTool{{Name: name, Options: json.RawMessage(options[name])}}
		add("tool "+name, model.Settings{ProviderTools: tool}, nil)
		add("tools "+name, model.Settings{ProviderTools: tool}, mine)
	}
	for _, mime := range []string{"image/png", "application/pdf"} {
		keeper := can.Files
		if keeper == "" {
			keeper = can.Provider
		}
		add("file by ID "+mime, model.Settings{}, nil, message.File{MIME: mime, Provider: keeper, ID: "file_1"})
	}
	return cases
}

// What is asked of providers beyond a reply loses nothing on the vendor's types either.
func TestTheVendorsTypesLoseNothingOfAWish(t *testing.T) {
	meant := newAllowances(wishesDiffer)
	all, sent := 0, 0
	for _, v := range vendors {
		for _, name := range families[v.name] {
			standard := v.model
			v := v
			v.model = name
			for _, c := range wishes(v.ours(name)) {
				all++
				t.Run(v.name+"/"+name+"/"+c.Name, func(t *testing.T) {
					t.Cleanup(meant.ran)
					own, ok := asked(t, v, c.Request, false)
					if !ok {
						return // together they are refused; the matrix has what may be
					}
					sent++
					s := answered(t, v, false)
					if err := v.again(t, s.client(), own.Body, false); err != nil {
						t.Fatal(err)
					}
					theirs := s.call()
					theirs.url = strings.Replace(theirs.url, standard, name, 1) // where the address names the model
					sameCall(t, v, theirs, own, func(pointer string) bool { return meant.has(v.name, c.Name, pointer) })
				})
			}
		}
	}
	if sent < all*3/4 {
		t.Errorf("of %d requests %d were sent", all, sent)
	}
	meant.check(t, all, true)
}

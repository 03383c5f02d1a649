package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestAProvidersToolsAreTheseBytes(t *testing.T) {
	web := model.ProviderTool{Name: model.WebSearch}
	mcp := model.ProviderTool{Name: "mcp", Options: json.RawMessage(`{"server_label":"s","server_url":"https://x","require_approval":"never"}`)}
	for name, c := range map[string]struct {
		run    []model.ProviderTool
		own    []model.Tool
		choice model.ToolChoice
		want   string
	}{
		"a search":               {[]model.ProviderTool{web}, nil, "", `"include":["reasoning.encrypted_content","web_search_call.action.sources"],"tools":[{"type":"web_search"}]`},
		"twice the same":         {[]model.ProviderTool{web, web}, nil, "", `"include":["reasoning.encrypted_content","web_search_call.action.sources"],"tools":[{"type":"web_search"},{"type":"web_search"}]`},
		"options":                {[]model.ProviderTool{{Name: model.WebSearch, Options: json.RawMessage(` { "search_context_size" : "low" } `)}}, nil, "", `[{"type":"web_search","search_context_size":"low"}]`},
		"another type":           {[]model.ProviderTool{{Name: model.WebSearch, Options: json.RawMessage(`{"type":"web_search_preview"}`)}}, nil, "web_search", `[{"type":"web_search_preview"}],"tool_choice":{"type":"web_search_preview"}`},
		"code":                   {[]model.ProviderTool{{Name: model.CodeExecution}}, nil, "", `"code_interpreter_call.outputs"],"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`},
		"code in a container":    {[]model.ProviderTool{{Name: model.CodeExecution, Options: json.RawMessage(`{"container":"cntr_1"}`)}}, nil, "", `[{"type":"code_interpreter","container":"cntr_1"}]`},
		"files":                  {[]model.ProviderTool{{Name: "file_search", Options: json.RawMessage(`{"vector_store_ids":["vs_1"]}`)}}, nil, "", `"file_search_call.results"],"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`},
		"images":                 {[]model.ProviderTool{{Name: "image_generation"}}, nil, "image_generation", `"include":["reasoning.encrypted_content"],"tools":[{"type":"image_generation"}],"tool_choice":{"type":"image_generation"}`},
		"MCP":                    {[]model.ProviderTool{mcp}, nil, "mcp", `[{"type":"mcp","server_label":"s","server_url":"https://x","require_approval":"never"}],"tool_choice":{"type":"mcp","server_label":"s"}`},
		"behind ours":            {[]model.ProviderTool{web}, []model.Tool{{Name: "read"}}, "read", `{"type":"object","properties":{}}},{"type":"web_search"}],"tool_choice":{"type":"function","name":"read"}`},
		"one of ours goes first": {[]model.ProviderTool{web}, []model.Tool{{Name: "web_search"}}, "web_search", `"tool_choice":{"type":"function","name":"web_search"}`},
		"none may be called":     {[]model.ProviderTool{web}, nil, model.ToolsNone, `[{"type":"web_search"}],"tool_choice":"none"`},
	} {
		req := hi()
		req.ProviderTools, req.Tools, req.ToolChoice = c.run, c.own, c.choice
		s := &server{status: 200, body: responsesOK}
		if _, err := NewResponses("gpt-5.1", s.option(), model.WithKey("k")).Complete(t.Context(), req); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if body := string(s.bodies[0]); !json.Valid(s.bodies[0]) || !strings.Contains(body, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, body, c.want)
		}
	}
}

func TestAnApprovalThatNobodyCanGiveIsNotAskedFor(t *testing.T) {
	s := &server{status: 200, body: responsesOK}
	for options, ok := range map[string]bool{
		``: false, `{}`: false, `{"require_approval":null}`: false, `{"require_approval":"always"}`: false,
		`{"require_approval":"never"}`: true, `{"require_approval":{"never":{"tool_names":["f"]}}}`: true,
	} {
		req := hi()
		req.ProviderTools = []model.ProviderTool{{Name: "mcp", Options: json.RawMessage(options)}}
		_, err := NewResponses("gpt-5.1", s.option(), model.WithKey("k")).Complete(t.Context(), req)
		if ok && err != nil || !ok && (!errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), "require_approval")) {
			t.Errorf("%s: %v", options, err)
		}
	}
}

func TestWhatAProvidersToolDidCanBeRead(t *testing.T) {
	for item, want := range map[string]message.ProviderCall{
		`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"a","sources":[{"type":"url","url":"https://x"},{"type":"api","name":"weather"},7,{}]}}`: {
			Call: "ws_1", Name: "web_search", Input: `{"type":"search","query":"a"}`, Sources: []message.Citation{{URL: "https://x"}, {Title: "weather"}},
		},
		`{"id":"ws_2","type":"web_search_call","status":"failed","action":{"type":"open_page","url":"https://y"}}`: {
			Call: "ws_2", Name: "web_search", Input: `{"type":"open_page","url":"https://y"}`, IsError: true,
		},
		`{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"f()\n","container_id":"c","outputs":[{"type":"logs","logs":"a\n"},{"type":"image","url":"data:image/png;base64,aGk="},{"type":"logs","logs":"b"}]}`: {
			Call: "ci_1", Name: "code_execution", Input: "f()\n", Output: "a\nb",
		},
		`{"id":"ci_2","type":"code_interpreter_call","status":"incomplete","code":null,"outputs":null}`: {Call: "ci_2", Name: "code_execution"},
		`{"id":"fs_1","type":"file_search_call","status":"completed","queries":["q"],"results":[{"file_id":"file-1","filename":"a.txt","score":0.9,"text":"Paris."}]}`: {
			Call: "fs_1", Name: "file_search", Input: `{"queries":["q"]}`, Sources: []message.Citation{{Title: "a.txt", Quote: "Paris."}},
		},
		`{"id":"ig_1","type":"image_generation_call","status":"failed","result":null,"revised_prompt":"a cat","error":{"message":"moderated"}}`: {
			Call: "ig_1", Name: "image_generation", Input: `{"revised_prompt":"a cat"}`, Output: "moderated", IsError: true,
		},
		`{"id":"ig_2","type":"image_generation_call","status":"completed","result":"aGk="}`: {Call: "ig_2", Name: "image_generation"},
		`{"id":"mcp_1","type":"mcp_call","status":"completed","arguments":"{ \"a\": 1 }","error":null,"name":"f","output":"ok","server_label":"s"}`: {
			Call: "mcp_1", Name: "f", Input: `{"a":1}`, Output: "ok",
		},
		`{"id":"mcp_2","type":"mcp_call","arguments":"{}","error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"no such game"}]},"name":"f","output":null,"server_label":"s"}`: {
			Call: "mcp_2", Name: "f", Input: `{}`, Output: "no such game", IsError: true,
		},
		`{"id":"mcp_3","type":"mcp_call","arguments":"{}","error":{"type":"http_error","code":500},"name":"f","output":null,"server_label":"s"}`: {
			Call: "mcp_3", Name: "f", Input: `{}`, Output: `{"type":"http_error","code":500}`, IsError: true,
		},
		`{"id":"mcpl_1","type":"mcp_list_tools","server_label":"s","tools":[{"name":"f"},{"name":"g"}]}`: {
			Call: "mcpl_1", Name: "mcp_list_tools", Input: `{"server_label":"s"}`, Output: "f\ng",
		},
		`{"id":"mcpl_2","type":"mcp_list_tools","server_label":"s","tools":[],"error":"gone"}`: {
			Call: "mcpl_2", Name: "mcp_list_tools", Input: `{"server_label":"s"}`, Output: "gone", IsError: true,
		},
		`{"id":"mcpr_1","type":"mcp_approval_request","arguments":"{}","name":"f","server_label":"s"}`: {
			Call: "mcpr_1", Name: "mcp_approval_request", Input: `{"arguments":"{}","name":"f","server_label":"s"}`,
		},
		`{"type":"web_search_call"}`: {Name: "web_search"},
	} {
		want.Opaque = message.Opaque{Provider: responses, JSON: item}
		r, err := stateless().decode([]byte(output(item)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]message.Part{want}, parts(r.Message)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if r.Stop != model.StopEnd || len(r.Message.ToolCalls()) != 0 {
			t.Errorf("%s was taken for a call of ours", item)
		}
	}
}

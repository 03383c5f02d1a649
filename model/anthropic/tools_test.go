package anthropic

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// toolsOf gives the tools and the choice of a request.
func toolsOf(t *testing.T, name string, req model.Request) string {
	t.Helper()
	var body struct {
		Tools  json.RawMessage `json:"tools"`
		Choice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal([]byte(joined(t, New(name), req, false)), &body); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(body.Tools), string(mark)+"}]", "}]", 1) + string(body.Choice) // the mark has its own test
}

func TestToolsOfTheAPIHaveTheVersionThatTheModelTakes(t *testing.T) {
	all := []model.ProviderTool{{Name: model.WebSearch}, {Name: model.CodeExecution}, {Name: model.WebFetch}}
	const before = `[{"name":"web_search","type":"web_search_20250305"},{"name":"code_execution","type":"code_execution_20250825"},{"name":"web_fetch","type":"web_fetch_20250910"}]`
	const since = `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["direct"]},{"name":"code_execution","type":"code_execution_20260521"},{"name":"web_fetch","type":"web_fetch_20260318","allowed_callers":["direct"]}]`
	for name, want := range map[string]string{
		"claude-3-7-sonnet-latest": before, "claude-haiku-4-5": before, "claude-opus-4-5": before,
		"claude-sonnet-4-6": since, "claude-haiku-5-5": since, "claude-opus-6": since, "kimi-k2": since,
	} {
		if got := toolsOf(t, name, hi(model.Settings{ProviderTools: all})); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, err := New("claude-3-5-sonnet-latest").body(hi(model.Settings{ProviderTools: all}), false); !errors.Is(err, errdefs.Validation) {
		t.Errorf("a model that has none: %v", err)
	}
}

func TestOptionsOfATool(t *testing.T) {
	one := func(options string) model.Request {
		return hi(model.Settings{ProviderTools: []model.ProviderTool{{Name: model.WebSearch, Options: json.RawMessage(options)}}})
	}
	for options, want := range map[string]string{
		``:    `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["direct"]}]`,
		`{ }`: `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["direct"]}]`,
		`{"max_uses": 3, "user_location": {"type": "approximate"}}`: `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["direct"],"max_uses":3,"user_location":{"type":"approximate"}}]`,
		`{"cache_control": {"type": "ephemeral", "ttl": "1h"}}`:     `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["direct"],"cache_control":{"type":"ephemeral","ttl":"1h"}}]`, // one mark is enough
		`{"type": "web_search_20250305"}`:                           `[{"name":"web_search","type":"web_search_20250305"}]`,
		`{"allowed_callers":["code_execution_20260521"]}`:           `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["code_execution_20260521"]}]`,
	} {
		if got := toolsOf(t, "claude-opus-5", one(options)); got != want {
			t.Errorf("%s: %s", options, got)
		}
	}
	for _, options := range []string{`[]`, `3`, `null`, `{`, `{"name":"x"}`} {
		if _, err := New("claude-opus-5").body(one(options), false); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), `"web_search"`) {
			t.Errorf("%s: %v", options, err)
		}
	}
}

func TestToolsOfTheAPIAloneCanBeChosen(t *testing.T) {
	for choice, want := range map[model.ToolChoice]string{model.ToolsAuto: ``, model.ToolsNone: `{"type":"none"}`, model.ToolsRequired: `{"type":"any"}`, model.WebSearch: `{"type":"tool","name":"web_search"}`} {
		got := toolsOf(t, "claude-opus-5", hi(model.Settings{ToolChoice: choice, ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}}))
		if got != `[{"name":"web_search","type":"web_search_20260318","allowed_callers":["direct"]}]`+want {
			t.Errorf("%q: %s", choice, got)
		}
	}
}

func TestTwoToolsOfOneNameAreRefused(t *testing.T) {
	search := model.ProviderTool{Name: model.WebSearch}
	mine := hi(model.Settings{ProviderTools: []model.ProviderTool{search}})
	mine.Tools = []model.Tool{{Name: model.WebSearch}}
	for name, req := range map[string]model.Request{"one of them ours": mine, "both the API's": hi(model.Settings{ProviderTools: []model.ProviderTool{search, search}})} {
		if _, err := New("claude-opus-5").body(req, false); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), `"web_search"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAQuestionWithToolsOfTheAPIIsCached(t *testing.T) {
	req := hi(model.Settings{ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}})
	if got := joined(t, New("claude-opus-5"), req, false); !strings.Contains(got, string(mark)) {
		t.Error(got)
	}
}

func TestStepsOfToolsOfTheAPIAreRead(t *testing.T) {
	type want struct {
		Call, Name, Input, Output string
		Sources                   []message.Citation
		IsError                   bool
	}
	for name, c := range map[string]struct {
		block string
		want  want
	}{
		"a search that failed": {
			`{"type":"web_search_tool_result","tool_use_id":"s1","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}`,
			want{Call: "s1", Name: "web_search", Output: "max_uses_exceeded", IsError: true},
		},
		"a page": {
			`{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{"type":"web_fetch_result","url":"https://a.example/","retrieved_at":null,"content":{"type":"document","title":"A","source":{"type":"text","data":"long"}}}}`,
			want{Call: "s1", Name: "web_fetch", Sources: []message.Citation{{URL: "https://a.example/", Title: "A"}}},
		},
		"a page without a title": {
			`{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{"type":"web_fetch_result","url":"https://a.example/","content":{"type":"document","title":null}}}`,
			want{Call: "s1", Name: "web_fetch", Sources: []message.Citation{{URL: "https://a.example/"}}},
		},
		"what has no error": {
			`{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{"type":"web_fetch_result","url":"https://a.example/","error_code":null,"error_message":null}}`,
			want{Call: "s1", Name: "web_fetch", Sources: []message.Citation{{URL: "https://a.example/"}}},
		},
		"code": {
			`{"type":"code_execution_tool_result","tool_use_id":"s1","content":{"type":"code_execution_result","stdout":"1","stderr":"warning","return_code":0,"content":[{"type":"code_execution_output","file_id":"f"}]}}`,
			want{Call: "s1", Name: "code_execution", Output: "1\nwarning"},
		},
		"code whose output is a secret": {
			`{"type":"code_execution_tool_result","tool_use_id":"s1","content":{"type":"encrypted_code_execution_result","encrypted_stdout":"ZW5j","stderr":"","return_code":1,"content":[]}}`,
			want{Call: "s1", Name: "code_execution", IsError: true},
		},
		"a command that could not run": {
			`{"type":"bash_code_execution_tool_result","tool_use_id":"s1","content":{"type":"bash_code_execution_tool_result_error","error_code":"container_expired","error_message":null}}`,
			want{Call: "s1", Name: "code_execution", Output: "container_expired", IsError: true},
		},
		"a file that was read": {
			`{"type":"text_editor_code_execution_tool_result","tool_use_id":"s1","content":{"type":"text_editor_code_execution_view_result","file_type":"text","content":"a\nb","num_lines":2}}`,
			want{Call: "s1", Name: "code_execution", Output: "a\nb"},
		},
		"a file that was changed": {
			`{"type":"text_editor_code_execution_tool_result","tool_use_id":"s1","content":{"type":"text_editor_code_execution_str_replace_result","lines":["-a","+b"],"old_start":1}}`,
			want{Call: "s1", Name: "code_execution", Output: "-a\n+b"},
		},
		"a file that could not be": {
			`{"type":"text_editor_code_execution_tool_result","tool_use_id":"s1","content":{"type":"text_editor_code_execution_tool_result_error","error_code":"file_not_found","error_message":"no x"}}`,
			want{Call: "s1", Name: "code_execution", Output: "file_not_found\nno x", IsError: true},
		},
		"a tool of an MCP server": {
			`{"type":"mcp_tool_use","id":"m1","name":"ask","server_name":"wiki","input":{"q":1}}`,
			want{Call: "m1", Name: "ask", Input: `{"q":1}`},
		},
		"what came of it": {
			`{"type":"mcp_tool_result","tool_use_id":"m1","is_error":true,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			want{Call: "m1", Name: "mcp", Output: "a\nb", IsError: true},
		},
		"a search for tools": {
			`{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"x"},{"type":"tool_reference","tool_name":"y"}]}}`,
			want{Call: "s1", Name: "tool_search", Output: "x\ny"},
		},
		"one of the future": {
			`{"type":"oracle_tool_result","tool_use_id":"s1","content":"yes"}`,
			want{Call: "s1", Name: "oracle", Output: "yes"},
		},
	} {
		r, err := New("m").decode([]byte(`{"type":"message","content":[` + c.block + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		streamed, _ := blocks(t, start(0, c.block))
		for _, m := range []message.Message{r.Message, streamed.Message} {
			steps := slices.Collect(message.Of[message.ProviderCall](m))
			if len(steps) != 1 || m.Len() != 1 {
				t.Fatalf("%s: %v", name, m)
			}
			s := steps[0]
			if d := cmp.Diff(c.want, want{s.Call, s.Name, s.Input, s.Output, s.Sources, s.IsError}); d != "" || s.JSON != c.block || s.Provider != provider {
				t.Errorf("%s: %s (-want +got):\n%s", name, s.JSON, d)
			}
		}
		if r.Stop == model.StopTools {
			t.Errorf("%s: it stopped for tools of ours", name)
		}
	}
}

func TestWhatCameOfACallHasItsName(t *testing.T) {
	const ask = `{"type":"mcp_tool_use","id":"m1","name":"ask","input":{}},{"type":"server_tool_use","id":"s1","name":"tool_search_tool_bm25","input":{}}`
	const came = `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{}},{"type":"mcp_tool_result","tool_use_id":"m1","content":[]}`
	r, err := New("m").decode([]byte(`{"type":"message","content":[` + ask + `,` + came + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for c := range message.Of[message.ProviderCall](r.Message) {
		got = append(got, c.Name)
	}
	if d := cmp.Diff([]string{"ask", "tool_search_tool_bm25", "tool_search_tool_bm25", "ask"}, got); d != "" {
		t.Error(d)
	}
}

func TestBlocksThatTellNoCallAreKeptAsTheyAre(t *testing.T) {
	for _, block := range []string{
		`{"type":"server_tool_use","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","content":[]}`, `{"type":"mcp_tool_result","tool_use_id":3}`,
		`{"type":"tool_result","tool_use_id":"t1","content":"x"}`, `{"type":"container_upload","file_id":"f"}`,
	} {
		r, err := New("m").decode([]byte(`{"type":"message","content":[` + block + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]message.Part{message.Opaque{Provider: provider, JSON: block}}, slices.Collect(r.Message.Parts())); d != "" {
			t.Error(d)
		}
	}
}

func TestCitationsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		list string
		want []message.Citation
	}{
		"characters of a text": {
			`[{"type":"char_location","cited_text":"A.","document_index":0,"document_title":"a.txt","start_char_index":5,"end_char_index":7}]`,
			[]message.Citation{{Title: "a.txt", Quote: "A."}},
		},
		"pages":  {`[{"type":"page_location","cited_text":"A.","document_title":null,"start_page_number":1,"end_page_number":2}]`, []message.Citation{{Quote: "A."}}},
		"blocks": {`[{"type":"content_block_location","cited_text":"A.","document_title":"t","start_block_index":0}]`, []message.Citation{{Title: "t", Quote: "A."}}},
		"a search of the API's, twice": {
			`[{"type":"web_search_result_location","cited_text":"A.","url":"https://a.example","title":"T"},{"type":"web_search_result_location","cited_text":"B.","url":"https://b.example","title":null}]`,
			[]message.Citation{{URL: "https://a.example", Title: "T", Quote: "A."}, {URL: "https://b.example", Quote: "B."}},
		},
		"a result of a search of ours": {
			`[{"type":"search_result_location","cited_text":"A.","source":"https://a.example","title":"T","search_result_index":0}]`,
			[]message.Citation{{URL: "https://a.example", Title: "T", Quote: "A."}},
		},
		"one whose source is no address": {`[{"type":"search_result_location","cited_text":"A.","source":"kb/7","title":null}]`, []message.Citation{{Title: "kb/7", Quote: "A."}}},
		"what is none":                   {`[3,"x",null,{},{"type":"char_location","start_char_index":-1e99}]`, nil},
		"a text in place of a list":      {`"x"`, nil},
	} {
		block := `{"type":"text","text":"So.","citations":` + c.list + `}`
		r, err := New("m").decode([]byte(`{"type":"message","content":[` + block + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		want := []message.Part{message.Text{Text: "So.", Citations: c.want, Origin: message.Origin{Provider: provider, Extra: `{"citations":` + c.list + `}`}}}
		if d := cmp.Diff(want, slices.Collect(r.Message.Parts())); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if back := string(encode(r.Message)); !strings.Contains(back, `"citations":`+c.list) {
			t.Errorf("%s: it goes back as %s", name, back)
		}
	}
}

func TestATextInPlaceOfCitationsIsNoneHoweverItGrows(t *testing.T) {
	r, _ := blocks(t, start(0, `{"type":"text","text":"So.","citations":"[{\"cited_text\":"}`), delta(0, `{"type":"odd_delta","citations":"\"x\"}]"}`))
	want := []message.Part{message.Text{Text: "So.", Origin: message.Origin{Provider: provider, Extra: `{"citations":"[{\"cited_text\":\"x\"}]"}`}}}
	if d := cmp.Diff(want, slices.Collect(r.Message.Parts())); d != "" {
		t.Error(d)
	}
}

// A reply may have as many lines as fit into it: each costs as much as the one before.
func TestWhatCameOfACallIsReadInOnePass(t *testing.T) {
	const lines = 400_000
	block := `{"type":"text_editor_code_execution_tool_result","tool_use_id":"s1","content":{"lines":["` + strings.Repeat(`a","`, lines-1) + `a"]}}`
	began := time.Now()
	r, err := New("m").decode([]byte(`{"type":"message","content":[` + block + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	for c := range message.Of[message.ProviderCall](r.Message) {
		if len(c.Output) != 2*lines-1 {
			t.Error(len(c.Output))
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%v", took)
	}
}

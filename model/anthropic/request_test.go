package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

var update = flag.Bool("update", false, "write the golden files")

var readTool = []model.Tool{{Name: "read", Description: "Read a file.", Schema: json.RawMessage("{\n  \"type\": \"object\",\n  \"properties\": {\"file_path\": {\"type\": \"string\"}}\n}")}}

func ptr[T any](v T) *T { return &v }

// joined gives a body as one.
func joined(t testing.TB, m *Model, req model.Request, stream bool) string {
	t.Helper()
	body, err := m.body(req, stream)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(body.Reader())
	if err != nil || int64(len(all)) != body.Len() || !json.Valid(all) {
		t.Fatalf("%d bytes, %v: %s", len(all), err, all)
	}
	return string(all)
}

func TestRequestsAreTheGoldenOnes(t *testing.T) {
	ours := func(extra string) message.Origin { return message.Origin{Provider: provider, Extra: extra} }
	for name, req := range map[string]model.Request{
		"plain": {Messages: message.NewHistory(message.User("Hi"))},
		"all_settings": {
			System: "Be brief.", Tools: readTool, Messages: message.NewHistory(message.User("Hi")),
			Settings: model.Settings{MaxTokens: 100, Temperature: ptr(1e-7), TopP: ptr(1.0), TopK: ptr(5), Stop: []string{"a", "b"}, ToolChoice: "read"},
			Output:   json.RawMessage(`{ "type": "object" }`),
		},
		"tool_round": {Tools: readTool, Messages: message.NewHistory(
			message.User("What is in go.mod?"),
			message.New(message.RoleAssistant,
				message.Reasoning{Text: "I'll read it.", Signature: "c2ln", Origin: ours("")},
				message.Opaque{Provider: provider, JSON: `{"type":"redacted_thinking","data":"cmVk"}`},
				message.Text{Text: "Let me look.", Origin: ours("")},
				message.ToolCall{ID: "toolu_1", Name: "read", Input: `{"file_path": "go.mod"}`, Origin: ours(`{"caller":{"type":"direct"}}`)},
				message.ToolCall{ID: "functions.read:2", Name: "read", Input: `{"file_pa`}),
			message.Results(
				message.ToolResult{Call: "toolu_1", Name: "read", Content: "module x"},
				message.ToolResult{Call: "functions.read:2", Name: "read", IsError: true}),
			message.User("Faster, please."),
		)},
		"files": {Messages: message.NewHistory(message.New(
			message.RoleUser, message.Text{Text: "Compare:"},
			message.File{MIME: "image/jpeg", Data: "\xff\xd8"}, message.File{MIME: "image/png", URL: "https://example.com/a.png"},
			message.File{MIME: "application/pdf", Name: "a.pdf", Data: "%PDF"}, message.File{MIME: "application/pdf", URL: "https://example.com/a.pdf"},
			message.File{MIME: "text/markdown", Name: "a.md", Data: "# A\n"},
		), message.Assistant("And?", message.ToolCall{ID: "1", Name: "shot"}), message.Results(
			message.ToolResult{Call: "1", Name: "shot", Content: "here", Files: []message.File{{MIME: "image/png", Data: "\x89PNG"}}},
		))},
		"own_parts": {Messages: message.NewHistory(
			message.User("News?"),
			message.New(message.RoleAssistant,
				message.Opaque{Provider: provider, JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"news"}}`},
				message.Opaque{Provider: provider, JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`},
				message.Text{Text: "None.", Origin: ours(`{"citations":[{"type":"web_search_result_location","url":"u"}]}`)}),
			message.New(message.RoleUser, message.Text{Text: "Thanks.", Origin: ours(`{"cache_control":{"type":"ephemeral","ttl":"1h"}}`)}),
		)},
	} {
		t.Run(name, func(t *testing.T) {
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, []byte(joined(t, New("claude-sonnet-4-5"), req, name == "plain")), "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			golden := filepath.Join("testdata", "request_"+name+".json")
			if *update {
				if err := os.WriteFile(golden, pretty.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
				t.Errorf("(-golden +now; -update writes it anew):\n%s", diff)
			}
		})
	}
}

func TestACitationGoesBackWithoutTheFileThatRequestsHaveNoPlaceFor(t *testing.T) {
	for kept, sent := range map[string]string{
		`{"citations":[{"type":"char_location","file_id":null,"cited_text":"a"},{"file_id":"f"},{}]}`: `"citations":[{"type":"char_location","cited_text":"a"},{},{}]`,
		`{"citations":[{"type":"page_location","file_id":"file_1"}],"x":1}`:                           `"citations":[{"type":"page_location"}],"x":1`,
		`{"citations":[]}`:       `"citations":[]`,
		`{"citations":[1,null]}`: `"citations":[1,null]`,
	} {
		said := message.New(message.RoleAssistant, message.Text{Text: "So.", Origin: message.Origin{Provider: provider, Extra: kept}})
		got := joined(t, New("claude-sonnet-4-5"), model.Request{Messages: message.NewHistory(message.User("Hi"), said, message.User("Go on"))}, false)
		if want := `{"type":"text","text":"So.",` + sent + `}`; !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestAMessageWithNothingToSayIsLeftOut(t *testing.T) {
	ours := message.Origin{Provider: provider}
	for name, m := range map[string]message.Message{
		"no parts":                           message.New(message.RoleUser),
		"white space":                        message.User(" \n\t"),
		"an empty assistant":                 message.Assistant(""),
		"thoughts alone":                     message.New(message.RoleAssistant, message.Reasoning{Text: "hm", Signature: "s", Origin: ours}),
		"redacted thoughts alone":            message.New(message.RoleAssistant, message.Opaque{Provider: provider, JSON: `{"data":"x","type":"redacted_thinking"}`}),
		"a thought without a signature":      message.New(message.RoleAssistant, message.Reasoning{Text: "hm", Origin: ours}),
		"a part of another provider":         message.New(message.RoleAssistant, message.Opaque{Provider: "openai", JSON: `{"type":"x"}`}),
		"a part of ours that is broken JSON": message.New(message.RoleAssistant, message.Opaque{Provider: provider, JSON: `{"type":`}),
	} {
		if b := encode(m); b != nil {
			t.Errorf("%s: %s", name, b)
		}
		m2 := New("claude-sonnet-4-5")
		if _, err := m2.body(model.Request{Messages: message.NewHistory(m)}, false); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%s alone: got %v, want an error of class validation", name, err)
		}
		got := joined(t, m2, model.Request{Messages: message.NewHistory(m, message.Message{}, message.User("Hi"), m)}, false)
		if !strings.Contains(got, `"messages":[{"role":"user","content":[{"type":"text","text":"Hi"`) || strings.Count(got, `"role"`) != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestResultsComeFirstInAUserMessage(t *testing.T) {
	got := string(encode(message.New(message.RoleUser, message.Text{Text: "b"}, message.ToolResult{Call: "1", Content: "a"})))
	if want := `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"a"},{"type":"text","text":"b"}]}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestWhatCannotBeSentIsRefusedBeforeTheCall(t *testing.T) {
	hi := message.NewHistory(message.User("Hi"))
	with := func(f message.File) model.Request {
		return model.Request{Messages: message.NewHistory(message.New(message.RoleUser, f))}
	}
	for name, req := range map[string]model.Request{
		"a file without bytes":            with(message.File{MIME: "image/png"}),
		"a text by URL":                   with(message.File{MIME: "text/plain", URL: "https://example.com"}),
		"a sound":                         with(message.File{MIME: "audio/wav", Data: "x"}),
		"a sound in a result":             {Messages: hi.Append(message.Results(message.ToolResult{Call: "1", Files: []message.File{{MIME: "audio/wav", Data: "x"}}}))},
		"a stored image in a result":      {Messages: hi.Append(message.Results(message.ToolResult{Call: "1", Files: []message.File{{MIME: "image/png", Hash: "h"}}}))},
		"an image of the model's":         {Messages: hi.Append(message.New(message.RoleAssistant, message.File{MIME: "image/png", Data: "x"}))},
		"a choice without tools":          {Messages: hi, Settings: model.Settings{ToolChoice: model.ToolsRequired}},
		"a tool with a broken schema":     {Messages: hi, Tools: []model.Tool{{Name: "a", Schema: json.RawMessage(`{"type":`)}}},
		"a tool whose schema is a list":   {Messages: hi, Tools: []model.Tool{{Name: "a", Schema: json.RawMessage(`[]`)}}},
		"a broken output schema":          {Messages: hi, Output: json.RawMessage(`{`)},
		"a temperature that is no number": {Messages: hi, Settings: model.Settings{Temperature: ptr(math.NaN())}},
		"an infinite top_p":               {Messages: hi, Settings: model.Settings{TopP: ptr(math.Inf(1))}},
	} {
		if _, err := New("claude-sonnet-4-5").body(req, false); !errors.Is(err, errdefs.Validation) || !strings.HasPrefix(err.Error(), "anthropic/claude-sonnet-4-5") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheChoiceOfNoToolNeedsNoTools(t *testing.T) {
	got := joined(t, New("claude-sonnet-4-5"), model.Request{Messages: message.NewHistory(message.User("Hi")), Settings: model.Settings{ToolChoice: model.ToolsNone}}, false)
	if strings.Contains(got, "tool_choice") {
		t.Error(got)
	}
}

// steps makes a history of n steps, each with a call and its result.
func steps(n int) message.History {
	h := message.NewHistory(message.User("Go."))
	for range n {
		h = h.Append(
			message.Assistant("Next.", message.ToolCall{ID: "c", Name: "read", Input: `{"file_path":"go.mod"}`}),
			message.Results(message.ToolResult{Call: "c", Name: "read", Content: "module x"}))
	}
	return h
}

func TestAFurtherStepEncodesOnlyTheNewMessages(t *testing.T) {
	m := New("claude-sonnet-4-5")
	req := model.Request{System: "Be brief.", Tools: readTool, Messages: steps(20), Settings: model.Settings{Temperature: ptr(0.5), Stop: []string{"x"}}}
	one, err := m.body(req, true)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = req.Messages.Append(message.Assistant("Well."), message.User("And?"))
	req.Temperature, req.Stop = ptr(0.5), []string{"x"}
	two, err := m.body(req, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range req.Messages.Len() - 2 { // one piece each, and the head before them; the last of the first step has a mark inside
		if &one[i][0] != &two[i][0] {
			t.Errorf("piece %d was made again", i)
		}
	}
	for i, msg := range req.Messages.All() {
		msg.Encoded(format{}, func(message.Message) []byte {
			t.Errorf("message %d was not kept", i)
			return nil
		})
	}
}

func TestBuildingABodyAllocatesTheSameAtAnyLength(t *testing.T) {
	m := New("claude-sonnet-4-5")
	cost := func(n int) float64 {
		req := model.Request{System: "Be brief.", Tools: readTool, Messages: steps(n), Settings: model.Settings{
			MaxTokens: 5000, Reasoning: model.ReasoningLow, ProviderTools: []model.ProviderTool{{Name: model.WebSearch, Options: json.RawMessage(`{"max_uses":3}`)}},
		}}
		return testing.AllocsPerRun(100, func() {
			if _, err := m.body(req, true); err != nil {
				t.Fatal(err)
			}
		})
	}
	if short, long := cost(2), cost(500); short != long || long > 4 {
		t.Errorf("%v allocations for a short history, %v for a long one: want the slice of pieces, and a few that don't grow", short, long)
	}
}

func TestAMessageIsEncodedInOnePiece(t *testing.T) {
	for _, msg := range []message.Message{
		message.User("a question of some length"),
		message.Assistant("Let me look.", message.ToolCall{ID: "toolu_1", Name: "read", Input: `{"path":"a.txt"}`}),
		message.Results(message.ToolResult{Call: "toolu_1", Name: "read", Content: "the content"}),
	} {
		if n := testing.AllocsPerRun(100, func() { encode(msg) }); n != 1 {
			t.Errorf("%v: %.0f allocations, want 1", msg, n)
		}
	}
}

func TestTheHeadIsMadeAgainWhenWhatItSaysChanges(t *testing.T) {
	m := New("claude-sonnet-4-5")
	base := model.Request{System: "a", Tools: readTool, Messages: steps(1), Settings: model.Settings{Temperature: ptr(0.5), Stop: []string{"x"}}, Output: json.RawMessage(`{"type":"object"}`)}
	joined(t, m, base, false)
	for name, change := range map[string]func(*model.Request){
		"system":                     func(r *model.Request) { r.System = "b" },
		"other tools":                func(r *model.Request) { r.Tools = []model.Tool{{Name: "other"}} },
		"no tools":                   func(r *model.Request) { r.Tools = nil },
		"temperature":                func(r *model.Request) { r.Temperature = ptr(0.6) },
		"the caller's own variable":  func(r *model.Request) { *r.Temperature = 0.7 },
		"no temperature":             func(r *model.Request) { r.Temperature = nil },
		"top_p":                      func(r *model.Request) { r.TopP = ptr(0.5) },
		"top_k":                      func(r *model.Request) { r.TopK = ptr(5) },
		"the stop texts":             func(r *model.Request) { r.Stop = []string{"y"} },
		"the stop texts' own array":  func(r *model.Request) { r.Stop[0] = "z" },
		"output limit":               func(r *model.Request) { r.MaxTokens = 5 },
		"tool choice":                func(r *model.Request) { r.ToolChoice = "read" },
		"reasoning":                  func(r *model.Request) { r.Reasoning, r.Temperature = model.ReasoningLow, nil },
		"no reasoning":               func(r *model.Request) { r.Reasoning = model.ReasoningNone },
		"a tool of the API":          func(r *model.Request) { r.ProviderTools = []model.ProviderTool{{Name: model.WebSearch}} },
		"the output schema":          func(r *model.Request) { r.Output = json.RawMessage(`{"type":"object","properties":{}}`) },
		"the output schema's array":  func(r *model.Request) { copy(r.Output, `{"type":"string"}`) },
		"no output schema":           func(r *model.Request) { r.Output = nil },
		"a limit that is our own":    func(r *model.Request) { r.MaxTokens = 32001 },
		"a longer list of tools":     func(r *model.Request) { r.Tools = append(r.Tools[:1:1], model.Tool{Name: "b"}) },
		"the same, as no change is ": nil,
	} {
		req := base
		req.Temperature, req.Stop, req.Output = ptr(*base.Temperature), []string{"x"}, bytes.Clone(base.Output)
		before := joined(t, m, req, false)
		if change == nil {
			continue
		}
		change(&req)
		if after := joined(t, m, req, false); after == before {
			t.Errorf("%s: nothing changed in %s", name, after)
		}
	}
}

func TestTheCacheMarkMovesWithTheEnd(t *testing.T) {
	call := func(n int) (a, b message.Message) {
		var calls []message.ToolCall
		var results []message.ToolResult
		for range n {
			calls, results = append(calls, message.ToolCall{ID: "c", Name: "read"}), append(results, message.ToolResult{Call: "c", Content: "r"})
		}
		return message.Assistant("", calls...), message.Results(results...)
	}
	few, fewBack := call(2)
	many, manyBack := call(12)
	own := message.New(message.RoleUser, message.Text{Text: "Hi", Origin: message.Origin{Provider: provider, Extra: `{"cache_control":{}}`}})
	for name, c := range map[string]struct {
		req  model.Request
		want []int // the messages that end with a mark
	}{
		"a single question has none":             {model.Request{Messages: message.NewHistory(message.User("Hi"))}, nil},
		"with tools there will be more":          {model.Request{Tools: readTool, Messages: message.NewHistory(message.User("Hi"))}, []int{0}},
		"the last results":                       {model.Request{Messages: message.NewHistory(message.User("Hi"), few, fewBack)}, []int{2}},
		"what was said after them":               {model.Request{Messages: message.NewHistory(message.User("Hi"), few, fewBack, message.User("!"))}, []int{3}},
		"before an unfinished turn":              {model.Request{Messages: message.NewHistory(message.User("Hi"), few)}, []int{0}},
		"a long step keeps the one before":       {model.Request{Messages: message.NewHistory(message.User("Hi"), few, fewBack, many, manyBack)}, []int{2, 4}},
		"a mark of the caller's own is left be":  {model.Request{Tools: readTool, Messages: message.NewHistory(own)}, nil},
		"after a provider part nothing is added": {model.Request{Tools: readTool, Messages: message.NewHistory(message.New(message.RoleUser, message.Opaque{Provider: provider, JSON: `{"type":"x"}`}))}, nil},
	} {
		var body struct {
			Messages []struct {
				Content []struct {
					Mark struct {
						Type string `json:"type"`
					} `json:"cache_control"`
				} `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal([]byte(joined(t, New("claude-sonnet-4-5"), c.req, false)), &body); err != nil {
			t.Fatal(err)
		}
		var got []int
		for i, m := range body.Messages {
			for j, b := range m.Content {
				if b.Mark.Type == "ephemeral" {
					got = append(got, i)
					if j != len(m.Content)-1 {
						t.Errorf("%s: the mark is on block %d of %d", name, j, len(m.Content))
					}
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The API caches tools, then the system prompt, then messages. What conversations share ends with a mark, if anybody will have use for it.
func TestTheHeadEndsWithACacheMark(t *testing.T) {
	own := message.New(message.RoleUser, message.Text{Text: "Hi", Origin: message.Origin{Provider: provider, Extra: `{"cache_control":{"type":"ephemeral","ttl":"1h"}}`}})
	hi, going := message.NewHistory(message.User("Hi")), message.NewHistory(message.User("Hi"), message.Assistant("Hello."), message.User("And?"))
	for name, c := range map[string]struct {
		req  model.Request
		want string // which ends
	}{
		"tools and a system prompt":      {model.Request{System: "s", Tools: readTool, Messages: hi}, "system"},
		"a system prompt":                {model.Request{System: "s", Messages: going}, "system"},
		"tools":                          {model.Request{Tools: readTool, Messages: hi}, "tool"},
		"a blank prompt is not sent":     {model.Request{System: " ", Tools: readTool, Messages: hi}, "tool"},
		"nobody will continue":           {model.Request{System: "s", Messages: hi}, ""},
		"nothing before the messages":    {model.Request{Messages: going}, ""},
		"the caller's own come first":    {model.Request{System: "s", Tools: readTool, Messages: message.NewHistory(own, message.Assistant("Hello."), message.User("And?"))}, ""},
		"wherever they are":              {model.Request{System: "s", Messages: going.Append(message.Assistant("Well."), own)}, ""},
		"as few as the API has room for": {model.Request{System: "s", Tools: readTool, Messages: longStep()}, "system"},
	} {
		t.Run(name, func(t *testing.T) {
			type marked struct {
				Mark *struct{ Type string } `json:"cache_control"`
			}
			var body struct{ System, Tools []marked }
			raw := joined(t, New("claude-sonnet-4-5"), c.req, false)
			if err := json.Unmarshal([]byte(raw), &body); err != nil {
				t.Fatal(err)
			}
			got := ""
			for kind, blocks := range map[string][]marked{"system": body.System, "tool": body.Tools} {
				for i, b := range blocks {
					if b.Mark == nil {
						continue
					}
					if got += kind; i != len(blocks)-1 || b.Mark.Type != "ephemeral" {
						t.Errorf("the mark is on %s %d of %d: %+v", kind, i, len(blocks), b.Mark)
					}
				}
			}
			if got != c.want {
				t.Errorf("the mark is at the end of %q, want %q, in %s", got, c.want, raw)
			}
			if n := strings.Count(raw, `"cache_control"`); n > 4 {
				t.Errorf("%d marks; the API takes 4", n)
			}
		})
	}
}

// What the head is made of stays the same when a single question becomes a conversation; that it is marked does not.
func TestAQuestionThatIsContinuedGetsItsMarks(t *testing.T) {
	m := New("claude-sonnet-4-5")
	req := model.Request{System: "s", Messages: message.NewHistory(message.User("Hi"))}
	one := joined(t, m, req, false)
	req.Messages = req.Messages.Append(message.Assistant("Hello."), message.User("And?"))
	if two := joined(t, m, req, false); strings.Count(one, `"cache_control"`) != 0 || strings.Count(two, `"cache_control"`) != 2 {
		t.Errorf("want no mark, and two, in\n%s\n%s", one, two)
	}
}

// longStep ends with a step of more blocks than the API looks back.
func longStep() message.History {
	h := message.NewHistory(message.User("Hi"))
	for range 2 {
		var calls []message.ToolCall
		var results []message.ToolResult
		for range 12 {
			calls, results = append(calls, message.ToolCall{ID: "c", Name: "read"}), append(results, message.ToolResult{Call: "c", Content: "r"})
		}
		h = h.Append(message.Assistant("", calls...), message.Results(results...))
	}
	return h
}

func TestIdsOfOtherProvidersAreMadeAcceptable(t *testing.T) {
	for in, want := range map[string]string{
		"toolu_01-A": `"toolu_01-A"`, "functions.read:0": `"functions_2eread_3a0"`, "": `"_"`, "é\"": `"_c3_a9_22"`,
	} {
		if got := string(wire.AppendWord(nil, in, 0)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestLimitsAndSchemasFollowTheVersionInTheName(t *testing.T) {
	for name, want := range map[string]struct {
		limit  int
		schema bool
	}{
		"claude-2.1":                                  {4096, false},
		"claude-instant-1.2":                          {4096, false},
		"claude-3-haiku-20240307":                     {4096, false},
		"claude-3-5-sonnet-20241022":                  {8192, false},
		"claude-3-7-sonnet-latest":                    {32000, false},
		"claude-opus-4-20250514":                      {32000, false},
		"claude-sonnet-4@20250514":                    {32000, false},
		"claude-opus-4-1-20250805":                    {32000, false},
		"claude-sonnet-4-5-20250929":                  {32000, true},
		"anthropic/claude-opus-4.5":                   {32000, true},
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": {32000, true},
		"claude-opus-4-6[1m]":                         {32000, true},
		"claude-sonnet-5":                             {32000, true},
		"claude-fable-5-1":                            {32000, true},
		"claude-mythos-5":                             {32000, true},
		"claude-tale-5":                               {32000, false}, // an unknown line: a tool does it everywhere
		"claude-mythos-preview":                       {8192, false},
		"kimi-k2":                                     {8192, false},
		"":                                            {8192, false},
	} {
		if f := familyOf(name); f.maxTokens != want.limit || f.schema != want.schema {
			t.Errorf("%s: %d, %v, want %v", name, f.maxTokens, f.schema, want)
		}
	}
}

package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func ptr[T any](v T) *T { return &v }

var someTools = []model.Tool{
	{Name: "read", Description: "Read a file.", Schema: json.RawMessage(`{"type": "object", "properties": {"file_path": {"type": "string"}}}`)},
	{Name: "now", Description: "The time."},
}

func signedBy(signature string) message.Origin {
	return message.Origin{Provider: provider, Extra: `{"thoughtSignature":"` + signature + `"}`}
}

// conversation has one of everything.
func conversation() message.History {
	return message.NewHistory(
		message.New(message.RoleUser, message.Text{Text: "Look:"}, message.File{MIME: "image/png", Data: "\x89PNG"}, message.File{MIME: "application/pdf", URL: "https://example.com/a.pdf"}),
		message.New(message.RoleAssistant,
			message.Reasoning{Text: "Hm.", Signature: "c2ln+/=", Origin: message.Origin{Provider: provider}},
			message.Reasoning{Text: "not ours", Signature: "x", Origin: message.Origin{Provider: "anthropic"}},
			message.Text{Text: "I see.", Origin: signedBy("dGV4dA==")},
			message.Opaque{Provider: provider, JSON: `{"executableCode":{"language":"PYTHON","code":"1"}}`},
			message.Opaque{Provider: "openai", JSON: `{"type":"alien"}`},
			message.ToolCall{ID: "x1", Name: "read", Input: `{"file_path":"go.mod"}`, Origin: message.Origin{Provider: provider, Extra: `{"thoughtSignature":"Y2FsbA==","functionCall":{"willContinue":false}}`}},
			message.ToolCall{ID: "gemini_call_2", Name: "now", Input: ``},
			message.ToolCall{ID: "x3", Name: "now", Input: `{"half`},
		),
		message.Results(
			message.ToolResult{Call: "x1", Name: "read", Content: "module x", Files: []message.File{{MIME: "image/png", Data: "PNG"}}},
			message.ToolResult{Call: "gemini_call_2", Name: "now", Content: "noon"},
			message.ToolResult{Call: "x3", Name: "now", Content: "no JSON", IsError: true},
		),
		message.User("Go on."),
	)
}

func bodyOf(t *testing.T, m *Model, req model.Request) string {
	t.Helper()
	body, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(body.Reader())
	if err != nil || !json.Valid(all) {
		t.Fatalf("%v, not JSON: %s", err, all)
	}
	return string(all)
}

func TestRequestBodiesAreAsTheyWere(t *testing.T) {
	full := model.Request{
		System: "Be \"brief\".", Messages: conversation(), Tools: someTools,
		Settings: model.Settings{MaxTokens: 100, Temperature: ptr(0.5), TopP: ptr(1e-7), TopK: ptr(3), Seed: ptr(int64(-4)), Stop: []string{"A", "\"B\""}, ToolChoice: "read"},
		Output:   json.RawMessage(`{"type": "object"}`),
	}
	for name, c := range map[string]struct {
		model string
		req   model.Request
	}{
		"request_plain":  {"gemini-2.5-flash", model.Request{Messages: message.NewHistory(message.User("Hi"))}},
		"request_full":   {"gemini-2.5-flash", full},
		"request_gemini": {"gemini-3-pro-preview", model.Request{Messages: message.NewHistory(message.User("Hi"), message.Assistant("", message.ToolCall{ID: "c1", Name: "read", Input: "{}"}, message.ToolCall{ID: "c2", Name: "now", Input: "[1]"}))}},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := json.Indent(&got, []byte(bodyOf(t, New(c.model), c.req)), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestASecondStepEncodesOnlyWhatIsNew(t *testing.T) {
	m := New("gemini-2.5-flash")
	req := model.Request{System: "s", Tools: someTools, Messages: conversation(), Settings: model.Settings{Temperature: ptr(1.0)}}
	one, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	req.Temperature = ptr(1.0) // another pointer to the same number
	req.Messages = req.Messages.Append(message.Assistant("Well."), message.User("And?"))
	two, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	if len(two) != len(one)+2 {
		t.Fatalf("%d pieces, then %d", len(one), len(two))
	}
	for i, piece := range one[:len(one)-1] {
		if &piece[0] != &two[i][0] {
			t.Errorf("piece %d was encoded again", i)
		}
	}
}

func TestBuildingABodyCostsTheSameAtAnyLength(t *testing.T) {
	allocs := func(n int) float64 {
		m := New("gemini-2.5-flash")
		h := message.NewHistory(message.User("Hi"))
		for i := range n {
			h = h.Append(message.Assistant(fmt.Sprint(i)), message.User("Go on"))
		}
		req := model.Request{System: "s", Tools: someTools, Messages: h, Settings: model.Settings{Stop: []string{"x"}}}
		return testing.AllocsPerRun(20, func() {
			if _, err := m.body(req); err != nil {
				t.Fatal(err)
			}
		})
	}
	if short, long := allocs(1), allocs(2000); short != long || long > 1 {
		t.Errorf("%v allocations with 1 turn, %v with 2000; want the slice of pieces only", short, long)
	}
}

func TestTheHeadIsMadeAnewWhenAnythingInItChanges(t *testing.T) {
	m := New("gemini-2.5-flash")
	base := model.Request{System: "s", Tools: someTools, Messages: message.NewHistory(message.User("Hi")), Settings: model.Settings{Seed: ptr(int64(1)), Stop: []string{"x"}}}
	first := bodyOf(t, m, base)
	for name, change := range map[string]func(*model.Request){
		"system":        func(r *model.Request) { r.System = "t" },
		"tools":         func(r *model.Request) { r.Tools = someTools[:1] },
		"output":        func(r *model.Request) { r.Output = json.RawMessage(`{}`) },
		"a seed":        func(r *model.Request) { r.Seed = ptr(int64(2)) },
		"no seed":       func(r *model.Request) { r.Seed = nil },
		"a stop":        func(r *model.Request) { r.Stop = []string{"y"} },
		"a tool choice": func(r *model.Request) { r.ToolChoice = model.ToolsNone },
	} {
		req := base
		change(&req)
		if bodyOf(t, m, req) == first {
			t.Errorf("%s: the old head was sent", name)
		}
		if bodyOf(t, m, base) != first {
			t.Errorf("%s: the first head doesn't come back", name)
		}
	}
	*base.Seed = 7 // the caller's own variable
	if got := bodyOf(t, m, base); !strings.Contains(got, `"seed":7`) {
		t.Errorf("a setting changed in place is not seen: %s", got)
	}
}

func TestOnlyNewerModelsGetAStandInForASignature(t *testing.T) {
	for name, want := range map[string]bool{
		"gemini-3-pro-preview": true, "gemini-3.1-flash": true, "gemini-flash-latest": true, "models/gemini-4-x": true,
		"gemini-2.5-pro": false, "gemini-1.5-flash": false, "gemma-3-27b-it": false, "tunedModels/mine": false,
	} {
		req := model.Request{Messages: message.NewHistory(message.User("Hi"), message.Assistant("", message.ToolCall{ID: "a", Name: "now"}, message.ToolCall{ID: "b", Name: "now"}))}
		if n := strings.Count(bodyOf(t, New(name), req), anySignature); (n == 1) != want || n > 1 {
			t.Errorf("%s: %d stand-ins", name, n)
		}
	}
	// A call that Gemini signed keeps its signature.
	signed := message.Assistant("", message.ToolCall{ID: "a", Name: "now", Origin: signedBy("c2ln")}, message.ToolCall{ID: "b", Name: "now"})
	got := bodyOf(t, New("gemini-3-pro"), model.Request{Messages: message.NewHistory(signed)})
	if strings.Contains(got, anySignature) || !strings.Contains(got, `"thoughtSignature":"c2ln"`) {
		t.Error(got)
	}
}

func TestWhatCannotBeSentIsRefusedBeforeTheCall(t *testing.T) {
	hi := message.NewHistory(message.User("Hi"))
	for name, req := range map[string]model.Request{
		"no message":              {},
		"messages with nothing":   {Messages: message.NewHistory(message.User(""), message.New(message.RoleAssistant))},
		"a file in the store":     {Messages: message.NewHistory(message.New(message.RoleUser, message.File{MIME: "image/png", Hash: "h"}))},
		"a result's file":         {Messages: message.NewHistory(message.Results(message.ToolResult{Call: "a", Files: []message.File{{MIME: "image/png", Hash: "h"}}}))},
		"a choice without tools":  {Messages: hi, Settings: model.Settings{ToolChoice: model.ToolsRequired}},
		"a schema that isn't":     {Messages: hi, Tools: []model.Tool{{Name: "x", Schema: json.RawMessage(`{`)}}},
		"an output that isn't":    {Messages: hi, Output: json.RawMessage(`{`)},
		"a long seed":             {Messages: hi, Settings: model.Settings{Seed: ptr(int64(math.MaxInt32 + 1))}},
		"a long negative seed":    {Messages: hi, Settings: model.Settings{Seed: ptr(int64(math.MinInt32 - 1))}},
		"a long limit":            {Messages: hi, Settings: model.Settings{MaxTokens: math.MaxInt32 + 1}},
		"a long top_k":            {Messages: hi, Settings: model.Settings{TopK: ptr(math.MaxInt32 + 1)}},
		"a temperature that's no": {Messages: hi, Settings: model.Settings{Temperature: ptr(inf())}},
	} {
		if _, err := New("gemini-2.5-flash", model.WithKey("k")).Complete(t.Context(), req); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLongestNumbersOfTheAPIAreSent(t *testing.T) {
	got := bodyOf(t, New("gemini-2.5-flash"), model.Request{
		Messages: message.NewHistory(message.User("Hi")), Settings: model.Settings{Seed: ptr(int64(math.MinInt32)), MaxTokens: math.MaxInt32},
	})
	for _, want := range []string{`"seed":-2147483648`, `"maxOutputTokens":2147483647`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func inf() float64 { var zero float64; return 1 / zero }

func TestAMessageIsEncodedInOnePiece(t *testing.T) {
	for _, msg := range []message.Message{
		message.User("a question of some length"),
		message.Assistant("Let me look.", message.ToolCall{ID: "1", Name: "read", Input: `{"path":"a.txt"}`, Origin: message.Origin{Provider: provider, Extra: `{"thoughtSignature":"x"}`}}),
		message.Results(message.ToolResult{Call: "1", Name: "read", Content: "the content"}),
	} {
		least := math.Inf(1)
		for range 20 {
			least = min(least, testing.AllocsPerRun(10, func() { encode(msg, true) }))
		}
		if least != 1 {
			t.Errorf("%v: %.1f allocations, want 1", msg, least)
		}
	}
}

package providertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// toolRound is a whole round of two calls, one of which failed.
func toolRound() message.History {
	return message.NewHistory(
		message.User("What is in go.mod?"),
		message.Assistant("Let me look.",
			message.ToolCall{ID: "call_1", Name: "read", Input: `{"file_path":"go.mod","é":[1.50,1e3,{}]}`},
			message.ToolCall{ID: "call_2", Name: "bash", Input: `{}`}),
		message.Results(
			message.ToolResult{Call: "call_1", Name: "read", Content: "module \"x\"\n"},
			message.ToolResult{Call: "call_2", Name: "bash", Content: "no such command", IsError: true}),
		message.User("Go on."),
	)
}

func wantToolRound(t *testing.T, p Provider, got Seen) {
	t.Helper()
	want := []SeenMessage{
		{"user", []SeenPart{{Kind: "text", Text: "What is in go.mod?"}}},
		{"assistant", []SeenPart{
			{Kind: "text", Text: "Let me look."},
			{Kind: "tool_call", ID: "call_1", Name: "read", Input: `{"file_path":"go.mod","é":[1.50,1e3,{}]}`},
			{Kind: "tool_call", ID: "call_2", Name: "bash", Input: `{}`},
		}},
		{"user", []SeenPart{
			{Kind: "tool_result", ID: "call_1", Name: "read", Text: "module \"x\"\n"},
			{Kind: "tool_result", ID: "call_2", Name: "bash", Text: "no such command", IsError: true},
			{Kind: "text", Text: "Go on."},
		}},
	}
	for i := range min(len(want), len(got.Messages)) {
		for j := range min(len(want[i].Parts), len(got.Messages[i].Parts)) {
			w, g := &want[i].Parts[j], &got.Messages[i].Parts[j]
			if equalJSON(w.Input, g.Input) {
				g.Input = w.Input
			}
			if p.lacks("call_ids") {
				w.ID, g.ID = "", ""
			}
			if w.Kind == "tool_result" && g.Name == "" {
				w.Name = ""
			}
			if w.IsError && p.lacks("is_error") {
				w.IsError = false
				if strings.Contains(g.Text, w.Text) {
					g.Text = w.Text
				}
			}
		}
	}
	equal(t, "messages", want, got.Messages)
}

func wantInvalidInput(t *testing.T, _ Provider, got Seen) {
	t.Helper()
	want := []string{`{"file_path":"go.m`, `[1]`}
	var n int
	for _, m := range got.Messages {
		for _, part := range m.Parts {
			if part.Kind != "tool_call" {
				continue
			}
			if n < len(want) {
				wrapped, _ := json.Marshal(map[string]string{"INVALID_JSON": want[n]})
				if part.Input != want[n] && !equalJSON(part.Input, string(wrapped)) {
					t.Errorf("call %d: input %s, want %s or %s", n, part.Input, want[n], wrapped)
				}
			}
			n++
		}
	}
	equal(t, "calls", len(want), n)
}

// wantFile looks for exactly one file in the whole conversation.
func wantFile(t *testing.T, mime, data string, got Seen) {
	t.Helper()
	var files []SeenPart
	for _, m := range got.Messages {
		for _, part := range m.Parts {
			if part.Kind == "file" {
				files = append(files, part)
			}
		}
	}
	if len(files) != 1 {
		t.Fatalf("%d files in %+v", len(files), got.Messages)
	}
	if files[0].MIME != "" {
		equal(t, "MIME", mime, files[0].MIME)
	}
	equal(t, "data", data, files[0].Data)
}

func setting(name string, s model.Settings, pick func(Seen) any, want any) request {
	return request{name, func() model.Request {
		r := hi()
		r.Settings = s
		return r
	}, func(t *testing.T, _ Provider, got Seen) {
		t.Helper()
		equal(t, name, want, pick(got))
	}}
}

func choice(name string, c model.ToolChoice, want string) request {
	return request{name, func() model.Request {
		r := hi()
		r.Tools, r.ToolChoice = tools, c
		return r
	}, func(t *testing.T, _ Provider, got Seen) {
		t.Helper()
		if got.ToolChoice == "" {
			got.ToolChoice = "auto"
		}
		equal(t, "tool choice", want, got.ToolChoice)
		equal(t, "tools", []string{"read", "bash"}, got.Tools)
	}}
}

// conversation puts messages between two of the user's.
func conversation(ms ...message.Message) model.Request {
	return model.Request{Tools: tools, Messages: message.NewHistory(message.User("Hi")).Append(ms...).Append(message.User("Go on"))}
}

func userAssistantUser(parts ...SeenPart) []SeenMessage {
	return []SeenMessage{
		{"user", []SeenPart{{Kind: "text", Text: "Hi"}}},
		{"assistant", parts},
		{"user", []SeenPart{{Kind: "text", Text: "Go on"}}},
	}
}

func file(f message.File) model.Request {
	return model.Request{Messages: message.NewHistory(message.New(message.RoleUser, message.Text{Text: "Look:"}, f))}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ptr[T any](v T) *T { return &v }

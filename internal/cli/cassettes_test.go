package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/cassettes"
)

// The recorded models ask for tools that pawl doesn't have: they are told so, and answer as they did when they had them.
func TestRunEndsWithTheRecordedAnswerOfEveryWireFormat(t *testing.T) {
	cassettes.Dir(t) // or skip it all
	for _, key := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(key, "test-key")
	}
	for _, c := range []struct{ model, base, cassette string }{
		{"anthropic/claude-sonnet-4-20250514", "", "fantasy__TestAnthropicCommon__claude-sonnet-4__multi_tool_streaming"},
		{"openai/gpt-5", "/v1", "fantasy__TestOpenAICommon__openai-gpt-5__multi_tool_streaming"},
		{"openai/gpt-4o", "/v1", "fantasy__TestOpenAICommon__openai-gpt-4o__multi_tool_streaming"},
		{"openai-responses/gpt-5", "/v1", "fantasy__TestOpenAIResponsesCommon__openai-gpt-5__multi_tool_streaming"},
		{"gemini/gemini-3-pro-preview", "/v1beta", "fantasy__TestGoogleCommon__gemini-3-pro-preview__multi_tool_streaming"},
	} {
		t.Run(c.model, func(t *testing.T) {
			exchanges := cassettes.Named(t, c.cassette).Exchanges
			s := cassettes.Serve(t, exchanges)
			var out, errs bytes.Buffer
			code := program(t.Context(), streams{strings.NewReader(""), &out, &errs}, []string{
				"run", "--json", "--model", c.model, "--base-url", s.URL + c.base,
				"--dir", t.TempDir(), "--journal", "sqlite:" + filepath.Join(t.TempDir(), "journal.db"),
				"Add and multiply the number 2 and 3",
			})
			if code != exitCompleted {
				t.Fatalf("exit %d\n%s\n%s", code, errs.Bytes(), out.Bytes())
			}
			lines := readLines(t, out.Bytes())
			last := lines[len(lines)-1]
			if last.Type != "run.finished" || last.Status != "completed" || last.Steps != 2 {
				t.Errorf("the last line is %+v", last)
			}
			want := recordedText(t, exchanges[1].ResponseBody)
			if diff := cmp.Diff(want, last.Text); diff != "" || want == "" {
				t.Errorf("the answer (-recorded +written):\n%s", diff)
			}
			heard := ""
			var failed []string
			for _, l := range lines {
				switch l.Type {
				case "text.delta":
					heard += l.Text
				case "tool.finished":
					if l.Outcome != "error" || !l.IsError {
						t.Errorf("the call was answered with %+v", l)
					}
					failed = append(failed, l.Name)
				}
			}
			if said := recordedText(t, exchanges[0].ResponseBody) + want; heard != said {
				t.Errorf("the deltas say %q, recorded is %q", heard, said)
			}
			if diff := cmp.Diff([]string{"add", "multiply"}, failed); diff != "" {
				t.Errorf("tools that pawl says it doesn't have (-want +got):\n%s", diff)
			}
			second := string(s.Requests()[1].Body)
			for _, name := range failed {
				if said := `there is no tool \"` + name + `\"`; !strings.Contains(second, said) {
					t.Errorf("the model isn't told that %s:\n%s", said, second)
				}
			}
		})
	}
}

// outLine is what the test reads of a line.
type outLine struct {
	Type, Text, Name, Outcome, Status string
	Steps                             int
	IsError                           bool `json:"is_error"`
}

func readLines(t *testing.T, out []byte) (lines []outLine) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var l outLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("not a line of JSON: %v: %s", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// recordedText joins the text deltas of an event stream of any of the wire formats.
func recordedText(t *testing.T, stream []byte) (text string) {
	t.Helper()
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || string(data) == "[DONE]" {
			continue
		}
		var e struct {
			Type       string
			Delta      json.RawMessage // Anthropic: an object; Responses: a text
			Choices    []struct{ Delta struct{ Content string } }
			Candidates []struct {
				Content struct{ Parts []struct{ Text string } }
			}
		}
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "content_block_delta":
			var delta struct{ Text string }
			_ = json.Unmarshal(e.Delta, &delta)
			text += delta.Text
		case "response.output_text.delta":
			var delta string
			_ = json.Unmarshal(e.Delta, &delta)
			text += delta
		}
		for _, c := range e.Choices {
			text += c.Delta.Content
		}
		for _, c := range e.Candidates {
			for _, p := range c.Content.Parts {
				text += p.Text
			}
		}
	}
	return text
}

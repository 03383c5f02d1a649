package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// documented is the example of the program's documentation.
const documented = `
turns:                                    # one a model call
  - text: "Let me look."                  # streamed word by word
    tool_calls:
      - {name: bash, input: {command: "echo one >> out.txt"}}
      - {id: c2, name: read, input: {file_path: go.mod}}
    usage: {input_tokens: 10, output_tokens: 5}
  - when: {tool_error: c2}                # optional: only if true of the transcript; else the entry is skipped
    text: "That failed."
  - error: {status: 529, retry_after: 1s}
  - delay: 200ms
    text: "Done."
agents:
  reviewer: {turns: [{text: "Looks right."}]}
`

func TestTheDocumentedScriptIsRead(t *testing.T) {
	got, err := Parse("demo.yaml", []byte(documented))
	if err != nil {
		t.Fatal(err)
	}
	want := &Script{
		Name: "demo.yaml",
		Turns: []Turn{
			{
				Text: "Let me look.", Usage: model.Usage{Input: 10, Output: 5},
				Calls: []Call{{Name: "bash", Input: `{"command":"echo one >> out.txt"}`}, {ID: "c2", Name: "read", Input: `{"file_path":"go.mod"}`}},
			},
			{When: When{ToolError: "c2"}, Text: "That failed."},
			{Error: &Failure{Status: 529, RetryAfter: time.Second}},
			{Delay: 200 * time.Millisecond, Text: "Done."},
		},
		Agents: map[string][]Turn{"reviewer": {{Text: "Looks right."}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if name := got.Model().Capabilities().Name; name != "scripted/demo.yaml" {
		t.Error(name)
	}
}

func TestEveryFieldIsReadFromYAMLAndFromJSON(t *testing.T) {
	want := &Script{Name: "x", Turns: []Turn{
		{
			Text: "two\nlines\n", Reasoning: "é 👋 \"/", Stop: model.StopLength, When: When{ToolOK: "a", ToolError: "b", Contains: "c"},
			Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
			Calls: []Call{{Name: "x", Input: `{"a":`}, {Name: "y"}, {Name: "z", Input: `{"z":1e3,"a":[1.50,true,null,"1"],"n":-3,"b":123456789012345678901234567890,"o":{}}`}},
		},
		{Stop: model.StopEnd},
		{Error: &Failure{Status: 503, Code: "c", Message: "m", MidStream: true, RetryAfter: 1500 * time.Millisecond}, Text: "half"},
	}}
	yaml := `
turns:
  - text: |
      two
      lines
    reasoning: "\u00e9 \U0001F44B \"/"
    stop: max_tokens
    when: {tool_ok: a, tool_error: b, contains: c}
    usage: {input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4, reasoning_tokens: 5}
    tool_calls:
      - {name: x, input: '{"a":'}
      - name: "y"
      - name: z
        input:
          z: 1e3
          a: [1.50, true, ~, "1"]
          n: -3
          b: 123456789012345678901234567890
          o: {}
  - text: ""
  - error: {status: 503, code: c, message: m, mid_stream: true, retry_after: 1.5s}
    text: half
`
	js := `{
	"turns": [
		{"text": "two\nlines\n", "reasoning": "\u00e9 \ud83d\udc4b \"\/", "stop": "max_tokens", "when": {"tool_ok": "a", "tool_error": "b", "contains": "c"},
		 "usage": {"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5},
		 "tool_calls":[{"name":"x","input":"{\"a\":"},{"name":"y"},{"name":"z","input":{"z":1e3,"a":[1.50,true,null,"1"],"n":-3,"b":123456789012345678901234567890,"o":{}}}]},
		{"text":""},
		{"error":{"status":503,"code":"c","message":"m","mid_stream":true,"retry_after":"1.5s"},"text":"half"}
	]
}`
	for name, data := range map[string]string{"YAML": yaml, "JSON": js, "CRLF": strings.ReplaceAll(yaml, "\n", "\r\n"), "BOM": "\ufeff" + yaml} {
		got, err := Parse("x", []byte(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestWhatIsWrongIsSaidWithItsLine(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"", "s.yaml:1: the script is empty: give turns, a list of entries"},
		{"# nothing\n", "s.yaml:1: the script is empty: give turns, a list of entries"},
		{"hello", "s.yaml:1: a script: a text where a mapping with agents, moves, turns has to stand"},
		{"agents: {}", "s.yaml:1: the script has no turns: give turns, a list of entries"},
		{"turns: []", "s.yaml:1: the script is empty: give at least one turn"},
		{"turns:\n", "s.yaml:1: turns: nothing where a list of entries has to stand"},
		{"turn: []", `s.yaml:1: unknown field "turn" in a script: it may have agents, moves, turns`},
		{"turns:\n  - text: a\n    txet: b", `s.yaml:3: unknown field "txet" in a turn: it may have delay, error, reasoning, stop, text, tool_calls, usage, when`},
		{"turns:\n  - text: a\n  - {}\n", `s.yaml:3: nothing to play: give text, reasoning, tool_calls, stop or error (text: "" is a blank reply)`},
		{"turns:\n  - just words\n", "s.yaml:2: a turn: a text where a mapping with"},
		{"turns:\n  - text: 42\n", "s.yaml:2: text: a number where a text (in quotes, if need be) has to stand"},
		{"turns:\n  - text:\n", "s.yaml:2: text: nothing where"},
		{"turns:\n  - text: [a]\n", "s.yaml:2: text: a list where"},
		{"turns:\n  - stop: done\n", `s.yaml:2: stop: unknown reason "done": give one of end_turn, tool_use,`},
		{"turns:\n  - text: a\n    delay: 5\n", "s.yaml:3: delay: a number where a duration such as 200ms or 1.5s has to stand"},
		{"turns:\n  - text: a\n    delay: soon\n", `s.yaml:3: delay: "soon" is no duration`},
		{"turns:\n  - text: a\n    delay: -1s\n", `s.yaml:3: delay: "-1s" is no duration`},
		{"turns:\n  - error: {status: 200}\n", "s.yaml:2: status: 200 is out of range: give 400 to 599"},
		{"turns:\n  - error: {status: '529'}\n", "s.yaml:2: status: a text where a whole number has to stand"},
		{"turns:\n  - error: {status: 529, mid_stream: yes}\n", "s.yaml:2: mid_stream: a text where true or false has to stand"},
		{"turns:\n  - error: 529\n", "s.yaml:2: error: a number where a mapping with code, message, mid_stream, retry_after, status has to stand"},
		{"turns:\n  - error: {status: 529}\n    text: a\n", "s.yaml:2: an error shows no text: leave it out or set mid_stream: true"},
		{"turns:\n  - error: {status: 529, mid_stream: true}\n", "s.yaml:2: mid_stream needs text"},
		{"turns:\n  - error: {status: 529}\n    stop: end_turn\n", "s.yaml:2: an error has no reply"},
		{"turns:\n  - text: a\n    usage: {input_tokens: -1}\n", "s.yaml:3: input_tokens: -1 is out of range"},
		{"turns:\n  - text: a\n    usage: {tokens: 1}\n", `s.yaml:3: unknown field "tokens" in usage: it may have cache_read_tokens,`},
		{"turns:\n  - text: a\n    when: {}\n", "s.yaml:3: when has no condition: give tool_error, tool_ok or contains"},
		{"turns:\n  - text: a\n    when: {tool_eror: c}\n", `s.yaml:3: unknown field "tool_eror" in when`},
		{"turns:\n  - tool_calls: [{input: {}}]\n", "s.yaml:2: a tool call has no name"},
		{"turns:\n  - tool_calls: {name: x}\n", "s.yaml:2: tool_calls: a mapping where a list of {id, name, input} has to stand"},
		{"turns:\n  - tool_calls: [{name: x, input: [1]}]\n", "s.yaml:2: input: a list where a mapping, or a text with raw JSON, has to stand"},
		{"turns:\n  - tool_calls: [{name: x, input: {a: .inf}}]\n", "s.yaml:2: input: a number where a value that JSON has has to stand"},
		{"turns:\n  - &a {text: a}\n  - *a\n", "s.yaml:2: a turn: anchors, aliases and tags are not for scripts"},
		{"turns:\n  - text: a\nturns:\n  - text: b\n", `s.yaml:3: neither YAML nor JSON: mapping key "turns" already defined`},
		{"turns: [\n", "s.yaml:1: neither YAML nor JSON: "},
		{"turns: [{text: a}]\n---\nturns: [{text: b}]\n", "s.yaml:3: a second document: a script is one"},
		{"turns: [{text: a}]\nagents: [x]\n", "s.yaml:2: agents: a list where a mapping of names to {turns: [...]} has to stand"},
		{"turns: [{text: a}]\nagents:\n  r: {}\n", `s.yaml:3: the agent "r" has no turns`},
		{"turns: [{text: a}]\nagents:\n  r:\n    turns:\n      - tex: a\n", `s.yaml:5: unknown field "tex" in a turn`},
		{strings.Repeat("[", 5001), "s.yaml: nested too deeply: stay under 5000 levels"},
		{strings.Repeat("- ", 5001), "s.yaml: nested too deeply: stay under 5000 levels"},
		{strings.Repeat("#", 1<<20+1), "s.yaml: the script is over 1 MiB: make it smaller"},
	} {
		_, err := Parse("s.yaml", []byte(c.data))
		if !errors.Is(err, errdefs.Validation) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.80q:\n got %v\nwant %s", c.data, err, c.want)
		}
	}
}

func TestLoadReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(path, []byte(`{"turns":[{"text":"hello"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil || s.Name != path || s.Turns[0].Text != "hello" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Load(path + ".not"); !errors.Is(err, errdefs.NotFound) || !strings.Contains(err.Error(), path+".not") {
		t.Error(err)
	}
	if _, err := Load(filepath.Dir(path)); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte(" "), 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), path+": the script is over 1 MiB") {
		t.Error(err)
	}
}

func genJSON(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Int().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.Just[any](nil))
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf, rapid.SliceOfN(genJSON(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.String(), genJSON(depth-1), 0, 3).AsAny())
}

func TestAJSONInputComesThroughUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOfN(rapid.String(), genJSON(2), 0, 4).Draw(t, "input")
		text := rapid.String().Draw(t, "text")
		doc := map[string]any{"turns": []any{map[string]any{"text": text, "tool_calls": []any{map[string]any{"name": "x", "input": in}}}}}
		data, err := json.MarshalIndent(doc, "", rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(in)
		s, err := Parse("x", data)
		if err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal([]byte(s.Turns[0].Calls[0].Input), &b) != nil || !cmp.Equal(a, b) || s.Turns[0].Text != text {
			t.Fatalf("text %q, input %s, want %q, %s", s.Turns[0].Text, s.Turns[0].Calls[0].Input, text, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(documented))
	f.Add([]byte(`{"turns":[{"text":"a","tool_calls":[{"name":"x","input":{"a":[1,1e3,{"b":null}]}}]}]}`))
	f.Add([]byte("turns:\n  - &a text: |\n      x\n    when: {contains: y}\n  - *a\n"))
	f.Add([]byte("turns: [{error: {status: 500, mid_stream: true}, text: a b c}]\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("x", data)
		if err != nil {
			if !errors.Is(err, errdefs.Validation) || s != nil {
				t.Fatalf("%v, %v", s, err)
			}
			return
		}
		m := s.Model()
		if m.err != nil {
			t.Fatalf("read, but not ready: %v", m.err)
		}
		for _, turn := range m.turns {
			for _, c := range turn.Calls {
				if c.Name == "" || c.ID == "" || c.Input == "" {
					t.Fatalf("%+v", c)
				}
			}
		}
		_, _ = next(m.turns, message.NewHistory(message.User("Hi"), message.Assistant("a"), message.User("b")), 1)
	})
}

func TestTheExampleOfThePackageIsAScript(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	for line := range strings.Lines(string(doc)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			example.WriteString(rest)
		}
		if strings.Contains(line, "A call without an id") {
			break
		}
	}
	s, err := Parse("doc.go", []byte(example.String()))
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Model(); m.err != nil || len(m.turns) != 4 || m.For("reviewer").err != nil || m.turns[0].Calls[1].Input != `{"file_path":"go.m` {
		t.Errorf("%+v", s)
	}
}

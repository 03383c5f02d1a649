package message_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"pgregory.net/rapid"
)

// anyText has the troublemakers.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{"", " ", "<b>&amp;</b>", "\u2028\x00\"\\", "👋é"}))
}

func anyPart() *rapid.Generator[message.Part] {
	return rapid.Custom(func(t *rapid.T) message.Part {
		text := func(name string) string { return anyText().Draw(t, name) }
		from := message.Origin{}
		if rapid.Bool().Draw(t, "from") {
			from = message.Origin{Provider: "p", Extra: rapid.SampledFrom([]string{"", `{"a":1}`, `{"b":"<"}`}).Draw(t, "extra")}
		}
		file := message.File{MIME: "image/png", Name: text("name"), Data: string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "data"))}
		cited := rapid.SampledFrom([][]message.Citation{nil, {{}}, {{URL: "https://x", Title: text("title"), Quote: text("quote")}, {Start: 2, End: 7}}}).Draw(t, "cited")
		input := rapid.SampledFrom([]string{`{}`, `{"a":[1,2.50,"<x>"]}`, `{"broken`, ``, `"text"`, `[1]`}).Draw(t, "input")
		return rapid.SampledFrom([]message.Part{
			message.Text{Text: text("text"), Origin: from},
			message.Text{Text: text("text"), Citations: cited},
			message.ProviderCall{
				Opaque: message.Opaque{Provider: "p", JSON: `{"type":"x"}`}, Call: text("id"), Name: text("n"), Input: input,
				Output: text("out"), Sources: cited, IsError: rapid.Bool().Draw(t, "error"),
			},
			message.File{MIME: "a/b", Provider: "p", ID: text("id")},
			message.Reasoning{Text: text("r"), Signature: text("sig"), Origin: from},
			file,
			message.File{MIME: "a/b", URL: text("url")},
			message.ToolCall{ID: text("id"), Name: text("n"), Input: input, Origin: from},
			message.ToolResult{Call: text("c"), Name: text("n"), Content: text("content"), IsError: true, Files: []message.File{file}},
			message.ToolResult{Call: text("c")},
			message.Opaque{Provider: "p", JSON: `{"type":"x","y":[1]}`},
		}).Draw(t, "part")
	})
}

func parts(m message.Message) (out []message.Part) {
	for p := range m.Parts() {
		out = append(out, p)
	}
	return out
}

func TestAMessageSurvivesItsOwnJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role := rapid.SampledFrom([]message.Role{message.RoleUser, message.RoleAssistant, message.RoleTool}).Draw(t, "role")
		m := message.New(role, rapid.SliceOfN(anyPart(), 0, 4).Draw(t, "parts")...)
		b := m.AppendJSON(nil)
		if !json.Valid(b) {
			t.Fatalf("not JSON: %s", b)
		}
		var again message.Message
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		if again.Role() != role {
			t.Fatal(again.Role())
		}
		if d := cmp.Diff(parts(m), parts(again)); d != "" {
			t.Fatalf("%s\n%s", b, d)
		}
		if string(again.AppendJSON(nil)) != string(b) {
			t.Fatalf("the bytes moved:\n%s\n%s", b, again.AppendJSON(nil))
		}
	})
}

func TestBadMessagesAreRefusedWithAReason(t *testing.T) {
	for name, text := range map[string]string{
		"unknown role":  `{"role":"system","parts":[]}`,
		"no role":       `{"parts":[]}`,
		"unknown part":  `{"role":"user","parts":[{"type":"hologram"}]}`,
		"bad base64":    `{"role":"user","parts":[{"type":"file","mime":"a/b","data":"%"}]}`,
		"not an array":  `{"role":"user","parts":{}}`,
		"not a part":    `{"role":"user","parts":[1]}`,
		"not a message": `[]`,
	} {
		var m message.Message
		if err := m.UnmarshalJSON([]byte(text)); !errors.Is(err, errdefs.Validation) || !m.IsZero() {
			t.Errorf("%s: %v %v", name, err, m)
		}
	}
	var m message.Message
	if err := json.Unmarshal([]byte("null"), &m); err != nil || !m.IsZero() {
		t.Error(err)
	}
	if b, _ := json.Marshal(message.Message{}); string(b) != "null" {
		t.Errorf("%s", b)
	}
}

func TestInputNestedDeeperThanReadersGoSurvives(t *testing.T) {
	for _, depth := range []int{10, maxNesting, 5000, 9999, 20000} {
		input := strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
		b := message.Assistant("", message.ToolCall{ID: "c", Name: "t", Input: input}).AppendJSON(nil)
		var again message.Message
		if err := json.Unmarshal(b, &again); err != nil || again.ToolCalls()[0].Input != input {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// maxNesting is where input begins to be written as a string.
const maxNesting = 1000

func TestAMessageInARoleThatIsNoneIsNotWritten(t *testing.T) {
	if _, err := json.Marshal(message.New("system", message.Text{Text: "x"})); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
}

func call(id string) message.ToolCall {
	return message.ToolCall{ID: id, Name: "t", Input: "{}"}
}

func result(id string) message.ToolResult {
	return message.ToolResult{Call: id, Name: "t", Content: "r" + id}
}

// shape writes a transcript as one line: u, a(calls), t(results).
func shape(h message.History) (out string) {
	for _, m := range h.All() {
		out += " " + string(m.Role()[0])
		for c := range message.Of[message.ToolCall](m) {
			out += "?" + c.ID
		}
		for r := range message.Of[message.ToolResult](m) {
			out += "!" + r.Call
			if r.IsError {
				out += "-"
			}
		}
	}
	return out
}

func TestRepairMakesATranscriptValid(t *testing.T) {
	u, a := message.User("u"), message.Assistant("a")
	as := func(ids ...string) message.Message {
		cs := make([]message.ToolCall, len(ids))
		for i, id := range ids {
			cs[i] = call(id)
		}
		return message.Assistant("", cs...)
	}
	rs := func(ids ...string) message.Message {
		out := make([]message.ToolResult, len(ids))
		for i, id := range ids {
			out[i] = result(id)
		}
		return message.Results(out...)
	}
	for name, c := range map[string]struct {
		in   []message.Message
		want string
	}{
		"a call without a result":               {[]message.Message{u, as("1")}, " u a?1 t!1-"},
		"a call without a result before a user": {[]message.Message{u, as("1"), u}, " u a?1 t!1- u"},
		"one of two results is missing":         {[]message.Message{u, as("1", "2"), rs("2")}, " u a?1?2 t!1-!2"},
		"results in another order":              {[]message.Message{u, as("1", "2"), rs("2", "1")}, " u a?1?2 t!1!2"},
		"results in two messages":               {[]message.Message{u, as("1", "2"), rs("1"), rs("2"), a}, " u a?1?2 t!1!2 a"},
		"a result twice":                        {[]message.Message{u, as("1"), rs("1", "1")}, " u a?1 t!1"},
		"a result without a call":               {[]message.Message{u, rs("9"), a}, " u a"},
		"a user between call and result":        {[]message.Message{u, as("1"), u, rs("1"), a}, " u a?1 t!1 u a"},
		"an empty assistant message":            {[]message.Message{u, message.Assistant(" "), u}, " u u"},
		"two calls of one id":                   {[]message.Message{u, as("1", "1"), rs("1")}, " u a?1 t!1"},
		"two of many calls have one id":         {[]message.Message{u, as("1", "2", "3", "4", "5", "6", "7", "8", "9", "1"), rs("1", "2", "3", "4", "5", "6", "7", "8", "9", "1")}, " u a?1?2?3?4?5?6?7?8?9 t!1!2!3!4!5!6!7!8!9"},
		"many calls":                            {[]message.Message{u, as("1", "2", "3", "4", "5", "6", "7", "8", "9"), rs("1", "2", "3", "4", "5", "6", "7", "8", "9")}, " u a?1?2?3?4?5?6?7?8?9 t!1!2!3!4!5!6!7!8!9"},
		"nothing to mend":                       {[]message.Message{u, as("1"), rs("1"), a}, " u a?1 t!1 a"},
	} {
		t.Run(name, func(t *testing.T) {
			h := message.NewHistory(c.in...)
			got := message.Repair(h)
			if shape(got) != c.want {
				t.Errorf("got %s, want %s", shape(got), c.want)
			}
		})
	}
}

func TestRepairIsIdempotentPureAndTheIdentityOnValidTranscripts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := message.History{}
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			id := func(i int) string { return rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "id") }
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				h = h.Append(message.User("u"))
			case 1:
				h = h.Append(message.Assistant(rapid.SampledFrom([]string{"", "a"}).Draw(t, "text")))
			case 2:
				h = h.Append(message.Assistant("", call(id(0)), call(id(1))))
			case 3:
				h = h.Append(message.Results(result(id(0)), result(id(1))))
			}
		}
		before := shape(h)
		once := message.Repair(h)
		if shape(h) != before {
			t.Fatal("the input was changed")
		}
		n := 0.0
		twice := message.Repair(once)
		n = testing.AllocsPerRun(1, func() { _ = message.Repair(once) })
		if n != 0 || twice.Len() != once.Len() {
			t.Fatalf("not idempotent, or %v allocations: %s, then %s", n, shape(once), shape(twice))
		}
		for i, m := range once.All() {
			if twice.At(i) != m {
				t.Fatal("a valid transcript was rewritten")
			}
		}
		var open map[string]bool
		for _, m := range once.All() {
			switch m.Role() {
			case message.RoleTool:
				for r := range message.Of[message.ToolResult](m) {
					if !open[r.Call] {
						t.Fatalf("orphan or second result in %s", shape(once))
					}
					delete(open, r.Call)
				}
			default:
				if len(open) > 0 {
					t.Fatalf("unanswered in %s", shape(once))
				}
				open = map[string]bool{}
				for c := range message.Of[message.ToolCall](m) {
					if open[c.ID] {
						t.Fatalf("two calls of one id in %s", shape(once))
					}
					open[c.ID] = true
				}
			}
		}
		if len(open) > 0 {
			t.Fatalf("unanswered at the end of %s", shape(once))
		}
	})
}

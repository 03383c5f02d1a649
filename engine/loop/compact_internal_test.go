package loop

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// transcript makes messages of letters: u a person, a the agent, c the agent with a call, r the result, s a summary, t a word of the loop's own.
func transcript(letters string) message.History {
	var h message.History
	for i, l := range letters {
		switch l {
		case 'u':
			h = h.Append(message.User("person"))
		case 'a':
			h = h.Append(message.Assistant("agent"))
		case 'c':
			h = h.Append(message.Assistant("", message.ToolCall{ID: "c", Name: "look", Input: "{}"}))
		case 'r':
			h = h.Append(message.Results(message.ToolResult{Call: "c", Name: "look", Content: "seen"}))
		case 's':
			h = h.Append(summaryMessage("before", message.NewHistory(message.Assistant("agent"))))
		case 't':
			h = h.Append(engine.Tell{Text: "go on", Why: engine.WhyContinue}.Message())
		default:
			panic(i)
		}
	}
	return h
}

func letters(h message.History) string {
	var b strings.Builder
	for _, m := range h.All() {
		switch {
		case m.Role() == message.RoleTool:
			b.WriteByte('r')
		case len(m.ToolCalls()) > 0:
			b.WriteByte('c')
		case m.Role() == message.RoleAssistant:
			b.WriteByte('a')
		case summarized(m):
			b.WriteByte('s')
		case engine.Told(m):
			b.WriteByte('t')
		default:
			b.WriteByte('u')
		}
	}
	return b.String()
}

func TestWhatIsKeptOfATranscript(t *testing.T) {
	for _, c := range []struct {
		before string
		keep   int
		after  string // without the summary; "" when nothing can be left out
	}{
		{"uauauaua", 2, "ua"},
		{"uauauaua", 3, "aua"},
		{"uacrcrcr", 2, "ucr"},   // the newest message of a person stays
		{"uacrcrcr", 3, "ucrcr"}, // no call is parted from its result
		{"uacrcrcr", 1, "ucr"},   // nor here
		{"ucrcrcrcrcr", 5, "ucrcrcr"},
		{"uauacrcrcr", 4, "ucrcr"}, // the second of two
		{"uacrcratcr", 3, "utcr"},  // the loop's own words are no person's
		{"sucrcrcr", 2, "ucr"},     // an earlier summary goes into the new one
		{"", 5, ""},
		{"u", 5, ""},
		{"uaua", 5, ""},
		{"ucr", 2, ""},
		{"sucr", 2, ""}, // there is the summary, and what it is followed by
		{"ucrc", 1, ""}, // a call without a result
		{"cr", 1, ""},
	} {
		h := transcript(c.before)
		edit, err := shorter(h, c.keep)
		if err != nil {
			if c.after != "" {
				t.Errorf("%s, %d: %v", c.before, c.keep, err)
			}
			continue
		}
		got := h.Edit(edit)
		if letters(got) != c.after {
			t.Errorf("%s, %d: %s, want %s", c.before, c.keep, letters(got), c.after)
		}
		for i := 1; i <= edit.To-edit.From; i++ { // the very same messages
			if got.At(got.Len()-i) != h.At(h.Len()-i) {
				t.Errorf("%s, %d: message %d from the end is another one", c.before, c.keep, i)
			}
		}
	}
}

func TestWhatASummaryIsMadeOfHasNoInputsAndOutputs(t *testing.T) {
	h := message.NewHistory(
		message.New(message.RoleUser, message.Text{Text: "the wish"}, message.File{MIME: "image/png", Name: "shot.png", Data: "PIXELS"}),
		message.New(message.RoleAssistant, message.Reasoning{Text: "THOUGHT"}, message.Text{Text: "I look"}, message.ToolCall{ID: "c1", Name: "bash", Input: `{"command":"INPUT"}`},
			message.Opaque{Provider: "x", JSON: `{"a":"OPAQUE"}`}),
		message.Results(message.ToolResult{Call: "c1", Name: "bash", Content: "OUTPUT", Files: []message.File{{MIME: "image/png", Data: "PIXELS"}}}),
		engine.Tell{Text: "the note", Why: engine.WhyRepeats}.Message(),
		message.Assistant("I found it"),
	)
	l := &Engine{}
	l.cfg.Compact.Window = 1000
	req := l.summarizing(h)
	want := "<conversation>\nPerson: the wish\n[a file: image/png shot.png]\n\nAgent: I look\n[used bash]\n\nNote: the note\n\nAgent: I found it\n\n</conversation>\n\nSummarize it."
	if d := cmp.Diff(want, req.Messages.At(0).Text()); d != "" {
		t.Error(d)
	}
	if req.Messages.Len() != 1 || len(req.Tools) != 0 || req.MaxTokens != summaryTokens {
		t.Errorf("%+v", req)
	}
	l.cfg.Compact.Window = 50
	if text := l.summarizing(h).Messages.At(0).Text(); !strings.Contains(text, "bytes are left out]") || !strings.Contains(text, "I found it") || len(text) > 250 {
		t.Errorf("%d: %s", len(text), text)
	}
}

func TestTheEstimateLearnsFromWhatProvidersCount(t *testing.T) {
	talk := message.NewHistory(message.User("go"))
	r := roomFor(journal.Prepared{CompactAt: 10_000, Tokens: 100}, talk)
	step := func(context int, text string) {
		talk = talk.Append(message.Assistant("ok"))
		r.replied(&journal.ModelFinished{Usage: model.Usage{Input: context}}, talk)
		talk = talk.Append(message.User(text))
	}
	text := strings.Repeat("abcd", 996) // 1,000 tokens, as it is estimated
	step(110, text)
	if r.full(talk) || r.tokens != 1110 {
		t.Errorf("%+v", r)
	}
	step(2115, text) // it was twice that
	if r.full(talk); r.factor < 1.9 || r.factor > 2.1 || r.tokens < 4000 || r.tokens > 4200 {
		t.Errorf("%+v", r)
	}
	step(9000, text)
	if !r.full(talk) {
		t.Errorf("%+v", r)
	}
}

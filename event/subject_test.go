package event_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

func TestEveryEventHasASubject(t *testing.T) {
	model, tool, scoped := journal.Key{Op: "model", ID: "2"}, journal.Key{Op: "tool", ID: "c1"}, journal.Key{Scope: "review:draft", Op: "tool", ID: "c1"}
	delta := func(run string, key journal.Key, d event.Delta) event.Event {
		e := entry(run, key, nil)
		e.Delta = d
		return e
	}
	seen := map[journal.Kind]bool{}
	for _, c := range []struct {
		e    event.Event
		want string
	}{
		{entry("", journal.Key{}, journal.SessionCreated{}), "agent.session.s.note.session.created"},
		{entry("r", journal.Key{}, journal.RunStarted{}), "agent.run.r.start"},
		{entry("r", journal.Key{}, journal.RunStarted{Attempt: 1}), "agent.run.r.start"},
		{entry("r", journal.Key{}, journal.RunStarted{Attempt: 2}), "agent.run.r.attempt"},
		{entry("r", journal.Key{}, journal.Resumed{}), "agent.run.r.start"},
		{entry("r", journal.Key{}, journal.RunFinished{}), "agent.run.r.end"},
		{entry("r", journal.Key{}, journal.Parked{}), "agent.run.r.end"},
		{delta("r", journal.Key{}, event.RunLeft), "agent.run.r.end"},
		{entry("r", journal.Key{}, journal.Said{}), "agent.run.r.note.said"},
		{entry("r", journal.Key{Op: "tell", ID: "2"}, journal.Said{}), "agent.run.r.step.-.tell.2.complete"},
		{entry("r", journal.Key{}, journal.Seeded{}), "agent.run.r.note.seeded"},
		{entry("r", journal.Key{Op: "prepare"}, journal.Prepared{}), "agent.run.r.step.-.prepare.-.complete"},
		{entry("r", model, journal.ModelStarted{}), "agent.run.r.step.-.model.2.start"},
		{entry("r", model, journal.ModelFinished{}), "agent.run.r.step.-.model.2.complete"},
		{entry("r", model, journal.ModelFailed{}), "agent.run.r.step.-.model.2.error"},
		{entry("r", journal.Key{Op: "judge", ID: "c1"}, journal.ToolJudged{}), "agent.run.r.step.-.judge.c1.complete"},
		{entry("r", journal.Key{Op: "ask", ID: "c1"}, journal.Asked{}), "agent.run.r.step.-.ask.c1.start"},
		{entry("r", journal.Key{Op: "ask", ID: "c1"}, journal.Answered{}), "agent.run.r.step.-.ask.c1.complete"},
		{entry("r", tool, journal.ToolStarted{}), "agent.run.r.step.-.tool.c1.start"},
		{entry("r", tool, journal.ToolFinished{Outcome: journal.OutcomeOK}), "agent.run.r.step.-.tool.c1.complete"},
		{entry("r", tool, journal.ToolFinished{Outcome: journal.OutcomeUnknown}), "agent.run.r.step.-.tool.c1.error"},
		{entry("r", scoped, journal.ToolStarted{}), "agent.run.r.step.review:draft.tool.c1.start"},
		{entry("r", journal.Key{Op: "again", ID: "c1/2"}, journal.ToolStarted{}), "agent.run.r.step.-.again.c1/2.start"},
		{entry("r", journal.Key{Op: "task", ID: "c1"}, journal.TaskStarted{}), "agent.run.r.step.-.task.c1.complete"},
		{entry("r", journal.CommandKey("bg-c1"), journal.CommandStarted{}), "agent.run.r.step.-.command.bg-c1.start"},
		{entry("r", journal.CommandKey("bg-c1"), journal.CommandEnded{}), "agent.run.r.step.-.command.bg-c1.complete"},
		{entry("", journal.CommandKey("bg-c1"), journal.CommandEnded{}), "agent.session.s.note.command.ended"}, // between two runs
		{entry("r", journal.Key{Op: "compact"}, journal.Compacted{}), "agent.run.r.step.-.compact.-.complete"},
		{entry("r", journal.Key{Op: "stop", ID: "1"}, journal.Stopped{}), "agent.run.r.step.-.stop.1.complete"},
		{entry("r", journal.Key{Op: "node", ID: "n"}, journal.Board{}), "agent.run.r.step.-.node.n.complete"},
		{entry("r", journal.Key{Scope: "n", Op: "visit"}, journal.Visited{}), "agent.run.r.step.n.visit.-.complete"},
		{entry("r", model, journal.Failed{}), "agent.run.r.step.-.model.2.error"},
		{entry("r", journal.Key{Scope: "n", Op: "clock", ID: "1"}, journal.Timed{}), "agent.run.r.step.n.clock.1.complete"},
		{delta("r", model, event.TextDelta), "agent.run.r.stream.-.model.2.delta"},
		{delta("r", scoped, event.ToolOutput), "agent.run.r.stream.review:draft.tool.c1.delta"},
		{delta("r", tool, event.Warning), "agent.run.r.stream.-.tool.c1.delta"},
		{delta("r", journal.Key{}, event.Warning), "agent.run.r.note.warning"},
		{delta("", model, event.Warning), "agent.session.s.note.warning"},
		{event.Event{}, "agent.session.-.note.-"},
		{entry("my run.2*", journal.Key{Op: "tool", ID: "-"}, journal.ToolStarted{}), "agent.run.my%20run%2E2%2A.step.-.tool.%2D.start"},
	} {
		if got := c.e.Subject(); got != c.want {
			t.Errorf("%s: %s, want %s", c.e.Type(), got, c.want)
		}
		if !matching(t, c.want)(c.e) {
			t.Errorf("%s does not match itself", c.want)
		}
		if c.e.Data != nil {
			seen[c.e.Data.Kind()] = true
		}
	}
	for _, k := range journal.Kinds() {
		if !seen[k] {
			t.Errorf("%s is in no row", k)
		}
	}
}

// ids are what may go wrong in a part.
var ids = rapid.OneOf(
	rapid.StringOfN(rapid.RuneFrom([]rune("ab.*>%- \t:/é2D\u00a0")), 0, 4, -1),
	rapid.SampledFrom([]string{"", "-", "--", "%2D", "%", ">", "*", ".", "start", "\xff", "\x7f", "\ufffd", "\u2028", "note"}),
	rapid.String(),
)

func TestDifferentIDsAreDifferentParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		if p := event.Part(a); p == "" || strings.ContainsAny(p, ".*> \t\n\r\x7f\u00a0\u2028") {
			t.Errorf("%q is written %q", a, p)
		}
		if a != b && event.Part(a) == event.Part(b) {
			t.Errorf("%q and %q are both %q", a, b, event.Part(a))
		}
		one := func(id string) string {
			return entry("r", journal.Key{Scope: id, Op: "tool", ID: id}, journal.ToolStarted{}).Subject()
		}
		if n := strings.Count(one(a), "."); n != 7 || a != b && one(a) == one(b) {
			t.Errorf("%q, %q", one(a), one(b))
		}
	})
}

var anyEvent = rapid.Custom(func(t *rapid.T) event.Event {
	e := entry(ids.Draw(t, "run"), journal.Key{}, nil)
	e.Session = ids.Draw(t, "session")
	if rapid.Bool().Draw(t, "keyed") {
		e.Key = journal.Key{Scope: ids.Draw(t, "scope"), Op: ids.Draw(t, "op"), ID: ids.Draw(t, "id")}
	}
	e.Data = rapid.SampledFrom([]journal.Data{
		nil, journal.RunStarted{Attempt: 1}, journal.RunStarted{Attempt: 2}, journal.RunFinished{}, journal.Said{}, journal.ToolStarted{}, journal.ToolFinished{},
	}).Draw(t, "data")
	if e.Data == nil {
		e.Delta = rapid.SampledFrom([]event.Delta{event.TextDelta, event.RunLeft, "", "..", "a b.c"}).Draw(t, "delta")
	}
	return e
})

func TestPatternsMatchAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, other := anyEvent.Draw(t, "event"), anyEvent.Draw(t, "other")
		parts := strings.Split(e.Subject(), ".")
		for i := range parts {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				parts[i] = "*"
			case 1:
				parts[i] = event.Part(ids.Draw(t, "part"))
			}
		}
		if n := rapid.IntRange(1, 2*len(parts)).Draw(t, "cut"); n < len(parts) {
			parts = append(parts[:n], rapid.SampledFrom([][]string{{">"}, {"*"}, {"-", ">"}, {}}).Draw(t, "tail")...)
		}
		pattern := strings.Join(parts, ".")
		match, err := event.Subject(pattern)
		if err != nil { // then it is one that nothing can match
			match = func(event.Event) bool { return false }
		}
		for _, e := range []event.Event{e, other} {
			if want := naive(parts, strings.Split(e.Subject(), ".")); match(e) != want {
				t.Errorf("%q matches %q: %t, want %t (%v)", pattern, e.Subject(), !want, want, err)
			}
		}
	})
}

// naive is the definition of a match.
func naive(pattern, subject []string) bool {
	switch {
	case len(pattern) == 0 || len(subject) == 0:
		return len(pattern) == len(subject)
	case pattern[0] == ">":
		return true
	}
	return (pattern[0] == "*" || pattern[0] == subject[0]) && naive(pattern[1:], subject[1:])
}

func TestWhatPatternsTake(t *testing.T) {
	started := entry("r", journal.Key{Scope: "review", Op: "tool", ID: "c1"}, journal.ToolStarted{})
	for pattern, want := range map[string]bool{
		">":                                    true,
		"agent.>":                              true,
		"*.*.*.*.*.*.*.*":                      true,
		"agent.run.*.step.>":                   true,
		"agent.run.*.step.*.tool.*.start":      true,
		"agent.run.*.step.review.>":            true,
		"agent.run.r.step.review.tool.c1.*":    true,
		"agent.run.r.step.-.>":                 false,
		"agent.run.r2.>":                       false,
		"agent.run.*.step.*.tool.*.error":      false,
		"agent.run.*.stream.>":                 false,
		"agent.run.*.*":                        false,
		"agent.run.r.step.review.tool.*.*":     true,
		"agent.run.*.step.*.*.*.start":         true,
		"agent.run.r.step.review.tool.c%2E1.*": false,
	} {
		if got := matching(t, pattern)(started); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

func TestAPatternThatIsWrongSaysWhereWhyAndWhatInstead(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                                 `event: subject "": the pattern is empty: ">" matches everything`,
		"agent..r":                         `part 2 is empty: "*" stands for`,
		"agent.run.":                       `part 3 is empty`,
		"agent.>.start":                    `part 2 is ">", which takes all that follows: leave out`,
		"agent.run.r*":                     `part 3 is "r*": an id like that is spelled "r%2A", see event.Part`,
		"agent.run.a b.end":                `part 3 is "a b": an id like that is spelled "a%20b"`,
		"agent.run.50%.end":                `part 3 is "50%", with a "%" that begins no escape: put ids through event.Part`,
		"agent.run.%41.end":                `part 3 is "%41": an id like that is spelled "A"`,
		"agent.run.a%2eb.end":              `is spelled "a%2Eb"`,
		"agent.run.%2D%2D.end":             `is spelled "--"`,
		"agents.>":                         `part 1 is "agents", and no subject has that there: want agent, see event.Event.Subject`,
		"agent.run.*.steps.>":              `part 4 is "steps", and no subject has that there: want start or attempt or end or note or step or stream`,
		"agent.run.*.step.*.ok":            `no subject ends with part 6: add ".>" for all below, or go on; want *`,
		"agent.run.*":                      `no subject ends with part 3`,
		"agent.run.r.end.x":                `part 5 is "x", and no subject has that there: want no more parts`,
		"agent.run.r.step.-.tool.c1.delta": `part 8 is "delta", and no subject has that there: want start or complete or error`,
	} {
		match, err := event.Subject(pattern)
		if match != nil || !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), pattern) == 0 {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestASubjectCostsNothingUnlessSomebodyAsks(t *testing.T) {
	match := matching(t, "agent.run.*.step.*.tool.*.start")
	e := entry("my.run", journal.Key{Scope: "a b", Op: "tool", ID: "c*"}, journal.ToolStarted{})
	note := entry("", journal.Key{}, journal.SessionCreated{})
	notes := matching(t, "agent.session.*.note.session.*")
	if n := testing.AllocsPerRun(100, func() {
		if !match(e) || match(note) || !notes(note) {
			t.Error("no match")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = e.Subject() }); n > 1 {
		t.Errorf("a subject takes %v allocations", n)
	}
}

package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
)

func TestNothingInAQuestionCanLookLikeALineOfOurs(t *testing.T) {
	t.Parallel()
	a := &asker{width: 40}
	command := `echo a\u001b[2J\u001b]0;x\u0007\rRun ls? \u202e\u200b\u009b1m` + `\n> yes\nworkdir: /` + strings.Repeat(" ", 60) + `\nRun bash?` + "\\tend"
	q := journal.Asked{Prompt: "it\x1b[31m is\nRun ls?", Call: &journal.Called{Name: "ba\x1b[0msh", Input: `{"command":"` + command + `","workdir":"é` + strings.Repeat("漢", 40) + `"}`}}
	text := a.question(q, "Edit(./a"+strings.Repeat(" ", 60)+"\nRun ls?)")
	for i, line := range strings.Split(text, "\n") {
		ours := line == `Run ba\x1b[0msh?` || line == "It is asked because:" || line == "For this session it would be:"
		if !ours && !strings.HasPrefix(line, "  | ") && !strings.HasPrefix(line, "  : ") {
			t.Errorf("line %d: %q", i, line)
		}
		if n := len([]rune(line)); n > 40 {
			t.Errorf("line %d has %d columns: the terminal would break it", i, n)
		}
	}
	if printable(text) != text {
		t.Errorf("%q", text)
	}
	for _, want := range []string{`\x1b[2J`, `\x1b]0;x\a\r`, `\u202e`, `\u200b`, `\u009b1m`, "  |   > yes", "  |   Run bash?    end", "  | workdir: é漢"} {
		if !strings.Contains(strings.ReplaceAll(text, "\n  : ", ""), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if got := escaped("a\xffb\ufffd"); got != `a\xffb`+"\ufffd" {
		t.Errorf("%q", got)
	}
}

func TestALongInputIsClippedAndItsLengthSaid(t *testing.T) {
	t.Parallel()
	a := &asker{width: 80}
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `line %d\n`, i)
	}
	text := a.question(journal.Asked{Call: &journal.Called{Name: "bash", Input: `{"command":"` + b.String() + `rm -rf x"}`}}, "")
	if n := strings.Count(text, "\n"); n > 60 || !strings.Contains(text, "line 0\n") || !strings.Contains(text, "rm -rf x\n") {
		t.Errorf("%d lines\n%s", n, text)
	}
	if !strings.Contains(text, "\n[450 lines are not shown here; all of it has 4912 characters]\n") {
		t.Error(text)
	}
}

func TestAnAnswerIsOneOfTheChoices(t *testing.T) {
	t.Parallel()
	call := journal.Asked{Call: &journal.Called{}}
	each := journal.Asked{Call: &journal.Called{}, Once: true}
	again := journal.Asked{Call: &journal.Called{}, Unknown: true}
	by := func(a journal.Answered) journal.Answered { a.By = "pawl"; return a }
	yes, no, session := by(journal.Answered{Approved: true}), by(journal.Answered{}), by(journal.Answered{Approved: true, Session: true, Rule: "r"})
	why := no
	why.Text = "too early"
	for _, c := range []struct {
		q     journal.Asked
		line  string
		want  journal.Answered
		ok    bool
		later bool
	}{
		{q: call, line: "y", want: yes, ok: true},
		{q: call, line: "Yes.", want: yes, ok: true},
		{q: call, line: "n", want: no, ok: true},
		{q: call, line: "no: too early", want: why, ok: true},
		{q: call, line: "s", want: session, ok: true},
		{q: call, line: "l", ok: true, later: true},
		{q: call, line: ""},
		{q: call, line: "y n"},
		{q: call, line: "yess"},
		{q: call, line: "nope"},
		{q: call, line: "session of mine"},
		{q: call, line: "n too early", want: why, ok: true},
		{q: again, line: "s"},
		{q: each, line: "s"},
		{q: each, line: "y", want: yes, ok: true},
		{q: again, line: "y", want: yes, ok: true},
		{q: journal.Asked{}, line: " no \n", want: by(journal.Answered{Approved: true, Text: "no"}), ok: true},
		{q: journal.Asked{}, line: "", want: by(journal.Answered{Approved: true, Text: " "}), ok: true},
	} {
		got, ok, err := understood(c.q, "r", c.line)
		if ok != c.ok || (err != nil) != c.later || ok && !c.later && got != c.want {
			t.Errorf("%q: %+v %v %v", c.line, got, ok, err)
		}
	}
}

func TestWhatIsWrittenWhileAQuestionStandsThereComesAfterIt(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	s := new(screen)
	w, words := s.writer(&b), s.writer(&b)
	fmt.Fprint(w, "1 ")
	s.hold()
	fmt.Fprint(w, "3 ")
	fmt.Fprint(words, "4 ")
	fmt.Fprint(&b, "2 ")
	s.release()
	fmt.Fprint(w, "5")
	if b.String() != "1 2 3 4 5" {
		t.Errorf("%q", b.String())
	}
}

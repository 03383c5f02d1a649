package choice_test

import (
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/choice"
)

func TestAnAnswerIsUnderstoodByItsTextAndByItsNumber(t *testing.T) {
	colours, numbers := []string{"Red", " dark blue "}, []string{"2", "1"}
	for _, c := range []struct {
		among []string
		said  string
		want  string
		ok    bool
	}{
		{colours, "red", "Red", true},
		{colours, " DARK BLUE", " dark blue ", true},
		{colours, "2.", " dark blue ", true},
		{colours, "1", "Red", true},
		{colours, "3", "", false},
		{colours, "0", "", false},
		{colours, "", "", false},
		{colours, "blue", "", false},
		{numbers, "1", "1", true}, // by itself before by its number
		{nil, " as it is ", " as it is ", true},
	} {
		if got, ok := choice.Of(c.among, c.said); got != c.want || ok != c.ok {
			t.Errorf("%q among %q: %q, %v", c.said, c.among, got, ok)
		}
	}
}

func TestChoicesDifferAndStandOnALine(t *testing.T) {
	if err := choice.Check([]string{"a", "b"}); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][]string{nil, {"a"}, {"a", "A "}, {"ſ", "s"}, {"a", " "}, {"a", "b\nc"}, {"a", "b\rc"}} {
		if err := choice.Check(wrong); !errdefs.Validation.Is(err) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

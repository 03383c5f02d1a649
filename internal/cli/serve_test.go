package cli

import (
	"strings"
	"testing"
)

func TestWhatServeIsToldWrongly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{text: "Hi."}]`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--addr", "0.0.0.0:0"}, "--addr 0.0.0.0:0: others can come there: give --token, or set PAWL_TOKEN"},
		{[]string{"--addr", "0.0.0.0:0", "--json"}, "others can come there"},
		{[]string{"--addr", "nowhere"}, "--addr nowhere: "},
		{[]string{"--token", "short"}, "a token needs 16 characters"},
		{[]string{"--token", "@" + w.dir + "/none"}, "--token @"},
		{[]string{"--origin", "chat.example"}, `origin "chat.example": want SCHEME://HOST`},
		{[]string{"--max-runs", "0"}, "--max-runs 0"},
		{[]string{"--grace", "0s"}, "--grace 0s"},
		{[]string{"x"}, "unknown command"},
	} {
		r := w.pawl(append([]string{"serve", "--model", "scripted/" + script, "--dir", w.dir, "--journal", "memory"}, c.args...)...)
		if r.code != exitUsage || !strings.Contains(r.err, c.want) || r.out != "" || strings.Contains(r.err, "serving") {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

// Where the journal can't be, as in somebody's sandbox, the error says what to give.
func TestAJournalThatCannotBeWrittenSaysWhatToGive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{text: "Hi."}]`)
	r := w.pawl("mcp", "serve", "--model", "scripted/"+script, "--dir", w.dir, "--journal", "sqlite:"+script+"/journal.db")
	if r.code != exitUsage || !strings.Contains(r.err, "--journal sqlite:PATH") || !strings.Contains(r.err, "--journal memory") {
		t.Errorf("%+v", r)
	}
}

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is approved is what is shown: a character that can't be seen makes another program's name of it.
func TestAnApprovalShowsWhatCantBeSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := w.file("s.yaml", "turns: [{text: done}]")
	for r, want := range map[rune]string{
		0x200b: `\u200b`, 0x202e: `\u202e`, 0x2066: `\u2066`, 0xa0: `\u00a0`, 0xad: `\u00ad`, 0x34f: `\u034f`, 0x3164: `\u3164`, 0x2800: `\u2800`, 0xfe0f: `\ufe0f`, 0xe0041: `\U000e0041`,
	} {
		w.file(".agents/settings.json", `{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "./check`+string(r)+`.sh"}]}]}}`)
		want = "./check" + want + ".sh"
		if r := w.pawl("trust", "--list", w.dir); !strings.Contains(r.out, want) {
			t.Errorf("trust: no %s in %s", want, r.out)
		}
		if r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "go"); !strings.Contains(r.err, want) {
			t.Errorf("run: no %s in %s", want, r.err)
		}
		if r := w.pawl("doctor", "--dir", w.dir); !strings.Contains(r.out, want) {
			t.Errorf("doctor: no %s in %s", want, r.out)
		}
	}
}

func TestACallThatWaitsShowsWhatCantBeSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{tool_calls: [{id: c, name: bash, input: {command: "./check`+"\u200b"+`.sh"}}]}, {text: done}]`)
	const want = `./check\u200b.sh`
	if r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "--session", "s", "--ask", "Bash", "--model", "scripted/"+script, "go"); r.code != exitWaiting || !strings.Contains(r.err, want) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("sessions", "show", "--journal", w.journal, "s"); !strings.Contains(r.out[strings.Index(r.out, "waiting for a person"):], want) {
		t.Errorf("%+v", r)
	}
}

//go:build unix

package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// Every command of the page for those who run it is run, in its order, on a journal with a session that is over, one of a process that died, and one that is old. While the journal is backed up somebody writes.
func TestTheCommandsInThePageOnOperationsWork(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it builds the program")
	component.Command(t, "sqlite3", "install sqlite3")
	component.Command(t, "jq", "install jq")
	path := binary(t)
	w := newWorld(t)

	state := t.TempDir()
	db := filepath.Join(state, "pawl", "journal.db")
	env := append(os.Environ(), "XDG_STATE_HOME="+state, "TMPDIR="+t.TempDir())
	slow := w.file("slow.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "echo once >> out; touch began; sleep 60"}}]}, {text: "It is done."}]`)
	long := w.file("long.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "seq 100000"}}]}, {text: "It is done."}]`)
	run := func(session, script string) *exec.Cmd {
		cmd := exec.Command(path, "run", "--dir", w.dir, "--no-sandbox", "--permission-mode", "bypassPermissions",
			"--session", session, "--model", "scripted/"+script, "go")
		cmd.Env = env
		return cmd
	}
	if out, err := run("over", long).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	older := world{t, w.dir, "sqlite:" + db}
	older.aged(map[string]time.Duration{"old": 100 * 24 * time.Hour}, "completed", nil)
	outputs, err := filepath.Glob(filepath.Join(db+".outputs", "*"))
	if err != nil || len(outputs) != 1 {
		t.Fatal(outputs, err)
	}
	stale, past := filepath.Join(outputs[0], "stale"), time.Now().Add(-100*24*time.Hour)
	if err := cmp.Or(os.WriteFile(stale, nil, 0o600), os.Chtimes(stale, past, past)); err != nil {
		t.Fatal(err)
	}
	left := run("left", slow)
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // another process can only be polled
		if _, err := os.Stat(filepath.Join(w.dir, "began")); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal("the command never ran")
		}
	}

	bin := t.TempDir()
	if err := os.Symlink(path, filepath.Join(bin, "pawl")); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page(t, "docs/operations.md"), -1)
	kill := "kill -9 $LEFT\n" // it writes while the journal is backed up, and dies before that is restored
	script := "set -euo pipefail\n"
	for i, block := range blocks {
		script += "echo '== '\n" + block[1]
		if i == 0 {
			script += "stat -c '%a' \"$BACKUP/journal.db\" 2>/dev/null || stat -f '%Lp' \"$BACKUP/journal.db\"\n" + kill + "while kill -0 $LEFT 2>/dev/null; do sleep 0.05; done\n"
		}
	}
	vacuum := regexp.MustCompile("`(sqlite3 [^`]* VACUUM)`").FindStringSubmatch(page(t, "docs/operations.md"))
	if len(blocks) != 4 || vacuum == nil {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	script += "echo '== '\n" + vacuum[1] + "\npawl sessions list\n"
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = w.dir
	cmd.Env = append(env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), fmt.Sprintf("LEFT=%d", left.Process.Pid))
	reaped := make(chan struct{})
	go func() { _ = left.Wait(); close(reaped) }() // or the script would wait for it for ever
	b, err := cmd.CombinedOutput()
	<-reaped
	out := string(b)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	sections := strings.Split(out, "== ")
	for i, want := range [][]string{
		1: {"over", "left", "old", "\n600\n"},        // the backup has what there was, and is nobody else's
		2: {"left\n"},                                // it is restored, and says what is unfinished
		3: {"It is done."},                           // which is gone on with
		4: {"old\n", "1 session would be removed\n"}, // and what is old goes
		5: {"over", "left", "completed"},
	} {
		for _, text := range want {
			if len(sections) <= i || !strings.Contains(sections[i], text) {
				t.Errorf("the commands of block %d don't print %q:\n%s", i, text, out)
			}
		}
	}
	if last := sections[len(sections)-1]; strings.Contains(last, "old ") || strings.Contains(last, "unfinished") {
		t.Errorf("in the end there are:\n%s", last)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "out")); err != nil || string(b) != "once\n" {
		t.Errorf("what had begun was done again: %q %v", b, err)
	}
	if kept, err := filepath.Glob(filepath.Join(db+".outputs", "*", "*")); err != nil || len(kept) != 1 || kept[0] == stale {
		t.Errorf("the long output is to be there, and the old one is not: %v %v", kept, err)
	}
}

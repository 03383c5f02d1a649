//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
)

func TestAConversationAtATerminal(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- text: "A **bold** word, and `+"`code`"+`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nNow the file:"
  tool_calls: [{id: w, name: write, input: {file_path: poem.txt, content: "roses\nviolets\n"}}]
  usage: {input_tokens: 100, output_tokens: 20}
- tool_calls: [{id: e, name: edit, input: {file_path: poem.txt, old_string: violets, new_string: tulips}}]
- tool_calls: [{id: b, name: bash, input: {command: "seq 1 30"}}]
- text: "It is written."
- text: "The second answer."
`, atOnce, free)
	c.sees("pawl chat · scripted/", "/help")
	c.says("hello 漢字")
	screen := c.sees("> hello 漢字", "A bold word, and code.", "• one", "• two", "a │ b", "Now the file:", "✓ write poem.txt", "✓ edit poem.txt", "-violets", "+tulips", "✓ bash seq 1 30", "… 29 more lines · Ctrl-O unfolds", "30", "It is written.", "120 tokens")
	if strings.Contains(screen, "**") || strings.Contains(screen, "\n    17\n") {
		t.Errorf("it is no Markdown, or not folded:\n%s", screen)
	}
	if styled := c.written(); !strings.Contains(styled, "\x1b[1m") {
		t.Errorf("nothing is bold: %q", styled)
	}
	c.presses("C-o")
	c.sees("▾ bash", "    17", "    30")

	c.says("/help")
	c.sees("/model [PROVIDER/NAME]", "/sessions", "/fork [SEQ]", "/cost", "/quit")
	c.says("/nothing")
	c.sees("there is no command /nothing")
	c.says("/cost")
	c.sees("its tasks included:", "4 calls · 100 tokens in · 0 from a cache · 20 out")

	other := filepath.Join(c.dir, "other.yaml")
	if err := os.WriteFile(other, []byte("turns:\n"+strings.Repeat("- text: not me\n", 4)+"- text: I am the other one.\n- text: And again.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.says("/model nobody/x")
	c.sees("✗", "nobody")
	c.says("/model scripted/" + other)
	c.sees("the model is scripted/", "from here on")
	c.says("who are you?")
	c.sees("> who are you?", "I am the other one.", "✓")

	c.says("/fork 99999")
	c.sees("/fork: ", "99999")
	number := regexp.MustCompile(`> who are you\?\n\s+#(\d+)`).FindStringSubmatch(c.screen())
	if number == nil {
		t.Fatalf("a prompt has no number:\n%s", c.screen())
	}
	c.says("/fork #" + number[1])
	c.sees("session s-fork", "> hello 漢字", "It is written.")
	c.bottom("> who are you?") // to be changed
	c.bottom("s-fork")
	c.says(" And whose?")
	c.sees("> who are you? And whose?", "I am the other one.")

	c.says("/sessions")
	c.sees("Up, Down choose")
	c.sees("s-fork", "hello 漢字")
	c.presses("Down", "Enter")
	c.sees("session s\n", "> who are you?")
	c.says("/quit")
	c.sees("go on with: pawl chat --session s ", "exit=0")
	if got := c.file("poem.txt"); got != "roses\ntulips\n" {
		t.Errorf("%q", got)
	}
	show, err := exec.Command(c.args[0], "sessions", "show", "s-fork", "--journal", c.journal).Output()
	if err != nil || strings.Count(string(show), "who are you?") != 1 || !strings.Contains(string(show), "And whose?") {
		t.Errorf("%v\n%s", err, show)
	}
}

// A model that is asked by HTTP says one thing after the other, when the test has it do so.
func TestWordsAreShownAsTheyComeAndWhatIsWaitedForToo(t *testing.T) {
	t.Parallel()
	say := make(chan string)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "2")
			http.Error(w, `{"error":{"message":"too many of you"}}`, http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for {
			select {
			case text, more := <-say:
				if !more {
					fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
					return
				}
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	c := talkTo(t, "", "--model", "openai/some-model", "--base-url", server.URL+"/v1")
	c.sees("pawl chat · openai/some-model")
	c.says("hello")
	c.sees("↻", "too many of you")
	c.bottom("trying again in ")
	c.bottom("again: 1 s")
	say <- "The first para"
	c.bottom("The first para")
	c.bottom("writing")
	say <- "graph.\n\nThe second **para"
	c.sees("The first paragraph.", "The second **para")
	c.must("resize-window", "-t", "x", "-x", "60", "-y", "20")
	c.bottom("The second **para")
	c.must("resize-window", "-t", "x", "-x", "110", "-y", "30")
	say <- "graph** ends."
	c.bottom("The second paragraph ends.")
	close(say)
	if screen := c.rests(); strings.Count(screen, "The second paragraph ends.") != 1 || strings.Count(screen, "The first paragraph.") != 1 || strings.Contains(screen, "**") || strings.Contains(screen, "writing") {
		t.Errorf("said twice, or what was not ready stayed:\n%s", screen)
	}
	c.presses("C-d")
	c.sees("exit=0")
}

func TestAToolTellsWhatItDoesWhileItWorksAndWhatIsTypedThenIsHeard(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- tool_calls: [{id: b, name: bash, input: {command: "echo a line; `+untilGo+`"}}]
- text: "I heard you."
`, atOnce, free)
	c.says("begin")
	c.sees("bash echo a line", "a line", "at work · Esc interrupts")
	c.says("and mind the gap")
	c.sees("» and mind the gap · heard before the next step")
	c.says("/model other/x")
	c.sees("not while a run is under way")
	c.makes("go")
	c.sees("✓ bash", "> and mind the gap", "I heard you.", "✓ ")
	if screen := c.rests(); strings.Count(screen, "mind the gap") != 1 {
		t.Errorf("it stands there twice:\n%s", screen)
	}
	show, err := exec.Command(c.args[0], "sessions", "show", "s", "--journal", c.journal).Output()
	if before, _, ok := strings.Cut(string(show), "I heard you."); err != nil || !ok || !strings.Contains(before, "and mind the gap") {
		t.Errorf("%v\n%s", err, show)
	}
}

func TestQuestionsAreAnsweredInPlace(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- tool_calls: [{id: c1, name: bash, input: {command: "git init one"}}]
- tool_calls: [{id: c2, name: bash, input: {command: "git init two"}}]
- tool_calls: [{id: c3, name: bash, input: {command: "git init three"}}]
- tool_calls: [{id: c4, name: bash, input: {command: "git init four"}}]
- tool_calls: [{id: c5, name: bash, input: {command: "git init four"}}]
- tool_calls: [{id: q, name: ask_user, input: {question: "Which colour?", type: select, options: [{label: red}, {label: blue}]}}]
- tool_calls: [{id: c6, name: bash, input: {command: "git init six"}}]
- text: "All asked."
- text: "Later, then."
`, atOnce)
	c.says("begin")
	c.sees("? run bash", "| command: git init one", "commands run without a sandbox")
	c.ready()
	c.types("y")
	c.sees("→ yes", "✓ bash git init one", "| command: git init two")
	c.ready()
	c.types("n")
	c.bottom("why not?")
	c.says("use another name")
	c.sees("→ no: use another name", "| command: git init three")
	c.ready()
	c.types("e")
	c.sees(`> {`, `"command": "git init three"`)
	c.presses("C-u", "BSpace", "C-u", "BSpace", "C-u")
	c.says("no json")
	c.bottom("that is no JSON object")
	c.presses("C-u")
	c.says(`{"command": "git init edited"}`)
	c.sees("→ yes, with another input:", "✓ bash git init edited", "| command: git init four")
	c.ready()
	c.types("a")
	c.sees("this very call for the session", "✓ bash git init four", "✓ bash git init four", "Which colour?", "red", "blue")
	c.bottom("Enter answers")
	c.says("2")
	c.sees("✓ ask_user", "blue", "| command: git init six")
	c.ready()
	c.types("l")
	c.sees("it waits for an answer · Enter asks again")
	for _, once := range []string{"| Which colour?", "| command: git init one", "| command: git init six"} {
		if screen := c.screen(); strings.Count(screen, once) != 1 {
			t.Errorf("%q does not stand there once:\n%s", once, screen)
		}
	}
	for name, want := range map[string]bool{"one": true, "two": false, "three": false, "edited": true, "four": true, "six": false} {
		if _, err := os.Stat(filepath.Join(c.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.presses("C-d")
	c.sees("waiting for a person:", "pawl approve s", "exit=3")
	c.begin(c.args...)
	c.sees("its run waits for 1 answer · Enter asks again")
	c.presses("Enter")
	c.sees("· goes on", "| command: git init six")
	c.ready()
	c.types("y")
	c.sees("· goes on", "✓ bash git init six", "All asked.")
}

// A call is approved with its like, for the session: the next one is not asked about, and one that is not its like is.
func TestACallIsApprovedWithItsLike(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- tool_calls: [{id: c1, name: bash, input: {command: "git init one"}}]
- tool_calls: [{id: c2, name: bash, input: {command: "git init two"}}]
- tool_calls: [{id: c3, name: bash, input: {command: "touch three"}}]
- text: "Done."
- tool_calls: [{id: c4, name: bash, input: {command: "git init four"}}]
- text: "Done again."
`, atOnce)
	c.says("begin")
	c.sees("? run bash", "| command: git init one")
	c.ready()
	c.bottom("[r] for the session Bash(git init:*)")
	c.types("r")
	c.sees("→ yes, and for the session Bash(git init:*)", "✓ bash git init one", "✓ bash git init two", "| command: touch three")
	c.ready()
	c.types("y")
	c.sees("✓ bash touch three", "Done.")
	c.rests()
	c.presses("C-d")
	c.sees("exit=0")
	c.begin(c.args...) // it is on record
	c.says("again")
	screen := c.sees("> again", "✓ bash git init four", "Done again.")
	if strings.Count(screen, "? run bash") != 2 {
		t.Errorf("it was asked:\n%s", screen)
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		if _, err := os.Stat(filepath.Join(c.dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// Who comes to a session that another process drives sees what that does, and is heard by its run; or, if he wants to, waits for the session.
func TestASecondConversationJoinsOrWaits(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- tool_calls: [{id: b, name: bash, input: {command: "`+untilGo+`"}}]
- text: "The first answer."
- tool_calls: [{id: b2, name: bash, input: {command: "until [ -f on ]; do sleep 0.02; done; echo went on"}}]
- text: "The second answer."
- text: "The third answer."
- text: "The fourth answer."
`, atOnce, free)
	c.says("begin")
	c.sees("bash until")
	d := c.another()
	d.sees("session s", "> begin", "! another process is at work in this session")
	d.says("me too")
	d.bottom("» me too · heard before the next step")
	d.bottom("in another process")
	d.presses("Escape")
	d.bottom("it is interrupted there")
	c.makes("go")
	c.sees("✓ bash", "The first answer.", "> me too", "✓ ") // whom others tell something knows it by what heard it
	d.sees("✓ bash", "> me too", "The first answer.")
	screen := d.rested()
	if strings.Count(screen, "> begin") != 1 || strings.Count(screen, "me too") != 1 || strings.Contains(screen, "driver") {
		t.Errorf("it stands there twice, or in words of nobody's:\n%s", screen)
	}
	c.says("again")
	c.sees("bash until [ -f on ]")
	d.types("and I") // while nothing was watched
	d.presses("Enter")
	d.sees("> again", "» and I · heard before the next step")
	w := c.another("--wait")
	w.sees("! another process is at work in this session")
	w.says("and he")
	w.sees("! waiting for the session: another process drives it")
	w.bottom("waiting for the session: 2 s · Esc interrupts")
	w.bottom("» and he · as soon as it can begin")
	c.makes("on")
	c.sees("The second answer.", "> and I")
	d.sees("> and I", "The second answer.")
	w.sees("> and he", "The third answer.", "✓ ")
	if screen := w.rests(); strings.Contains(screen, "Esc interrupts") || strings.Count(screen, "waiting for the session") != 1 || strings.Count(screen, "and he") != 1 {
		t.Errorf("it still waits:\n%s", screen)
	}
	d.presses("C-d")
	d.sees("exit=0")
	show, err := exec.Command(c.args[0], "sessions", "show", "s", "--journal", c.journal).Output()
	rest := string(show)
	for _, text := range []string{"me too", "The first answer.", "and I", "The second answer.", "and he", "The third answer."} {
		_, after, ok := strings.Cut(rest, text)
		if rest = after; !ok {
			t.Errorf("%q is not in its place: %v\n%s", text, err, show)
		}
	}
}

// A summary of the transcript takes its time, and a person sees that it does, and what came of it.
func TestACompactionIsSeen(t *testing.T) {
	t.Parallel()
	summarize := make(chan struct{})
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Stream bool }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		said, usage := `"content":"Said."`, 100
		switch n := asked.Add(1); {
		case n < 5:
			said = fmt.Sprintf(`"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"bash","arguments":"{\"command\":\"seq %d 900\"}"}}]`, n, n)
			if usage = 1000; n == 4 { // more than there is room for
				usage = 1_000_000
			}
		case n == 5:
			select {
			case <-summarize:
			case <-r.Context().Done():
				return
			}
			said = `"content":"Numbers were counted."`
		}
		end := "stop"
		if strings.HasPrefix(said, `"tool`) {
			end = "tool_calls"
		}
		tokens := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":10,"total_tokens":%d}`, usage, usage+10)
		if !in.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":%q}],%s}`, said, end, tokens)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%q}]}\n\ndata: {\"choices\":[],%s}\n\ndata: [DONE]\n\n", said, end, tokens)
	}))
	t.Cleanup(server.Close)
	c := talkTo(t, "", "--model", "openai/gpt-5", "--base-url", server.URL+"/v1", atOnce, free)
	c.says("count")
	c.bottom("waiting for a summary of the transcript: 2 s · Esc interrupts")
	close(summarize)
	c.sees("✓ bash seq 4 900", "≈ compacted: ", "tokens are some", "the last 6 messages stay as they are", "Said.", "✓ ")
	if screen := c.rests(); strings.Contains(screen, "waiting for a summary") || strings.Contains(screen, "Numbers were counted.") {
		t.Errorf("it still waits, or the summary is told as an answer:\n%s", screen)
	}
}

// What stood at the bottom and was higher than what stands there now leaves nothing, on the screen and above it.
func TestNothingOfWhatWasHigherStays(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- tool_calls: [{id: c1, name: bash, input: {command: "git init one", description: "a\nb"}}]
- text: "Done."
`, atOnce)
	c.sees("/help", "\n>")
	c.must("resize-window", "-t", "x", "-x", "90", "-y", "14")
	c.types("aaa")
	c.presses("C-j")
	c.types("bbb")
	c.presses("C-j")
	c.types("ccc")
	c.presses("Enter")
	c.sees("? run bash", "| command: git init one")
	c.ready()
	for range 3 {
		c.types("e")
		c.bottom("the input that it is to run with")
		c.presses("Escape")
		c.bottom("[y]es")
	}
	c.types("e")
	c.bottom("the input that it is to run with")
	for range 4 {
		c.presses("C-j")
	}
	c.types("zzz")
	c.presses("Enter")
	c.sees("that is no JSON object", "zzz")
	c.presses("Escape")
	c.bottom("[y]es")
	c.types("e")
	c.bottom("the input that it is to run with")
	c.presses("C-e", "C-j", "C-j", "C-j", "Enter")
	c.sees("→ yes, with another input:", "✓ bash git init one", "Done.")
	c.rests()
	c.presses("Up")
	c.bottom("  ccc")
	c.presses("Down")
	c.bottom("\n>\n")
	c.presses("Up")
	c.bottom("  ccc")
	c.presses("C-c")
	c.bottom("\n>\n")
	screen := c.screen()
	for text, times := range map[string]int{"aaa": 1, "ccc": 1, "zzz": 0, "no JSON": 0, "waits for your answer": 0, "the input that": 0, "[y]es": 0, "\n> ": 1, "scripted/": 2, "\n>": 2, "{": 1, "}": 1} {
		if n := strings.Count(screen, text); n != times {
			t.Errorf("%q stands there %d times, want %d", text, n, times)
		}
	}
	if t.Failed() {
		t.Log(screen)
	}
}

// What a person typed before the question could be read is no answer to it, and is there again when it is answered.
func TestWhatIsTypedIsNoAnswerToAQuestionThatComesUp(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- delay: 1s
  tool_calls: [{id: c1, name: bash, input: {command: "git init one"}}]
- text: "Done."
`, atOnce)
	c.says("begin")
	for range 25 { // a person who types on
		c.types("y")
	}
	c.sees("? run bash")
	for range 5 {
		c.types("y")
	}
	c.ready()
	if _, err := os.Stat(filepath.Join(c.dir, "one")); err == nil {
		t.Errorf("what was typed before the question answered it:\n%s", c.screen())
	}
	c.types("y")
	c.sees("→ yes", "Done.")
	c.bottom("> yyyyy")
}

func TestARunIsInterruptedAndGoesOnAndIsStoppedAtOnce(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- tool_calls: [{id: b, name: bash, input: {command: "echo once >> out; `+untilGo+`"}}]
- text: "It went on."
- tool_calls: [{id: d, name: bash, input: {command: "sleep 1000"}}]
- text: "Still here."
`, atOnce, free)
	c.says("begin")
	c.sees("bash echo once")
	c.presses("Escape")
	c.bottom("stops behind this step")
	c.makes("go")
	c.sees("✓ bash", "Enter goes on")
	c.bottom("unfinished: Enter goes on")
	c.presses("Enter")
	c.sees("· goes on", "It went on.", "✓ ")
	if got := c.file("out"); got != "once\n" {
		t.Errorf("%q", got)
	}
	c.says("again")
	c.sees("bash sleep 1000")
	c.presses("C-c")
	c.bottom("stops behind this step")
	c.says("and mind me")
	c.bottom("» and mind me · heard before the next step")
	c.onRecord("and mind me")
	c.presses("C-c")
	c.sees("· canceled: what was done is kept", "· not heard yet, the next run hears it: and mind me")
	c.says("are you there?")
	c.sees("> are you there?", "> and mind me", "Still here.", "✓ ")
	if screen := c.rests(); strings.Contains(screen, "the run canceled") || strings.Count(screen, "> and mind me") != 1 {
		t.Errorf("it is told twice:\n%s", screen)
	}
	c.types("some words")
	c.bottom("> some words")
	c.presses("C-c") // takes away what is typed, and nothing else
	c.presses("C-c")
	c.bottom("Ctrl-C again leaves")
	c.presses("C-c")
	c.sees("go on with: pawl chat --session s ", "exit=0")
}

func TestAConversationWhoseProcessIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns:
- text: "I begin."
  tool_calls: [{id: a, name: bash, input: {command: "echo one >> out"}}]
- tool_calls: [{id: b, name: bash, input: {command: "echo two >> out; `+untilGo+`"}}]
- text: "It is done."
`, atOnce, free)
	c.says("begin")
	c.sees("I begin.", "✓ bash echo one", "bash echo two")
	for end := time.Now().Add(20 * time.Second); c.file("out") != "one\ntwo\n" && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	b, err := os.ReadFile(c.pidFile())
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.sees("exit=137")
	c.begin(c.args...)
	c.sees("session s\n", "> begin", "I begin.", "✓ bash echo one", "its run was not finished · Enter goes on with it")
	c.presses("Enter")
	c.sees("· goes on", "It is done.", "✓ ")
	screen := c.rests()
	if got := c.file("out"); got != "one\ntwo\n" {
		t.Errorf("done twice: %q", got)
	}
	for _, once := range []string{"> begin", "I begin.", "✓ bash echo one", "It is done."} {
		if strings.Count(screen, once) != 1 {
			t.Errorf("%q stands there %d times:\n%s", once, strings.Count(screen, once), screen)
		}
	}
}

// hostile has what would steer a terminal: titles, the clipboard, colours, clearing, controls of eight bits, order of writing.
const hostile = "\x1b]0;EVIL\x07 \x1b]52;c;RVZJTA==\x07 \x1b[5;7mEVIL \u009b31mEVIL \u0085EVIL \x1bcEVIL \u202eEVIL \rEVIL \x1b[3JEVIL"

func TestNothingThatOthersWroteSteersTheTerminal(t *testing.T) {
	t.Parallel()
	text := strconv.QuoteToASCII(hostile) // YAML reads these escapes
	text = strings.ReplaceAll(text, `\u202e`, `\u202E`)
	c := talkTo(t, `turns:
- text: `+text+`
  tool_calls: [{id: a, name: bash, input: {command: "cat nasty; touch \"$(cat nasty)\" && ls -N; seq 9; sleep 1.2; cat nasty >&2; exit 3"}}]
- tool_calls: [{id: c, name: `+text+`, input: {`+text+`: `+text+`}}]
- tool_calls: [{id: q, name: ask_user, input: {question: `+text+`}}]
- text: "SURVIVED"
`, atOnce, free)
	if err := os.WriteFile(filepath.Join(c.dir, "nasty"), []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	c.sees("pawl chat")
	c.says("begin")
	c.sees("EVIL", "✗ bash", "the agent asks", "EVIL")
	c.bottom("Enter answers")
	c.presses("C-o")
	c.sees("▾", "EVIL")
	c.says("fine")
	c.sees("SURVIVED")
	c.presses("C-d")
	c.sees("exit=0")
	c.begin(c.args...) // and as it is read again
	c.sees("SURVIVED")
	first := c.written()
	for _, bad := range []string{"\x1b]0;EVIL", "\x1b]52", "\x1b[5;7m", "\u009b", "\u0085", "\x1bcEVIL", "\u202e", "\x1b[3JEVIL"} {
		if strings.Contains(first, bad) {
			t.Errorf("%q reached the terminal", bad)
		}
	}
}

func TestColoursAreLeftOutWhereNobodyWantsThem(t *testing.T) {
	t.Parallel()
	c := talkTo(t, "turns:\n- text: \"A **bold** word.\"\n  tool_calls: [{id: a, name: bash, input: {command: 'exit 3'}}]\n- text: Done.\n", atOnce, free)
	c.begin(append([]string{"env", "NO_COLOR=1"}, c.args...)...)
	c.says("begin")
	c.sees("A **bold** word.", "✗ bash exit 3", "Done.", "✓ ")
	for _, sgr := range regexp.MustCompile(`\x1b\[[0-9;:]*m`).FindAllString(c.written(), -1) {
		if strings.Trim(sgr, "\x1b[0;m") != "" {
			t.Errorf("%q", sgr)
		}
	}
}

func TestAPersonIsToldWhatTakesTime(t *testing.T) {
	t.Parallel()
	c := talkTo(t, "turns: [{text: hi}]")
	c.begin(append(c.args, "--mcp", "slow=sleep 100")...)
	c.bottom("the MCP server slow starts: 1 s")
	c.presses("C-c")
	c.sees("exit=130")
}

func TestALongConversationIsOpenAtOnceAndScrolls(t *testing.T) {
	t.Parallel()
	c := talkTo(t, "turns:\n- text: \""+strings.Repeat(`word word word word word word word word\n\n`, 3000)+"END\"\n- text: Again.\n", atOnce, free)
	c.says("begin")
	c.sees("END", "✓ ")
	if n := strings.Count(c.screen(), "word word word word"); n != 3000 && n < 1900 { // tmux keeps some 2,000 lines
		t.Errorf("%d lines of 3000", n)
	}
	if n := strings.Count(strings.ReplaceAll(c.written(), "\r", ""), "word word word word word word word word"); n < 3000 || n > 3300 {
		t.Errorf("%d lines were written for 3000: each is to be written once", n)
	}
	c.says("again")
	c.sees("> again", "Again.")
	c.begin(c.args...)
	c.sees("the last of it; all: pawl sessions show", "END", "> again", "Again.")
}

func TestChatNeedsATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if r := w.pawl("chat", "--dir", w.dir, "--journal", w.journal); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "use pawl run") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("chat", "hello"); r.code != exitUsage || !strings.Contains(r.err, `use pawl run "hello"`) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("chat", "--json"); r.code != exitUsage || !strings.Contains(r.err, "pawl run --json") {
		t.Errorf("%+v", r)
	}
	c := talkTo(t, "turns: [{text: hi}]")
	c.begin(append([]string{"env", "TERM=dumb"}, c.args...)...)
	c.sees("can move its cursor", "use pawl run", "exit=2")
	c.begin(append(c.args, "--model", "nobody/x")...)
	c.sees("nobody", "exit=2")
}

// What is gone on with from another directory says so, and runs where it was begun or not at all.
func TestAConversationSaysWhereItIsWhenThatIsNotWhereThePersonIs(t *testing.T) {
	t.Parallel()
	c := talkTo(t, `turns: [{text: "It is done."}]`, atOnce)
	c.sees("a new session: s")
	there := t.TempDir()
	store, err := sqlite.Open(strings.TrimPrefix(c.journal, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	err = store.Append(t.Context(), "left", 0, journal.Entry{Data: journal.SessionCreated{}},
		journal.Entry{Run: "r", Data: journal.RunStarted{Agent: programAgent, Owner: "gone", Attempt: 1, Dir: there}}, journal.Entry{Run: "r", Data: journal.Said{Message: message.User("begin")}})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	chat := []string{c.args[0], "chat", "--journal", c.journal, "--session", "left", "--model", "scripted/" + filepath.Join(c.dir, "script.yaml")}
	plain := func() string { return strings.Join(strings.Fields(c.screen()), "") }
	c.begin(append(chat, "--dir", c.dir)...)
	c.sees("session left", "its run was not finished in", "pawl resume left", "closes it")
	if screen := plain(); !strings.Contains(screen, there) || !strings.Contains(screen, "isin"+c.dir) || strings.Contains(screen, "Entergoeson") {
		t.Errorf("it says %s", screen)
	}
	c.presses("Enter")
	c.sees("closes it", "closes it")
	c.begin(chat...)
	c.sees("the unfinished run of session left", "session left", "Enter goes on")
	if screen := plain(); !strings.Contains(screen, "worksin"+there) || !strings.Contains(screen, "notin"+c.dir) {
		t.Errorf("it says %s", screen)
	}
	c.presses("Enter")
	c.sees("· goes on", "It is done.", "✓ ")
}

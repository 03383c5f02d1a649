//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// Every command of the page on serving is run, in its order, against a server.
func TestTheCommandsInThePageOnServingWork(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it builds the program")
	component.Command(t, "curl", "install curl 7.82 or later")
	component.Command(t, "jq", "install jq")
	path := binary(t)
	w := newWorld(t)
	script := w.file("script.yaml", `
turns:
  - when: {contains: "Write"}
    tool_calls: [{id: w1, name: write, input: {file_path: note.md, content: "Milk."}}]
  - when: {contains: "while"}
    delay: 1s
    tool_calls: [{id: g1, name: glob, input: {pattern: "*.md"}}]
  - when: {contains: "long"}
    delay: 5m
    text: "Never."
  - text: "It is five."
  - text: "It is six."
  - text: "It is eight."
`)
	s := serves(t, path, nil, "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--no-sandbox", "--ask", "Write")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page(t, "docs/serve.md"), -1)
	var out strings.Builder
	curls := 0
	for _, block := range blocks {
		if strings.HasPrefix(block[1], "pawl serve") {
			continue
		}
		curls += strings.Count(block[1], "curl ")
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", strings.ReplaceAll(block[1], "http://127.0.0.1:7295", s.url))
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s\n%s", err, block[1], b, s.err.String())
		}
		out.Write(b)
	}
	if strings.Contains(page(t, "docs/serve.md"), "```text\ncurl") || curls < 20 {
		t.Errorf("%d commands were run", curls)
	}
	at := 0
	for _, want := range []string{
		"It is five.\n", `"run":"six"`, "true\n", "text.delta", "It is six.", `"kind":"run.finished"`, `"prompt": `, `"name": "write"`, "run.finished",
		`"session":"look"`, "interrupted\n", "completed\n", "canceled\n", "It is eight.\n", "others\n", "session.created\n", "pawl\n", "It is five.\n", "data: [DONE]", `"type":"success"`, "TOOL_CALL_RESULT", `"type":"success"`,
	} {
		i := strings.Index(out.String()[at:], want)
		if i < 0 {
			t.Fatalf("no %q behind %q in\n%s", want, clipped(out.String()[:at]), out.String()[at:])
		}
		at += i + len(want)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "note.md")); err != nil || string(b) != "Milk." {
		t.Errorf("what was approved did not happen: %q %v", b, err)
	}
}

func clipped(s string) string {
	if len(s) > 200 {
		return "…" + s[len(s)-200:]
	}
	return s
}

package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/tool"
)

// section is what docs/tools.md says of a tool; "" is what it says of them all.
func section(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := strings.Cut(string(b), "\n## ")
	if name == "" {
		return all
	}
	_, rest, ok := strings.Cut(string(b), "\n## "+name+"\n")
	if !ok {
		t.Fatalf("docs/tools.md has no section %s", name)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

func TestThePageOfTheToolsHasTheirLimits(t *testing.T) {
	t.Parallel()
	n := func(n int) string { // as the page writes numbers
		if n >= 1000 {
			return fmt.Sprintf("%d,%03d", n/1000, n%1000)
		}
		return fmt.Sprint(n)
	}
	minutes := func(d time.Duration) string { return fmt.Sprintf("%.0f minutes", d.Minutes()) }
	for _, c := range []struct{ tool, want string }{
		{"", n(outputLimit) + " bytes"},
		{"", "the last " + n(outputEnds)},
		{"bash", "default " + minutes(bashDefault)},
		{"bash", "at most " + minutes(bashMost)},
		{"bash", fmt.Sprintf("up to %d MB", outputKept/1_000_000)},
		{"bash", fmt.Sprintf("the last %d MB", keptMost>>20)},
		{"bash", fmt.Sprintf("at most %d of a session", mostRunning)},
		{"bash_output", "at most " + minutes(bashMost)},
		{"bash_output", fmt.Sprintf("The last %d commands", mostRemembered)},
		{"read", fmt.Sprintf("how many lines (default %d)", readLines)},
		{"read", "of a line " + n(readLineCap) + " bytes"},
		{"read", fmt.Sprintf("of a file %d KiB", readCap>>10)},
		{"read", fmt.Sprintf("up to %d MiB", imageMost>>20)},
		{"write", fmt.Sprintf("%d lines at most", diffLines)},
		{"write", fmt.Sprintf("up to %d MiB", diffedMost>>20)},
		{"edit", fmt.Sprintf("at most %d MiB", editMost>>20)},
		{"glob", n(globMost) + " at most"},
		{"grep", fmt.Sprintf("lines of the result (default and most %d)", grepLines)},
		{"grep", "at most " + n(grepContext)},
		{"grep", "Of a line " + n(grepLineCap) + " bytes"},
		{"grep", fmt.Sprintf("of a result %d KiB", grepCap>>10)},
		{"grep", fmt.Sprintf("more than %d MiB", grepMost>>20)},
		{"web_fetch", fmt.Sprintf("of %d MiB at most", fetchMost>>20)},
		{"web_fetch", fmt.Sprintf("default %.0f seconds", fetchTime.Seconds())},
		{"web_fetch", "at most " + minutes(fetchMostTime)},
	} {
		if !strings.Contains(section(t, c.tool), c.want) {
			t.Errorf("docs/tools.md does not say %q of %q", c.want, c.tool)
		}
	}
}

func TestWhatThePageOfTheToolsSaysComesBackDoes(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	tools, err := tool.NewSet(w.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, input, says string }{ // says is on the page; … and N are anything
		{"bash", `{"command":"true"}`, "(no output)"},
		{"bash", `{"command":"exit 3"}`, "exit code: N"},
		{"bash", `{"command":"kill -TERM $$"}`, "killed by signal: …"},
		{"bash", `{"command":"sleep 60","timeout":"20ms"}`, "timed out after …"},
		{"bash_output", `{"id":"bg-call_3","timeout":"1m"}`, "(no new output)"},
		{"bash_output", `{"id":"bg-call_3"}`, "[bg-call_3 ended with exit code 0 after …"},
		{"write", `{"file_path":"a","content":"one\n"}`, "created …"},
		{"write", `{"file_path":"a","content":"two\n"}`, "overwrote …"},
		{"edit", `{"path":"a","old_str":"two","new_str":"three"}`, "edited …"},
		{"glob", `{"pattern":"none*"}`, "no files match"},
		{"grep", `{"pattern":"none"}`, "no matches"},
	} {
		t.Run(c.says, func(t *testing.T) {
			if strings.HasPrefix(c.tool, "bash") && errNoBash != nil {
				component.Absent(t, "there is no bash", "install bash")
			}
			if c.says == "(no new output)" {
				ctx := tool.WithCall(t.Context(), tool.Call{ID: "call_3", Name: "bash"})
				if res, err := w.Bash().Execute(ctx, json.RawMessage(`{"command":"true","background":true}`)); err != nil || !strings.Contains(res.Content, "bg-call_3") {
					t.Fatal(res, err)
				}
			}
			tl, _, _ := tools.Lookup(c.tool)
			res, err := tl.Execute(t.Context(), json.RawMessage(c.input))
			want := strings.TrimRight(c.says, "N…")
			if err != nil || !strings.Contains(res.Content, want) {
				t.Errorf("%q, %v", res.Content, err)
			}
			if !strings.Contains(section(t, c.tool), "`"+want) {
				t.Errorf("docs/tools.md has no `%s…", want)
			}
		})
	}
}

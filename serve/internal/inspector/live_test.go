package inspector_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

type path struct {
	Path string `json:"file_path"`
}
type edit struct {
	Path string `json:"file_path"`
	Old  string `json:"old_string"`
	New  string `json:"new_string"`
}
type command struct {
	Command string `json:"command"`
}

// worker is an agent with all that the page shows: tools, some at the same time, one that is asked about, one that is refused, one whose input is rewritten; questions; a subagent; a model that fails.
func worker(t *testing.T, store journal.Store, turns ...scripted.Turn) serve.Agent {
	t.Helper()
	kid, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Text: "The tests cover rounding, but no negative prices.", Delay: 150 * time.Millisecond, Usage: model.Usage{Input: 300, Output: 40}})})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "reviewer", Instructions: "You review."}, Engine: kid, Description: "reviews code"}})
	if err != nil {
		t.Fatal(err)
	}
	tools := []tool.Tool{
		tool.Func("read", "Read a file.", func(ctx context.Context, in path) (string, error) {
			select {
			case <-time.After(60 * time.Millisecond): // so that there is something to be seen of them side by side
			case <-ctx.Done():
			}
			return "package price\n\n// " + in.Path + "\nfunc Round(cents int) int {\n\treturn cents / 100 * 100\n}\n", nil
		}, tool.ReadOnly),
		tool.Func("edit", "Edit a file.", func(_ context.Context, in edit) (string, error) { return "edited " + in.Path, nil }),
		tool.Func("bash", "Run a command.", func(_ context.Context, in command) (string, error) {
			if in.Command == "false" {
				return "", errors.New("exit code 1")
			}
			return "ok\t./price\t0.012s\n$ " + in.Command, nil
		}),
		task, askuser.New(nil),
	}
	e, err := loop.New(loop.Config{Model: scripted.New(turns...), Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	judge := hook.Middleware{Name: "careful", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		switch {
		case u.Call.Name == "edit":
			return hook.Asking("edits are looked at by a person"), nil
		case u.Call.Input == `{"command":"rm -rf /"}`:
			return hook.Denied("nothing is removed here"), nil
		case u.Call.Input == `{"command":"go test ./..."}`:
			return hook.Decision{Verdict: hook.Allow, Input: `{"command":"go test -race ./price"}`}, nil
		case u.Call.Input == `{"command":"go test -race ./price"}`:
			return hook.Allowed("only what was changed, with the race detector"), nil
		}
		return hook.Decision{}, nil
	}}
	return serve.Of(agent.Agent{ID: "coder", Instructions: "You mend code.", Hooks: []hook.Middleware{judge}}, e, store)
}

func used(n int) model.Usage {
	return model.Usage{Input: 420, CacheRead: 3000 * n, CacheWrite: 900, Output: 120 + 30*n}
}

func TestARunIsDrivenFromThePage(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	web := served(t, worker(t, store,
		scripted.Turn{Reasoning: "First look, then judge.", Text: "I'll read both files before I change anything.", Calls: []scripted.Call{{ID: "r1", Name: "read", Input: `{"file_path":"price/round.go"}`}, {ID: "r2", Name: "read", Input: `{"file_path":"price/round_test.go"}`}, {ID: "t1", Name: "task", Input: `{"agent":"reviewer","prompt":"What do the tests miss?"}`}}, Usage: used(0), Delay: 200 * time.Millisecond},
		scripted.Turn{Text: "Prices below half a unit are rounded down to nothing. I'll round to the nearest one.", Calls: []scripted.Call{{ID: "e1", Name: "edit", Input: `{"file_path":"price/round.go","old_string":"func Round(cents int) int {\n\treturn cents / 100 * 100\n}","new_string":"func Round(cents int) int {\n\tif cents < 0 {\n\t\treturn -Round(-cents)\n\t}\n\treturn (cents + 50) / 100 * 100\n}"}`}}, Usage: used(1)},
		scripted.Turn{Text: "Now the tests.", Calls: []scripted.Call{{ID: "b1", Name: "bash", Input: `{"command":"go test ./..."}`}, {ID: "b2", Name: "bash", Input: `{"command":"rm -rf /"}`}, {ID: "b3", Name: "bash", Input: `{"command":"false"}`}}, Usage: used(2)},
		scripted.Turn{Calls: []scripted.Call{{ID: "q1", Name: "ask_user", Input: `{"question":"Which release is this for?","options":[{"label":"1.4 patch"},{"label":"1.5"}]}`}}, Usage: used(3)},
		scripted.Turn{Text: "Done: prices are rounded to the nearest unit, negative ones too, and the tests pass.", Usage: used(4), Delay: 300 * time.Millisecond},
		scripted.Turn{Text: "Of course: here is the same for two places behind the point.", Usage: used(5)},
	), serve.Options{})
	p := browse(t, 1560, 940)
	p.open(web.URL)
	p.into("#words", "Prices are rounded wrongly. Mend it, please."+enter)
	p.sees("#timeline .row.said", "Prices are rounded wrongly")

	// It waits for a person at the edit.
	p.sees("#waiting .card", "edits are looked at by a person")
	p.sees("#timeline .row.model", "I'll read both files")
	p.sees("#timeline .row.tool", "price/round_test.go")
	p.sees("#waiting .diff .add", "return (cents + 50) / 100 * 100")
	p.sees("#waiting .diff .del", "return cents / 100 * 100")
	p.sees("#live", "live")
	p.sees("#timeline .row.run", "interrupted")
	p.picture("approval-light")
	p.do(blur())
	p.keys("a")

	// It asks which; a choice is clicked.
	p.sees("#waiting .card", "Which release is this for?")
	p.row("go test")
	p.sees("#detail", "only what was changed, with the race detector")
	p.sees("#detail .diff .add", "go test -race ./price")
	p.sees("#timeline .row.tool", "rewritten")
	p.sees("#timeline .row.tool .chip.bad", "denied")
	p.sees("#timeline .row.tool .chip.bad", "error")
	p.click(`[data-choice="2"]`)
	p.sees("#timeline .row.model", "Done: prices are rounded")
	p.sees("#state", "completed")
	p.until(`document.querySelector("#waiting").hidden`)
	p.sees("#timeline .row.tool", "approved")
	p.sees("#stats", "cache hits")
	// 30,000 of 36,600 tokens that went in: 0+3+6+9+12 thousand, of those and 5 × 1,320
	p.sees("#stats", "82%")
	p.row("price/round.go")
	p.prefers("dark")
	p.row("Prices below half")
	p.sees("#detail", "cache hit rate")
	p.picture("timeline-dark")
	p.prefers("light")
	p.picture("timeline-light")

	// The subagent's call opens its own session, and u leads back.
	p.row("What do the tests miss?")
	p.keys("o")
	p.sees("#timeline .row.model", "no negative prices")
	p.sees("#title", "/t1")
	p.keys("u")
	p.sees("#timeline .row.tool", "price/round_test.go")
	whole := value[string](p, `document.querySelector("#title").textContent`)

	// A fork from the prompt, with another one.
	p.row("Prices are rounded wrongly")
	p.keys("f")
	p.sees("dialog", "up to entry 1")
	p.until(`document.querySelector("dialog textarea").value === "Prices are rounded wrongly. Mend it, please."`)
	value[bool](p, `(document.querySelector("dialog textarea").select(), true)`)
	p.keys("Prices are rounded wrongly. Say why." + enter) // a new line, which is not said
	p.sees("dialog", "Enter is a new line")
	p.picture("fork")
	p.click(`dialog input[name="compare"]`)
	p.click(`[data-act="fork-run"]`)
	p.sees("#pairs .pair.m-other", "Say why.")
	p.sees("#pairs .pair.m-left", "Done: prices are rounded")
	p.sees("#pairs .pair.m-same", "session begins")
	p.sees("#tally", "only left")
	p.until(`document.querySelector("#pairs .pair.selected")`)
	p.sees("#pairs .pair.m-same", "price/round_test.go")
	p.first("#pairs")
	p.keys("nnn") // the fork's first entry, the run's state, the prompt
	p.sees("#detail .diff .add", "Say why.")
	p.picture("compare-light")
	p.prefers("dark")
	p.picture("compare-dark")
	p.prefers("light")
	p.keys("d")
	p.until(`!document.querySelector("#pairs .pair.m-same")`)

	// Who leaves is back where he was; and its fork says where it comes from.
	p.keys(escape)
	p.until(fmt.Sprintf(`document.querySelector("#title").textContent === %q && !document.querySelector("#both")`, whole))
	p.sees("#timeline .row", "Prices are rounded wrongly")
	p.sees("#sessions .item", whole+"-fork")
	p.until(`!document.querySelector("#compare").disabled`)
	p.click("#compare")
	p.sees("dialog button", "its fork, "+whole+"-fork")
	p.keys(escape)
	p.until(`!document.querySelector("dialog")`)

	// What the store has is what was done on the page.
	var forked journal.SessionCreated
	for e, err := range store.Read(t.Context(), whole+"-fork", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(journal.SessionCreated); ok {
			forked = d
		}
	}
	if said := on[journal.Said](t, store, whole+"-fork"); said[0].Message.Text() != "Prices are rounded wrongly. Say why." {
		t.Errorf("the fork began with %q", said[0].Message.Text())
	}
	if forked.Parent != whole || forked.At != 1 {
		t.Errorf("the fork is of %q at %d", forked.Parent, forked.At)
	}
}

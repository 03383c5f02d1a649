package inspector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// long writes a session of about so many entries, of several runs, as they come on record. It
// returns how many there are, and the number of the one step that has a needle in its text.
func long(t *testing.T, store journal.Store, name string, entries int) (written, needle int) {
	t.Helper()
	needle = entries / 8
	at := time.Now().Add(-6 * time.Hour)
	var all []journal.Entry
	run, n := 0, 0
	put := func(ms int, key journal.Key, d journal.Data) {
		at = at.Add(time.Duration(ms) * time.Millisecond)
		e := journal.Entry{Time: at, Key: key, Data: d}
		if run > 0 {
			e.Run = fmt.Sprintf("run-%d", run)
		}
		all = append(all, e)
	}
	put(0, journal.Key{}, journal.SessionCreated{})
	for len(all) < entries-8 {
		if n%400 == 0 {
			if run > 0 {
				put(1, journal.Key{}, journal.RunFinished{Status: "completed", Committed: true})
			}
			run++
			put(1, journal.Key{}, journal.RunStarted{Agent: "coder", Owner: "host/1", Attempt: 1, Model: "anthropic/claude"})
			put(1, journal.Key{}, journal.Said{Message: message.User(fmt.Sprintf("Go through module %d, file by file, and mend what the linter says.", run))})
		}
		n++
		key := journal.Key{Op: "model", ID: fmt.Sprint(n)}
		put(3, key, journal.ModelStarted{Model: "anthropic/claude"})
		call := fmt.Sprintf("c%d", n)
		input := fmt.Sprintf(`{"command":"golangci-lint run ./module%d/file%d.go"}`, run, n)
		cost := int64(900 + n%700)
		text := fmt.Sprintf("Step %d: ", n) + strings.Repeat("the linter has more to say about this one. ", 1+n%7)
		if n == needle {
			text += "There is a needle here."
		}
		put(800+n%1700, key, journal.ModelFinished{Message: message.Assistant(text, message.ToolCall{ID: call, Name: "bash", Input: input}), Usage: model.Usage{Input: 200 + n%90, CacheRead: 9000 + n, CacheWrite: 300, Output: 80 + n%50}, CostMicros: &cost, Millis: int64(800 + n%1700), Model: "anthropic/claude"})
		put(1, journal.Key{Op: "judge", ID: call}, journal.ToolJudged{Call: call, Verdict: "allow"})
		put(0, journal.Key{Op: "tool", ID: call}, journal.ToolStarted{Call: journal.Called{ID: call, Name: "bash", Input: input}})
		put(120+n%600, journal.Key{Op: "tool", ID: call}, journal.ToolFinished{Call: call, Name: "bash", Content: strings.Repeat(fmt.Sprintf("file%d.go: fine\n", n), 1+n%20), Outcome: journal.OutcomeOK, Millis: int64(120 + n%600)})
	}
	put(1, journal.Key{}, journal.RunFinished{Status: "completed", Committed: true})
	if err := store.Append(t.Context(), name, 0, all...); err != nil {
		t.Fatal(err)
	}
	return len(all), needle
}

// idle is an agent that is looked at and does nothing.
func idle(t *testing.T, store journal.Store) serve.Agent {
	t.Helper()
	return worker(t, store, scripted.Text("done"))
}

const watchTasks = `(() => { window.tasks = []; new PerformanceObserver((l) => { for (const e of l.getEntries()) tasks.push(e.duration); }).observe({ type: "longtask", buffered: true }); return true; })()`

// The middle tier looks at fewer entries, in one large window.
func TestTenThousandEntries(t *testing.T) {
	inBrowser(t)
	entries, sessions, scrolls := 10_000, 250, 60
	windows := [][2]int64{{2560, 1440}, {3840, 2160}, {1440, 2560}}
	if !tier.All() {
		entries, sessions, scrolls, windows = 3000, 120, 15, windows[:1]
	}
	store := journal.Memory()
	written, needle := long(t, store, "big", entries)
	for i := range sessions { // and a list of sessions that is long, too
		if err := store.Append(t.Context(), fmt.Sprintf("small-%03d", i), 0, journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "coder", Owner: "o", Attempt: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	web := served(t, idle(t, store), serve.Options{})
	p := browse(t, 1600, 1000)
	p.open(web.URL + "/#/new")
	p.sees("#sum", "sessions")
	value[bool](p, watchTasks)
	most, longest, at := 0, 0.0, ""
	bound := func(where string) {
		t.Helper()
		if l := value[float64](p, `Math.max(0, ...tasks.splice(0))`); l > longest {
			longest, at = l, where
		}
		value[bool](p, drawn)
		n := p.nodes()
		most = max(most, n)
		if n > 2000 {
			t.Errorf("%s: %d nodes, want 2000 at most", where, n)
		}
	}
	began := time.Now()
	value[bool](p, `(location.hash = "#/s/big", true)`)
	p.sees("#stats", fmt.Sprintf("entries%d,%03d", written/1000, written%1000))
	p.sees("#live", "live")
	took := time.Since(began)
	bound("loaded")

	// Through all of it by the wheel, and by keys.
	for i := range scrolls {
		where := fmt.Sprintf("scrolled %d of %d", i+1, scrolls)
		value[bool](p, fmt.Sprintf(`(() => {
		  const b = document.querySelector("#timeline");
		  b.scrollTop = b.scrollHeight * %d / %d;
		  return true;
		})()`, i+1, scrolls))
		bound(where)
		if !value[bool](p, `(() => { const b = document.querySelector("#timeline").getBoundingClientRect(), rows = [...document.querySelectorAll("#timeline .row")].map((r) => r.getBoundingClientRect()).sort((x, y) => x.y - y.y); return rows[0].top <= b.top + 1 && rows.at(-1).bottom >= b.bottom - 1 && rows.every((r, i) => !i || Math.abs(r.top - rows[i - 1].bottom) < 1.5); })()`) {
			p.fatal("%s: the rows in sight have holes, or lie on each other", where)
		}
	}
	p.do(blur())
	p.first("#timeline")
	p.sees("#timeline .row.selected", "session begins")
	p.keys("jjjjjjjjjj")
	bound("ten rows down")
	p.keys("G")
	p.until(`document.querySelector("#timeline .row.selected")?.textContent.includes("completed")`)
	bound("the end")
	p.keys("[")
	p.sees("#timeline .row.run.selected", "coder")
	bound("the last run")

	// The step that a link names is in the middle of what is to be seen.
	middle := entries / 2
	value[bool](p, fmt.Sprintf(`(location.hash = "#/s/big/%d", true)`, middle))
	p.until(fmt.Sprintf(`document.querySelector("#timeline .row.selected") && (() => {
	  const [, first, last] = /^entry (\d+)(?:\u2013(\d+))?/.exec(document.querySelector("#detail header p")?.textContent) || [];
	  return +first <= %d && %[1]d <= +(last || first);
	})()`, middle))

	// A search over all entries finds the one.
	p.keys("/")
	p.keys("needle here")
	p.sees("#found", "1 of 1")
	p.sees("#timeline .row.selected", fmt.Sprintf("Step %d", needle))
	bound("searched")
	p.picture("ten-thousand")
	p.prefers("dark")
	p.picture("ten-thousand-dark")
	p.prefers("light")
	value[bool](p, `(tasks.length = 0, true)`) // pictures are tasks, too
	p.keys(enter)
	p.keys(escape)

	// Everything in the details: all raw entries open.
	p.keys("x")
	bound("raw")

	// The list of sessions goes on as it is scrolled.
	p.until(`(() => { const b = document.querySelector("#sessions"); b.scrollTop = b.scrollHeight; return document.querySelector("#sum").textContent === "` + fmt.Sprint(sessions+1) + ` sessions"; })()`)
	bound("sessions")

	// Side by side with a fork that goes another way.
	if _, err := journal.Fork(t.Context(), store, "big", int64(entries*9/10), "other"); err != nil {
		t.Fatal(err)
	}
	value[bool](p, `(location.hash = "#/compare/big/other", true)`)
	p.sees("#tally", "only left")
	bound("compared")
	p.keys("G")
	bound("compared, the end")

	// Two runs of one session, side by side.
	value[bool](p, `(location.hash = "#/compare/big/big?ra=0&rb=1", true)`)
	p.sees("#both .heads2", "run-2")
	p.sees("#pairs .pair.m-other", "Go through module 2")
	bound("two runs")

	// A large window.
	for _, size := range windows {
		p.resize(size[0], size[1])
		value[bool](p, `(location.hash = "#/s/big", true)`)
		p.sees("#live", "live")
		p.do(blur())
		p.keys("G")
		bound(fmt.Sprint(size))
		value[bool](p, `(location.hash = "#/compare/big/other", true)`)
		p.sees("#tally", "only left")
		p.keys("G")
		bound(fmt.Sprint(size, " compared"))
	}
	t.Logf("%d entries: loaded in %v; at most %d nodes; the longest task %.0f ms (%s)", written, took.Round(time.Millisecond), most, longest, at)
	mustAnswer(t, longest)
}

// mustAnswer fails the test if a task of the page took so long that everything was done in one.
// A machine that does other things, too, makes tasks of 50 ms ten times as long. The middle
// tier may run beside a lot, so it asserts only how much is on the page.
func mustAnswer(t *testing.T, longest float64) {
	t.Helper()
	if tier.All() && longest > 2000 {
		t.Errorf("a task of %.0f ms: the page does not answer meanwhile", longest)
	}
}

func TestHostileTexts(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	ctx := context.Background()
	script := `<script>window.owned = 1</script><img src=x onerror="window.owned = 2"><svg onload="window.owned = 3">`
	name := "s/" + `"><img src=x onerror=window.owned=4>` + "\u202egnp.exe"
	key := func(op, id string) journal.Key { return journal.Key{Op: op, ID: id} }
	e := func(k journal.Key, d journal.Data) journal.Entry {
		return journal.Entry{Run: "run\u202e<b>", Key: k, Data: d}
	}
	huge := strings.Repeat("0123456789 <b>bold</b> \u202eltr\u0007\n", 200_000) // more than 5 MB
	line := strings.Repeat("x", 3_000_000)
	input, err := json.Marshal(map[string]string{"command": script + "\u202e\u0000"})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(store.Append(ctx, name, 0,
		journal.Entry{Data: journal.SessionCreated{}},
		e(journal.Key{}, journal.RunStarted{Agent: script, Owner: "o", Attempt: 1, Model: script}),
		e(journal.Key{}, journal.Said{Message: message.User(script + "\u202eabc\u2066 \x1b[31mred\x1b[0m \u0001 end"), By: script}),
		e(key("model", "1"), journal.ModelStarted{Model: script}),
		e(key("model", "1"), journal.ModelFailed{Class: script, Error: script}),
		e(key("model", "1"), journal.ModelFinished{Message: message.New(message.RoleAssistant, message.Reasoning{Text: script}, message.Text{Text: script, Citations: []message.Citation{{URL: "javascript:window.owned=5", Title: script}}}, message.File{MIME: "image/svg+xml", Name: script, Data: "<svg onload='window.owned=6'/>"}, message.ToolCall{ID: "c1", Name: script, Input: string(input)}, message.ToolCall{ID: "c2", Name: "bash", Input: `{"command":"cat huge"}`}, message.ToolCall{ID: "c3", Name: "bash", Input: `{"command":"cat line"}`})}),
		e(key("judge", "c1"), journal.ToolJudged{Call: "c1", Name: script, Verdict: "deny", Reason: script, Context: script}),
		e(key("tool", "c2"), journal.ToolStarted{Call: journal.Called{ID: "c2", Name: "bash", Input: `{"command":"cat huge"}`}}),
		e(key("tool", "c2"), journal.ToolFinished{Call: "c2", Name: "bash", Content: huge, Outcome: journal.OutcomeOK}),
		e(key("tool", "c3"), journal.ToolStarted{Call: journal.Called{ID: "c3", Name: "bash", Input: `{"command":"cat line"}`}}),
		e(key("tool", "c3"), journal.ToolFinished{Call: "c3", Name: "bash", Content: line, Outcome: journal.OutcomeOK, Warning: script}),
		e(key("ask", "q"), journal.Asked{ID: "q", Prompt: script + "\n  1. " + script + "\n  2. b"}),
		e(journal.Key{}, journal.Parked{Cause: script, Detail: script, Stack: script}),
	))
	web := served(t, idle(t, store), serve.Options{})
	p := browse(t, 1400, 900)
	p.open(web.URL + "/#/s/" + url.PathEscape(name))
	p.sees("#timeline .row.said", "<script>window.owned = 1</script>")
	p.sees("#sessions .item", "onerror=window.owned=4")
	p.sees("#waiting .card", "<script>")
	p.sees("#timeline .row.said", "\u27e8U+202E\u27e9abc")
	p.sees("#timeline .row.said", "\u2401")
	p.do(blur())
	p.first("#timeline")
	for range 9 { // every row, in full, with its raw entries
		p.keys("j")
		p.keys("x")
		value[bool](p, drawn)
		if n := p.nodes(); n > 2000 {
			t.Errorf("%d nodes", n)
		}
	}
	p.picture("hostile")

	// 5 MB are cut, and shown whole in pieces of which few exist.
	p.row("cat huge")
	p.sees("#detail .body .cut", "cut: 5.")
	value[bool](p, watchTasks)
	value[bool](p, `([...document.querySelectorAll("#detail .body .cut button")].at(-1).click(), true)`)
	p.sees("#detail .body .cut", "all: 5.")
	p.until(`(() => { const b = document.querySelector("#detail .pieces"); b.scrollTop = b.scrollHeight; return b.scrollTop + b.clientHeight >= b.scrollHeight - 2 && b.textContent.includes("0123456789"); })()`)
	if n := p.nodes(); n > 2000 {
		t.Errorf("%d nodes with 5 MB in sight", n)
	}
	if n := value[int](p, `document.querySelector("#detail .pieces").textContent.length`); n == 0 || n > 100_000 {
		t.Errorf("%d characters of 5 MB are on the page at a time", n)
	}
	p.row("cat line")
	p.sees("#detail .body .cut", "cut: 2.9 MB, 1 lines")
	value[bool](p, `([...document.querySelectorAll("#detail .body .cut button")].at(-1).click(), true)`)
	p.until(`document.querySelector("#detail .pieces")?.scrollHeight > 100000`)
	if value[bool](p, `document.querySelector("#detail").scrollWidth > document.querySelector("#detail").clientWidth + 1`) {
		t.Error("a long line makes the details wider than they are")
	}
	longest := value[float64](p, `Math.max(0, ...tasks)`)
	t.Logf("5 MB and a line of 3 MB: the longest task %.0f ms", longest)
	mustAnswer(t, longest)

	if got := value[string](p, `String(window.owned)`); got != "undefined" {
		t.Errorf("a text ran as a program: %s", got)
	}
	if n := value[int](p, `document.querySelectorAll("main img, aside img, nav img, svg, main script, aside script, iframe, a[href^='javascript']").length`); n != 0 {
		t.Errorf("%d elements were made of texts", n)
	}
}

package trace

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

//go:embed page.css
var style string

// policy lets the page have its own style and the pictures that are in it, and nothing else: were a mark to slip through, it could load, send and run nothing.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'"
}()

// page writes. An error of the writer is kept by w, and seen at the end.
type page struct {
	*survey
	w     *bufio.Writer
	shown map[string]bool // sessions
}

// raw writes what is markup, and nothing that comes from the journal.
func (p *page) raw(parts ...string) {
	for _, s := range parts {
		_, _ = p.w.WriteString(s)
	}
}

// element writes text in an element of a class; "" is none.
func (p *page) element(tag, class, text string) {
	p.open(tag, class)
	p.text(text)
	p.raw("</", tag, ">")
}

func (p *page) open(tag, class string) {
	p.raw("<", tag)
	if class != "" {
		p.raw(` class="`, class, `"`)
	}
	p.raw(">")
}

// folded writes text under a line that opens it, if there is any.
func (p *page) folded(title, text string) {
	if text != "" {
		p.raw("<details class=\"fold\">")
		p.element("summary", "", title)
		p.element("pre", "", text)
		p.raw("</details>")
	}
}

// head is what stands above the first run.
func (p *page) head(session string, at int64) {
	p.raw(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="`, policy, `">`,
		`<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer"><title>`)
	p.text("Session " + session)
	p.raw("</title><style>", style, "</style></head><body><header><p class=\"over\">Session</p><h1>")
	p.text(session)
	p.raw("</h1>")
	if at > 0 {
		p.element("p", "dim", fmt.Sprintf("as it was at entry %d", at))
	}
	p.facts()
	p.runTable()
	p.raw("</header><main>")
}

// facts are the sums over all runs, those of tasks too.
func (p *page) facts() {
	var spent journal.Spent
	var active time.Duration
	var calls, failed, warnings int
	for _, r := range p.list {
		spent = spent.Plus(r.spent)
		calls, failed, warnings = calls+r.calls, failed+r.failed, warnings+r.warnings
		if r.depth == 0 {
			active += r.active
		}
	}
	u := spent.Usage
	p.raw("<dl class=\"facts\">")
	fact := func(name, value, detail string) {
		p.raw("<div><dt>", name, "</dt><dd>", value)
		if detail != "" {
			p.raw("<small>", detail, "</small>")
		}
		p.raw("</dd></div>")
	}
	fact("Steps", number(spent.Steps), "")
	fact("Tool calls", number(calls), some(failed, "not ok"))
	fact("Input tokens", number(u.Input+u.CacheRead+u.CacheWrite), join(some(u.CacheRead, "from the cache"), some(u.CacheWrite, "into it")))
	fact("Output tokens", number(u.Output), some(u.Reasoning, "reasoning"))
	fact("Cost", money(spent.Cost()), "")
	fact("Time", span(active), "")
	if warnings > 0 {
		fact("Warnings", number(warnings), "")
	}
	p.raw("</dl>")
}

// runTable has a line for each run.
func (p *page) runTable() {
	if len(p.list) == 0 {
		return
	}
	p.raw(`<div class="wide"><table><thead><tr><th>Run</th><th>Agent</th><th>Status</th><th>Began</th><th class="n">Time</th><th class="n">Steps</th><th class="n">Calls</th>`,
		`<th class="n">Input</th><th class="n">Cached</th><th class="n">Output</th><th class="n">Cost</th></tr></thead><tbody>`)
	for _, r := range p.list {
		u := r.spent.Usage
		p.raw("<tr><td>")
		for range min(r.depth, 8) {
			p.raw("<span class=\"deep\">└</span>")
		}
		p.raw(`<a href="#`, r.anchor(), `">`)
		p.text(r.name())
		p.raw("</a></td><td>")
		p.text(r.agent)
		p.raw(`</td><td>`)
		p.badge(r.status)
		p.raw("</td><td>", r.start.UTC().Format("2006-01-02 15:04:05"), "</td>")
		for _, n := range []string{span(r.active), number(r.spent.Steps), number(r.calls), number(u.Input + u.CacheRead + u.CacheWrite), number(u.CacheRead), number(u.Output), money(r.spent.Cost())} {
			p.raw(`<td class="n">`, n, "</td>")
		}
		p.raw("</tr>")
	}
	p.raw("</tbody></table></div>")
}

func (r *run) anchor() string { return "run-" + strconv.Itoa(r.n) }

// name is the run's id, and which attempt it is when it is not the first.
func (r *run) name() string {
	if r.attempt > 1 {
		return fmt.Sprintf("%s, attempt %d", r.id, r.attempt)
	}
	return r.id
}

// badge is a word with the colour of what it means.
func (p *page) badge(word string) {
	p.element("span", "badge "+colour(word), word)
}

func colour(word string) string {
	switch word {
	case "completed", "ok":
		return "good"
	case "failed", "aborted", "error", "invalid", "denied", "rejected":
		return "bad"
	}
	return "mid" // interrupted, canceled, unknown, waiting …
}

// bar is a piece of a run on its line of time.
func (p *page) bar(r *run, class string, end, took time.Duration) {
	if r == nil || r.active <= 0 {
		return
	}
	const wide = 1000
	from, to := int64(max(0, end-took))*wide/int64(r.active), int64(end)*wide/int64(r.active)
	from = min(from, wide-4)
	fmt.Fprintf(p.w, `<svg class="bar" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true"><rect class="%s" x="%d" width="%d" height="6"/></svg>`, class, from, max(4, min(to, wide)-from))
}

// tokens are what a call took, in a few words.
func tokens(u model.Usage) string {
	in := number(u.Input+u.CacheRead+u.CacheWrite) + " in"
	if cached := join(some(u.CacheRead, "from the cache"), some(u.CacheWrite, "into it")); cached != "" {
		in += " (" + cached + ")"
	}
	out := number(u.Output) + " out"
	if u.Reasoning > 0 {
		out += " (" + some(u.Reasoning, "reasoning") + ")"
	}
	return in + ", " + out
}

func some(n int, of string) string {
	if n == 0 {
		return ""
	}
	return number(n) + " " + of
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// number has a thin space at every thousand.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// money is an amount; unknown is not zero.
func money(micros *int64) string {
	if micros == nil {
		return "unknown"
	}
	return fmt.Sprintf("$%.4f", float64(*micros)/1e6)
}

// cost is an amount where nothing says that it is one.
func cost(micros *int64) string {
	if micros == nil {
		return "cost unknown"
	}
	return money(micros)
}

// span is a length of time, in three digits or so.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

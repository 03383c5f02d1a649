package trace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/trace"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func page(t *testing.T, b *book, session string, at int64) string {
	t.Helper()
	var out bytes.Buffer
	if err := trace.HTML(context.Background(), &out, b.store, session, at); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// words are what a reader sees of a page, in order, with one space between them.
func words(t *testing.T, page string) string {
	t.Helper()
	var out strings.Builder
	z, hidden := html.NewTokenizer(strings.NewReader(page)), false
	for z.Next() != html.ErrorToken {
		switch k := z.Token(); k.Type {
		case html.StartTagToken, html.EndTagToken:
			if k.Data == "style" || k.Data == "title" {
				hidden = k.Type == html.StartTagToken
			}
			out.WriteByte(' ')
		case html.TextToken:
			if !hidden {
				out.WriteString(k.Data)
			}
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestAPageHasWhatIsOnRecordInItsOrder(t *testing.T) {
	got := words(t, page(t, sample(t), "fix-the-build", 0))
	at := 0
	for _, want := range []string{
		"Session fix-the-build",
		"Steps 8", "Tool calls 9 2 not ok", "Input tokens 170 120 144 000 from the cache, 7 200 into it", "Output tokens 3 180 960 reasoning", "Cost $0.1700", "Time 17.5 s", "Warnings 3",
		"run-1 pawl completed 2026-11-20 09:30:00", "└ run-2 explore completed", "run-3 pawl failed 2026-11-20 12:30:56",
		"Run run-1 completed", "model anthropic/claude-sonnet-5-5", "directory /home/ada/shop", "user ada", `Terms {"mode":"acceptEdits"}`,
		"User #3", "The test of the basket fails.", "System prompt You are an agent", "Put into the transcript by hooks Today is Friday.",
		"Step 1 claude-sonnet-5-5 20 140 in (18 000 from the cache, 900 into it), 310 out (120 reasoning) $0.0200 2.3 s", "Reasoning First see how it fails.", "I run the test, and look",
		"bash go test ./basket error 3.1 s", "command go test ./basket timeout 60000", "Allowed the rule Bash(go test:*)", "Result --- FAIL: TestTotal (0.00s) total_test.go:12",
		"read basket/total.go ok 4 ms", "package basket",
		"Step 2", "task Where are discounts", "Task in session fix-the-build/c3", "Run run-2 completed", "below run run-1", "grep (?i)discount ok 12 ms", "basket/discount.go:9", "Step 2", "In basket/discount.go, the function Discount.", "run completed",
		"Step 3", "edit basket/total.go ok 9 ms", "- return sum", "+ return sum - Discount(sum)",
		"edit prices/list.go denied c6 · #25", "file_path prices/list.go", "-const Apple = 10 +const Apple = 9 const Pear = 12", "Denied the rule Edit(prices/**)",
		"interrupted: awaiting_person: c5", "resumed by driver-3",
		"bash git push origin main ok 1.2 s", "Asked about git push reaches beyond", "Question Run git push origin main?", "Answer approved by ada, for the session: Bash(git push:*)", "main -> main", "the hook notify took 1 s",
		"User ada, meanwhile", "Show me a picture",
		"compacted: 162 000 tokens became some 21 000; the last 5 messages stay", "What stands there instead The person wants",
		"mcp__browser__shot http://localhost/coverage ok", "image/png · coverage.png · 70 bytes",
		"Step 5", "Done: the discount is taken off", "a hook failed after the reply the hook usage: no such file", "run completed",
		"Run run-3 failed", "Start the server.", "resumed by driver-5", "bash go run ./cmd/shop unknown", "It began, and its end is not on record.", "the model call gave nothing (rate_limit)", "run failed (rate_limit) anthropic: 429: slow down",
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("no %q behind\n…%s\nin\n%s", want, got[max(0, at-200):at], got[at:])
		}
		at += i
	}
}

// hostile is what a page must not be moved by.
const hostile = "<script>alert(1)</script></style></title></pre></details><img src=x onerror=alert(1)><a href=\"javascript:alert(1)\">'\"&lt;]]>--><!--\x00\x07\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b31m\xff\xfe\u202egnp\u2066\U000E0041\r\n\rend"

// evil is a session with hostile in whatever can be said.
func evil(t *testing.T) *book {
	b := newBook(t)
	b.run = hostile
	h, s := hostile, hostile
	file := message.File{MIME: "image/png\" onerror=\"x", Name: h, URL: "https://example.com/" + h, Data: h}
	c := message.ToolCall{ID: "c" + h, Name: h, Input: input(map[string]any{h: h, "old_string": h, "new_string": "x"})}
	bad := message.ToolCall{ID: "d", Name: h, Input: h}
	child := journal.TaskSession(s, key("tool", c.ID))
	called := journal.CalledOf(c)
	for _, e := range []struct {
		k journal.Key
		d journal.Data
	}{
		{journal.Key{}, journal.SessionCreated{}},
		{journal.Key{}, journal.RunStarted{Agent: h, User: h, Task: h, ParentRun: h, Owner: h, Attempt: 2, Model: h, Engine: h, Dir: h, Terms: []byte("\"<script>\"")}},
		{journal.Key{}, journal.Said{Message: message.New(message.RoleUser, message.Text{Text: h}, file), By: h}},
		{key("prepare", ""), journal.Prepared{System: h, Edit: message.Edit{Head: []message.Message{message.User(h)}}}},
		{key("model", "1"), journal.ModelFinished{
			Message: message.New(message.RoleAssistant, message.Reasoning{Text: h}, message.Text{Text: h, Citations: []message.Citation{{URL: h, Title: h, Quote: h}}},
				message.ProviderCall{Opaque: message.Opaque{Provider: h, JSON: h}, Call: h, Name: h, Input: h, Output: h, Sources: []message.Citation{{URL: h, Title: h, Quote: h}}}, message.Opaque{Provider: h, JSON: h}, c, bad), Model: h, Stop: model.StopReason(h), Reason: h,
		}},
		{key("judge", c.ID), journal.ToolJudged{Call: c.ID, Verdict: "ask", Reason: h, Context: h, Ends: h}},
		{key("judge", "d"), journal.ToolJudged{Call: "d", Verdict: "deny", Reason: h, Input: h}},
		{key("ask", c.ID), journal.Asked{ID: c.ID, Prompt: h, Call: &called}},
		{key("ask", h), journal.Asked{ID: h, Prompt: h}},
		{key("ask", c.ID), journal.Answered{ID: c.ID, Approved: true, Text: h, By: h, Input: h, Rule: h, Session: true}},
		{key("tool", c.ID), journal.ToolStarted{Call: journal.Called{ID: c.ID, Name: h, Input: "{}" + h}}},
		{key("task", c.ID), journal.TaskStarted{Call: c.ID, Session: child}},
		{key("tool", c.ID), journal.ToolFinished{Call: c.ID, Name: h, Content: "--- a\n+++ b\n@@ -1 +1 @@\n+" + h + "\n-" + h, Files: []message.File{file}, Outcome: journal.Outcome(h), Warning: h, Ends: h}},
		{key("command", "1"), journal.CommandStarted{ID: h, Call: h, Command: h}},
		{key("command", "1"), journal.CommandEnded{ID: h, Reason: h, Signal: h}},
		{key("compact", "2"), journal.Compacted{Edit: message.Edit{Head: []message.Message{message.User(h)}}, Model: h}},
		{key("compact", "3"), journal.Compacted{Error: h}},
		{key(h, h), journal.Board{Append: map[string][]message.Message{h: {message.User(h)}}, Delete: []string{h}}},
		{key("stop", "1"), journal.Stopped{Again: h, Errors: []string{h}}},
		{key("model", "2"), journal.ModelFailed{Class: h, Error: h}},
		{journal.Key{}, journal.Parked{Cause: h, Detail: h, Stack: h}},
		{journal.Key{}, journal.Resumed{Owner: h}},
		{journal.Key{}, journal.RunFinished{Status: h, Reason: h, Class: h, Error: h, Stack: h, Handoff: []byte(`"` + "<script>" + `"`)}},
	} {
		b.add(s, time.Millisecond, e.k, e.d)
	}
	b.add(child, time.Millisecond, journal.Key{}, journal.RunStarted{Agent: h, Attempt: 1})
	b.add(child, time.Millisecond, journal.Key{}, journal.TaskStarted{Call: "x", Session: s})
	b.add(child, time.Millisecond, journal.Key{}, journal.TaskStarted{Call: "y", Session: h + "/none"})
	return b
}

// attributes are all that a page's elements have.
var attributes = map[string]*regexp.Regexp{
	"class": regexp.MustCompile(`^[a-z ]+$`), "id": regexp.MustCompile(`^run-\d+$`), "href": regexp.MustCompile(`^#run-\d+$`),
	"src": regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$`), "title": regexp.MustCompile(`^[-0-9: .]+ UTC$`), "open": regexp.MustCompile(`^$`),
	"lang": nil, "charset": nil, "http-equiv": nil, "content": nil, "name": nil, "viewbox": nil, "preserveaspectratio": nil, "aria-hidden": nil, "x": nil, "width": nil, "height": nil, "alt": nil, "loading": nil,
}

var elements = strings.Fields("html head meta title style body header main section article details summary div p h1 h2 h3 h4 b a code pre span small dl dt dd table thead tbody tr th td svg rect figure figcaption img")

// sound checks that a page has only the elements and attributes that pages have, each closed where it stands open.
func sound(t *testing.T, page string) {
	t.Helper()
	var open []string
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %v", open)
			}
			return
		case html.CommentToken:
			t.Errorf("a comment: %q", z.Token().Data)
		case html.SelfClosingTagToken, html.StartTagToken:
			k := z.Token()
			if !slices.Contains(elements, k.Data) {
				t.Fatalf("an element %q in %v", k.Data, open)
			}
			for _, a := range k.Attr {
				if form, ok := attributes[a.Key]; !ok || form != nil && !form.MatchString(a.Val) {
					t.Fatalf("<%s> has %s=%q", k.Data, a.Key, a.Val)
				}
			}
			if k.Type == html.StartTagToken && k.Data != "meta" && k.Data != "img" {
				open = append(open, k.Data)
			}
		case html.EndTagToken:
			k := z.Token()
			if len(open) == 0 || open[len(open)-1] != k.Data {
				t.Fatalf("</%s> where %v is open", k.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken, html.DoctypeToken:
		}
	}
}

func TestNothingThatASessionSaysIsMarkup(t *testing.T) {
	sound(t, page(t, sample(t), "fix-the-build", 0))
	got := page(t, evil(t), hostile, 0)
	sound(t, got)
	if i := strings.IndexFunc(got, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' || r == '\u2066' || r == 0xE0041
	}); i >= 0 {
		t.Errorf("a character that can't be seen: %q", got[max(0, i-30):i+10])
	}
	if !bytes.Equal([]byte(got), bytes.ToValidUTF8([]byte(got), nil)) {
		t.Error("bytes that are no UTF-8")
	}
	seen := words(t, got)
	shown := `<script>alert(1)</script></style></title></pre></details><img src=x onerror=alert(1)><a href="javascript:alert(1)">'"&lt;]]>--><!--␀␇red␛]0;title␇` + "\ufffd31m\ufffd\ufffd[U+202E]gnp[U+2066][U+E0041] ␍end"
	if n := strings.Count(seen, shown); n < 40 {
		t.Errorf("the text stands there %d times: want it wherever it was said\n%s", n, seen)
	}
	if strings.Contains(got, `'"&lt;`) || !strings.Contains(got, "&#39;&#34;&amp;lt;") {
		t.Error("quotes have to be escaped: a text may come to stand in an attribute some day")
	}
	if policy := `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-`; !strings.Contains(got, policy) || strings.Contains(got, "unsafe") || strings.Contains(got, "url(") || strings.Contains(got, "@import") {
		t.Error("the page's policy has to forbid everything but its own style")
	}
}

func TestAnImageOfAnotherTypeIsNotShown(t *testing.T) {
	b := newBook(t)
	b.add("s", 0, journal.Key{}, journal.RunStarted{Agent: "a", Attempt: 1})
	for _, mime := range []string{"image/svg+xml", "image/png", "application/pdf"} {
		b.add("s", 0, key("said", mime), journal.Said{Message: message.New(message.RoleUser, message.File{MIME: mime, Data: "<svg onload=x>"})})
	}
	got := page(t, b, "s", 0)
	if n := strings.Count(got, "<img "); n != 1 || !strings.Contains(got, `src="data:image/png;base64,`) {
		t.Errorf("%d pictures", n)
	}
	sound(t, got)
}

func TestAPageAsItWasAtAnEntry(t *testing.T) {
	b := sample(t)
	got := words(t, page(t, b, "fix-the-build", 27)) // it waits for a person
	for _, want := range []string{"as it was at entry 27", "run-1 pawl interrupted", "bash git push origin main waiting", "Answer none yet", "Run run-2 completed"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	for _, not := range []string{"resumed by", "run-3", "approved by ada"} {
		if strings.Contains(got, not) {
			t.Errorf("%q comes later", not)
		}
	}
	if got := words(t, page(t, b, "fix-the-build", 16)); strings.Contains(got, "Run run-2") || !strings.Contains(got, "task Where are discounts worked out? Answer with the file and the function. unknown") {
		t.Errorf("the task has not begun: %s", got)
	}
}

// A task that works in the background begins behind its call; one session is shown once; one that is gone is named.
func TestTasksStandWhereTheyWereGiven(t *testing.T) {
	b := newBook(t)
	b.add("s", 0, journal.Key{}, journal.RunStarted{Agent: "a", Attempt: 1})
	b.reply("s", "1", ms, message.New(message.RoleAssistant, message.ToolCall{ID: "c", Name: "task", Input: `{}`}))
	b.add("s", ms, key("tool", "c"), journal.ToolFinished{Call: "c", Name: "task", Outcome: journal.OutcomeOK, Background: &journal.Called{ID: "c"}})
	b.reply("s", "2", ms, message.Assistant("I wait."))
	for i, below := range []string{"s/c", "s/gone", "s/c"} {
		b.add("s", ms, key("task", fmt.Sprint(i)), journal.TaskStarted{Call: "c", Session: below})
	}
	b.add("s/c", ms, journal.Key{}, journal.RunStarted{Agent: "below", Attempt: 1})
	b.add("s/c", ms, journal.Key{}, journal.Said{Message: message.User("the task's words")})
	b.add("s/c", ms, key("task", "x"), journal.TaskStarted{Call: "x", Session: "s"}) // nobody's record but a forger's
	got := words(t, page(t, b, "s", 0))
	for _, want := range []string{"It goes on in the background", "I wait.", "Task in session s/c", "the task's words", "Task in session s It stands further up.", "Task in session s/gone It is not in the journal.", "Task in session s/c It stands further up."} {
		i := strings.Index(got, want)
		if i < 0 {
			t.Fatalf("no %q in %s", want, got)
		}
		got = got[i:]
	}
}

func TestAForkSaysWhereItsWayParted(t *testing.T) {
	b := sample(t)
	if err := b.store.Append(context.Background(), "other", 12, journal.Entry{Time: b.now, Data: journal.SessionCreated{Parent: "fix-the-build", At: 12}}); err != nil {
		t.Fatal(err)
	}
	got := words(t, page(t, b, "other", 0))
	if !strings.Contains(got, "forked from session fix-the-build at entry 12") || !strings.Contains(got, "run-1 pawl not finished") || strings.Contains(got, "Step 2") {
		t.Error(got)
	}
}

func TestThereIsNoPageOfNothing(t *testing.T) {
	b := sample(t)
	for name, f := range map[string]func() error{
		"no session": func() error { return trace.HTML(context.Background(), new(bytes.Buffer), b.store, "none", 0) },
		"no entry": func() error {
			return trace.HTML(context.Background(), new(bytes.Buffer), b.store, "fix-the-build", 999)
		},
		"below one": func() error { return trace.HTML(context.Background(), new(bytes.Buffer), b.store, "fix-the-build", -1) },
	} {
		if err := f(); !errdefs.NotFound.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := trace.HTML(ctx, new(bytes.Buffer), b.store, "fix-the-build", 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	full := errors.New("no space left")
	if err := trace.HTML(context.Background(), writer(func([]byte) (int, error) { return 0, full }), b.store, "fix-the-build", 0); !errors.Is(err, full) {
		t.Error(err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// long is a session of n steps, each with a call that reads and one that edits.
func long(t testing.TB, n int) journal.Store {
	t.Helper()
	store, ctx := journal.Memory(), context.Background()
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	all := []journal.Entry{{Time: now, Run: "r", Data: journal.RunStarted{Agent: "a", Attempt: 1}}, {Time: now, Run: "r", Data: journal.Said{Message: message.User("Go on.")}}}
	put := func(k journal.Key, d journal.Data) {
		now = now.Add(time.Millisecond)
		all = append(all, journal.Entry{Time: now, Run: "r", Key: k, Data: d})
	}
	for i := range n {
		step := fmt.Sprint(i)
		read := message.ToolCall{ID: "r" + step, Name: "read", Input: `{"file_path":"a.go"}`}
		edit := message.ToolCall{ID: "e" + step, Name: "edit", Input: `{"file_path":"a.go","old_string":"a\nb\n","new_string":"a\nc\n"}`}
		put(key("model", step), journal.ModelFinished{Message: message.New(message.RoleAssistant, message.Text{Text: "I read, and edit."}, read, edit), Model: "m", Millis: 1})
		for _, c := range []message.ToolCall{read, edit} {
			put(key("judge", c.ID), journal.ToolJudged{Call: c.ID, Verdict: "allow"})
			put(key("tool", c.ID), journal.ToolStarted{Call: journal.CalledOf(c)})
			put(key("tool", c.ID), journal.ToolFinished{Call: c.ID, Name: c.Name, Content: "a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n" + strings.Repeat("a line <of> the file\n", 20), Outcome: journal.OutcomeOK, Millis: 1})
		}
	}
	if err := store.Append(ctx, "s", 0, all...); err != nil {
		t.Fatal(err)
	}
	return store
}

// spread is a session whose steps stand each in a scope of its own, as the branches of a graph do.
func spread(t testing.TB, n int) journal.Store {
	t.Helper()
	all := []journal.Entry{{Run: "r", Data: journal.RunStarted{Agent: "a", Attempt: 1}}}
	for i := range n {
		c := message.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Input: `{"file_path":"a.go"}`}
		in := func(op, id string) journal.Key { return journal.Key{Scope: fmt.Sprint("branch-", i), Op: op, ID: id} }
		for _, e := range []journal.Entry{
			{Key: in("model", "1"), Data: journal.ModelFinished{Message: message.New(message.RoleAssistant, c)}},
			{Key: in("tool", c.ID), Data: journal.ToolStarted{Call: journal.CalledOf(c)}},
			{Key: in("tool", c.ID), Data: journal.ToolFinished{Call: c.ID, Name: c.Name, Content: strings.Repeat("text ", 100), Outcome: journal.OutcomeOK}},
		} {
			e.Run = "r"
			all = append(all, e)
		}
	}
	store := journal.Memory()
	if err := store.Append(context.Background(), "s", 0, all...); err != nil {
		t.Fatal(err)
	}
	return store
}

// What a page costs grows as the session does, and not faster; and it is on its way before the session is read.
func TestAPageIsLinearInItsSession(t *testing.T) {
	cost := func(n int) (size, allocs float64) {
		store := long(t, n)
		allocs = testing.AllocsPerRun(1, func() {
			size = 0
			w := writer(func(b []byte) (int, error) { size += float64(len(b)); return len(b), nil })
			if err := trace.HTML(context.Background(), w, store, "s", 0); err != nil {
				t.Fatal(err)
			}
		})
		return size, allocs
	}
	size, allocs := cost(400)
	size10, allocs10 := cost(4000)
	t.Logf("400 steps: %.0f bytes, %.0f allocations; 4,000 steps: %.0f bytes, %.0f allocations", size, allocs, size10, allocs10)
	if size10 > 1.2*10*size || allocs10 > 1.2*10*allocs {
		t.Error("4,000 steps take more than 12 times what 400 take")
	}
}

// watched tells of each entry that is read.
type watched struct {
	journal.Store
	seen func(e journal.Entry)
}

func (w watched) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range w.Store.Read(ctx, session, after) {
			w.seen(e)
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestAPageIsWrittenWhileItIsRead(t *testing.T) {
	for name, store := range map[string]journal.Store{"one after the other": long(t, 2000), "side by side": spread(t, 2000)} {
		written, most, read := 0, 0, 0
		w := writer(func(b []byte) (int, error) { written += len(b); return len(b), nil })
		if err := trace.HTML(context.Background(), w, watched{store, func(journal.Entry) { read++; most = written }}, "s", 0); err != nil {
			t.Fatal(err)
		}
		if rest := written - most; rest > 100<<10 || written < 1<<20 || read > 2*(2+7*2000)+1 {
			t.Errorf("%s: of %d bytes %d were held back to the end; %d entries were read", name, written, rest, read)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	for _, n := range []int{400, 4000} {
		b.Run(fmt.Sprintf("%d steps", n), func(b *testing.B) {
			store := long(b, n)
			b.ReportAllocs()
			for b.Loop() {
				size := 0
				w := writer(func(p []byte) (int, error) { size += len(p); return len(p), nil })
				if err := trace.HTML(context.Background(), w, store, "s", 0); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(size), "page-bytes/op")
			}
		})
	}
}

package inspector_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// on reads what of a kind is on record in a session.
func on[D journal.Data](t *testing.T, store journal.Store, session string) (all []D) {
	t.Helper()
	for e, err := range store.Read(t.Context(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(D); ok {
			all = append(all, d)
		}
	}
	return all
}

func TestPeopleAnswerInPlace(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	edits := func(id, text string) scripted.Turn {
		return scripted.Turn{Text: "Edit " + id + ".", Calls: []scripted.Call{{ID: id, Name: "edit", Input: `{"file_path":"a.txt","old_string":"a","new_string":"` + text + `"}`}}}
	}
	asks := func(id, input string) scripted.Turn {
		return scripted.Turn{Calls: []scripted.Call{{ID: id, Name: "ask_user", Input: input}}}
	}
	e, err := loop.New(loop.Config{
		Model: scripted.New(edits("e1", "b"), edits("e2", "c"), edits("e3", "d"),
			asks("q1", `{"question":"Which colours?","type":"multiselect","options":[{"label":"red"},{"label":"green"},{"label":"blue"}]}`),
			asks("q2", `{"question":"Shall I?","type":"confirm"}`), asks("q3", `{"question":"What is it called?"}`), scripted.Text("All is answered.")),
		Tools: []tool.Tool{tool.Func("edit", "Edit a file.", func(_ context.Context, in edit) (string, error) { return "now " + in.New, nil }), askuser.New(nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	judge := hook.Middleware{Name: "careful", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name != "edit" {
			return hook.Decision{}, nil
		}
		return hook.Decision{Verdict: hook.Ask, Reason: "edit " + u.Call.ID + "?", Session: true}, nil
	}}
	web := served(t, serve.Of(agent.Agent{ID: "coder", Hooks: []hook.Middleware{judge}}, e, store), serve.Options{})
	p := browse(t, 1400, 900)
	p.open(web.URL)
	p.into("#words", "go"+enter)

	// For the session.
	p.sees("#waiting .card", "edit e1?")
	name := value[string](p, `document.querySelector("#title").textContent`)
	p.do(blur())
	p.keys("A")

	// With another input; what is no JSON is refused on the page.
	p.sees("#waiting .card", "edit e2?")
	p.do(blur())
	p.keys("e")
	p.until(`document.activeElement.name === "input"`)
	value[bool](p, `(document.activeElement.value = "{", true)`)
	p.click(`[data-act="send-edit"]`)
	p.sees("#waiting .problem", "no JSON object")
	value[bool](p, `(document.querySelector("#waiting textarea").value = JSON.stringify({ file_path: "a.txt", old_string: "a", new_string: "by hand" }), true)`)
	p.click(`[data-act="send-edit"]`)

	// Not at all, with the reason.
	p.sees("#waiting .card", "edit e3?")
	p.do(blur())
	p.keys("r")
	p.keys("leave it as it is" + enter)

	// Questions: several choices, yes or no, words.
	p.sees("#waiting .card", "Which colours?")
	p.click(`[data-choice="1"]`)
	p.click(`[data-choice="3"]`)
	p.click(`[data-act="send-answer"]`)
	p.sees("#waiting .card", "Shall I?")
	p.sees(`#waiting [data-choice="2"]`, "no")
	p.click(`[data-choice="1"]`)
	p.sees("#waiting .card", "What is it called?")
	p.into(`#waiting textarea[name="answer"]`, "Pawl"+enter)
	p.sees("#timeline .row.model", "All is answered.")
	p.sees("#state", "completed")

	want := []journal.Answered{
		{ID: "e1", Approved: true, Session: true},
		{ID: "e2", Approved: true, Input: `{"file_path":"a.txt","old_string":"a","new_string":"by hand"}`},
		{ID: "e3", Name: "edit", Text: "leave it as it is"},
		{ID: "q1", Approved: true, Text: "1, 3"},
		{ID: "q2", Approved: true, Text: "yes"},
		{ID: "q3", Approved: true, Text: "Pawl"},
	}
	if d := cmp.Diff(want, on[journal.Answered](t, store, name)); d != "" {
		t.Errorf("-want +on record\n%s", d)
	}
	p.resize(1400, 1900)
	for text, want := range map[string]string{"for the session": "for the session", "approved, edited": "by hand", "rejected": "leave it as it is"} {
		p.row(text)
		p.sees("#detail", want)
	}
}

// talker is a model that says what its calls say, each when it is its turn.
type talker struct {
	model.Model
	mu    sync.Mutex
	calls []func(context.Context, model.StreamHandler) error // the last one is what it says from then on
}

func (m *talker) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	m.mu.Lock()
	next := m.calls[0]
	if len(m.calls) > 1 {
		m.calls = m.calls[1:]
	}
	m.mu.Unlock()
	return next(ctx, cb)
}

// gate is passed once for each time that it is opened.
type gate chan struct{}

func (g gate) open(t *testing.T) {
	t.Helper()
	select {
	case g <- struct{}{}:
	case <-time.After(patience):
		t.Fatal("nobody came to the gate")
	}
}

func (g gate) pass(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// locked gives a copy of what a lock is for.
func locked[T any](mu *sync.Mutex, v *T) *T {
	mu.Lock()
	defer mu.Unlock()
	w := *v
	return &w
}

func says(text string) model.StreamResult { return model.StreamResult{Text: text} }

func whole(text string, calls ...message.ToolCall) model.StreamResult {
	stop := model.StopEnd
	if len(calls) > 0 {
		stop = model.StopTools
	}
	return model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant(text, calls...), Stop: stop, Usage: model.Usage{Input: 10, Output: 5}}}
}

func TestARunUnderWay(t *testing.T) {
	inBrowser(t)
	store, g := journal.Memory(), make(gate)
	say := func(steps ...any) func(context.Context, model.StreamHandler) error {
		return func(ctx context.Context, cb model.StreamHandler) error {
			for _, s := range steps {
				var err error
				switch s := s.(type) {
				case gate:
					err = s.pass(ctx)
				case model.StreamResult:
					err = cb(s)
				case error:
					err = s
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	m := &talker{Model: scripted.New(), calls: []func(context.Context, model.StreamHandler) error{
		say(says("A wrong "), says("beginning"), g, &model.Error{Provider: "x", Kind: errdefs.NotAvailable, Message: "overloaded for now"}),
		say(model.StreamResult{Reasoning: "Hm, hm."}, says("One, "), g, says("two, "), g, whole("One, two, three.")),
		say(says("I heard you."), g, whole("I heard you.", message.ToolCall{ID: "r1", Name: "read", Input: `{"file_path":"x"}`})),
		say(says("Going on"), g, whole("Going on.", message.ToolCall{ID: "r2", Name: "read", Input: `{"file_path":"y"}`})),
	}}
	var reads atomic.Int64 // each gives something else, so that the loop does not think that it turns in circles
	read := tool.Func("read", "Read a file.", func(_ context.Context, in path) (string, error) { return fmt.Sprint(in.Path, reads.Add(1)), nil }, tool.ReadOnly)
	e, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{read}, Middleware: []model.Middleware{resilience.Retry(resilience.RetryPolicy{Restart: true, Wait: time.Millisecond})}})
	if err != nil {
		t.Fatal(err)
	}

	// The server is behind something that cuts event streams off, and it wants a token.
	const token = "a-token-of-enough-length"
	s, err := serve.New(serve.Of(agent.Agent{ID: "slow"}, e, store), serve.Options{Tokens: []string{token}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var cuts []context.CancelFunc
	var from []string // where streams were asked for
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			s.ServeHTTP(w, r)
			return
		}
		ctx, cut := context.WithCancel(r.Context())
		mu.Lock()
		cuts, from = append(cuts, cut), append(from, r.Header.Get("Last-Event-ID"))
		mu.Unlock()
		s.ServeHTTP(w, r.WithContext(ctx))
		if ctx.Err() != nil {
			panic(http.ErrAbortHandler) // in the middle of the answer
		}
	}))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	cut := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range cuts {
			c()
		}
		cuts = nil
	}

	p := browse(t, 1400, 900)
	p.excused = []string{"status of 401", "ERR_INCOMPLETE_CHUNKED_ENCODING"}
	p.open(web.URL)
	p.sees("dialog", "A token is needed")
	p.keys("a-wrong-token-of-some-length" + enter)
	p.sees("dialog", "not one of this server's")
	p.picture("token")
	p.keys(token + enter)
	p.sees("#sum", "0 sessions")
	p.until(`sessionStorage.getItem("pawl-token") && !localStorage.getItem("pawl-token") && !document.cookie && !location.href.includes("token")`)

	// Words are seen as they come; those of an attempt that failed are taken back.
	p.into("#words", "begin"+enter)
	p.sees("#timeline .row.model .words.live", "A wrong beginning")
	name := value[string](p, `document.querySelector("#title").textContent`)
	g.open(t)
	p.sees("#timeline .row.model .words.live", "One, ")
	p.until(`!document.querySelector("#timeline").textContent.includes("A wrong beginning")`)
	p.row("One, ")
	p.sees("#detail", "overloaded for now")
	p.sees("#detail", "Hm, hm.")
	p.sees("#timeline .row.model", "retried")
	p.picture("streaming")

	// Cut off in mid-word, the page goes on where it was: nothing twice, nothing missing.
	cut()
	g.open(t)
	p.until(`document.querySelector("#timeline .row.model .words.live")?.textContent === "One, two, "`)
	mu.Lock()
	if len(from) < 2 || from[len(from)-1] == from[0] { // the page has had more than when it came
		t.Errorf("streams were asked for from %q", from)
	}
	mu.Unlock()

	// A word to the run under way.
	p.sees("#send", "Steer")
	p.into("#words", "and be polite"+enter)
	p.sees("#timeline .row.said", "and be polite")
	g.open(t)
	p.sees("#timeline .row.model", "One, two, three.")
	p.sees("#timeline .row.model .words.live", "I heard you.")
	asked := len(*locked(&mu, &from))
	cut()
	for len(*locked(&mu, &from)) == asked {
		p.until(`true`)
	}
	p.sees("#live", "live")
	p.until(`document.querySelector("#timeline .row.model .words.live")?.textContent === "I heard you."`)
	seqs := value[[]float64](p, `[...document.querySelectorAll("#timeline .row .seq")].map((e) => +e.textContent)`)
	if !slices.IsSorted(seqs) || len(slices.Compact(slices.Clone(seqs))) != len(seqs) {
		t.Errorf("entries are twice on the page, or out of order: %v", seqs)
	}

	// Interrupted at its next step, taken up again, and ended.
	p.click("#interrupt")
	for left := false; !left; left = value[bool](p, `document.querySelector("#state").textContent === "interrupted"`) {
		select { // a step may be over before the server hears of it: then it is the next one
		case g <- struct{}{}:
			p.until(`!document.querySelector("#timeline .row.model .words.live") || document.querySelector("#timeline .row.model .words.live").textContent === "Going on"`)
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.sees("#timeline .row.note", "by a person; it can be resumed")
	p.click("#resume")
	p.sees("#timeline .row.model .words.live", "Going on")
	p.click("#cancel")
	p.sees("#state", "canceled")
	p.until(`!document.querySelector("#timeline .live")`)
	p.sees("#send", "Run")

	// The token is kept for the tab.
	p.do(chromedp.Reload())
	p.sees("#timeline .row.model", "One, two, three.")
	if value[bool](p, `!!document.querySelector("dialog")`) {
		t.Error("it asks for the token again")
	}
	if got := on[journal.RunFinished](t, store, name); len(got) != 1 || got[0].Status != "canceled" {
		t.Errorf("on record: %+v", got)
	}
	if got := on[journal.Said](t, store, name); len(got) != 2 || got[1].Message.Text() != "and be polite" {
		t.Errorf("on record is %d times that somebody spoke", len(got))
	}
}

func TestKeysThemesAndANarrowWindow(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	long(t, store, "one", 60)
	long(t, store, "two", 40)
	web := served(t, idle(t, store), serve.Options{})
	p := browse(t, 1300, 800)
	p.open(web.URL)
	p.sees("#sessions .item", "one")

	// All by keys: the session, its steps, the list of keys, the raw entry.
	p.keys("s")
	p.keys("one")
	p.sees("#sum", "1 session")
	p.keys(enter)
	p.sees("#title", "one")
	p.until(`document.activeElement.id === "timeline" && document.querySelectorAll("#timeline .row").length > 5`)
	p.first("#timeline")
	p.keys("jjj")
	p.until(`document.querySelector("#timeline .row.selected .seq").textContent === "4" && document.querySelector("#timeline").getAttribute("aria-activedescendant") === document.querySelector("#timeline .row.selected").id`)
	p.keys("k")
	p.until(`document.querySelector("#timeline .row.selected .seq").textContent === "3"`)
	p.keys(enter)
	p.until(`document.activeElement.id === "detail"`)
	p.keys(escape)
	p.until(`document.activeElement.id === "timeline"`)
	p.keys("x")
	p.sees("#detail .raws pre", `"kind": "said"`)
	p.keys("?")
	p.sees("dialog", "search in this session")
	p.picture("keys")
	p.keys(escape)
	p.until(`!document.querySelector("dialog")`)
	p.keys("/")
	p.keys("step")
	p.sees("#found", "1 of")
	p.keys(enter)
	p.sees("#found", "2 of")
	p.keys(escape)
	p.keys("n")
	p.sees("#title", "New session") // nothing is searched for
	p.keys(escape)
	value[bool](p, `(history.back(), true)`)
	p.sees("#title", "one")

	// What can be reached has a name and a role.
	p.named()
	p.click("#fork")
	p.until(`document.querySelector("dialog")`)
	p.named()
	p.keys(escape)

	// Dark and light: as the system is, until somebody says otherwise; that is kept.
	bg := `getComputedStyle(document.body).backgroundColor`
	light := value[string](p, bg)
	p.prefers("dark")
	dark := value[string](p, bg)
	if light == dark {
		t.Errorf("dark or light, it is %s", dark)
	}
	p.do(blur())
	p.keys("tt")
	if got := value[string](p, bg); got != light {
		t.Errorf("light by the switch it is %s", got)
	}
	p.do(chromedp.Reload())
	p.sees("#title", "one")
	if got := value[string](p, bg); got != light {
		t.Errorf("light by the switch, loaded again, it is %s", got)
	}

	// A narrow window has the same, one thing at a time.
	p.resize(420, 800)
	p.until(`getComputedStyle(document.querySelector("#side")).display === "none"`)
	p.row("Go through module")
	p.until(`getComputedStyle(document.querySelector("#detail")).display !== "none"`)
	p.sees("#detail", "Go through module 1")
	p.picture("narrow-details")
	p.click("#detail .close")
	p.until(`getComputedStyle(document.querySelector("#detail")).display === "none"`)
	p.picture("narrow")
	if value[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("a narrow window has to be scrolled sideways")
	}
	p.click("#menu")
	value[bool](p, `(document.querySelector("#filter").value = "two", document.querySelector("#filter").dispatchEvent(new Event("input")), true)`)
	p.sees("#sum", "1 session")
	p.click("#sessions .item")
	p.sees("#title", "two")
	p.until(`getComputedStyle(document.querySelector("#side")).display === "none"`)
}

// named holds what can have the focus to having a name, as readers of the page are told it.
func (p *tab) named() {
	p.Helper()
	var nodes []*accessibility.Node
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		got, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err == nil {
			nodes = got.Nodes
		}
		return err
	}))
	said := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		return strings.Trim(v.Value.String(), `"`)
	}
	roles := map[string]int{}
	for _, n := range nodes {
		role := said(n.Role)
		roles[role]++
		if slices.Contains([]string{"button", "textbox", "searchbox", "combobox", "checkbox", "listbox", "option", "dialog"}, role) && !n.Ignored && said(n.Name) == "" {
			p.Errorf("a %s without a name", role)
		}
	}
	if roles["button"] == 0 {
		p.Errorf("what can be reached: %v", roles)
	}
}

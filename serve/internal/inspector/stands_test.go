package inspector_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

func put(t *testing.T, store journal.Store, session string, after int64, all ...journal.Entry) {
	t.Helper()
	if err := store.Append(t.Context(), session, after, all...); err != nil {
		t.Fatal(err)
	}
}

// begun are the entries of a run that is under way.
func begun(run, dir, prompt string) []journal.Entry {
	return []journal.Entry{
		{Run: run, Data: journal.RunStarted{Agent: "coder", Owner: "other", Attempt: 1, Dir: dir}},
		{Run: run, Data: journal.Said{Message: message.User(prompt)}},
	}
}

// A run that another process drives is one; when that process is gone the page says so, and offers to go on. While the server is away nothing is offered that can't be done.
func TestARunWhoseProcessDied(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	put(t, store, "s", 0, journal.Entry{Data: journal.SessionCreated{}})
	put(t, store, "s", 1, append(begun("r1", "", "Mend the roof, please."), journal.Entry{Run: "r1", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelStarted{Model: "m"}})...)
	lease := func(until time.Time) {
		t.Helper()
		if err := store.Lease(t.Context(), "s", "other", until); err != nil {
			t.Fatal(err)
		}
	}
	lease(time.Now().Add(time.Hour))

	s, err := serve.New(idle(t, store), serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	away, cuts := false, []context.CancelFunc(nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		mu.Lock()
		gone := away
		cuts = append(cuts, cut)
		mu.Unlock()
		if !gone {
			s.ServeHTTP(w, r.WithContext(ctx))
		}
		if gone || ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	leave := func(yes bool) {
		mu.Lock()
		defer mu.Unlock()
		away = yes
		for _, cut := range cuts {
			cut()
		}
		cuts = nil
	}

	p := browse(t, 1280, 800, fastClock)
	p.excused = []string{"ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE"}
	p.open(web.URL + "/#/s/s")
	p.sees("#live", "live")
	p.sees("#state", "running")
	p.sees("#send", "Steer")
	p.until(`!document.querySelector("#interrupt") && !document.querySelector("#resume")`)

	leave(true)
	p.sees("#live", "cut off")
	p.until(`document.querySelector("#send").disabled && document.querySelector("#words").placeholder === "The server does not answer"`)
	p.sees("#toast", "The server does not answer")
	p.picture("away")
	lease(time.Time{})
	leave(false)

	p.sees("#live", "live")
	p.sees("#state", "its process died")
	p.until(`document.querySelector("#toast").hidden`) // it answers
	p.sees("#timeline .row.run", "its process died")
	p.sees("#sessions .item .sub", "its process died")
	p.sees("#send", "Run")
	p.until(`document.querySelector("#resume.primary") && !document.querySelector("#resume").disabled && !document.querySelector("#timeline .live")`)
	took := value[string](p, `document.querySelector("#timeline .row.model .ms").textContent + document.querySelector("#stats").textContent`)
	value[bool](p, `new Promise((done) => setTimeout(() => done(true), 2500))`) // the page's clock shows seconds
	if again := value[string](p, `document.querySelector("#timeline .row.model .ms").textContent + document.querySelector("#stats").textContent`); again != took {
		t.Errorf("its time goes on: %s, then %s", took, again)
	}
	p.picture("died")
	p.click("#resume")
	p.sees("#state", "completed")
	p.sees("#timeline .row.run", "completed")

	// So it is when the server was there all the time.
	p.until(`document.querySelector("#send").textContent === "Run"`)
	lease(time.Now().Add(time.Hour))
	last := int64(0)
	for e, err := range store.Read(t.Context(), "s", 0) {
		if last = e.Seq; err != nil {
			t.Fatal(err)
		}
	}
	put(t, store, "s", last, begun("r2", "", "And the door.")...)
	p.sees("#send", "Steer")
	lease(time.Time{})
	p.sees("#state", "its process died")
	p.sees("#timeline .row.run", "its process died")
}

// What waited in a run that a new prompt closed waits no more.
func TestWhatAClosedRunAskedIsOver(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	past := time.Now().Add(-time.Hour)
	all := append([]journal.Entry{{Data: journal.SessionCreated{}}}, begun("r1", "", "One.")...)
	all = append(all, journal.Entry{Run: "r1", Data: journal.Asked{ID: "q1", Prompt: "Which colour?"}}, journal.Entry{Run: "r1", Data: journal.Asked{ID: "c1", Call: &journal.Called{ID: "c1", Name: "bash", Input: `{"command":"ls"}`}}}, journal.Entry{Run: "r1", Data: journal.Parked{Cause: "awaiting_person"}})
	for i := range all {
		all[i].Time = past
	}
	put(t, store, "s", 0, all...)
	web := served(t, idle(t, store), serve.Options{})
	p := browse(t, 1280, 800)
	p.open(web.URL + "/#/s/s")
	p.sees("#live", "live")
	p.sees("#timeline .row.question", "waiting for you")
	p.sees("#state", "waits for you")
	p.sees("#sessions .item .sub", "waits for you")
	p.until(`document.querySelector("#send").disabled`) // a prompt would close it
	put(t, store, "s", 6, append(begun("r2", "", "Two."), journal.Entry{Run: "r2", Data: journal.RunFinished{Status: "completed", Committed: true}})...)
	p.sees("#timeline .row.run", "closed by a new prompt")
	p.sees("#timeline .row.question", "canceled")
	p.sees("#timeline .row.tool", "canceled")
	if value[bool](p, `document.querySelector("#timeline").textContent.includes("waiting for you")`) {
		t.Error("it waits still")
	}
	p.sees("#timeline .row.question .ms", "1h 00m")
	p.until(`document.querySelector("#waiting").hidden && !document.querySelector("#send").disabled`)
	p.row("Which colour?")
	p.sees("#detail", "not answered: its run is over")
	p.picture("closed")
}

// Who interrupts is told at once that the run stops, and when it has; who hears the page is told what is.
func TestAnInterruptIsSeenAtOnce(t *testing.T) {
	inBrowser(t)
	store, g := journal.Memory(), make(gate)
	say := func(r model.StreamResult) func(context.Context, model.StreamHandler) error {
		return func(ctx context.Context, cb model.StreamHandler) error {
			if err := g.pass(ctx); err != nil {
				return err
			}
			return cb(r)
		}
	}
	m := &talker{Model: scripted.New(), calls: []func(context.Context, model.StreamHandler) error{
		say(whole("Looking.", message.ToolCall{ID: "r1", Name: "read", Input: `{"file_path":"x"}`})), say(whole("Done.")),
	}}
	e, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{tool.Func("read", "Read a file.", func(_ context.Context, in path) (string, error) { return in.Path, nil }, tool.ReadOnly)}})
	if err != nil {
		t.Fatal(err)
	}
	web := served(t, serve.Of(agent.Agent{ID: "slow"}, e, store), serve.Options{})
	p := browse(t, 1280, 800)
	p.open(web.URL)
	p.into("#words", "begin"+enter)
	p.sees("#timeline .row.model", "waits")
	p.click("#interrupt")
	p.sees("#live", "stops behind this step")
	p.sees("#told", "stops behind this step")
	p.until(`document.querySelector("#interrupt").disabled && document.querySelector("#interrupt").textContent === "Stopping…"`)
	p.picture("stopping")
	g.open(t)
	p.sees("#timeline .row.note", "by a person")
	p.sees("#told", "interrupted")
	p.until(`!document.querySelector("#live").textContent.includes("stops")`)
	p.click("#resume")
	p.sees("#told", "under way")
	p.until(`!document.querySelector("#interrupt")?.disabled`)
	g.open(t)
	p.sees("#state", "completed")
	p.sees("#told", "The run is over: completed")
	p.into("#words", "more"+enter)
	p.sees("#told", "under way") // and not that one is over
	g.open(t)
}

// A session that is not there can't be looked at, nor compared with: the page says so and stays where it is.
func TestASessionThatIsNotThere(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	long(t, store, "one", 40)
	web := served(t, idle(t, store), serve.Options{})
	p := browse(t, 1280, 800)
	p.excused = []string{"status of 404"}
	p.open(web.URL + "/#/s/one")
	p.sees("#live", "live")
	p.keys("c")
	p.until(`document.querySelector("dialog input")`)
	p.keys(enter)
	p.sees("dialog", "Which one?")
	p.picture("compare-with")
	p.keys("nope" + enter)
	p.sees("#toast", "There is no session nope.")
	p.until(`!document.querySelector("#both") && location.hash === "#/s/one"`)
	p.click("#toast .close")
	p.until(`document.querySelector("#toast").hidden`)
	p.sees("#title", "one")
	p.sees("#live", "live")
	p.open(web.URL + "/#/s/nosuch")
	p.sees("#toast", "There is no session nosuch.")
	p.sees("#title", "New session")
	p.until(`document.querySelector("#fork").disabled && document.querySelector("#compare").disabled`)
}

// A call is approved for once, for the session, or, by a rule, with its like: the page says which.
func TestACallIsApprovedWithItsLike(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	all := append([]journal.Entry{{Data: journal.SessionCreated{}}}, begun("r1", t.TempDir(), "Fetch it.")...)
	put(t, store, "s", 0, append(all, journal.Entry{Run: "r1", Data: journal.Asked{ID: "c1", Prompt: "no rule is about it", Call: &journal.Called{ID: "c1", Name: "webfetch", Input: `{"url":"https://example.com/a"}`}}}, journal.Entry{Run: "r1", Data: journal.Parked{Cause: "awaiting_person"}})...)
	web := served(t, idle(t, store), serve.Options{})
	p := browse(t, 1280, 800)
	p.open(web.URL + "/#/s/s")
	p.sees(`#waiting [data-act="session"]`, "This very call for the session")
	p.sees(`#waiting [data-act="like"]`, "For the session: WebFetch(domain:example.com)")
	if value[bool](p, `(() => { const who = document.querySelector("#timeline .row.tool .who"); return who.scrollWidth > who.clientWidth; })()`) {
		t.Error("the tool's name is cut off, in a window of 1280")
	}
	p.picture("like")
	p.do(blur())
	p.keys("e")
	p.until(`document.activeElement.name === "input"`)
	p.keys("\t")
	p.until(`document.activeElement.dataset.act === "send-edit"`)
	p.keys(escape)
	p.until(`!document.querySelector("#waiting .ask")`)
	p.do(blur())
	p.keys("L")
	p.until(`document.querySelector("#waiting").hidden`)
	if d := cmp.Diff([]journal.Answered{{ID: "c1", Approved: true, Session: true, Rule: "WebFetch(domain:example.com)"}}, on[journal.Answered](t, store, "s")); d != "" {
		t.Errorf("-want +on record\n%s", d)
	}
}

// Sessions are told apart by what they began with, and those that wait are found.
func TestSessionsAreToldApart(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "q1", Name: "ask_user", Input: `{"question":"Which?"}`}}, When: scripted.When{Contains: "Ask me"}}, scripted.Turn{Text: "Done.", When: scripted.When{Contains: "Count"}}), Tools: []tool.Tool{askuser.New(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	web := served(t, serve.Of(agent.Agent{ID: "coder"}, e, store), serve.Options{})
	p := browse(t, 1280, 800)
	p.open(web.URL)
	p.into("#words", "Count the words of the manual."+enter)
	p.sees("#state", "completed")
	p.do(blur())
	p.keys("n")
	p.sees("#title", "New session")
	p.keys("Ask me something." + enter)
	p.sees("#state", "waits for you")
	p.sees("#sessions .item .name", "Count the words of the manual.")
	p.sees("#sessions .item .name", "Ask me something.")
	p.sees("#sessions .item .sub", "waits for you · run-")
	p.until(`!document.querySelector("#timeline .row.tool .live")`) // what asks is not running
	p.picture("titles")
	value[bool](p, `(document.querySelector("#status").value = "waiting", document.querySelector("#status").dispatchEvent(new Event("change")), true)`)
	p.sees("#sum", "1 session")
	// The sum changes before the list is drawn again, so the one that is over may stay for a frame.
	p.until(`!document.querySelector("#sessions").textContent.includes("Count")`)
	p.sees("#sessions .item .name", "Ask me something.")
}

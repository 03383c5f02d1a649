package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
)

// Each test named TestDefect… is named after a defect that the format's first runtime has, and would fail on it. Those of packs alone are in package pack.

// byFunc is a model that answers by a function, and streams the answer in one piece.
type byFunc func(ctx context.Context, req model.Request) (*model.Response, error)

func (f byFunc) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	return f(ctx, req)
}

func (f byFunc) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := f(ctx, req)
	if err != nil {
		return err
	}
	if err := cb(model.StreamResult{Text: resp.Message.Text()}); err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// handled has both tools of packOf answered.
func handled(c *pawl.Conversation) *pawl.Conversation {
	fn := func(map[string]any) (any, error) { return "x", nil }
	c.OnTools(map[string]func(map[string]any) (any, error){"look": fn, "pay": fn})
	return c
}

// soon fails when f does not return: a deadlock has no other sign.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " waits for the turn")
	}
}

func streamText(t *testing.T, c *pawl.Conversation, text string) (out string, err error) {
	t.Helper()
	for e, end := range c.Stream(t.Context(), text) {
		if err = end; e.Delta == event.TextDelta {
			out += e.Text
		}
	}
	return out, err
}

func TestDefectSetVarWaitsForTheTurn(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	c := handled(converse(t, packOf(t, looks), byFunc(func(context.Context, model.Request) (*model.Response, error) {
		close(asked)
		<-answer
		return &model.Response{Message: message.Assistant("ok")}, nil
	})))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Send(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	defer close(answer)
	<-asked
	for name, f := range map[string]func(){
		"SetVar":  func() { c.SetVar("k", 1) },
		"SetVars": func() { c.SetVars(map[string]any{"l": 2}) },
		"GetVar":  func() { c.GetVar("k") },
		"OnTool":  func() { handled(c) },
		"Messages": func() {
			if h, err := c.Messages(t.Context()); err != nil || h.Len() != 1 {
				t.Errorf("%d messages, %v", h.Len(), err)
			}
		},
		"PendingTools": func() {
			if _, err := c.PendingTools(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"Subscribe": func() { c.Subscribe(t.Context(), event.Policy{}).Close() },
		"Fork": func() {
			f, err := c.Fork(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_ = f.Close()
		},
	} {
		soon(t, name, f)
	}
}

// Every kind of handler may set a variable of its own conversation, and register handlers.
func TestDefectAHandlerThatSetsAVariableWaitsForItself(t *testing.T) {
	c := converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("1", "look", `{"city":"x"}`), callOf("2", "pay", `{"amount":1}`)), scripted.Text("ok")))
	pawl.OnTyped(c, "look", func(context.Context, struct{ City string }) (any, error) {
		c.SetVar("typed", true)
		c.OnTool("look", func(map[string]any) (any, error) { return nil, nil })
		return "x", nil
	})
	c.OnToolAsync("pay", func(map[string]any) pawl.Pending { c.SetVar("checked", true); return pawl.Pending{} },
		func(map[string]any) (any, error) { c.SetVar("paid", true); return "x", nil })
	soon(t, "a handler", func() {
		if _, err := c.Send(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"typed", "checked", "paid"} {
		if v, _ := c.GetVar(name); v != true {
			t.Errorf("%s is %v", name, v)
		}
	}
}

func TestDefectCloseHangsWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		c, err := pawl.Open(packOf(t, plain), "chat", pawl.WithModel(byFunc(func(context.Context, model.Request) (*model.Response, error) {
			<-answer // it ignores its context
			return nil, context.Canceled
		})))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := c.Send(t.Context(), "a"); err == nil {
					t.Error("a turn was completed")
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if err := c.Close(); !errdefs.Timeout.Is(err) || !strings.Contains(err.Error(), c.Session()) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("Close took %v", d)
		}
		close(answer)
		wg.Wait()
	})
}

// A model that never stops calling is stopped by the limits that the specification has for a pack that says none, in each turn anew.
func TestDefectLimitsThatNobodySetAreNone(t *testing.T) {
	for name, tc := range map[string]struct{ each, ran, asked int }{
		"5 rounds": {1, 5, 6},
		"10 calls": {5, 10, 3},
	} {
		t.Run(name, func(t *testing.T) {
			asked, ran := 0, 0
			c := handled(converse(t, packOf(t, looks), byFunc(func(context.Context, model.Request) (*model.Response, error) {
				asked++
				var calls []message.ToolCall
				for i := range tc.each {
					id := fmt.Sprintf("c%d_%d", asked, i)
					calls = append(calls, call(id, "look", `{"city":"`+id+`"}`))
				}
				return &model.Response{Message: message.Assistant("", calls...)}, nil
			})))
			var mu sync.Mutex
			c.OnTool("look", func(map[string]any) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				ran++
				return fmt.Sprint("seen ", ran), nil
			})
			for turn, take := range []func() error{
				func() error { _, err := c.Send(t.Context(), "a"); return err },
				func() error { _, err := streamText(t, c, "b"); return err },
				func() error { _, err := c.Send(t.Context(), "c"); return err },
			} {
				asked, ran = 0, 0
				if err := take(); !errdefs.BudgetExceeded.Is(err) {
					t.Errorf("turn %d: %v", turn, err)
				}
				if asked != tc.asked || ran != tc.ran {
					t.Errorf("turn %d: asked %d times, %d calls ran; want %d and %d", turn, asked, ran, tc.asked, tc.ran)
				}
			}
		})
	}
}

func TestDefectAPanicInAHandlerEndsTheProcess(t *testing.T) {
	boom := func(args map[string]any) (any, error) { return args["to"].(string), nil }
	for name, register := range map[string]func(*pawl.Conversation){
		"OnTool":  func(c *pawl.Conversation) { c.OnTool("pay", boom) },
		"OnTools": func(c *pawl.Conversation) { c.OnTools(map[string]func(map[string]any) (any, error){"pay": boom}) },
		"OnToolCtx": func(c *pawl.Conversation) {
			c.OnToolCtx("pay", func(_ context.Context, a map[string]any) (any, error) { return boom(a) })
		},
		"OnTyped": func(c *pawl.Conversation) {
			pawl.OnTyped(c, "pay", func(_ context.Context, in struct{ To *string }) (any, error) { return *in.To, nil })
		},
		"OnToolAsync": func(c *pawl.Conversation) {
			c.OnToolAsync("pay", func(map[string]any) pawl.Pending { return pawl.Pending{} }, boom)
		},
		"its check": func(c *pawl.Conversation) {
			c.OnToolAsync("pay", func(a map[string]any) pawl.Pending { return pawl.Pending{Reason: a["to"].(string)} },
				func(map[string]any) (any, error) { t.Error("a call ran that its check panicked on"); return nil, nil })
		},
		"what makes JSON of its result": func(c *pawl.Conversation) {
			c.OnTool("pay", func(map[string]any) (any, error) { return explosive{}, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := handled(converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("1", "pay", `{"amount":1}`)), scripted.Text("Sorry."), scripted.Text("Still here."))))
			register(c)
			if got := send(t, c, "a").Text(); got != "Sorry." {
				t.Errorf("the model says %q", got)
			}
			h, err := c.Messages(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for r := range message.Of[message.ToolResult](h.At(2)) {
				if !r.IsError || !strings.Contains(r.Content, "panic") {
					t.Errorf("the model was told %+v", r)
				}
			}
			if got := send(t, c, "b").Text(); got != "Still here." {
				t.Errorf("then: %q", got)
			}
		})
	}
}

type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("no JSON of this") }

// A conversation keeps the pack that it was opened with; whoever opens the file again has the one that is there now.
func TestDefectAnEditedPackIsNeverReloaded(t *testing.T) {
	file := packOf(t, `"system_template": "one"`)
	edit := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := listening(scripted.Text("1"))
	first := converse(t, file, m)
	edit("one", "two") // as long, maybe in one tick of the file's clock
	second := converse(t, file, m)
	send(t, first, "a")
	send(t, second, "a")
	wantLines(t, m.systems(), "one", "two")
	edit("system_template", "system_tamplate")
	var wrong *pack.Error
	if _, err := pawl.Open(file, "chat", pawl.WithModel(m)); !errors.As(err, &wrong) {
		t.Errorf("what was right stays so: %v", err)
	}
}

// Two tenants, one pack: what one has registered or set the other does not see.
func TestDefectConversationsOfOnePackShareWhatTheyChange(t *testing.T) {
	file, store, loader := packOf(t, `"system_template": "For {{who}}.", "tools": ["look"], "variables": [{"name": "who", "type": "string", "required": true}]`), journal.Memory(), &pack.Loader{}
	vars := map[string]any{"who": "Ada"}
	var wg sync.WaitGroup
	for _, who := range []string{"Ada", "Bob", "Cy", "Di"} {
		wg.Go(func() {
			m := listening(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("ok"), scripted.Text("again"))
			c := converse(t, file, m, pawl.WithJournal(store), pawl.WithLoader(loader), pawl.WithVars(vars))
			c.SetVar("who", who)
			c.OnTool("look", func(map[string]any) (any, error) { return "seen by " + who, nil })
			for _, text := range []string{"a", "b"} {
				if _, err := c.Send(t.Context(), text); err != nil {
					t.Error(err)
				}
			}
			wantLines(t, m.systems(), "For "+who+".", "For "+who+".", "For "+who+".")
			wantLines(t, transcript(t, c), "user: a", `assistant: [look {"city":"x"}]`, "tool: [look = seen by "+who+"]", "assistant: ok", "user: b", "assistant: again")
		})
	}
	wg.Wait()
	if vars["who"] != "Ada" {
		t.Errorf("the program's own map has %v", vars["who"])
	}
	bare := converse(t, file, scripted.New(scripted.Text("x")), pawl.WithJournal(store), pawl.WithLoader(loader), pawl.WithVars(vars))
	if _, err := bare.Send(t.Context(), "a"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "look") {
		t.Errorf("it has another conversation's handlers: %v", err)
	}
}

func TestDefectWhatTakesLongerThan30SecondsIsCutOff(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *pawl.Conversation) (string, error){
		"send": func(t *testing.T, c *pawl.Conversation) (string, error) {
			r, err := c.Send(t.Context(), "a")
			return r.Text(), err
		},
		"stream": func(t *testing.T, c *pawl.Conversation) (string, error) { return streamText(t, c, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := func(ctx context.Context, d time.Duration) error {
					select {
					case <-time.After(d):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				m := scripted.New(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("at last"))
				c := handled(converse(t, packOf(t, looks), byFunc(func(ctx context.Context, req model.Request) (*model.Response, error) {
					if err := wait(ctx, 20*time.Minute); err != nil { // until its first word
						return nil, err
					}
					return m.Complete(ctx, req)
				})))
				c.OnToolCtx("look", func(ctx context.Context, _ map[string]any) (any, error) { return "seen", wait(ctx, time.Hour) })
				began := time.Now()
				if text, err := run(t, c); err != nil || text != "at last" {
					t.Errorf("got %q, %v", text, err)
				}
				if d := time.Since(began); d != 100*time.Minute {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

func TestDefectErrorsCantBeToldApart(t *testing.T) {
	file := packOf(t, looks+banned)
	fails := func(turns ...scripted.Turn) func(*testing.T) error {
		return func(t *testing.T) error {
			_, err := handled(converse(t, file, scripted.New(turns...))).Send(t.Context(), "a")
			return err
		}
	}
	opens := func(path, prompt string) func(*testing.T) error {
		return func(*testing.T) error {
			_, err := pawl.Open(path, prompt, pawl.WithModel(scripted.New()))
			return err
		}
	}
	for name, tc := range map[string]struct {
		do   func(*testing.T) error
		want *errdefs.Class
		text string
	}{
		"closed": {func(t *testing.T) error {
			c := converse(t, file, scripted.New())
			_ = c.Close()
			_, err := c.Send(t.Context(), "a")
			return err
		}, errdefs.NotAvailable, "closed"},
		"no such session": {func(t *testing.T) error {
			_, err := pawl.Resume(t.Context(), "gone", file, "chat", pawl.WithModel(scripted.New()), pawl.WithJournal(journal.Memory()))
			return err
		}, errdefs.NotFound, `session "gone"`},
		"no such prompt": {opens(file, "chaat"), errdefs.NotFound, `prompt "chaat"`},
		"no such pack":   {opens(file+".gone", "chat"), errdefs.NotFound, file + ".gone"},
		"a wrong pack":   {opens(packOf(t, `"system_template": "{{"`), "chat"), errdefs.Validation, "system_template"},
		"no model":       {func(t *testing.T) error { noKeys(t); _, err := pawl.Open(file, "chat"); return err }, errdefs.NotAvailable, "OPENAI_API_KEY"},
		"the wrong key":  {fails(scripted.Fail(401)), errdefs.Unauthorized, "401"},
		"too fast":       {fails(scripted.Fail(429)), errdefs.RateLimit, "429"},
		"too long":       {fails(scripted.Fail(413)), errdefs.Overflow, "413"},
		"not understood": {fails(scripted.Fail(400)), errdefs.Validation, "400"},
		"overloaded":     {fails(scripted.Fail(503)), errdefs.NotAvailable, "503"},
		"a banned word":  {fails(scripted.Text("a refund")), errdefs.PolicyDenied, "banned_words"},
		"no handler": {func(t *testing.T) error {
			_, err := converse(t, file, scripted.New()).Send(t.Context(), "a")
			return err
		}, errdefs.Validation, "look, pay"},
		"no such tool": {func(t *testing.T) error {
			c := handled(converse(t, file, scripted.New()))
			c.OnTool("fly", nil)
			_, err := c.Send(t.Context(), "a")
			return err
		}, errdefs.Validation, `"fly"`},
		"nothing to go on with": {func(t *testing.T) error {
			_, err := handled(converse(t, file, scripted.New())).Continue(t.Context())
			return err
		}, errdefs.NotFound, ""},
		"nothing that waits": {func(t *testing.T) error { return converse(t, file, scripted.New()).ResolveTool(t.Context(), "c") }, errdefs.Conflict, "waits"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(t)
			if errdefs.Of(err) != tc.want || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v: %v, want %v with %q", errdefs.Of(err), err, tc.want, tc.text)
			}
		})
	}
}

// What the provider answered comes with the error, through Send and Stream, from a model of the program's own and over HTTP.
func TestDefectAProvidersErrorHasNoStatus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": {"message": "no such model", "code": "model_not_found"}}`, http.StatusNotFound)
	}))
	defer s.Close()
	file := packOf(t, plain)
	overHTTP, err := pawl.Open(file, "chat", pawl.WithModelName("gpt-x", model.WithBaseURL(s.URL)), pawl.WithAPIKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = overHTTP.Close() }()
	forbidden := byFunc(func(context.Context, model.Request) (*model.Response, error) {
		return nil, &model.Error{Provider: "own", Status: 403, Kind: errdefs.Unauthorized}
	})
	for status, c := range map[int]*pawl.Conversation{403: converse(t, file, forbidden), 404: overHTTP} {
		_, sent := c.Send(t.Context(), "a")
		_, streamed := streamText(t, c, "b")
		for how, err := range map[string]error{"send": sent, "stream": streamed} {
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Status != status || failed.Provider == "" {
				t.Errorf("%d, %s: %v", status, how, err)
			}
		}
	}
}

// What a handler says is an error to the model, and to listeners a result, marked as an error.
func TestDefectAToolsErrorIsToldAsSuccess(t *testing.T) {
	c := handled(converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("c", "look", `{"city":"x"}`), callOf("d", "look", `{}`)), scripted.Text("Sorry."))))
	c.OnTool("look", func(map[string]any) (any, error) { return nil, errdefs.NotFound.Errorf("no such city") })
	s := c.Subscribe(t.Context(), event.Policy{}, pawl.EventToolResult)
	if got := send(t, c, "a").Text(); got != "Sorry." {
		t.Errorf("got %q", got)
	}
	h, err := c.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for r := range message.Of[message.ToolResult](h.At(2)) {
		if !r.IsError {
			t.Errorf("the model was told %+v", r)
		}
	}
	var got []string
	for _, e := range collect(t, c, s) {
		id, _ := e.Tool()
		got = append(got, fmt.Sprint(id, " ", e.Data["is_error"], " ", e.Data["outcome"], " ", strings.Contains(fmt.Sprint(e.Data["content"]), "city")))
	}
	wantLines(t, got, "d true denied true", "c true error true")
}

package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack/guard"
)

func repeated(n int, t scripted.Turn) (all []scripted.Turn) {
	for range n {
		all = append(all, t)
	}
	return all
}

func TestDefectALateListenerGetsWhatIsOver(t *testing.T) {
	c := converse(t, packOf(t, plain), scripted.New(repeated(6, scripted.Text("x"))...))
	for i := range 5 {
		send(t, c, fmt.Sprint("old ", i))
	}
	early := c.Subscribe(t.Context(), event.Policy{}, pawl.EventSend)
	send(t, c, "new")
	late := c.Subscribe(t.Context(), event.Policy{})
	var got []string
	for _, e := range collect(t, c, early) {
		got = append(got, e.Text())
	}
	wantLines(t, got, "new")
	if n := len(collect(t, c, late)); n > 0 {
		t.Errorf("%d events that were over", n)
	}
}

// However often a listener was slow, it gets what comes next.
func TestDefectASlowListenerIsMutedForEver(t *testing.T) {
	const n = 20
	for name, policy := range map[string]event.Policy{"waited for": {Buffer: 1}, "not waited for": {Full: event.DropNewest, Buffer: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := converse(t, packOf(t, plain), scripted.New(repeated(n, scripted.Text("x"))...))
				s := c.Subscribe(t.Context(), policy, pawl.EventSend)
				var got []string
				var wg sync.WaitGroup
				wg.Go(func() {
					for e := range s.Events() {
						got = append(got, e.Text())
						time.Sleep(time.Hour)
					}
				})
				for i := range n {
					send(t, c, fmt.Sprint(i))
					if i%5 == 4 {
						time.Sleep(24 * time.Hour) // the listener has caught up
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				wg.Wait()
				if policy.Full == event.Block {
					if len(got) != n || s.Lost() != 0 {
						t.Errorf("got %q, lost %d", got, s.Lost())
					}
					return
				}
				if int64(len(got))+s.Lost() != n || s.Lost() == 0 {
					t.Errorf("got %d, lost %d of %d", len(got), s.Lost(), n)
				}
				for _, first := range []string{"0", "5", "10", "15"} { // of each bout
					if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+first+" ") {
						t.Errorf("after a bout it got no %s: %q", first, got)
					}
				}
			})
		})
	}
}

// loud is a host that panics at each event.
type loud struct{ engine.NoopHost }

func (loud) Listening() bool                            { return true }
func (loud) Publish(context.Context, event.Event) error { panic("boom") }

// A panic of whoever listens is his own: it is not swallowed, and neither the turn nor other listeners have a part in it.
func TestDefectAListenersPanicIsSwallowed(t *testing.T) {
	caught := func(f func()) (p any) {
		defer func() { p = recover() }()
		f()
		return nil
	}
	t.Run("of a subscription", func(t *testing.T) {
		c := converse(t, packOf(t, plain), scripted.New(scripted.Text("1"), scripted.Text("2")))
		bad, good := c.Subscribe(t.Context(), event.Policy{Buffer: 1}), c.Subscribe(t.Context(), event.Policy{}, pawl.EventResponse)
		panics := make(chan any, 1)
		go func() {
			panics <- caught(func() {
				for e := range bad.Events() {
					panic(e.Type)
				}
			})
		}()
		for _, want := range []string{"1", "2"} {
			if got := send(t, c, "a").Text(); got != want {
				t.Errorf("got %q", got)
			}
		}
		if p := <-panics; p != pawl.EventType("session.created") {
			t.Errorf("the listener's panic is %v", p)
		}
		if n := len(collect(t, c, good)); n != 2 {
			t.Errorf("the other listener got %d", n)
		}
	})
	t.Run("of a stream's loop", func(t *testing.T) {
		c := converse(t, packOf(t, plain), scripted.New(scripted.Text("1"), scripted.Text("2")))
		if p := caught(func() {
			for e, err := range c.Stream(t.Context(), "a") {
				panic(fmt.Sprint(e.Type(), err))
			}
		}); p != "session.created<nil>" {
			t.Errorf("the loop's panic is %v", p)
		}
		soon(t, "the next turn", func() {
			if _, err := c.Send(t.Context(), "b"); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("of the host", func(t *testing.T) {
		c := converse(t, packOf(t, plain), scripted.New(scripted.Text("1")), pawl.WithHost(loud{}))
		s := c.Subscribe(t.Context(), event.Policy{}, pawl.EventResponse)
		if got := send(t, c, "a").Text(); got != "1" {
			t.Errorf("got %q", got)
		}
		if n := len(collect(t, c, s)); n != 1 {
			t.Errorf("the other listener got %d", n)
		}
	})
}

// words streams so many words, and counts those that it said.
type words struct {
	n    int
	said *int
}

func (w words) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant(strings.Repeat("w ", w.n))}, nil
}

func (w words) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	for range w.n {
		if err := ctx.Err(); err != nil {
			return err
		}
		*w.said++
		if err := cb(model.StreamResult{Text: "w "}); err != nil {
			return err
		}
	}
	resp, err := w.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// 50 streams of 2,000 words are left in their middle, each with a listener that nobody reads: nothing is left of them, before Close and after.
func TestDefectACancelledStreamLeavesGoroutines(t *testing.T) {
	for name, leave := range map[string]func(cancel func()) (stop bool){
		"by leaving the loop":   func(func()) bool { return true },
		"by ending the context": func(cancel func()) bool { cancel(); return false },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails when a goroutine is left that waits for something
				file := packOf(t, plain+banned)
				before := runtime.NumGoroutine()
				var all []*pawl.Conversation
				for range 50 {
					said := 0
					c := converse(t, file, words{2000, &said})
					all = append(all, c)
					ctx, cancel := context.WithCancel(t.Context())
					c.Subscribe(ctx, event.Policy{Full: event.DropOldest, Buffer: 1})
					seen := 0
					for e, err := range c.Stream(ctx, "a") {
						if e.Delta == event.TextDelta {
							seen++
						}
						if err == nil && seen == 3 && leave(cancel) {
							break
						}
					}
					cancel()
					if seen < 3 || said > 10 { // of which some are held back
						t.Errorf("%d words were shown, and %d said", seen, said)
					}
				}
				synctest.Wait()
				if n := runtime.NumGoroutine(); n > before+5 { // those of other tests may end or begin
					t.Errorf("%d goroutines, before %d", n, before)
				}
				for _, c := range all {
					soon(t, "Close", func() {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					})
				}
			})
		})
	}
}

// A reply that is cut by a limit is cut between characters, however the model cuts its pieces.
func TestDefectTruncationCutsInTheMiddleOfACharacter(t *testing.T) {
	const limit = `, "validators": [{"type": "max_length", "fail_on_violation": true, "message": "…", "params": {"max_characters": 4}}]`
	for _, text := range []string{"日本語だよ、ね", "ééééééé", "👍👍👍👍👍👍"} {
		for how, stream := range map[string]bool{"send": false, "stream": true} {
			c := converse(t, packOf(t, plain+limit), chunks{listening(scripted.Text(text))})
			shown, err := "", error(nil)
			if stream {
				shown, err = streamText(t, c, "a")
			} else {
				var resp *pawl.Response
				resp, err = c.Send(t.Context(), "a")
				shown = resp.Text()
			}
			if !errdefs.PolicyDenied.Is(err) || !utf8.ValidString(shown) || !strings.HasSuffix(shown, "…") || utf8.RuneCountInString(shown) > 6 {
				t.Errorf("%s, %s: %q, %v", text, how, shown, err)
			}
		}
	}
}

// A validator that says nothing of enabled is on, in a stream too.
func TestDefectAValidatorWithoutEnabledIsOff(t *testing.T) {
	c := converse(t, packOf(t, plain+banned), listening(scripted.Text("a refund"), scripted.Text("a refund")))
	resp, sent := c.Send(t.Context(), "a")
	shown, streamed := streamText(t, c, "b")
	for how, err := range map[string]error{"send": sent, "stream": streamed} {
		var v *guard.Violation
		if !errors.As(err, &v) && !errdefs.PolicyDenied.Is(err) {
			t.Errorf("%s: %v", how, err)
		}
	}
	if resp.Text() != "a I can't say." || shown != resp.Text() {
		t.Errorf("shown: %q, %q", resp.Text(), shown)
	}
}

// The memory of a conversation is not a cache: what nobody asked for in a year is there.
func TestDefectAnIdleConversationIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := listening(scripted.Text("Hello, Ada."), scripted.Text("Ada."))
		c := converse(t, packOf(t, plain), m)
		send(t, c, "I am Ada.")
		time.Sleep(365 * 24 * time.Hour)
		send(t, c, "Who am I?")
		wantLines(t, transcript(t, c), "user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?", "assistant: Ada.")
		if h := m.asked()[1].Messages; h.Len() != 3 {
			t.Errorf("the model was told %d messages", h.Len())
		}
	})
}

// watcher is a host that keeps the sessions that it is told of.
type watcher struct {
	engine.NoopHost
	mu  sync.Mutex
	saw map[string]bool
}

func (w *watcher) Listening() bool { return true }

func (w *watcher) Publish(_ context.Context, e event.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saw[e.Session] = true
	return nil
}

// observed keeps whose runs it is told of.
type observed struct {
	agent.BaseObserver
	runs *[]string
}

func (o observed) OnRunStart(_ context.Context, info agent.RunInfo, _ *agent.Request) {
	*o.runs = append(*o.runs, info.ContextID)
}

// What one conversation is given (a host, an observer, a journal, a listener) is not the process's: the second has its own.
func TestDefectTheFirstConversationsSettingsAreTheProcesss(t *testing.T) {
	file := packOf(t, plain)
	for range 3 {
		w, runs := &watcher{saw: map[string]bool{}}, []string(nil)
		store := journal.Memory()
		c := converse(t, file, scripted.New(scripted.Text("x")), pawl.WithHost(w), pawl.WithJournal(store), pawl.WithRunOptions(agent.WithObserver(observed{runs: &runs})))
		other := converse(t, file, scripted.New(scripted.Text("x")))
		s := c.Subscribe(t.Context(), event.Policy{}, pawl.EventSend)
		send(t, other, "not mine")
		send(t, c, "mine")
		wantLines(t, runs, c.Session())
		if len(w.saw) != 1 || !w.saw[c.Session()] {
			t.Errorf("the host was told of %v", w.saw)
		}
		if all := collect(t, c, s); len(all) != 1 || all[0].Text() != "mine" {
			t.Errorf("the listener got %v", all)
		}
		if st, err := journal.Open(t.Context(), store, other.Session()); err != nil || st.State().Seq != 0 {
			t.Errorf("one's session is in the other's journal: %v", err)
		}
	}
}

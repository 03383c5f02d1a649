package pawl_test

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// All methods, from several goroutines each, at once, while others close the conversation. What may come of it are classes of errors that say that somebody else was first; -race sees the rest.
func TestEveryMethodOfAConversationIsSafeForConcurrentUse(t *testing.T) {
	const each = 3
	fn := func(map[string]any) (any, error) { return "x", nil }
	drain := func(all func(func(event.Event, error) bool)) (err error) {
		for _, end := range all {
			err = end
		}
		return err
	}
	ops := map[string]func(context.Context, *pawl.Conversation) error{
		"AddMessage": func(ctx context.Context, c *pawl.Conversation) error { return c.AddMessage(ctx, message.User("x")) },
		"AskBefore":  func(_ context.Context, c *pawl.Conversation) error { c.AskBefore("pay", large2); return nil },
		"Clear":      func(ctx context.Context, c *pawl.Conversation) error { return c.Clear(ctx) },
		"Continue":   func(ctx context.Context, c *pawl.Conversation) error { _, err := c.Continue(ctx); return err },
		"ContinueStream": func(ctx context.Context, c *pawl.Conversation) error {
			return drain(c.ContinueStream(ctx))
		},
		"Fork": func(ctx context.Context, c *pawl.Conversation) error {
			f, err := c.Fork(ctx)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"GetVar":   func(_ context.Context, c *pawl.Conversation) error { c.GetVar("k"); return nil },
		"Messages": func(ctx context.Context, c *pawl.Conversation) error { _, err := c.Messages(ctx); return err },
		"Model":    func(_ context.Context, c *pawl.Conversation) error { c.Model(); return nil },
		"OnTool":   func(_ context.Context, c *pawl.Conversation) error { c.OnTool("look", fn); return nil },
		"OnToolHTTP": func(_ context.Context, c *pawl.Conversation) error {
			return c.OnToolHTTP("look", pawl.HTTPTool{URL: "http://127.0.0.1:1/"})
		},
		"OnToolAsync": func(_ context.Context, c *pawl.Conversation) error {
			c.OnToolAsync("pay", large, fn)
			return nil
		},
		"OnToolCtx": func(_ context.Context, c *pawl.Conversation) error {
			c.OnToolCtx("look", func(context.Context, map[string]any) (any, error) { c.SetVar("k", 3); return "x", nil })
			return nil
		},
		"OnTools": func(_ context.Context, c *pawl.Conversation) error {
			c.OnTools(map[string]func(map[string]any) (any, error){"look": fn})
			return nil
		},
		"PendingTools": func(ctx context.Context, c *pawl.Conversation) error { _, err := c.PendingTools(ctx); return err },
		"RejectTool":   func(ctx context.Context, c *pawl.Conversation) error { return c.RejectTool(ctx, "b", "no") },
		"ResolveTool":  func(ctx context.Context, c *pawl.Conversation) error { return c.ResolveTool(ctx, "a") },
		"ResolveToolWithArgs": func(ctx context.Context, c *pawl.Conversation) error {
			return c.ResolveToolWithArgs(ctx, "a", map[string]any{"amount": 1})
		},
		"Send":    func(ctx context.Context, c *pawl.Conversation) error { _, err := c.Send(ctx, "x"); return err },
		"Session": func(_ context.Context, c *pawl.Conversation) error { c.Session(); return nil },
		"SetVar":  func(_ context.Context, c *pawl.Conversation) error { c.SetVar("k", 1); return nil },
		"SetVars": func(_ context.Context, c *pawl.Conversation) error { c.SetVars(map[string]any{"k": 2}); return nil },
		"Stream":  func(ctx context.Context, c *pawl.Conversation) error { return drain(c.Stream(ctx, "x")) },
		"Subscribe": func(ctx context.Context, c *pawl.Conversation) error {
			s := c.Subscribe(ctx, event.Policy{Full: event.DropOldest, Buffer: 1})
			defer s.Close()
			for e := range s.Events() {
				_ = e.Text()
				break
			}
			return nil
		},
		"Transition": func(ctx context.Context, c *pawl.Conversation) error {
			err := c.Transition(ctx, "Go", "")
			if errdefs.Validation.Is(err) { // somebody else did before
				return nil
			}
			return err
		},
		"Workflow": func(ctx context.Context, c *pawl.Conversation) error { _, err := c.Workflow(ctx); return err },
		"Close":    nil, // below
	}
	for i := range reflect.TypeFor[*pawl.Conversation]().NumMethod() {
		name := reflect.TypeFor[*pawl.Conversation]().Method(i).Name
		if _, ok := ops[name]; !ok {
			t.Errorf("%s is not tried here: add a line for it", name)
		}
	}
	for i := range 10 {
		m := pawl.WithModel(scripted.New(
			scripted.Calls(callOf("a", "pay", `{"amount":500}`), callOf("b", "pay", `{"amount":900}`), callOf("c", "look", `{"city":"x"}`)), scripted.Text("done"), scripted.Text("x"), scripted.Text("y")))
		c, err := pawl.Open(packOf(t, looks), "chat", m)
		if i%2 == 1 {
			c, err = pawl.OpenWorkflow(packOf(t, looks, `"workflow": {"version": 1, "entry": "a", "states": {"a": {"prompt_task": "chat", "on_event": {"Go": "b"}}, "b": {"prompt_task": "chat"}}},`), m)
		}
		if err != nil {
			t.Fatal(err)
		}
		handled(c).OnToolAsync("pay", large, fn)
		var work, closing sync.WaitGroup
		var did atomic.Int64
		half := make(chan struct{}) // is closed when half of the work is done
		for name, op := range ops {
			if op == nil {
				continue
			}
			for range each {
				work.Go(func() {
					defer func() {
						if did.Add(1) == int64(each*len(ops)/2) {
							close(half)
						}
					}()
					switch err := op(t.Context(), c); {
					case err == nil, errdefs.Conflict.Is(err), errdefs.NotFound.Is(err), errdefs.NotAvailable.Is(err), errdefs.Canceled(err):
					case name == "Send" || name == "Stream": // of a script that is over
						if !errdefs.Validation.Is(err) {
							t.Errorf("%s: %v", name, err)
						}
					default:
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		for range 3 {
			closing.Go(func() {
				<-half
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
		work.Wait()
		if _, err := c.Send(t.Context(), "x"); !errdefs.NotAvailable.Is(err) {
			t.Errorf("after Close: %v", err)
		}
	}
}

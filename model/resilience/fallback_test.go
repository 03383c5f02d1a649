package resilience_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/model/resilience"
)

func TestTheNextModelIsAskedByClass(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		on   []*errdefs.Class
		next bool
	}{
		"rate limit":           {err: refused(errdefs.RateLimit, time.Hour), next: true},
		"a used up quota":      {err: &model.Error{Kind: errdefs.RateLimit, Code: "insufficient_quota"}, next: true},
		"not available":        {err: down, next: true},
		"timeout":              {err: refused(errdefs.Timeout, 0), next: true},
		"it does not fit":      {err: refused(errdefs.Overflow, 0), next: true},
		"there is no such":     {err: refused(errdefs.NotFound, 0), next: true},
		"no class":             {err: errors.New("the line is dead"), next: true},
		"a wrong key":          {err: refused(errdefs.Unauthorized, 0)},
		"a wrong request":      {err: refused(errdefs.Validation, 0)},
		"a refusal":            {err: refused(errdefs.Refused, 0)},
		"what the caller says": {err: refused(errdefs.Refused, 0), on: []*errdefs.Class{errdefs.Refused}, next: true},
		"and nothing else":     {err: down, on: []*errdefs.Class{errdefs.Refused}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, ask asking) {
				a, b := plays(fails(c.err)), plays(says("b")).named("p/b")
				resp, err := ask(t.Context(), resilience.Fallback(resilience.FallbackPolicy{On: c.on}, a, b))
				if c.next && (err != nil || resp.By != "p/b" || resp.Model != "as-the-provider-says" || resp.Message.Text() != "b") {
					t.Error(resp, err)
				}
				if !c.next && (err != c.err || b.calls() > 0) { //nolint:errorlint // it is the very same
					t.Error(err, b.calls())
				}
			})
		})
	}
}

func TestWhenAllFailedTheFirstHasTheSay(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		a, b := plays(fails(refused(errdefs.RateLimit, 7*time.Second))), plays(fails(refused(errdefs.Overflow, 0))).named("p/b")
		c := plays(says("c")).named("p/c")
		c.can = model.Capabilities{Name: "p/c"}
		var e *model.Error
		_, err := ask(model.WithAttempt(t.Context(), 1), resilience.Fallback(resilience.FallbackPolicy{}, a, b))
		if errdefs.Of(err) != errdefs.RateLimit || !errdefs.Overflow.Is(err) || !errors.As(err, &e) || e.RetryAfter != 7*time.Second {
			t.Error(err)
		}
		if want := "resilience: no model answered: p/a: p: HTTP 429: no; p/b: p: HTTP 413: no"; err.Error() != want {
			t.Error(err)
		}
		if a.attempts[0] != 1 || b.attempts[0] != 1 {
			t.Error("another model is no further attempt", a.attempts, b.attempts)
		}
		_, err = ask(t.Context(), resilience.Fallback(resilience.FallbackPolicy{}, a))
		if err.Error() != "p: HTTP 429: no" {
			t.Error("of one model its own:", err)
		}
		if _, err = ask(t.Context(), resilience.Fallback(resilience.FallbackPolicy{})); !errdefs.Validation.Is(err) {
			t.Error(err)
		}
	})
}

func TestAModelThatCannotDoItIsLeftOut(t *testing.T) {
	image := message.New(message.RoleUser, message.File{MIME: "image/png", Data: "eA=="})
	k := 1
	requests := map[string]model.Request{
		"text":   hi,
		"tools":  {Messages: hi.Messages, Tools: []model.Tool{{Name: "x", Schema: json.RawMessage(`{}`)}}},
		"images": {Messages: hi.Messages.Append(image)},
		"schema": {Messages: hi.Messages, Output: json.RawMessage(`{}`)},
		"top k":  {Messages: hi.Messages, Settings: model.Settings{TopK: &k}},
		"two":    {Messages: hi.Messages.Append(image), Output: json.RawMessage(`{}`)},
	}
	want := map[string]string{"text": "p/plain", "tools": "p/tools", "images": "p/images", "schema": "p/schema", "top k": "p/schema", "two": ""}
	plain, tools, images, schema := plays(says("x")), plays(says("x")), plays(says("x")), plays(says("x"))
	plain.can = model.Capabilities{Name: "p/plain", Provider: "p", Files: "f"}
	tools.can = model.Capabilities{Name: "p/tools", Provider: "q", Tools: true}
	images.can = model.Capabilities{Name: "p/images", Images: true}
	schema.can = model.Capabilities{Name: "p/schema", Schema: true, TopK: true}
	f := resilience.Fallback(resilience.FallbackPolicy{}, plain, tools, images, schema)
	for name, req := range requests {
		resp, err := f.Complete(t.Context(), req)
		switch {
		case want[name] != "" && (err != nil || resp.By != want[name]):
			t.Error(name, resp, err)
		case want[name] == "" && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "p/images can't do an output schema") || !strings.Contains(err.Error(), "p/schema can't do a file")):
			t.Error(name, err)
		}
	}
	all, _ := model.CapabilitiesOf(f)
	if diff := cmp.Diff(model.Capabilities{Name: "p/plain", Provider: "p", Files: "f", Tools: true, Images: true, Schema: true, TopK: true}, all); diff != "" {
		t.Error("together they can:", diff)
	}
	undescribed := struct{ model.Model }{tools}
	all, _ = model.CapabilitiesOf(resilience.Fallback(resilience.FallbackPolicy{}, plain, undescribed))
	if err := all.Admit(requests["two"]); err != nil || !all.Penalties || !all.Audio || !slices.Contains(all.ProviderTools, model.WebSearch) {
		t.Error("who says nothing can do all:", err)
	}
}

// Whatever a model may be able to do: a fallback can do what one of its models can.
func TestAFallbackForgetsNothingThatModelsCanDo(t *testing.T) {
	of := reflect.TypeFor[model.Capabilities]()
	for i := range of.NumField() {
		if of.Field(i).Type.Kind() != reflect.Bool {
			continue
		}
		plain, able := plays(says("x")), plays(says("x"))
		plain.can, able.can = model.Capabilities{Name: "p/plain"}, model.Capabilities{Name: "p/able"}
		reflect.ValueOf(&able.can).Elem().Field(i).SetBool(true)
		all, _ := model.CapabilitiesOf(resilience.Fallback(resilience.FallbackPolicy{}, plain, able))
		if !reflect.ValueOf(all).Field(i).Bool() {
			t.Error(of.Field(i).Name)
		}
	}
}

// What the provider said of the key's limits comes through every wrapper, with replies and with refusals.
func TestWrappersPassOnWhatProvidersAnnounce(t *testing.T) {
	rate := model.Rate{Tokens: model.Quota{Limit: 1e9, Remaining: 7, Reset: time.Second}}
	same := func(m model.Model) model.Model { return m }
	for name, wrap := range map[string]model.Middleware{
		"none": same, "retry": resilience.Retry(resilience.RetryPolicy{Attempts: 1}), "timeouts": resilience.Timeouts(resilience.TimeoutPolicy{}), "breaker": resilience.Breaker(resilience.BreakerPolicy{Failures: -1}),
		"limiter": resilience.NewLimiter(resilience.LimiterPolicy{}).Middleware(), "output by tool": model.OutputByTool,
		"fallback": func(m model.Model) model.Model {
			return resilience.Fallback(resilience.FallbackPolicy{}, plays(fails(down)), m)
		},
	} {
		both(t, func(t *testing.T, ask asking) {
			well := streamFunc(func(_ context.Context, cb model.StreamHandler) error {
				return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant("x"), Rate: rate}})
			})
			if resp, err := ask(t.Context(), wrap(well)); err != nil || resp.Rate != rate {
				t.Error(name, resp, err)
			}
			ill := streamFunc(func(context.Context, model.StreamHandler) error {
				return &model.Error{Kind: errdefs.Validation, Rate: rate}
			})
			var e *model.Error
			if _, err := ask(t.Context(), wrap(ill)); !errors.As(err, &e) || e.Rate != rate {
				t.Error(name, err)
			}
		})
	}
}

func TestAModelWhoseWindowIsTooSmallComesLast(t *testing.T) {
	small, large, unknown := plays(says("x")).named("p/small"), plays(says("x")).named("p/large"), plays(says("x")).named("p/unknown")
	windows := catalog.Default().With(catalog.Model{Name: "p/small", Window: 1000, Source: "here", Date: "2026-01"}, catalog.Model{Name: "p/large", Window: 10_000, Source: "here", Date: "2026-01"})
	text := func(tokens int) model.Request {
		return model.Request{Messages: message.NewHistory(message.User(strings.Repeat("word", tokens)))}
	}
	with := func(r model.Request, change func(*model.Request)) model.Request { change(&r); return r }
	for name, c := range map[string]struct {
		req    model.Request
		models []model.Model
		want   string
	}{
		"it fits":                   {text(900), []model.Model{small, large}, "p/small"},
		"it does not":               {text(1100), []model.Model{small, large}, "p/large"},
		"nor with the reply":        {with(text(900), func(r *model.Request) { r.MaxTokens = 500 }), []model.Model{small, large}, "p/large"},
		"nor with the prompt":       {with(text(900), func(r *model.Request) { r.System = strings.Repeat("word", 500) }), []model.Model{small, large}, "p/large"},
		"nor with the tools":        {with(text(900), func(r *model.Request) { r.Tools = []model.Tool{{Name: "x", Description: strings.Repeat("word", 500)}} }), []model.Model{small, large}, "p/large"},
		"no window is known":        {text(100_000), []model.Model{small, unknown, large}, "p/unknown"},
		"an estimate refuses never": {text(100_000), []model.Model{small, large}, "p/small"},
	} {
		if resp, err := resilience.Fallback(resilience.FallbackPolicy{Catalog: windows}, c.models...).Complete(t.Context(), c.req); err != nil || resp.By != c.want {
			t.Error(name, resp, err)
		}
	}
}

func TestEachModelHasItsBreaker(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		synctest.Test(t, func(t *testing.T) {
			a, b := plays(append(times(5, fails(down)), says("a"))...), plays(says("b")).named("p/b")
			f := resilience.Fallback(resilience.FallbackPolicy{}, a, b)
			for range 20 {
				if resp, err := ask(t.Context(), f); err != nil || resp.By != "p/b" {
					t.Fatal(resp, err)
				}
			}
			if a.calls() != 5 {
				t.Error(a.calls())
			}
			time.Sleep(30 * time.Second)
			if resp, err := ask(t.Context(), f); err != nil || resp.By != "p/a" {
				t.Error(resp, err)
			}
		})
	})
}

func TestAnotherModelDoesNotGoOnAfterWords(t *testing.T) {
	for restart, want := range map[bool]seen{false: {text: "one two"}, true: {text: "a b", voids: []string{"p: HTTP 503: no; next: p/b"}, taken: 7}} {
		a, b := plays(turn{words: "one two", err: down}), plays(says("a b")).named("p/b")
		got, err := stream(t.Context(), resilience.Fallback(resilience.FallbackPolicy{Restart: restart}, a, b), hi)
		got.final = nil
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" || (err == nil) != restart {
			t.Error(restart, err, diff)
		}
	}
}

func TestACancelAsksNobodyElse(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			b := plays(says("b"))
			if _, err := ask(ctx, resilience.Fallback(resilience.FallbackPolicy{}, plays(turn{hangs: true}), b)); !errors.Is(err, context.DeadlineExceeded) || errdefs.Of(err) != nil || b.calls() > 0 {
				t.Error(err, b.calls())
			}
		})
	})
}

func TestAReplyIsSignedByWhoGaveIt(t *testing.T) {
	own := &model.Response{Message: message.Assistant("x")}
	m := streamFunc(func(_ context.Context, cb model.StreamHandler) error {
		return cb(model.StreamResult{Final: true, Response: own})
	})
	inner := resilience.Fallback(resilience.FallbackPolicy{}, plays(fails(down)), m)
	resp, err := resilience.Fallback(resilience.FallbackPolicy{}, inner, m).Complete(t.Context(), hi)
	if err != nil || resp.By != "resilience_test.streamFunc" || own.By != "" {
		t.Error(resp, err, own.By)
	}
}

// Whatever fails wherever: what a handler is left with is the whole reply, or the beginning of the one that failed; without Restart nothing is ever taken back;
// and whoever was told that it is over is told nothing more.
func TestAHandlerIsLeftWithOneReply(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) *fake {
			turns := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) turn {
				words := rapid.SampledFrom([]string{"", "a", "b c", "d e f"}).Draw(rt, "words")
				switch rapid.IntRange(0, 3).Draw(rt, "how") {
				case 0:
					return turn{words: words, err: rapid.SampledFrom([]error{down, refused(errdefs.RateLimit, time.Second), refused(errdefs.Validation, 0), errors.New("dead")}).Draw(rt, "err")}
				case 1:
					return turn{words: words, cut: true}
				case 2:
					return turn{words: words, hangs: true}
				}
				return says(words)
			}), 1, 6).Draw(rt, name)
			m := plays(turns...)
			return m.named("p/" + name)
		}
		restart := rapid.Bool().Draw(rt, "restart")
		retry := resilience.Retry(resilience.RetryPolicy{Restart: restart})
		a, b := draw("a"), draw("b")
		inBubble(t, func() {
			limits := resilience.Timeouts(resilience.TimeoutPolicy{})
			m := resilience.Fallback(resilience.FallbackPolicy{Restart: restart}, model.Wrap(a, retry, limits), model.Wrap(b, retry, limits))
			over := false
			var s seen
			err := m.CompleteStream(context.Background(), hi, func(r model.StreamResult) error {
				if over {
					rt.Fatal("a piece behind the last one")
				}
				over = r.Final
				return s.take(r)
			})
			switch {
			case err == nil && (s.final == nil || s.text != s.final.Message.Text()):
				rt.Fatalf("%+v", s)
			case err != nil && s.final != nil:
				rt.Fatal("a reply, and an error:", err)
			case !restart && s.taken > 0:
				rt.Fatalf("taken back: %+v", s)
			}
		})
	})
}

// What was taken back was not shown: who stands above may go on as well.
func TestAVoidFreesThoseAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := plays(turn{words: "one", err: down}, fails(down)), plays(says("a b")).named("p/b")
		retry := resilience.Retry(resilience.RetryPolicy{Restart: true, Attempts: 2})
		s, err := stream(t.Context(), resilience.Fallback(resilience.FallbackPolicy{}, retry(a), b), hi)
		if err != nil || s.text != "a b" || len(s.voids) != 2 || a.calls() != 2 {
			t.Errorf("%+v %v", s, err)
		}
	})
}

func TestNothingFollowsTheLastPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		m := streamFunc(func(_ context.Context, cb model.StreamHandler) error {
			n++
			if err := cb(model.StreamResult{Final: true, Response: new(model.Response)}); err != nil {
				return err
			}
			return down
		})
		for name, w := range map[string]model.Model{
			"retry": resilience.Retry(resilience.RetryPolicy{Restart: true})(m), "fallback": resilience.Fallback(resilience.FallbackPolicy{Restart: true}, m, m),
		} {
			n = 0
			if s, err := stream(t.Context(), w, hi); !errors.Is(err, down) || n != 1 || len(s.voids) > 0 {
				t.Error(name, n, s, err)
			}
		}
	})
}

// What a provider says of a call that was cancelled is returned as it is, whatever its class.
func TestAfterACancelNothingIsMadeOfAFailure(t *testing.T) {
	for name, wrap := range map[string]func(model.Model) model.Model{
		"retry":    resilience.Retry(resilience.RetryPolicy{}),
		"fallback": func(m model.Model) model.Model { return resilience.Fallback(resilience.FallbackPolicy{}, m, m) },
		"breaker":  resilience.Breaker(resilience.BreakerPolicy{Failures: 1}),
	} {
		var n int
		var end func()
		m := wrap(streamFunc(func(context.Context, model.StreamHandler) error { n++; end(); return down }))
		for i := range 2 { // the second call finds no open circuit
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end = cancel
			if s, err := stream(ctx, m, hi); err != down || n != i+1 || len(s.voids) > 0 { //nolint:errorlint // it is the very same
				t.Error(name, n, s, err)
			}
		}
	}
}

package scripted

import (
	"context"
	"errors"
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
)

var (
	noContext = context.Background()
	hi        = model.Request{Messages: message.NewHistory(message.User("Hi"))}
)

func parts(m message.Message) []message.Part { return slices.Collect(m.Parts()) }

var compareMessages = cmp.Transformer("parts", parts)

func TestAReplyHasAllThatItsTurnSays(t *testing.T) {
	m := New(Turn{
		Text: "Let me look.", Reasoning: "Hm.", Usage: model.Usage{Input: 10, Output: 5},
		Calls: []Call{{Name: "bash", Input: `{ "command": "ls" }`}, {ID: "c2", Name: "read", Input: `{"file_path":"go.m`}, {Name: "now"}},
	})
	want := &model.Response{
		Message: message.New(
			message.RoleAssistant,
			message.Reasoning{Text: "Hm.", Origin: message.Origin{Provider: "scripted"}},
			message.Text{Text: "Let me look."},
			message.ToolCall{ID: "call_1_1", Name: "bash", Input: `{"command":"ls"}`},
			message.ToolCall{ID: "c2", Name: "read", Input: `{"file_path":"go.m`},
			message.ToolCall{ID: "call_1_3", Name: "now", Input: `{}`},
		),
		Usage: model.Usage{Input: 10, Output: 5}, Stop: model.StopTools, Model: "scripted/test", ID: "turn_1",
	}
	whole, err := m.Complete(noContext, hi)
	if err != nil {
		t.Fatal(err)
	}
	var pieces []string
	var streamed *model.Response
	if err := m.CompleteStream(noContext, hi, func(r model.StreamResult) error {
		if r.Final {
			streamed = r.Response
			return nil
		}
		pieces = append(pieces, r.Reasoning+"|"+r.Text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, got := range []*model.Response{whole, streamed} {
		if diff := cmp.Diff(want, got, compareMessages); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"Hm.|", "|Let ", "|me ", "|look."}, pieces); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if whole.Message == streamed.Message {
		t.Error("two replies are the same message: identity is how a history tells messages apart")
	}
}

func TestStopReasonsAreTheTurnsOwn(t *testing.T) {
	for _, c := range []struct {
		turn Turn
		want model.StopReason
	}{
		{Turn{Text: "a"}, model.StopEnd},
		{Calls(Call{Name: "x"}), model.StopTools},
		{Turn{Text: "a", Stop: model.StopRefusal}, model.StopRefusal},
		{Turn{Calls: []Call{{Name: "x", Input: "{"}}, Stop: model.StopLength}, model.StopLength},
		{Turn{Stop: model.StopFilter}, model.StopFilter},
	} {
		if r, err := New(c.turn).Complete(noContext, hi); err != nil || r.Stop != c.want {
			t.Errorf("%+v: %v, %v", c.turn, r, err)
		}
	}
}

func TestTheWordsOfATextAreTheText(t *testing.T) {
	for s, want := range map[string][]string{
		"":             nil,
		" ":            {" "},
		"one":          {"one"},
		"  a  b\n\nc ": {"  ", "a  ", "b\n\n", "c "},
		"é 👋🏽 \u00a0x": {"é ", "👋🏽 \u00a0", "x"},
	} {
		if got := words(s); !slices.Equal(got, want) {
			t.Errorf("%q: %q", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got := words(s); strings.Join(got, "") != s || slices.Contains(got, "") {
			t.Fatalf("%q: %q", s, got)
		}
	})
}

func TestDefaultIDsAreUniqueInTheScript(t *testing.T) {
	m := New(Calls(Call{Name: "x"}, Call{ID: "call_2_1", Name: "x"}), Calls(Call{Name: "x"}, Call{Name: "x"}))
	var ids []string
	for _, turn := range m.turns {
		for _, c := range turn.Calls {
			ids = append(ids, c.ID)
		}
	}
	if want := []string{"call_1_1", "call_2_1", "call_2_1x", "call_2_2"}; !slices.Equal(ids, want) {
		t.Error(ids)
	}
}

func TestErrorsAreTheProviders(t *testing.T) {
	for _, c := range []struct {
		failure Failure
		class   *errdefs.Class
	}{
		{Failure{Status: 529, RetryAfter: time.Second, Code: "overloaded", Message: "Too much."}, errdefs.NotAvailable},
		{Failure{Status: 429}, errdefs.RateLimit},
		{Failure{Status: 413}, errdefs.Overflow},
		{Failure{Status: 401}, errdefs.Unauthorized},
		{Failure{Status: 400}, errdefs.Validation},
		{Failure{}, errdefs.NotAvailable},
	} {
		_, err := New(Turn{Error: &c.failure}).Complete(noContext, hi)
		var e *model.Error
		if !errors.As(err, &e) || !errors.Is(err, c.class) {
			t.Fatalf("%+v: %v", c.failure, err)
		}
		want := model.Error{Provider: "scripted", Kind: c.class, Status: max(c.failure.Status, 400), Code: c.failure.Code, Message: e.Message, RetryAfter: c.failure.RetryAfter}
		if c.failure.Status == 0 {
			want.Status = 500
		}
		if *e != want || e.Message == "" || c.failure.Message != "" && e.Message != c.failure.Message {
			t.Errorf("%#v, want %#v", *e, want)
		}
	}
}

func TestAnErrorInMidStreamComesAfterHalfOfTheWords(t *testing.T) {
	for text, want := range map[string]string{"one two three four": "one two ", "one two three": "one two ", "one": "one"} {
		m := New(Turn{Text: text, Error: &Failure{Status: 529, MidStream: true}})
		var got strings.Builder
		err := m.CompleteStream(noContext, hi, func(r model.StreamResult) error {
			if r.Final {
				t.Error("Final before an error")
			}
			got.WriteString(r.Text)
			return nil
		})
		if !errors.Is(err, errdefs.NotAvailable) || got.String() != want {
			t.Errorf("%q, %v; want %q", got.String(), err, want)
		}
		if _, err := m.Complete(noContext, hi); !errors.Is(err, errdefs.NotAvailable) {
			t.Error(err)
		}
	}
}

func TestADelayComesFirstAndHonoursTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Turn{Text: "a", Delay: time.Minute})
		start := time.Now()
		if err := m.CompleteStream(noContext, hi, func(model.StreamResult) error {
			if time.Since(start) != time.Minute {
				t.Errorf("after %v", time.Since(start))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(noContext, time.Second)
		defer cancel()
		start = time.Now()
		if _, err := m.Complete(ctx, hi); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		late := New(Turn{Error: &Failure{Status: 429}, Delay: time.Hour})
		start = time.Now()
		if _, err := late.Complete(noContext, hi); !errors.Is(err, errdefs.RateLimit) || time.Since(start) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestAStreamEndsWithItsContextOrItsHandler(t *testing.T) {
	m := New(Text("one two three"))
	ctx, cancel := context.WithCancel(noContext)
	n := 0
	err := m.CompleteStream(ctx, hi, func(model.StreamResult) error {
		n++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%v after %d pieces", err, n)
	}
	if _, err := m.Complete(ctx, hi); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stop := errors.New("enough")
	if err := m.CompleteStream(noContext, hi, func(model.StreamResult) error { return stop }); err != stop { //nolint:errorlint // this very error
		t.Error(err)
	}
}

func TestAWrongTurnIsSaidByTheFirstCall(t *testing.T) {
	for want, turns := range map[string][]Turn{
		"empty":                   nil,
		"turn 1: nothing to play": {{}},
		"a call has no name":      {Calls(Call{})},
		"400 to 599":              {Fail(200)},
		"leave tool_calls":        {{Error: &Failure{}, Calls: []Call{{Name: "x"}}}},
		"turn 2: an error shows":  {Text("a"), {Error: &Failure{}, Text: "x"}},
		"needs text":              {{Error: &Failure{MidStream: true}}},
		"delay is negative":       {{Text: "a", Delay: -1}},
		"retry_after is negative": {{Error: &Failure{RetryAfter: -1}}},
	} {
		_, err := New(turns...).Complete(noContext, hi)
		if !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "scripted/test: ") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := New(Text("a")).CompleteStream(noContext, model.Request{}, nil); !errors.Is(err, errdefs.Validation) {
		t.Errorf("no messages: %v", err)
	}
}

func TestAScriptCanDoEverything(t *testing.T) {
	c, ok := model.CapabilitiesOf(New(Text("a")))
	if !ok || c.Name != "scripted/test" || c.Provider != "scripted" {
		t.Errorf("%+v", c)
	}
	err := c.Admit(model.Request{
		Tools: []model.Tool{{Name: "x"}}, Output: []byte("{}"), Settings: model.Settings{TopK: new(int), Seed: new(int64), Stop: []string{"x"}, MaxTokens: 1},
		Messages: message.NewHistory(message.New(message.RoleUser, message.File{MIME: "image/png"}, message.File{MIME: "audio/wav"}, message.File{MIME: "application/pdf"})),
	})
	if err != nil {
		t.Error(err)
	}
}

func TestChildAgentsHaveScriptsOfTheirOwn(t *testing.T) {
	s := &Script{Name: "x.yaml", Turns: []Turn{Text("main")}, Agents: map[string][]Turn{"reviewer": {Text("fine")}, "tester": {Text("green")}}}
	m := s.Model()
	s.Agents["late"] = []Turn{Text("no")}
	for name, want := range map[string]string{"reviewer": "fine", "tester": "green"} {
		child := m.For("reviewer").For(name) // a child's children find theirs too
		r, err := child.Complete(noContext, hi)
		if err != nil || r.Message.Text() != want || child.Capabilities().Name != "scripted/x.yaml#"+name {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := m.For("late").Complete(noContext, hi); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), `"late" (it has: reviewer, tester)`) {
		t.Error(err)
	}
}

func TestARequestForASummaryGetsItInBothWays(t *testing.T) {
	ask := message.New(message.RoleUser, message.Text{Text: "Summarize it.", Origin: message.Origin{Provider: "pawl", Extra: `{"why":"summarize"}`}})
	req, m := model.Request{Messages: message.NewHistory(ask)}, New(Text("the first turn"))
	resp, err := m.Complete(t.Context(), req)
	if err != nil || resp.Message.Text() != Summary {
		t.Error(resp, err)
	}
	if _, err := m.Complete(t.Context(), model.Request{}); !errdefs.Validation.Is(err) {
		t.Error("a request without a message:", err)
	}
	var last *model.Response
	err = m.CompleteStream(t.Context(), req, func(r model.StreamResult) error { last = r.Response; return nil })
	if err != nil || last == nil || last.Message.Text() != Summary {
		t.Error(last, err)
	}
}

package cassette_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cassette"
)

// live is a model that does what it is told: say gives the pieces of a stream, the reply and the error.
type live struct {
	say  func(req model.Request) ([]model.StreamResult, *model.Response, error)
	caps model.Capabilities
}

func (l live) Capabilities() model.Capabilities { return l.caps }

func (l live) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	_, r, err := l.say(req)
	return r, err
}

func (l live) CompleteStream(_ context.Context, req model.Request, cb model.StreamHandler) error {
	pieces, r, err := l.say(req)
	for _, p := range pieces {
		if err := cb(p); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// says is a model with one answer.
func says(text string) live {
	return live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		return nil, &model.Response{Message: message.Assistant(text), Stop: model.StopEnd}, nil
	}}
}

// heard is all that came of a call.
type heard struct {
	Pieces []model.StreamResult
	Reply  string
	Error  string
	Class  *errdefs.Class
	Of     *model.Error
}

func listen(m model.Model, stream bool, req model.Request) (h heard) {
	var r *model.Response
	var err error
	if stream {
		err = m.CompleteStream(context.Background(), req, func(p model.StreamResult) error {
			if p.Final {
				r = p.Response
			} else {
				h.Pieces = append(h.Pieces, p)
			}
			return nil
		})
	} else {
		r, err = m.Complete(context.Background(), req)
	}
	if r != nil {
		b, _ := json.Marshal(r)
		h.Reply = string(b)
	}
	if err != nil {
		h.Error, h.Class = err.Error(), errdefs.Of(err)
		if errors.As(err, &h.Of) {
			e := *h.Of
			e.Err = nil // its text is in Error
			h.Of = &e
		}
	}
	return h
}

func diff(a, b any) string {
	return cmp.Diff(a, b, cmp.Comparer(func(a, b *errdefs.Class) bool { return a == b }))
}

func tape(t *testing.T) string { return filepath.Join(t.TempDir(), "test.cassette") }

func record(t *testing.T, m model.Model, file string, opts ...cassette.Option) *cassette.Recorder {
	t.Helper()
	r, err := cassette.Record(m, file, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func open(t *testing.T, file string, opts ...cassette.Option) *cassette.Player {
	t.Helper()
	p, err := cassette.Open(file, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closed(t *testing.T, r *cassette.Recorder) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func user(text string) model.Request {
	return model.Request{Messages: message.NewHistory(message.User(text))}
}

// everyPart has the troublemakers among them.
var everyPart = []message.Part{
	message.Text{Text: "two\nlines\n\n<b>&\u2028\x00\"\\ \\n 👋", Origin: message.Origin{Provider: "p", Extra: `{"|":["a"],"||x":1.50,"c":[]}`}},
	message.Reasoning{Text: "hm", Signature: "c2ln", Origin: message.Origin{Provider: "p"}},
	message.File{MIME: "image/png", Name: "a.png", Data: "\x89PNG\r\n"},
	message.File{MIME: "a/b", URL: "https://example.com/x"},
	message.ToolCall{ID: "c1", Name: "t", Input: `{"z":1,"a":{"|":"x\ny","n":1e2}}`},
	message.ToolCall{ID: "c2", Name: "t", Input: `{"half`},
	message.ToolResult{Call: "c1", Name: "t", Content: "r\n", IsError: true, Files: []message.File{{MIME: "text/plain", Data: "in it"}}},
	message.Opaque{Provider: "p", JSON: `{"type":"x","y":[1,"\u00e9\n"]}`},
}

// What was begun anew is begun anew in a replay, for the same reason.
func TestAReplayTakesBackWhatWasTakenBack(t *testing.T) {
	why := &model.Error{Provider: "p", Kind: errdefs.NotAvailable, Status: 529, Message: "too much"}
	m := live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		return []model.StreamResult{{Text: "a"}, {Void: why}, {Text: "b"}}, &model.Response{Message: message.Assistant("b"), Stop: model.StopEnd}, nil
	}}
	file := tape(t)
	r := record(t, m, file)
	listen(r, true, user("go"))
	closed(t, r)
	h := listen(open(t, file), true, user("go"))
	if len(h.Pieces) != 3 || h.Pieces[1].Void == nil || h.Pieces[1].Void.Error() != why.Error() || !errdefs.NotAvailable.Is(h.Pieces[1].Void) || h.Pieces[2].Text != "b" {
		t.Errorf("%+v", h.Pieces)
	}
}

func TestAReplaySaysWhatWasRecorded(t *testing.T) {
	one, seed, whole := 0.5, int64(7), 3
	full := model.Request{
		System:   "Be brief.\nBe kind.",
		Messages: message.NewHistory(message.New(message.RoleUser, everyPart...), message.New(message.RoleAssistant, everyPart...), message.New(message.RoleTool, everyPart...)),
		Tools:    []model.Tool{{Name: "t", Description: "d", Schema: json.RawMessage(`{"type": "object"}`)}},
		Settings: model.Settings{MaxTokens: 9, Temperature: &one, TopP: &one, TopK: &whole, Seed: &seed, Stop: []string{"x\n"}, ToolChoice: model.ToolsRequired, FrequencyPenalty: &one, PresencePenalty: &one},
		Output:   json.RawMessage(`{ "type": "object" }`),
	}
	reply := &model.Response{
		Message: message.New(message.RoleAssistant, everyPart...), Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
		Stop: model.StopTools, Reason: "because", Model: "m-1", ID: "id-1", By: "p/m-1",
	}
	pieces := []model.StreamResult{{Reasoning: "h"}, {Reasoning: "m"}, {Text: "two\nli"}, {}, {Text: "nes"}, {Input: `{"a":`, Tool: "t"}, {Input: "{", Tool: "u", Call: 1}, {Input: "1}", Tool: "t"}}
	said := []struct {
		pieces []model.StreamResult
		reply  *model.Response
		err    error
	}{
		{pieces, reply, nil},
		{pieces[:2], nil, &model.Error{Provider: "p", Kind: errdefs.RateLimit, Status: 429, Code: "slow", Message: "wait", RequestID: "r", RetryAfter: 1500 * time.Millisecond, Err: errors.New("cause")}},
		{nil, nil, errdefs.Overflow.Errorf("too\nlong")},
		{pieces, nil, errors.New("just so")},
		{nil, &model.Response{Message: message.Assistant("")}, nil},
		{nil, nil, &model.Error{}},
	}
	for _, stream := range []bool{false, true} {
		n := -1
		m := live{caps: model.Capabilities{Name: "p/m", Provider: "p", Files: "f", Tools: true, Audio: true}, say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
			n++
			return said[n].pieces, said[n].reply, said[n].err
		}}
		file := tape(t)
		r := record(t, m, file)
		requests := []model.Request{full, user("a"), {}, user("b"), full, {System: "s", Messages: full.Messages}}
		var want []heard
		for _, req := range requests {
			want = append(want, listen(r, stream, req))
		}
		closed(t, r)
		p := open(t, file)
		if d := cmp.Diff(m.caps, p.Capabilities()); d != "" {
			t.Error(d)
		}
		for i, req := range requests {
			if d := diff(want[i], listen(p, stream, req)); d != "" {
				t.Errorf("stream %v, call %d (-recorded +played):\n%s", stream, i+1, d)
			}
			if want[i].Reply == "" && want[i].Error == "" && want[i].Of == nil {
				t.Errorf("call %d came to nothing", i+1)
			}
		}
		if err := p.Done(); err != nil {
			t.Error(err)
		}
	}
}

func TestAConversationIsWrittenOnceHoweverOftenItIsSent(t *testing.T) {
	file := tape(t)
	r := record(t, says("noted"), file)
	p := func() *cassette.Player { return open(t, file) }
	play := func(m model.Model) {
		t.Helper()
		h := message.NewHistory()
		tools := []model.Tool{{Name: "the-tool", Schema: json.RawMessage(`{}`)}}
		for i := range 5 {
			h = h.Append(message.User(fmt.Sprintf("question-%d", i)))
			req := model.Request{System: "the-system", Tools: tools, Messages: h}
			if i == 3 {
				req.System, req.Tools = "", nil
			}
			if got := listen(m, true, req); got.Error != "" {
				t.Fatal(got.Error)
			}
			h = h.Append(message.Assistant("noted"))
		}
	}
	play(r)
	closed(t, r)
	text := content(t, file)
	for what, want := range map[string]int{"question-0": 1, "question-3": 1, "the-system": 2, "the-tool": 2} { // twice: they went and came back
		if got := strings.Count(text, what); got != want {
			t.Errorf("%s stands there %d times, want %d:\n%s", what, got, want, text)
		}
	}
	again := p()
	play(again)
	if err := again.Done(); err != nil {
		t.Error(err)
	}
}

func TestARequestThatDiffersIsAnErrorWithThePlaceAndBothValues(t *testing.T) {
	cold, warm := 0.0, 1.0
	base := func() model.Request {
		return model.Request{
			System: "Be brief.", Tools: []model.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}}, Settings: model.Settings{Temperature: &cold},
			Messages: message.NewHistory(message.User("first"), message.Assistant("", message.ToolCall{ID: "c", Name: "look", Input: `{"a":1,"b":2}`}), message.Results(message.ToolResult{Call: "c", Content: strings.Repeat("long ", 100) + "end"})),
		}
	}
	file := tape(t)
	r := record(t, says("x"), file)
	listen(r, false, base())
	closed(t, r)
	edit := func(i int, m message.Message) func(*model.Request) {
		return func(r *model.Request) {
			ms := r.Messages.Messages()
			ms[i] = m
			r.Messages = message.NewHistory(ms...)
		}
	}
	for name, c := range map[string]struct {
		change func(*model.Request)
		want   []string
	}{
		"system":    {func(r *model.Request) { r.System = "Be long." }, []string{"system:", `recorded: "Be brief."`, `asked:    "Be long."`}},
		"no system": {func(r *model.Request) { r.System = "" }, []string{"system:", `asked:    nothing`}},
		"a tool more": {func(r *model.Request) {
			r.Tools = append(r.Tools, model.Tool{Name: "b", Schema: json.RawMessage(`{}`)})
		}, []string{"tools[1]:", "recorded: nothing", `asked:    {"name":"b"`}},
		"a schema":          {func(r *model.Request) { r.Tools[0].Schema = json.RawMessage(`{"type":"x"}`) }, []string{"tools[0].schema.type:"}},
		"an early message":  {edit(0, message.User("First")), []string{"messages[0].parts[0].text:", `recorded: "first"`, `asked:    "First"`}},
		"a role":            {edit(0, message.Assistant("first")), []string{"messages[0].role:"}},
		"an input":          {edit(1, message.Assistant("", message.ToolCall{ID: "c", Name: "look", Input: `{"a":1,"b":3}`})), []string{"messages[1].parts[0].input.b:", "recorded: 2", "asked:    3"}},
		"order of members":  {edit(1, message.Assistant("", message.ToolCall{ID: "c", Name: "look", Input: `{"b":2,"a":1}`})), []string{"messages[1].parts[0].input:", `{"a":1,"b":2}`, `{"b":2,"a":1}`}},
		"the end of a text": {edit(2, message.Results(message.ToolResult{Call: "c", Content: strings.Repeat("long ", 100) + "End"})), []string{"content:", `…"`, `end"`, `End"`}},
		"a message more":    {func(r *model.Request) { r.Messages = r.Messages.Append(message.User("more")) }, []string{"messages[3]:", "recorded: nothing", "more"}},
		"a message less":    {func(r *model.Request) { r.Messages = r.Messages.Slice(0, 2) }, []string{"messages[2]:", "asked:    nothing"}},
		"a setting":         {func(r *model.Request) { r.Temperature = &warm }, []string{"settings.temperature:", "recorded: 0", "asked:    1"}},
		"a setting more":    {func(r *model.Request) { r.MaxTokens = 5 }, []string{"settings.max_tokens:", "recorded: nothing"}},
		"an output":         {func(r *model.Request) { r.Output = json.RawMessage(`{}`) }, []string{"output:", "recorded: nothing", "asked:    {}"}},
	} {
		p := open(t, file)
		req := base()
		c.change(&req)
		_, err := p.Complete(t.Context(), req)
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), file+": the request differs from that of exchange 1 at ") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: no %q in %v", name, w, err)
			}
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if got := listen(p, false, base()); got.Error != "" { // it was not used up
			t.Errorf("%s: then %s", name, got.Error)
		}
		if done := p.Done(); done == nil || !strings.Contains(done.Error(), err.Error()) { // and is not forgotten
			t.Errorf("%s: %v", name, done)
		}
	}
	p := open(t, file)
	if got := listen(p, true, base()); !strings.Contains(got.Error, "call:\n\trecorded: \"complete\"\n\tasked:    \"stream\"") {
		t.Errorf("another way to call: %s", got.Error)
	}
}

func TestEachExchangeIsPlayedOnceAndInOrderUnlessAnyWillDo(t *testing.T) {
	file := tape(t)
	n := 0
	r := record(t, live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		n++
		return nil, &model.Response{Message: message.Assistant(fmt.Sprint("answer ", n))}, nil
	}}, file)
	for _, q := range []string{"a", "b", "a"} {
		listen(r, false, user(q))
	}
	closed(t, r)

	p := open(t, file)
	if got := listen(p, false, user("b")); !strings.Contains(got.Error, "exchange 1") {
		t.Errorf("out of order: %+v", got)
	}
	p = open(t, file)
	listen(p, false, user("a"))
	if err := p.Done(); err == nil || !strings.Contains(err.Error(), "not played: exchange 2, 3 of 3") {
		t.Error(err)
	}

	p = open(t, file, cassette.AnyOrder())
	for _, c := range []struct{ ask, want string }{{"b", "answer 2"}, {"a", "answer 1"}, {"a", "answer 3"}, {"a", "all of its 3 exchanges were played"}} {
		if got := listen(p, false, user(c.ask)); !strings.Contains(got.Reply+got.Error, c.want) {
			t.Errorf("%s: %+v, want %s", c.ask, got, c.want)
		}
	}
	p = open(t, file, cassette.AnyOrder())
	listen(p, false, user("a"))
	if got := listen(p, false, user("c")); !strings.Contains(got.Error, "no exchange that is left has this request; the nearest, exchange 2, differs at messages[0].parts[0].text") {
		t.Error(got.Error)
	}
}

func TestAContextThatEndedAndAHandlerThatStoppedAreKept(t *testing.T) {
	file := tape(t)
	ctx, cancel := context.WithCancel(t.Context())
	m := live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		return []model.StreamResult{{Text: "a"}, {Text: "b"}}, &model.Response{Message: message.Assistant("ab")}, ctx.Err()
	}}
	stop := errors.New("enough")
	stopAt := func(text string) model.StreamHandler {
		return func(p model.StreamResult) error {
			if p.Text == text {
				return stop
			}
			return nil
		}
	}
	r := record(t, m, file)
	if err := r.CompleteStream(ctx, user("1"), stopAt("b")); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	cancel()
	if err := r.CompleteStream(ctx, user("2"), stopAt("")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	expired, done := context.WithTimeout(t.Context(), 0)
	defer done()
	if err := r.CompleteStream(expired, user("3"), stopAt("")); err == nil {
		t.Fatal(err)
	}
	closed(t, r)

	p := open(t, file)
	if err := p.CompleteStream(t.Context(), user("1"), stopAt("b")); !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := p.CompleteStream(t.Context(), user("2"), stopAt("")); err != context.Canceled { //nolint:errorlint // as it is
		t.Error(err)
	}
	if err := p.CompleteStream(t.Context(), user("3"), stopAt("")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	p = open(t, file)
	if err := p.CompleteStream(ctx, user("1"), stopAt("")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := p.CompleteStream(t.Context(), user("1"), stopAt("")); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "its handler stopped it") {
		t.Error(err)
	}
}

func TestCallsSideBySide(t *testing.T) {
	file := tape(t)
	echo := live{say: func(req model.Request) ([]model.StreamResult, *model.Response, error) {
		text := req.Messages.Last().Text()
		return []model.StreamResult{{Text: text}}, &model.Response{Message: message.Assistant(text)}, nil
	}}
	all := func(m model.Model) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				h := message.NewHistory(message.User("shared"))
				for j := range 3 {
					h = h.Append(message.User(fmt.Sprint(i%20, "/", j))) // each twice
					if got := listen(m, j%2 == 0, model.Request{System: "s", Messages: h}); !strings.Contains(got.Reply, fmt.Sprint(i%20, "/", j)) {
						t.Errorf("%d/%d: %+v", i, j, got)
					}
				}
			})
		}
		wg.Wait()
	}
	r := record(t, echo, file)
	all(r)
	closed(t, r)
	p := open(t, file, cassette.AnyOrder())
	all(p)
	if err := p.Done(); err != nil {
		t.Error(err)
	}
}

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// stubModel is document 000's "Mock Model Implementation": only the construction of its message is ours.
type stubModel struct {
	responses []model.Response
	index     int
}

func (m *stubModel) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if m.index >= len(m.responses) {
		return &model.Response{Message: message.Assistant("done")}, nil
	}
	resp := m.responses[m.index]
	m.index++
	return &resp, nil
}

func (m *stubModel) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func TestAModelThatGivesOneFinalResultShowsItsTextOnce(t *testing.T) {
	thought := message.New(message.RoleAssistant, message.Reasoning{Text: "hm"}, message.Text{Text: "let me see"}, call("c", "x", `{}`))
	host := &listener{}
	d := play{cfg: loop.Config{Model: &stubModel{responses: []model.Response{{Message: thought}}}, Tools: []tool.Tool{constant("x")}}, host: host}.do(t)
	if diff := cmp.Diff([]string{"let me see", "done"}, host.texts(event.TextDelta)); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	if diff := cmp.Diff([]string{"hm"}, host.texts(event.ReasoningDelta)); diff != "" {
		t.Error(diff)
	}
}

// streams gives pieces, and then the whole.
type streams struct {
	pieces []model.StreamResult
	final  message.Message
	n      int // how often the pieces are given
}

func (s streams) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: s.final}, nil
}

func (s streams) CompleteStream(_ context.Context, _ model.Request, cb model.StreamHandler) error {
	for range max(s.n, 1) {
		for _, p := range s.pieces {
			if err := cb(p); err != nil {
				return err
			}
		}
	}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: s.final}})
}

func TestWhatWasStreamedIsNotShownAgain(t *testing.T) {
	final := message.New(message.RoleAssistant, message.Reasoning{Text: "hm hm"}, message.Text{Text: "a b"})
	for name, c := range map[string]struct {
		pieces          []model.StreamResult
		text, reasoning []string
	}{
		"all of it":              {[]model.StreamResult{{Reasoning: "hm "}, {Reasoning: "hm"}, {Text: "a "}, {Text: "b"}}, []string{"a ", "b"}, []string{"hm ", "hm"}},
		"text only":              {[]model.StreamResult{{Text: "a b"}}, []string{"a b"}, []string{"hm hm"}},
		"both in one piece":      {[]model.StreamResult{{Text: "a b", Reasoning: "hm hm"}, {}}, []string{"a b"}, []string{"hm hm"}},
		"nothing before the end": {nil, []string{"a b"}, []string{"hm hm"}},
	} {
		t.Run(name, func(t *testing.T) {
			host := &listener{}
			d := play{cfg: loop.Config{Model: streams{pieces: c.pieces, final: final}}, host: host}.do(t)
			if diff := cmp.Diff(c.text, host.texts(event.TextDelta)); diff != "" || d.err != nil {
				t.Error(d.err, diff)
			}
			if diff := cmp.Diff(c.reasoning, host.texts(event.ReasoningDelta)); diff != "" {
				t.Error(diff)
			}
			for _, e := range host.events {
				if e.Delta != "" && (e.Seq == 0 || e.Key.String() != "model/1") {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

func TestAStreamWithoutAnEndIsAnError(t *testing.T) {
	for name, m := range map[string]model.Model{
		"no final result":        endless{},
		"a final one of nothing": endless{final: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := play{cfg: loop.Config{Model: m}, host: &listener{}}.do(t)
			wantErr(t, d.err, errdefs.Internal, "neither")
		})
	}
}

type endless struct{ final bool }

func (endless) Complete(context.Context, model.Request) (*model.Response, error) { return nil, nil }

func (e endless) CompleteStream(_ context.Context, _ model.Request, cb model.StreamHandler) error {
	if e.final {
		return cb(model.StreamResult{Final: true})
	}
	return cb(model.StreamResult{Text: "a"})
}

// deaf listens and does nothing with it.
type deaf struct{ engine.NoopHost }

func (deaf) Listening() bool { return true }

func TestADeltaCostsNoAllocation(t *testing.T) {
	cost := func(n int, host engine.Host) float64 {
		m := streams{pieces: []model.StreamResult{{Text: "word "}}, final: message.Assistant("x"), n: n}
		least := math.Inf(1)
		for range 100 { // with -race pools lose things by chance, which is no delta's cost: a run in which they lose none is exact
			least = min(least, testing.AllocsPerRun(1, func() { play{cfg: loop.Config{Model: m}, host: host}.do(t) }))
		}
		return least
	}
	few, many, none := cost(10, deaf{}), cost(10_010, deaf{}), cost(10_010, engine.NoopHost{})
	t.Logf("allocations of a run: %.0f with 10 deltas, %.0f with 10,010, %.0f when nobody listens", few, many, none)
	if many-few > 3 { // the room for a text of 50,000 bytes is there, from a call before, or, where a pool lost it, made in a few steps
		t.Errorf("10,000 deltas more cost %.0f allocations more", many-few)
	}
	if none > few {
		t.Errorf("%.0f allocations when nobody listens, %.0f when somebody does", none, few)
	}
}

func TestNobodyListeningMeansNoStream(t *testing.T) {
	d := play{cfg: loop.Config{Model: noStream{}}}.do(t)
	if d.err != nil || d.talk.Last().Text() != "whole" {
		t.Error(d.err)
	}
}

type noStream struct{}

func (noStream) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant("whole")}, nil
}

func (noStream) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return errors.New("streamed")
}

func TestReplayOfALoopAsksForWhatWasDoneAndNothingElse(t *testing.T) {
	n := 0
	m := plays(uses(call("c", "x", `{}`), call("d", "x", `{}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{counted("x", &n)}}}.do(t)
	want := dump(d.talk)
	attempts, err := journal.Attempts(t.Context(), d.store, d.run.Session)
	if err != nil || len(attempts) != 1 {
		t.Fatal(err, attempts)
	}
	again := engine.NewReplay(attempts[0])
	d.run.Steps = again
	d.execute(t, t.Context(), engine.NoopHost{})
	if diff := cmp.Diff(want, dump(d.talk)); diff != "" || d.err != nil || n != 2 || m.calls() != 2 {
		t.Error(d.err, n, m.calls(), diff)
	}
	d.eng, err = loop.New(loop.Config{Model: m, Limits: loop.Limits{Steps: 1}}) // other code
	if err != nil {
		t.Fatal(err)
	}
	again = engine.NewReplay(attempts[0])
	d.run.Steps = again
	board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: attempts[0].Seed}})
	_, err = d.eng.Execute(t.Context(), d.run, engine.NoopHost{}, board)
	if diff := again.End(board, err); !errdefs.BudgetExceeded.Is(err) || !errdefs.Conflict.Is(diff) || !strings.Contains(diff.Error(), "model/2 is on record, the code ends without it: ") {
		t.Error(err, diff)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   loop.Config
		class *errdefs.Class
	}{
		"no model":       {loop.Config{}, errdefs.Validation},
		"two of a name":  {loop.Config{Model: plays(), Tools: []tool.Tool{constant("x"), constant("X")}}, errdefs.Conflict},
		"a bad setting":  {loop.Config{Model: plays(), Settings: model.Settings{Seed: new(int64)}}, errdefs.Validation},
		"all that's due": {loop.Config{Model: plays()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loop.New(c.cfg)
			wantErr(t, err, c.class)
		})
	}
}

func TestTheToolChoiceIsLeftOutWhenThereIsNoTool(t *testing.T) {
	m := plays(says("a"))
	play{cfg: loop.Config{Model: m, Tools: []tool.Tool{constant("x")}, Settings: model.Settings{ToolChoice: model.ToolsRequired}}, run: engine.Run{Tools: []string{}}}.do(t)
	if m.asked[0].ToolChoice != model.ToolsAuto || len(m.asked[0].Tools) != 0 {
		t.Error(m.asked[0].ToolChoice, m.asked[0].Tools)
	}
}

// What a provider runs itself is a tool, too: a choice counts for it, and the agent's gate is before it.
func TestToolsOfTheProviderHaveAChoiceAndAGate(t *testing.T) {
	for name, c := range map[string]struct {
		choice model.ToolChoice
		gate   []string
		want   model.ToolChoice
		tools  []string
	}{
		"none is to be called": {model.ToolsNone, nil, model.ToolsNone, []string{"web_search", "web_fetch"}},
		"one has to be":        {model.ToolsRequired, nil, model.ToolsRequired, []string{"web_search", "web_fetch"}},
		"one is admitted":      {model.ToolsRequired, []string{"Web_Fetch"}, model.ToolsRequired, []string{"web_fetch"}},
		"none is admitted":     {model.ToolsRequired, []string{"x"}, model.ToolsAuto, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := plays(says("a"))
			set := model.Settings{ToolChoice: c.choice, ProviderTools: []model.ProviderTool{{Name: model.WebSearch}, {Name: model.WebFetch}}}
			play{cfg: loop.Config{Model: m, Settings: set}, run: engine.Run{Tools: c.gate}}.do(t)
			var got []string
			for _, p := range m.asked[0].ProviderTools {
				got = append(got, p.Name)
			}
			if m.asked[0].ToolChoice != c.want || !slices.Equal(got, c.tools) || len(set.ProviderTools) != 2 || set.ProviderTools[0].Name != model.WebSearch {
				t.Errorf("%q %q", m.asked[0].ToolChoice, got)
			}
		})
	}
}

func TestConverseIsReadOnOneScreen(t *testing.T) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "loop.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "Converse" {
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > 60 {
				t.Errorf("%d lines", n)
			}
			return
		}
	}
	t.Error("there is no Converse")
}

// A model that asks again after words were shown says so. Who listens is told, the words from then on are another attempt's, and a call that is cancelled then keeps nothing of the first one.
func TestWhatIsVoidIsTakenBack(t *testing.T) {
	flaky := func() model.Model {
		return resilience.Retry(resilience.RetryPolicy{Restart: true, Rand: func() float64 { return 0 }})(scripted.New(
			scripted.Turn{Text: "one two", Reasoning: "hm hm", Error: &scripted.Failure{Status: 529, Message: "Too much.", MidStream: true}},
			scripted.Text("three four"),
		))
	}
	host := &listener{}
	d := play{cfg: loop.Config{Model: flaky()}, host: host}.do(t)
	var got []string
	for _, e := range host.events {
		if e.Delta != "" {
			got = append(got, fmt.Sprint(e.Delta, " ", e.Attempt, " ", e.Text))
			if e.Seq == 0 || e.Key.String() != "model/1" {
				t.Errorf("%+v", e)
			}
		}
	}
	want := []string{"reasoning.delta 0 hm ", "reasoning.delta 0 hm", "retry 1 scripted: HTTP 529: Too much.", "text.delta 1 three ", "text.delta 1 four"}
	if diff := cmp.Diff(want, got); diff != "" || d.err != nil || d.talk.Last().Text() != "three four" {
		t.Error(d.err, d.talk.Last().Text(), diff)
	}

	ctx, cancel := context.WithCancel(t.Context())
	host = &listener{on: func(e event.Event) {
		if e.Text == "three " {
			cancel()
		}
	}}
	d = play{cfg: loop.Config{Model: flaky()}, ctx: ctx, host: host}.do(t)
	if diff := cmp.Diff([]string{"assistant: three "}, d.since()); diff != "" || !errdefs.Canceled(d.err) {
		t.Error(d.err, diff)
	}
}

// A model that was silent until it asked again streams its one final result.
func TestAfterAVoidTheWholeReplyIsShownIfNothingElseWas(t *testing.T) {
	host := &listener{}
	m := streams{pieces: []model.StreamResult{{Text: "a", Reasoning: "b"}, {Void: errors.New(""), Wait: time.Minute}}, final: message.New(message.RoleAssistant, message.Reasoning{Text: "hm"}, message.Text{Text: "whole"})}
	d := play{cfg: loop.Config{Model: m}, host: host}.do(t)
	if diff := cmp.Diff([]string{"a", "whole"}, host.texts(event.TextDelta)); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	if diff := cmp.Diff([]string{"b", "hm"}, host.texts(event.ReasoningDelta)); diff != "" || len(host.texts(event.Retry)) != 1 {
		t.Error(diff, host.texts(event.Retry))
	}
	for _, e := range host.events {
		if want := map[bool]time.Duration{true: time.Minute}[e.Delta == event.Retry]; e.Wait != want {
			t.Errorf("%s says that it waits %v, want %v", e.Type(), e.Wait, want)
		}
	}
}

package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/tool"
)

// takes is a reply whose call took so much of the window.
func takes(tokens int, r reply) reply {
	return func(ctx context.Context, req model.Request) (*model.Response, error) {
		resp, err := r(ctx, req)
		if err == nil {
			resp.Usage = model.Usage{Input: tokens}
		}
		return resp, err
	}
}

const summary = "[The conversation up to here, summarized. What was said and done in it is not repeated below.]\nall of it"

// small compacts at 500 tokens, and keeps 2 messages.
func small(m model.Model, tools ...tool.Tool) loop.Config {
	return loop.Config{Model: m, Tools: tools, Compact: loop.Compact{Enabled: true, Window: 1000, Threshold: 0.5, PreserveCount: 2}}
}

var soOn = strings.Repeat(" and so on", 30)

func look(n string) message.ToolCall { return call("c"+n, "look", `{"what":"INPUT`+n+`"}`) }

func looks() tool.Tool {
	return tool.Func("look", "", func(_ context.Context, in struct{ What string }) (string, error) {
		return "OUTPUT of " + in.What + soOn, nil
	})
}

func TestATranscriptThatGetsTooLongIsCompacted(t *testing.T) {
	m := plays(takes(100, uses(look("1"))), takes(300, uses(look("2"))), takes(600, uses(look("3"))), takes(40, says("all of it")), takes(90, says("done")))
	host := &listener{}
	d := play{cfg: small(m, looks()), host: host}.do(t)
	wantErr(t, d.err, nil)
	if got := host.texts(event.Waiting); len(got) != 1 || got[0] != "a summary of the transcript" { // no entry tells that it begins
		t.Errorf("%q", got)
	}
	for _, e := range host.events {
		if e.Delta == event.Waiting && e.Key != (journal.Key{Op: "compact", ID: "4"}) {
			t.Errorf("%+v", e.Key)
		}
	}
	want := []string{
		"user: " + summary,
		"user: go",
		`assistant:  <c3 look {"what":"INPUT3"}>`, "tool:  [c3 OUTPUT of INPUT3" + soOn + "]",
	}
	if diff := cmp.Diff(want, dump(m.asked[4].Messages)); diff != "" {
		t.Error("what the model was asked:", diff)
	}
	if diff := cmp.Diff(append(want, "assistant: done"), dump(d.talk)); diff != "" {
		t.Error(diff)
	}
	asked := m.asked[3]
	if text := asked.Messages.At(0).Text(); strings.Contains(text, "INPUT") || strings.Contains(text, "OUTPUT") || !strings.Contains(text, "Person: go") || len(asked.Tools) != 0 {
		t.Errorf("the call for the summary has %s, and %d tools", text, len(asked.Tools))
	}
	for i, message := range []int{2, 3} { // the tail is the very same messages, bytes and all
		if m.asked[4].Messages.At(message) != d.talk.At(message) {
			t.Error("a message that is kept is another one:", i)
		}
	}
	c := entries[journal.Compacted](t, d)
	if len(c) != 1 || c[0].TokensBefore < 600 || c[0].TokensAfter >= c[0].TokensBefore || c[0].Preserved != 2 || c[0].SummarySize != 3 || c[0].Usage.Input != 40 || c[0].Error != "" {
		t.Errorf("%+v", c)
	}
	if spent := d.log.State().RunSpent; spent.Steps != 4 || spent.Usage.Input != 100+300+600+40+90 {
		t.Errorf("%+v", spent)
	}
}

func TestACallThatDoesNotFitIsMadeAgainAfterACompaction(t *testing.T) {
	tooLong := fails(errdefs.Overflow.Errorf("prompt is too long"))
	begin := []reply{uses(look("1")), uses(look("2"))}
	cfg := func(m model.Model) loop.Config {
		c := small(m, looks())
		c.Compact.Window = 0 // not known: nothing is foreseen
		return c
	}
	m := plays(append(begin, tooLong, says("all of it"), says("done"))...)
	d := play{cfg: cfg(m)}.do(t)
	wantErr(t, d.err, nil)
	if diff := cmp.Diff([]string{"user: " + summary, "user: go", `assistant:  <c2 look {"what":"INPUT2"}>`, "tool:  [c2 OUTPUT of INPUT2" + soOn + "]", "assistant: done"}, dump(d.talk)); diff != "" {
		t.Error(diff)
	}

	m = plays(append(begin, tooLong, says("all of it"), tooLong)...)
	d = play{cfg: cfg(m)}.do(t)
	wantErr(t, d.err, errdefs.Overflow, "could not be compacted", "nothing that could be left out")

	m = plays(append(begin, tooLong, fails(errdefs.RateLimit.Errorf("slow down")))...)
	d = play{cfg: cfg(m)}.do(t)
	wantErr(t, d.err, errdefs.Overflow, "could not be compacted", "slow down")

	m = plays(append(begin, tooLong)...)
	d = play{cfg: loop.Config{Model: m, Tools: []tool.Tool{looks()}}}.do(t)
	wantErr(t, d.err, errdefs.Overflow, "prompt is too long")
}

func TestAReplyThatFillsTheWindowGoesOnAfterACompaction(t *testing.T) {
	m := plays(uses(look("1")), uses(look("2")), ends(model.StopWindow, "half of"), says("all of it"), says("the answer"))
	d := play{cfg: small(m, looks())}.do(t)
	wantErr(t, d.err, nil)
	asked := dump(m.asked[4].Messages)
	if got := asked[len(asked)-2]; got != "assistant: half of" {
		t.Error(asked)
	}
	if got := engine.Answer(d.talk.Messages()); got != "half ofthe answer" {
		t.Error(got)
	}
}

func TestACompactionThatFailsDoesNotEndTheRun(t *testing.T) {
	for name, bad := range map[string]reply{
		"an error":                     fails(errdefs.RateLimit.Errorf("slow down")),
		"an empty summary":             says("  "),
		"a summary that is no shorter": says(strings.Repeat("very long ", 300)),
		"a refusal":                    fails(errdefs.Refused.Errorf("no")),
	} {
		m := plays(takes(100, uses(look("1"))), takes(520, uses(look("2"))), bad, takes(530, uses(look("3"))), takes(540, says("done")))
		d := play{cfg: small(m, looks())}.do(t)
		if d.err != nil || d.talk.Len() != 8 {
			t.Errorf("%s: %v\n%s", name, d.err, strings.Join(dump(d.talk), "\n"))
		}
		if c := entries[journal.Compacted](t, d); len(c) != 1 || c[0].Error == "" || c[0].TokensAfter != c[0].TokensBefore { // and it is not tried again at once
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestACompactionThatIsCancelledIsDoneAgainWhenTheRunIsResumed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := plays(takes(100, uses(look("1"))), takes(600, uses(look("2"))), func(ctx context.Context, _ model.Request) (*model.Response, error) {
		cancel()
		return nil, ctx.Err()
	}, says("all of it"), says("done"))
	d := play{cfg: small(m, looks()), ctx: ctx}.do(t)
	if !errdefs.Canceled(d.err) || len(entries[journal.Compacted](t, d)) != 0 {
		t.Fatal(d.err)
	}
	if err := d.log.Drive(t.Context(), "you", journal.Entry{Run: "r", Data: journal.Resumed{Owner: "you"}}); err != nil {
		t.Fatal(err)
	}
	d.execute(t, t.Context(), engine.NoopHost{})
	if d.err != nil || len(entries[journal.Compacted](t, d)) != 1 {
		t.Error(d.err)
	}
}

func TestTheNextRunKnowsWhatTheSessionTakes(t *testing.T) {
	store := journal.Memory()
	m := plays(takes(100, uses(look("1"))), takes(700, says("first")), takes(20, says("all of it")), takes(50, says("second")))
	cfg := small(m, looks())
	d := play{cfg: cfg, store: store}.do(t)
	if d.err != nil {
		t.Fatal(d.err)
	}
	begin := []journal.Entry{{Run: "r2", Data: journal.RunStarted{Agent: "a", Owner: "me", Attempt: 1}}, {Run: "r2", Data: journal.Said{Message: message.User("more")}}}
	if err := d.log.Append(t.Context(), journal.Entry{Run: "r", Data: journal.RunFinished{Status: "completed"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.log.Drive(t.Context(), "me", begin...); err != nil {
		t.Fatal(err)
	}
	d.run.ID = "r2"
	d.execute(t, t.Context(), engine.NoopHost{})
	if diff := cmp.Diff([]string{"user: " + summary, "assistant: first", "user: more", "assistant: second"}, dump(d.talk)); diff != "" {
		t.Error(diff)
	}
}

func TestTheHostIsToldWhatASummaryTookThatIsOfNoUse(t *testing.T) {
	m := plays(takes(100, uses(look("1"))), takes(520, uses(look("2"))), takes(77, says("  ")), takes(540, says("done")))
	told := 0
	d := play{cfg: small(m, looks()), host: engine.HostFuncs{ReportUsageFunc: func(_ context.Context, u model.Usage) error { told += u.Input; return nil }}}.do(t)
	if d.err != nil || told != 100+520+77+540 {
		t.Error(d.err, told)
	}
}

func TestAMessageWithoutPartsIsNobodys(t *testing.T) {
	m := plays(takes(100, uses(look("1"))), takes(600, uses(look("2"))), takes(40, says("all of it")), takes(90, says("done")))
	empty := hook.Middleware{Name: "empty", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		g.Messages = message.NewHistory(message.New(message.RoleUser)).Append(g.Messages.Messages()...)
		return nil
	}}
	cfg := small(m, looks())
	cfg.Hooks = []hook.Middleware{empty}
	wantErr(t, play{cfg: cfg}.do(t).err, nil)
}

func TestACompactionIsPaidFromTheBudget(t *testing.T) {
	m := plays(takes(100, uses(look("1"))), takes(600, uses(look("2"))), takes(300, says("all of it")), says("done"))
	d := play{cfg: small(m, looks()), run: engine.Run{Bounds: engine.Bounds{Budget: &engine.Budget{Tokens: 1000}}}}.do(t)
	wantErr(t, d.err, errdefs.BudgetExceeded)
	if m.calls() != 3 {
		t.Error(m.calls())
	}
}

func TestCompactSaysWhatIsWrongWithIt(t *testing.T) {
	for want, c := range map[string]loop.Compact{
		"set Enabled":                 {Window: 5},
		"Compact.Threshold is 2":      {Enabled: true, Threshold: 2},
		"Compact.Threshold is -1":     {Enabled: true, Threshold: -1},
		"Compact.PreserveCount is -1": {Enabled: true, PreserveCount: -1},
		"Compact.Window is -5":        {Enabled: true, Window: -5},
	} {
		_, err := loop.New(loop.Config{Model: plays(), Compact: c})
		wantErr(t, err, errdefs.Validation, want)
	}
}

func TestTheWindowIsTheCataloguesUnlessItIsGiven(t *testing.T) {
	known, ok := catalog.Default().Lookup("anthropic/claude-haiku-5-5")
	if !ok || known.Window == 0 || known.Window == 200_000 {
		t.Fatalf("want a model whose window is another than that of an unknown one: %+v", known)
	}
	for name, c := range map[string]struct {
		model   string
		compact loop.Compact
		want    int
	}{
		"a known model":                   {known.Name, loop.Compact{Enabled: true}, known.Window * 8 / 10},
		"with a threshold":                {known.Name, loop.Compact{Enabled: true, Threshold: 0.25}, known.Window / 4},
		"with a window of the caller's":   {known.Name, loop.Compact{Enabled: true, Threshold: 0.5, Window: 1000}, 500},
		"a model that nobody knows":       {"nobody/knows", loop.Compact{Enabled: true}, 160_000},
		"one that nobody knows, and some": {"nobody/knows", loop.Compact{Enabled: true, Threshold: 0.5}, 100_000},
		"off":                             {known.Name, loop.Compact{}, 0},
	} {
		m := plays(says("done"))
		m.name = c.model
		d := play{cfg: loop.Config{Model: m, Compact: c.compact}}.do(t)
		wantErr(t, d.err, nil)
		if p := entries[journal.Prepared](t, d); len(p) != 1 || p[0].CompactAt != c.want {
			t.Errorf("%s: want it compacted at %d tokens: %+v", name, c.want, p)
		}
	}
}

package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"pgregory.net/rapid"
)

// states compares what callers see of a State.
var states = cmp.Options{cmpopts.IgnoreUnexported(journal.State{}), equal}

// shape writes a transcript as one line: u(text), a(text and calls), t(results, "-" for errors).
func shape(h message.History) string {
	var b strings.Builder
	for _, m := range h.All() {
		fmt.Fprintf(&b, " %c", m.Role()[0])
		b.WriteString(m.Text())
		for c := range message.Of[message.ToolCall](m) {
			b.WriteString("?" + c.ID)
		}
		for r := range message.Of[message.ToolResult](m) {
			b.WriteString("!" + r.Call)
			if r.IsError {
				b.WriteByte('-')
			}
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

func numbered(entries ...journal.Entry) []journal.Entry {
	for i := range entries {
		entries[i].Seq, entries[i].Session = int64(i)+1, "s"
		entries[i].Time = time.Unix(int64(i), 0).UTC()
	}
	return entries
}

func entry(d journal.Data) journal.Entry { return journal.Entry{Run: "r1", Data: d} }

func keyed(op, id string, d journal.Data) journal.Entry {
	return journal.Entry{Run: "r1", Key: journal.Key{Op: op, ID: id}, Data: d}
}

func said(text string) journal.Entry { return entry(journal.Said{Message: message.User(text)}) }

func started(run string, attempt int) journal.Entry {
	return journal.Entry{Run: run, Data: journal.RunStarted{Agent: "a", User: "u", Owner: "o", Attempt: attempt}}
}

func calls(ids ...string) (cs []message.ToolCall) {
	for _, id := range ids {
		cs = append(cs, message.ToolCall{ID: id, Name: "t", Input: "{}"})
	}
	return cs
}

func reply(step, text string, ids ...string) journal.Entry {
	return keyed("model", step, journal.ModelFinished{Message: message.Assistant(text, calls(ids...)...), Stop: model.StopTools})
}

func result(id string) journal.Entry {
	return keyed("tool", id, journal.ToolFinished{Call: id, Name: "t", Content: "ok", Outcome: journal.OutcomeOK})
}

func finished(d journal.RunFinished) journal.Entry { return entry(d) }

func TestASessionFoldsToATranscript(t *testing.T) {
	long := func(step string, partial bool, ids ...string) journal.Entry {
		return keyed("model", step, journal.ModelFinished{Message: message.Assistant("cut", calls(ids...)...), Stop: model.StopLength, Partial: partial})
	}
	scoped := func(e journal.Entry) journal.Entry {
		e.Key.Scope = "node"
		if e.Key.Op == "" {
			e.Key.Op = "x"
		}
		return e
	}
	begin := []journal.Entry{started("r1", 1), said("hi")}
	for name, c := range map[string]struct {
		entries []journal.Entry
		want    string
	}{
		"nothing":                                {nil, ""},
		"a question and an answer":               {[]journal.Entry{reply("1", "hello"), finished(journal.RunFinished{Status: "completed", Committed: true})}, "uhi ahello"},
		"results stand in the calls' order":      {[]journal.Entry{reply("1", "", "1", "2"), result("2"), result("1"), reply("2", "done")}, "uhi a?1?2 t!1!2 adone"},
		"a killed run's open calls are answered": {[]journal.Entry{reply("1", "", "1", "2"), result("2")}, "uhi a?1?2 t!1-!2"},
		"the next run begins behind them": {
			[]journal.Entry{reply("1", "", "1"), started("r2", 1), said("again"), reply("2", "ok")}, "uhi a?1 t!1- uagain aok",
		},
		"a failed run's remains stay":    {[]journal.Entry{reply("1", "", "1"), finished(journal.RunFinished{Status: "failed"}), started("r2", 1), said("more")}, "uhi a?1 t!1- umore"},
		"a cancelled run's remains stay": {[]journal.Entry{long("1", true), finished(journal.RunFinished{Status: "canceled"})}, "uhi acut"},
		"a discarded run's output goes":  {[]journal.Entry{reply("1", "", "1"), result("1"), reply("2", "x"), finished(journal.RunFinished{Status: "completed", Discarded: true})}, "uhi"},
		"a discarded run with open calls goes too": {
			[]journal.Entry{reply("1", "", "1"), finished(journal.RunFinished{Status: "failed", Discarded: true}), started("r2", 1), said("more")}, "uhi umore",
		},
		"a revise starts over":          {[]journal.Entry{reply("1", "bad", "1"), started("r1", 2), reply("1", "good")}, "uhi agood"},
		"a blank reply leaves nothing":  {[]journal.Entry{reply("1", " \n"), reply("2", "ok")}, "uhi aok"},
		"reasoning alone is blank":      {[]journal.Entry{keyed("model", "1", journal.ModelFinished{Message: message.New(message.RoleAssistant, message.Reasoning{Text: "hm"})})}, "uhi"},
		"a cut reply's calls don't run": {[]journal.Entry{long("1", false, "1", "2"), result("1"), reply("2", "ok")}, "uhi acut?1?2 t!1-!2- aok"},
		"a partial reply's calls don't run": {[]journal.Entry{
			keyed("model", "1", journal.ModelFinished{Message: message.Assistant("cut", calls("1")...), Partial: true}), result("1"),
		}, "uhi acut?1 t!1-"},
		"a denied call is answered by its reason": {
			[]journal.Entry{reply("1", "", "1", "2"), keyed("judge", "1", journal.ToolJudged{Call: "1", Verdict: "deny", Reason: "no"}), result("2"), reply("2", "ok")}, "uhi a?1?2 t!1-!2 aok",
		},
		"a rejected call is answered by the person": {
			[]journal.Entry{
				reply("1", "", "1"), keyed("ask", "1", journal.Asked{ID: "q", Call: &journal.Called{ID: "1"}}),
				keyed("ask", "1", journal.Answered{ID: "q", Text: "no"}), reply("2", "ok"),
			}, "uhi a?1 t!1- aok",
		},
		"an approved call waits for its result": {
			[]journal.Entry{reply("1", "", "1"), keyed("ask", "1", journal.Asked{ID: "1"}), keyed("ask", "1", journal.Answered{ID: "1", Approved: true}), result("1")}, "uhi a?1 t!1",
		},
		"the first result counts": {
			[]journal.Entry{reply("1", "", "1", "2"), keyed("judge", "1", journal.ToolJudged{Call: "1", Verdict: "deny"}), result("1"), result("2")}, "uhi a?1?2 t!1-!2",
		},
		"calls of one id are one":      {[]journal.Entry{reply("1", "", "1", "1", "2"), result("2"), result("1"), reply("2", "ok")}, "uhi a?1?2 t!1!2 aok"},
		"steering waits for no result": {[]journal.Entry{reply("1", "", "1"), keyed("said", "1", said("wait").Data), result("1")}, "uhi a?1 t!1- uwait"},
		"a stop hook sends it back":    {[]journal.Entry{reply("1", "done"), keyed("stop", "1", journal.Stopped{Again: "more"}), reply("2", "ok")}, "uhi adone umore aok"},
		"a stop hook that is content":  {[]journal.Entry{reply("1", "done"), keyed("stop", "1", journal.Stopped{})}, "uhi adone"},
		"a hook's edit is kept":        {[]journal.Entry{keyed("prepare", "", journal.Prepared{Edit: message.Edit{Head: []message.Message{message.User("memo")}, To: 1}})}, "umemo uhi"},
		"a seeder's edit is kept":      {[]journal.Entry{entry(journal.Seeded{Edit: message.Edit{To: 1, Tail: []message.Message{message.User("memo")}}}), finished(journal.RunFinished{Discarded: true})}, "uhi umemo"},
		"compaction replaces":          {[]journal.Entry{reply("1", "one"), reply("2", "two"), keyed("compact", "1", journal.Compacted{Edit: message.Edit{Head: []message.Message{message.User("sum")}, From: 2, To: 3}})}, "usum atwo"},
		"an edit that cuts calls off their results is mended": {
			[]journal.Entry{reply("1", "", "1"), result("1"), keyed("compact", "1", journal.Compacted{Edit: message.Edit{Head: []message.Message{message.User("sum")}, From: 2, To: 3}})}, "usum",
		},
		"an edit that adds nonsense is mended": {
			[]journal.Entry{keyed("prepare", "", journal.Prepared{Edit: message.Edit{To: 9, Tail: []message.Message{message.Results(message.ToolResult{Call: "9"}), message.Assistant("", calls("7")...), {}}}})}, "uhi a?7 t!7-",
		},
		"a board's main channel is the transcript": {
			[]journal.Entry{{Key: journal.Key{Scope: "node", Op: "board"}, Data: journal.Board{Append: map[string][]message.Message{"main": {message.Assistant("b")}, "other": {message.User("x")}}}}}, "uhi ab",
		},
		"a node's own conversation isn't": {
			[]journal.Entry{
				scoped(reply("1", "inner", "1")), scoped(result("1")), scoped(keyed("said", "1", said("inner").Data)), scoped(keyed("stop", "1", journal.Stopped{Again: "x"})),
				scoped(keyed("compact", "1", journal.Compacted{})), scoped(keyed("judge", "1", journal.ToolJudged{Call: "1", Verdict: "deny"})),
			}, "uhi",
		},
		"a reply that is no reply": {[]journal.Entry{keyed("model", "1", journal.ModelFinished{Message: message.Results(message.ToolResult{Call: "1"})})}, "uhi"},
		"a message that is none":   {[]journal.Entry{entry(journal.Said{})}, "uhi"},
		"a parked run can be read": {[]journal.Entry{reply("1", "", "1"), keyed("ask", "1", journal.Asked{ID: "1"}), entry(journal.Parked{Cause: "awaiting_person"})}, "uhi a?1 t!1-"},
	} {
		t.Run(name, func(t *testing.T) {
			entries := c.entries
			if name != "nothing" {
				entries = append(slices.Clone(begin), entries...)
			}
			st := journal.Fold(numbered(entries...)...)
			if got := shape(st.Messages); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !identical(message.Repair(st.Messages), st.Messages) {
				t.Errorf("not valid: %s", shape(st.Messages))
			}
		})
	}
}

func TestAForkDoesNotInheritItsParentsRun(t *testing.T) {
	entries := numbered(
		started("r0", 1), said("first"), reply("1", "one"), finished(journal.RunFinished{Status: "completed"}),
		started("r1", 1), said("hi"), reply("1", "", "1"), keyed("tool", "1", journal.ToolStarted{Call: journal.Called{ID: "1"}}), keyed("ask", "1", journal.Asked{ID: "1"}),
		entry(journal.SessionCreated{Parent: "p", At: 9}),
	)
	st := journal.Fold(entries...)
	if st.Run != "" || st.Driver != "" || st.Status != "" || st.Pending != nil || st.Inputs != nil || st.Agent != "a" || !st.Created.Equal(entries[9].Time) {
		t.Errorf("%+v", st)
	}
	if got, want := shape(st.Messages), "ufirst aone uhi a?1 t!1-"; got != want || shape(st.Seed) != want {
		t.Errorf("got %s, seed %s", got, shape(st.Seed))
	}
	st = journal.Fold(append(entries, numbered(started("r2", 2))...)...)
	if got := shape(st.Messages); got != "ufirst aone uhi a?1 t!1-" {
		t.Errorf("a second attempt in the fork loses what it shares: %s", got)
	}
}

func TestAStateSaysWhereTheSessionStands(t *testing.T) {
	price := int64(5)
	priced := func(d journal.ModelFinished) journal.Entry { return keyed("model", "1", d) }
	entries := numbered(
		journal.Entry{Data: journal.SessionCreated{}},
		journal.Entry{Run: "r1", Data: journal.RunStarted{Agent: "a", User: "u", Owner: "one", Attempt: 1, Inputs: map[string]any{"x": 1.0}}},
		said("hi"),
		priced(journal.ModelFinished{Message: message.Assistant("", calls("1")...), Usage: model.Usage{Input: 3, Output: 2}, CostMicros: &price}),
		keyed("ask", "1", journal.Asked{ID: "1", Prompt: "may it?"}),
		entry(journal.Parked{Cause: "awaiting_person"}),
		entry(journal.Resumed{Owner: "two"}),
		keyed("ask", "1", journal.Answered{ID: "1", Approved: true}),
		entry(journal.RunFinished{Status: "failed", Class: "internal", Error: "boom"}),
		journal.Entry{Run: "r2", Data: journal.RunStarted{Agent: "b", Owner: "three", Attempt: 1}},
		priced(journal.ModelFinished{Message: message.Assistant("x"), Usage: model.Usage{Output: 1}}),
	)
	at := func(n int) journal.State { return journal.Fold(entries[:n]...) }
	if st := at(3); st.Run != "r1" || st.Agent != "a" || st.User != "u" || st.Driver != "one" || st.Attempt != 1 || st.Inputs["x"] != 1.0 || st.Status != "" || shape(st.Seed) != "uhi" {
		t.Errorf("running: %+v", st)
	}
	if st := at(6); st.Status != "interrupted" || len(st.Pending) != 1 || st.Pending[0].Prompt != "may it?" || st.Pending[0].Key.Op != "ask" || *st.Spent.Cost() != 5 {
		t.Errorf("parked: %+v", st)
	}
	if st := at(7); st.Status != "" || st.Driver != "two" || len(st.Pending) != 1 {
		t.Errorf("resumed: %+v", st)
	}
	if st := at(8); len(st.Pending) != 0 {
		t.Errorf("answered: %+v", st)
	}
	if st := at(9); st.Run != "" || st.Status != "failed" || st.Class != "internal" || st.Error != "boom" || st.Inputs != nil {
		t.Errorf("failed: %+v", st)
	}
	st := at(11)
	if st.Run != "r2" || st.Agent != "b" || st.Error != "" || st.Spent.Steps != 2 || st.RunSpent.Steps != 1 || st.Spent.Usage.Output != 3 || st.Spent.Cost() != nil || st.Spent.CostMicros != 5 {
		t.Errorf("the next run: %+v", st)
	}
	if st.Seq != 11 || !st.Created.Equal(entries[0].Time) || !st.Updated.Equal(entries[10].Time) {
		t.Errorf("%d, %v, %v", st.Seq, st.Created, st.Updated)
	}
}

func identical(a, b message.History) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i, m := range a.All() {
		if m != b.At(i) {
			return false
		}
	}
	return true
}

// anyLife is a sequence of entries with so few names that they meet, in any order, sense or not.
func anyLife() *rapid.Generator[[]journal.Entry] {
	id := rapid.SampledFrom([]string{"1", "2", "3"})
	one := rapid.Custom(func(t *rapid.T) journal.Entry {
		i, j := id.Draw(t, "i"), id.Draw(t, "j")
		text := rapid.SampledFrom([]string{"", " ", "x"}).Draw(t, "text")
		some := rapid.SliceOfN(rapid.SampledFrom([]message.Message{
			{},
			message.User("m"), message.Assistant(""), message.Assistant("", calls(i)...), message.Assistant("x", calls(i, j)...), message.New(message.RoleUser),
			message.Results(message.ToolResult{Call: i}), message.Results(message.ToolResult{Call: i}, message.ToolResult{Call: j}), message.New(message.RoleTool),
		}), 0, 3)
		edit := message.Edit{Head: some.Draw(t, "head"), From: rapid.IntRange(-1, 9).Draw(t, "from"), To: rapid.IntRange(-1, 9).Draw(t, "to"), Tail: some.Draw(t, "tail")}
		m := rapid.Map(some, func(ms []message.Message) message.Message {
			return append(ms, message.Assistant(text, calls(i, j)...))[0]
		}).Draw(t, "m")
		stop := rapid.SampledFrom([]model.StopReason{model.StopEnd, model.StopTools, model.StopLength}).Draw(t, "stop")
		d := rapid.SampledFrom([]journal.Data{
			started("r"+i, 1).Data, started("r"+i, 2).Data,
			journal.Resumed{Owner: i},
			journal.Said{Message: m},
			journal.Seeded{Edit: edit},
			journal.Prepared{Edit: edit},
			journal.Compacted{Edit: edit},
			journal.ModelFinished{Message: message.Assistant(text, calls(i, j)...), Stop: stop},
			journal.ModelFinished{Message: m, Stop: stop},
			journal.ModelFinished{Message: message.Assistant(text)},
			journal.ModelFinished{Message: message.Assistant(text, calls(i)...), Partial: true},
			journal.ToolJudged{Call: i, Verdict: "deny"},
			journal.ToolJudged{Call: i, Verdict: "allow"},
			journal.ToolFinished{Call: i},
			journal.ToolFinished{Call: j},
			journal.ToolStarted{},
			journal.Asked{ID: i, Call: &journal.Called{ID: j}},
			journal.Asked{ID: i},
			journal.Answered{ID: i},
			journal.Answered{ID: i, Approved: true},
			journal.Stopped{Again: text},
			journal.Board{Append: map[string][]message.Message{"main": some.Draw(t, "board")}},
			journal.Parked{},
			journal.ModelFailed{},
			journal.ModelStarted{},
			journal.SessionCreated{Parent: i},
			journal.SessionCreated{},
			journal.RunFinished{Status: "failed"},
			journal.RunFinished{Status: "completed", Discarded: true},
		}).Draw(t, "data")
		e := entry(d)
		if rapid.Bool().Draw(t, "keyed") {
			e.Key = journal.Key{Op: string(d.Kind()), ID: i, Scope: rapid.SampledFrom([]string{"", "", "node"}).Draw(t, "scope")}
		}
		return e
	})
	return rapid.Map(rapid.SliceOfN(one, 0, 30), func(es []journal.Entry) []journal.Entry { return numbered(es...) })
}

func TestAnySequenceOfEntriesFoldsToAValidTranscript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := anyLife().Draw(t, "life")
		for n := range len(entries) + 1 {
			st := journal.Fold(entries[:n]...)
			for what, h := range map[string]message.History{"transcript": st.Messages, "seed": st.Seed} {
				if !identical(message.Repair(h), h) {
					t.Fatalf("after %d entries the %s is not valid: %s", n, what, shape(h))
				}
			}
		}
	})
}

func TestFoldingIsPureAndGoesOnFromAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := anyLife().Draw(t, "life")
		before := make([]string, len(entries))
		for i, e := range entries {
			before[i] = string(encode(t, e))
		}
		once := journal.Fold(entries...)
		if d := cmp.Diff(once, journal.Fold(entries...), states); d != "" {
			t.Fatalf("folded twice:\n%s", d)
		}
		for i, e := range entries {
			if string(encode(t, e)) != before[i] {
				t.Fatalf("folding changed entry %d", i)
			}
		}
		// A Log that reads piece by piece, its state looked at in between, comes to the same.
		ctx, store := context.Background(), journal.Memory()
		var l *journal.Log
		var seen []journal.State
		for i, e := range entries {
			if c, ok := e.Data.(journal.SessionCreated); ok && i == 0 && c.Parent != "" {
				return // no fork without a parent
			}
			if err := store.Append(ctx, "s", int64(i), e); err != nil {
				if _, fork := e.Data.(journal.SessionCreated); fork {
					return
				}
				t.Fatal(err)
			}
			if l == nil {
				l, _ = journal.Open(ctx, store, "s")
			} else if err := l.Answer(ctx, journal.Answered{ID: "nobody asked"}); err == nil {
				t.Fatal("answered")
			}
			seen = append(seen, l.State())
		}
		for n, st := range seen {
			if d := cmp.Diff(journal.Fold(entries[:n+1]...), st, states); d != "" {
				t.Fatalf("after %d entries, -folded +followed\n%s", n+1, d)
			}
		}
	})
}

func TestWhatALiveStateSharesStaysAsItWas(t *testing.T) {
	ctx := context.Background()
	l, err := journal.Open(ctx, journal.Memory(), "s")
	if err != nil {
		t.Fatal(err)
	}
	must(t, l.Drive(ctx, "o", started("r1", 1), said("hi")))
	must(t, l.Append(ctx, reply("1", "", "1", "2"), keyed("ask", "1", journal.Asked{ID: "1"})))
	open := l.State()
	must(t, l.Append(ctx, result("2")))
	half := l.State()
	must(t, l.Answer(ctx, journal.Answered{ID: "1", Text: "no"}))
	must(t, l.Append(ctx, reply("2", "done")))
	for got, want := range map[string]string{
		shape(open.Messages): "uhi a?1?2 t!1-!2-", shape(half.Messages): "uhi a?1?2 t!1-!2", shape(l.State().Messages): "uhi a?1?2 t!1-!2 adone",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(open.Pending) != 1 || len(l.State().Pending) != 0 {
		t.Errorf("pending: %v, then %v", open.Pending, l.State().Pending)
	}
}

func TestAStateWithFurtherEntriesIsAnotherOne(t *testing.T) {
	l, err := journal.Open(context.Background(), journal.Memory(), "s")
	must(t, err)
	must(t, l.Drive(context.Background(), "o", started("r1", 1), said("hi")))
	st := l.State()
	more := st.With(reply("1", "", "1", "2"), result("2"))
	if got, want := shape(more.Messages), "uhi a?1?2 t!1-!2"; got != want || more.Seq != 4 {
		t.Errorf("got %s (%d), want %s", got, more.Seq, want)
	}
	if shape(st.Messages) != "uhi" || shape(l.State().Messages) != "uhi" || l.HasCall("1") {
		t.Error("the state that it came from changed")
	}
	if _, begun := l.Recorded(journal.Key{Op: "model", ID: "1"}); begun {
		t.Error("what was only tried is on record")
	}
}

func TestARunCostsNothingForTheHistoryBehindIt(t *testing.T) {
	entries := func(n int) []journal.Entry {
		es := []journal.Entry{started("r1", 1)}
		for i := range n {
			es = append(es, said(fmt.Sprint(i)), reply(fmt.Sprint(i), "x"))
		}
		return numbered(es...)
	}
	allocs := func(n int) float64 {
		ctx, store := context.Background(), journal.Memory()
		must(t, store.Append(ctx, "s", 0, entries(n)...))
		l, err := journal.Open(ctx, store, "s")
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		return testing.AllocsPerRun(200, func() {
			i++
			id := fmt.Sprint("c", i)
			must(t, l.Append(ctx, reply(id, "", id)))
			must(t, l.Append(ctx, result(id)))
			_ = l.State()
		})
	}
	short, long := allocs(10), allocs(5000)
	if long > short+2 {
		t.Errorf("a turn costs %.0f allocations after 10 messages and %.0f after 5000", short, long)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheTermsOfARunAreThoseThatWereSaidLast(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	var all []journal.Entry
	for i, c := range []struct {
		entry journal.Entry
		want  string
	}{
		{journal.Entry{Run: "r1", Data: journal.RunStarted{Owner: "a", Attempt: 1, Terms: raw(`{"n":1}`)}}, `{"n":1}`},
		{journal.Entry{Run: "r1", Data: journal.Resumed{Owner: "b"}}, `{"n":1}`},
		{journal.Entry{Run: "r1", Data: journal.Resumed{Owner: "c", Terms: raw(`{"n":2}`)}}, `{"n":2}`},
		{journal.Entry{Run: "r1", Data: journal.RunStarted{Owner: "c", Attempt: 2, Terms: raw(`{"n":2}`)}}, `{"n":2}`},
		{journal.Entry{Run: "r2", Data: journal.RunStarted{Owner: "d", Attempt: 1}}, ""},
	} {
		all = append(all, c.entry)
		if got := string(journal.Fold(numbered(all...)...).Terms); got != c.want {
			t.Errorf("after entry %d: %s, want %s", i+1, got, c.want)
		}
	}
}

// What a call asked while it ran is not to be answered any more when it is over. What another call asked, or the same id in another scope, is.
func TestAQuestionEndsWithItsCall(t *testing.T) {
	asked := func(op, scope, id string) journal.Entry {
		return journal.Entry{Run: "r1", Key: journal.Key{Op: op, ID: id, Scope: scope}, Data: journal.Asked{ID: id, Prompt: "Which?"}}
	}
	finished := func(d journal.ToolFinished) journal.Entry {
		d.Call = "c1"
		return keyed("call", "c1", d)
	}
	begin := []journal.Entry{started("r1", 1), said("go"), asked("question", "", "c1"), asked("question", "", "c1/question-2"), asked("question", "", "c10"), asked("question", "n1", "c1"), asked("ask", "", "c1/again-1")}
	for name, c := range map[string]struct {
		end  journal.ToolFinished
		left int
	}{
		"it is over":                   {journal.ToolFinished{Outcome: "ok"}, 3},
		"it goes on in the background": {journal.ToolFinished{Outcome: "ok", Background: &journal.Called{ID: "c1"}}, 5},
		"a person is asked once more":  {journal.ToolFinished{Outcome: "unknown", Ask: true}, 5},
	} {
		st := journal.Fold(numbered(append(slices.Clip(begin), finished(c.end))...)...)
		if len(st.Pending) != c.left {
			t.Errorf("%s: %d are pending, want %d: %+v", name, len(st.Pending), c.left, st.Pending)
		}
	}
}

// A state shows a result for each call; going on from it takes the results that come then.
func TestAStateGoesOnAmidTheCallsOfAReply(t *testing.T) {
	run := func(key journal.Key, d journal.Data) journal.Entry { return journal.Entry{Run: "r", Key: key, Data: d} }
	use := func(id string) journal.Key { return journal.Key{Op: "tool", ID: id} }
	calls := []message.Part{message.ToolCall{ID: "a", Name: "look", Input: "{}"}, message.ToolCall{ID: "b", Name: "look", Input: "{}"}}
	all := numbered(
		run(journal.Key{}, journal.SessionCreated{}), run(journal.Key{}, journal.RunStarted{Agent: "a", Attempt: 1}), run(journal.Key{}, journal.Said{Message: message.User("go")}),
		run(journal.Key{Op: "model", ID: "1"}, journal.ModelFinished{Message: message.New(message.RoleAssistant, calls...)}),
		run(use("a"), journal.ToolStarted{Call: journal.Called{ID: "a", Name: "look", Input: "{}"}}),
		run(use("a"), journal.ToolFinished{Call: "a", Name: "look", Content: "seen a", Outcome: journal.OutcomeOK}),
		run(use("b"), journal.ToolStarted{Call: journal.Called{ID: "b", Name: "look", Input: "{}"}}),
		run(use("b"), journal.ToolFinished{Call: "b", Name: "look", Content: "seen b", Outcome: journal.OutcomeOK}),
		run(journal.Key{Op: "model", ID: "2"}, journal.ModelFinished{Message: message.Assistant("done")}),
	)
	want := shape(journal.Fold(all...).Messages)
	for n := range all {
		st := journal.Fold(all[:n]...)
		before := shape(st.Messages)
		for range 2 { // which leaves st as it is
			if got := shape(st.With(all[n:]...).Messages); got != want {
				t.Errorf("from entry %d on: %s, want %s", n, got, want)
			}
		}
		if got := shape(st.Messages); got != before {
			t.Errorf("the state at entry %d has become %s, it was %s", n, got, before)
		}
	}
}

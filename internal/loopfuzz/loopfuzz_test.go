package loopfuzz

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// lives is how many lives are played when nobody says how many: they take some 20 s.
const lives = "3000"

func TestMain(m *testing.M) {
	flag.Parse()
	said := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		n := lives
		if raced.Enabled || testing.Short() {
			n = "300"
		}
		_ = flag.Set("rapid.checks", n)
	}
	goleak.VerifyTestMain(m)
}

func TestNoLifeBreaksAPromise(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		p := draw().Draw(rt, "plan")
		broken, w := play(t, p)
		if len(broken) > 0 {
			rt.Fatalf("%s\n%s\n%s", strings.Join(broken, "\n"), p, w.story())
		}
		w.record().count(seen)
	})
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[what], what)
	}
	for _, what := range strings.Fields(reached) {
		if seen[what] == 0 && !t.Failed() && !testing.Short() && !raced.Enabled {
			t.Errorf("no life came to %s: what is drawn has to lead there", what)
		}
	}
}

// reached is what some lives have to come to, so that the promises are looked at there. What is too rare for chance is in testdata/lives.
const reached = `status/completed status/failed status/canceled status/aborted status/interrupted attempt/2 resumed parked/awaiting_person parked/user_cancel parked/custom
	outcome/ok outcome/error outcome/canceled outcome/unknown verdict/allow verdict/ask verdict/deny verdict/invalid answer/yes answer/no answer/edit background final ended discarded
	steered asked/question heard seeded`

// count notes what a record came to.
func (r record) count(seen map[string]int) {
	for _, e := range r {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			seen[fmt.Sprintf("attempt/%d", d.Attempt)]++
		case journal.Resumed:
			seen["resumed"]++
		case journal.Seeded:
			seen["seeded"]++
		case journal.Parked:
			seen["status/interrupted"]++
			seen["parked/"+d.Cause]++
		case journal.Stopped:
			if d.Steered {
				seen["steered"]++
			}
		case journal.ModelFinished:
			if len(d.Heard) > 0 {
				seen["heard"]++
			}
			if d.Partial {
				seen["partial"]++
			}
		case journal.ToolJudged:
			seen["verdict/"+d.Verdict]++
			if d.Ends != "" {
				seen["ended"]++
			}
		case journal.Asked:
			if d.Unknown {
				seen["asked/unknown"]++
			}
			if e.Key.Op == "question" {
				seen["asked/question"]++
			}
		case journal.Answered:
			how := "no"
			if d.Approved {
				how = "yes"
			}
			if d.Input != "" {
				how = "edit"
			}
			seen["answer/"+how]++
		case journal.ToolFinished:
			seen["outcome/"+string(d.Outcome)]++
			if d.Background != nil {
				seen["background"]++
			}
			if d.Final {
				seen["final"]++
			}
		case journal.RunFinished:
			seen["status/"+d.Status]++
			if d.Discarded {
				seen["discarded"]++
			}
		}
	}
}

// Lives that broke a promise once, and some that no chance is to be trusted with.
func TestNoKeptLifeBreaksAPromise(t *testing.T) {
	files, err := filepath.Glob("testdata/lives/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("there are none", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var p plan
			d := json.NewDecoder(strings.NewReader(string(b)))
			d.DisallowUnknownFields()
			if err := d.Decode(&p); err != nil {
				t.Fatal(err)
			}
			if broken, w := play(t, p); len(broken) > 0 {
				t.Errorf("%s\n%s", strings.Join(broken, "\n"), w.story())
			}
		})
	}
}

// play plays a life, and says which promises it broke.
func play(t *testing.T, p plan) (broken []string, w *world) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w = &world{disk: disk{journal.Memory()}, plan: clone(p), whole: p, asked: map[string]history{}}
		w.live()
		time.Sleep(time.Hour) // tools that were left behind end: time stands still without this goroutine
		w.ends()
	})
	return w.broken, w
}

func clone(p plan) (q plan) {
	b, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(b, &q)
	}
	if err != nil {
		panic(err)
	}
	return q
}

func (w *world) story() string {
	var b strings.Builder
	for _, e := range w.record() {
		d, _ := journal.EncodeData(e.Data)
		fmt.Fprintf(&b, "%3d %s %s %s %s\n", e.Seq, e.Run, e.Data.Kind(), e.Key, d)
	}
	return b.String()
}

// parts are an agent and its engine, made anew for each process.
func (w *world) parts() (agent.Agent, *loop.Engine) {
	eng, err := loop.New(loop.Config{Model: w, Tools: w.tools()})
	if err != nil {
		panic(err)
	}
	admitted := []string{"look", "put", "pay", "solo", "sign"}
	return agent.Agent{ID: "a", Tools: admitted, Hooks: w.hooks(), Deciders: []agent.Decider{w}}, eng
}

// live has each prompt said, in as many lives as it takes.
func (w *world) live() {
	for i, then := range w.whole.Prompts {
		run := fmt.Sprintf("r%d", i)
		for tries := 0; ; tries++ {
			if tries > 60 {
				w.breaks("%s does not come to an end", run)
				return
			}
			if over := w.goOn(run, fmt.Sprintf("prompt %d", i), then); over {
				break
			}
		}
	}
}

// goOn is one life of the process: it begins a run, or goes on with it, until the run is over, or waits, or the process dies.
func (w *world) goOn(run, text, then string) (over bool) {
	l := &life{disk: w.disk, w: w, faults: popped(w, func(p *plan) *[][]fault { return &p.Lives }), interrupts: make(chan engine.Interrupt, 1)}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), lifeKey{}, l))
	defer cancel()
	l.cancel = cancel
	w.prompt = text
	log, err := journal.Open(ctx, w.disk, session)
	if err != nil {
		w.breaks("%s: %v", run, err)
		return true
	}
	ag, eng := w.parts()
	with := []agent.RunOption{agent.WithJournal(l), agent.WithMaxRevise(w.whole.Revise), agent.WithUnknown(w.whole.Unknown), agent.WithEngineHost(w.host(l)), agent.WithCommitter(w)}
	if len(w.whole.Seeds) > 0 {
		with = append(with, agent.WithBoardSeed(w.seed))
	}
	began := log.Ran(run)
	if began && log.State().Run != run {
		return true
	}
	var res *agent.Result
	if !began {
		res, err = agent.Run(ctx, ag, eng, agent.Request{ContextID: session, RunID: run, Message: message.User(text)}, with...)
	} else {
		res, err = agent.Resume(ctx, ag, eng, session, with...)
	}
	l.ends()
	if after, late := l.overdue(); late {
		w.breaks("%s is cancelled, and ends after %v", run, after)
	}
	w.judges(l, run, res, err)
	st := w.state()
	if st.Run == "" {
		return began || res != nil || log.Ran(run) || w.ran(run)
	}
	if res != nil && res.Status == agent.StatusInterrupted && st.Run == run {
		if then == "leave" {
			return true
		}
		w.answers()
	}
	return false
}

func (w *world) state() journal.State {
	log, err := journal.Open(context.Background(), w.disk, session)
	if err != nil {
		w.breaks("the journal can't be opened: %v", err)
		return journal.State{}
	}
	return log.State()
}

func (w *world) ran(run string) bool {
	return slices.ContainsFunc(w.record(), func(e journal.Entry) bool { return e.Run == run })
}

// answers has somebody elsewhere answer what waits.
func (w *world) answers() {
	ctx := context.Background()
	waiting, err := agent.Pending(ctx, w.disk, session)
	if err != nil {
		w.breaks("pending: %v", err)
	}
	for _, q := range waiting {
		kind := popped(w, func(p *plan) *[]string { return &p.Answers })
		if kind == "none" {
			continue
		}
		a := answer(kind, q.Asked)
		if err := agent.Answer(ctx, w.disk, session, a); err != nil {
			w.breaks("%+v: %v", a, err)
		}
		if err := agent.Answer(ctx, w.disk, session, a); kind == "twice" && !errdefs.Conflict.Is(err) {
			w.breaks("%s is answered twice: %v", a.ID, err)
		}
	}
}

// judges looks at how a life ended.
func (w *world) judges(l *life, run string, res *agent.Result, err error) {
	failed := l.is(func(l *life) bool { return l.failed })
	canceled := l.is(func(l *life) bool { return !l.canceled.IsZero() })
	switch {
	case failed && err == nil:
		w.breaks("%s: its journal failed, and nobody is told", run)
	case failed || err != nil:
		return
	case res.Status == agent.StatusCanceled && !canceled:
		w.breaks("%s is canceled by nobody: %v", run, res.Err)
	case res.Status == agent.StatusCompleted && (res.Err != nil || w.state().Status != "completed"):
		w.breaks("%s is completed, and on record %q: %v", run, w.state().Status, res.Err)
	case res.Status == agent.StatusFailed && errdefs.Internal.Is(res.Err) && !w.panics():
		w.breaks("%s has a defect: %v", run, res.Err)
	}
	if st := w.state(); res.Status == agent.StatusCompleted && res.Committed {
		if want, got := bytes(st.Messages), bytes(res.LastBoard.Channel(engine.MainChannel)); !slices.Equal(want, got) {
			w.breaks("the record and the board differ:\n%q\n%q", want, got)
		}
	}
}

// panics reports whether something in the plan panics that fails a run, or fails with that class.
func (w *world) panics() bool {
	return slices.ContainsFunc(w.whole.Turns, func(t turn) bool { return t.Kind == "panic" || t.Kind == "internal" }) ||
		slices.Contains(w.whole.Prepare, "panic") || slices.Contains(w.whole.Decisions, "panic") || slices.Contains(w.whole.Commits, "panic") || slices.Contains(w.whole.Replies, "panic")
}

func bytes(h message.History) (out []string) {
	for _, m := range h.All() {
		out = append(out, string(m.AppendJSON(nil)))
	}
	return out
}

// ends looks at the whole record.
func (w *world) ends() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	all := w.record()
	w.folds(all)
	w.once(all)
	w.kept(all)
	ag, eng := w.parts()
	if _, err := agent.Replay(context.Background(), ag, eng, session, agent.WithJournal(w.disk)); err != nil && !errdefs.NotFound.Is(err) {
		w.breaks("replay: %v", err)
	}
}

// folds looks whether the record folds to the same, at once entry by entry, and to a valid transcript at each (invariant 3).
func (w *world) folds(all record) {
	var st journal.State
	for _, e := range all {
		st = st.With(e)
		if why := invalid(st.Messages); why != "" && st.Messages.Len() > 0 {
			w.breaks("at entry %d the transcript is invalid: %s", e.Seq, why)
			return
		}
	}
	for what, other := range map[string]journal.State{"at once": journal.Fold(all...), "by a log": w.state()} {
		if d := cmp.Diff(shown(st), shown(other)); d != "" {
			w.breaks("folded %s, the record gives another state (-entry by entry):\n%s", what, d)
		}
	}
}

func shown(st journal.State) string {
	b, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// once looks for effects with two intents or two outcomes, for outcomes before their intents, and for replies to calls without outcomes (invariants 1 and 2).
func (w *world) once(all record) {
	type fact struct {
		attempt string
		key     journal.Key
		intent  bool
	}
	seen, attempt := map[fact]int{}, ""
	begun := map[string]journal.Called{}
	var open map[string]bool // calls of the last reply
	ends := ""               // why a hook ended the attempt
	for i, e := range all {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			attempt, open, ends = attemptOf(all[i:]), nil, ""
		case journal.ModelFinished:
			if ends != "" {
				w.breaks("entry %d is a reply, and a hook had ended the run: %s", e.Seq, ends)
			}
			if len(open) > 0 {
				w.breaks("entry %d is a reply, and %v have no outcome", e.Seq, slices.Sorted(maps.Keys(open)))
			}
			open = map[string]bool{}
			for _, c := range d.Message.ToolCalls() {
				if !d.Cut() && d.Stop == "tool_use" {
					open[c.ID] = true
				}
			}
		case journal.ToolJudged:
			if ends = first(ends, d.Ends); d.Refused() {
				delete(open, d.Call)
			}
		case journal.Answered:
			if !d.Approved && e.Key.Op != "question" {
				call, _, _ := strings.Cut(d.ID, "/again-")
				delete(open, call)
			}
		case journal.ToolStarted:
			begun[d.Call.ID] = d.Call
		case journal.ToolFinished:
			c := begun[d.Call]
			switch post := inputOf(message.ToolCall{Input: c.Input}).Post; {
			case (post == "panic" || post == "error") && strings.Contains(d.Content, "did r"): // and its key: Pawl itself says of a tool that it "did not stop"
				w.breaks("entry %d shows a result although the hook failed that looks at it: %q", e.Seq, d.Content)
			case post == "rewrite" && strings.HasPrefix(d.Content, "did "):
				w.breaks("entry %d shows a result that the hook has not rewritten: %q", e.Seq, d.Content)
			}
			if ends = first(ends, d.Ends); !d.Ask {
				delete(open, d.Call)
			}
			if e.Key.Op == "tool" && seen[fact{attempt, e.Key, true}] == 0 {
				w.breaks("entry %d is the end of a call that did not begin", e.Seq)
			}
		}
		if e.Key == (journal.Key{}) {
			continue
		}
		switch e.Data.(type) {
		case journal.ModelStarted, journal.ToolStarted, journal.Asked:
			seen[fact{attempt, e.Key, true}]++
		case journal.ModelFailed:
		default:
			seen[fact{attempt, e.Key, false}]++
		}
	}
	for f, n := range seen {
		if n > 1 {
			w.breaks("%+v is on record %d times", f, n)
		}
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// kept looks whether what was done is on record, and what is on record in the transcript (invariant 2).
func (w *world) kept(all record) {
	finished := map[string]bool{}
	attempt := ""
	dropped := map[string]bool{}
	last := map[string]string{}
	for i, e := range all {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			attempt = attemptOf(all[i:])
			last[e.Run] = attempt
		case journal.ToolFinished:
			finished[attempt+d.Call] = true
		case journal.RunFinished:
			dropped[e.Run] = d.Discarded
		}
	}
	for _, x := range w.runs {
		if !x.behind && x.ended && !x.parked && !x.late && !x.life.is(func(l *life) bool { return l.failed }) && !finished[x.attempt+x.id] {
			w.breaks("%s %s ran, and its result is not on record", x.name, x.id)
		}
	}
	if slices.Contains(w.whole.Seeds, "fresh") { // what a run begins with is the seeder's word
		return
	}
	have := texts(w.state().Messages)
	next := 0
	needs := func(e journal.Entry, prefix, part string) {
		for i := next; i < len(have); i++ {
			if strings.HasPrefix(have[i], prefix) && strings.Contains(have[i], part) {
				next = i
				return
			}
		}
		w.breaks("entry %d has %q, and the transcript has not, in its place: %q", e.Seq, prefix+part, have)
	}
	for i, e := range all {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			attempt = attemptOf(all[i:])
		case journal.Said:
			if e.Key == (journal.Key{}) && !dropped[e.Run] && strings.HasPrefix(d.Message.Text(), "prompt") {
				needs(e, "user: ", d.Message.Text())
			}
		case journal.ModelFinished:
			t := d.Message.Text()
			if t != "" && (dropped[e.Run] || attempt != last[e.Run]) && slices.Contains(have, "assistant: "+t) {
				w.breaks("entry %d has %q, which was dropped, and the transcript has it", e.Seq, t)
			}
			if t != "" && !dropped[e.Run] && attempt == last[e.Run] {
				needs(e, "assistant: ", t)
			}
		}
	}
	for i, e := range all {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			attempt = attemptOf(all[i:])
		case journal.ToolFinished:
			if !d.Ask && !dropped[e.Run] && attempt == last[e.Run] && !slices.ContainsFunc(have, func(h string) bool {
				return strings.HasPrefix(h, "result "+d.Call+": ") && strings.Contains(h, d.Content)
			}) {
				w.breaks("entry %d has the result of %s, and the transcript has not: %q", e.Seq, d.Call, have)
			}
		}
	}
}

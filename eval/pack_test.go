package eval

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// packed is a pack with these evals, and a prompt with those.
func packed(t *testing.T, evals, ofPrompt string) *pack.Pack {
	t.Helper()
	p, err := pack.Parse([]byte(`{"id":"p","name":"P","version":"1.0.0","template_engine":{"version":"v1","syntax":"{{variable}}"},"evals":[` + evals + `],
		"prompts":{"chat":{"id":"chat","name":"Chat","version":"1.0.0","system_template":"x","evals":[` + ofPrompt + `]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func scorersIn(t *testing.T, evals string, o PackOptions) []Scorer {
	t.Helper()
	all, err := Pack(packed(t, evals, ""), "", o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func names(all []Scorer) (out []string) {
	for _, s := range all {
		out = append(out, nameOf(s))
	}
	return out
}

// talk is a sample whose turns say these answers.
func talk(answers ...string) Sample {
	s := Sample{Session: "s", Repeat: 1, Case: Case{Name: "c"}}
	for i, a := range answers {
		s.Turns = append(s.Turns, Turn{Answer: a, Steps: 1, Prompt: message.User(fmt.Sprint("question ", i+1)), Messages: []message.Message{message.User(fmt.Sprint("question ", i+1)), message.Assistant(a)}, Status: agent.StatusCompleted})
	}
	return s.whole()
}

func TestWhichEvalsOfAPackAreScorers(t *testing.T) {
	p := packed(t, `{"id":"a","type":"contains","trigger":"every_turn","params":{"patterns":["pack"]},"groups":["x","y"]},{"id":"b","type":"json_valid","trigger":"every_turn"},{"id":"off","type":"no_such_type","trigger":"every_turn","enabled":false}`,
		`{"id":"c","type":"json_valid","trigger":"every_turn","groups":["y"]},{"id":"a","type":"contains","trigger":"every_turn","params":{"patterns":["prompt"]}}`)
	for _, c := range []struct {
		prompt string
		groups []string
		want   string
	}{{"", nil, "a b"}, {"chat", nil, "a b c"}, {"", []string{"y"}, "a"}, {"chat", []string{"y"}, "c"}, {"chat", []string{"default", "y"}, "a b c"}} {
		all, err := Pack(p, c.prompt, PackOptions{Groups: c.groups})
		if got := strings.Join(names(all), " "); err != nil || got != c.want {
			t.Errorf("%q %v: %s, %v", c.prompt, c.groups, got, err)
		}
	}
	all, _ := Pack(p, "chat", PackOptions{})
	if sc := one(t, all[0], talk("prompt")); !sc.Pass {
		t.Errorf("the prompt's does not count: %+v", sc)
	}
	if _, err := Pack(p, "none", PackOptions{}); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if _, err := Pack(p, "", PackOptions{Groups: []string{"z"}}); err == nil || !strings.Contains(err.Error(), `no eval of the group "z"`) {
		t.Error(err)
	}
}

// Nothing of a pack is passed over: what can't be had is an error, and all of it is told at once.
func TestWhatOfAPackCantBeHadIsAnError(t *testing.T) {
	ev := func(id, rest string) string { return fmt.Sprintf(`{"id":%q,"trigger":"every_turn",%s}`, id, rest) }
	_, err := Pack(packed(t, strings.Join([]string{
		ev("a", `"type":"toxicity"`), ev("b", `"type":"containz"`), ev("c", `"type":"contains"`), ev("d", `"type":"contains","params":{"patterns":["x"],"pattern":"y"}`), ev("e", `"type":"regex","params":{"pattern":"("}`),
		ev("f", `"type":"json_valid","when":{"moon":"full","turn_count_gte":1}`), ev("g", `"type":"json_valid","when":{"turn_count_gte":"three"}`), ev("h", `"type":"json_valid","threshold":{"operator":"ne","value":1}`),
		ev("i", `"type":"json_valid","threshold":{"operator":"gte"}`), ev("j", `"type":"json_valid","threshold":{"operator":"gte","value":4}`), ev("k", `"type":"llm_judge","params":{"criteria":"good"}`),
		ev("l", `"type":"llm_judge","params":{"judge_prompt":"1 to 5","passing_score":4}`), `{"id":"m","type":"json_valid","trigger":"at_night"}`, ev("n", `"type":"state_is","params":{"state":"x"}`),
		ev("o", `"type":"json_path","params":{"expression":"items[*].name"}`), ev("p", `"type":"json_valid","metric":{"name":"m","type":"gauge","range":{"min":5,"max":1}}`), ev("q", `"type":"cost_budget"`), ev("r", `"type":"tool_call_count","params":{"min":-1}`),
	}, ","), ""), "", PackOptions{})
	for _, want := range []string{
		`eval "a": an eval of type "toxicity" can't be run here`, `eval "b": an eval of type "containz" can't be run here: did you mean contains?`, `eval "c": type contains: params.patterns: it is missing`, `eval "d": type contains: params.pattern: there is no such parameter: did you mean patterns?`,
		`eval "e": type regex: params.pattern: `, `eval "f": when: there is no condition "moon"`, `eval "g": when: turn_count_gte: write a number`, `eval "h": threshold: there is no operator "ne"`, `eval "i": threshold: it has no value`, `eval "j": threshold: 4 is out of range`,
		`eval "k": type llm_judge: params.model: there is no model to judge`, `eval "l": type llm_judge: params.passing_score: there is no such parameter`, `eval "m": there is no trigger "at_night"`, `eval "n": type state_is: params.state: there is no workflow`,
		`eval "o": type json_path: params.expression: `, `eval "p": metric.range: its min 5`, `eval "q": type cost_budget: params.max_cost_usd: it is missing`, `eval "r": type tool_call_count: params.min`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in\n%v", want, err)
		}
	}
	if !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
}

func TestWhatATriggerLooksAt(t *testing.T) {
	by := func(trigger, more string, o PackOptions) Scorer {
		return scorersIn(t, fmt.Sprintf(`{"id":"e","type":"contains","trigger":%q,"params":{"patterns":["yes"]}%s}`, trigger, more), o)[0]
	}
	noted := talk("yes", "yes")
	noted.Turns = append(noted.Turns, Turn{Status: agent.StatusCompleted}, Turn{Answer: "no", Steps: 1, Discarded: true})
	if noted = noted.whole(); noted.Answer != "yes" || noted.Prompt.Text() != "question 2" {
		t.Errorf("%+v", noted.Turn)
	}
	moved := talk("yes", "no", "yes")
	moved.Turns[1].States = []string{"b"}
	for name, c := range map[string]struct {
		trigger string
		s       Sample
		want    Score
	}{
		"every turn":                    {"every_turn", talk("yes", "no", "yes", "nay"), Score{Value: 0.5, Why: `turn 2: it lacks ["yes"]`}},
		"every turn, all of them":       {"every_turn", talk("yes", "oh yes"), Score{Value: 1, Pass: true}},
		"not what was noted or dropped": {"every_turn", noted, Score{Value: 1, Pass: true}},
		"nothing was said":              {"every_turn", Sample{Turns: []Turn{{Status: agent.StatusCompleted}}}, Score{Skipped: true, Why: "there is no turn"}},
		"the session":                   {"on_session_complete", talk("no", "yes"), Score{Value: 1, Pass: true}},
		"the conversation":              {"on_conversation_complete", talk("yes", "no"), Score{Why: `it lacks ["yes"]`}},
		"steps of a workflow":           {"on_workflow_step", moved, Score{Why: `turn 2: it lacks ["yes"]`}},
		"no workflow":                   {"on_workflow_step", talk("no"), Score{Skipped: true, Why: "no turn moved a workflow on"}},
		"no sample":                     {"sample_sessions", talk("no"), Score{Skipped: true, Why: "it is not among the 5 % of the sessions that are looked at"}},
	} {
		if got := one(t, by(c.trigger, "", PackOptions{}), c.s); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := one(t, by("sample_turns", "", PackOptions{Unsampled: true}), talk("yes", "no")); got.Value != 0.5 {
		t.Errorf("unsampled: %+v", got)
	}
	if got := one(t, by("sample_sessions", "", PackOptions{Unsampled: true}), talk("no")); got.Skipped {
		t.Errorf("unsampled: %+v", got)
	}
	// So many of a hundred, the same ones each time, and others for other sessions.
	quarter, looked := by("sample_turns", `,"sample_percentage":25`, PackOptions{}).(*packEval), map[string]int{}
	for i := range 400 {
		s := talk(strings.Split(strings.Repeat("yes ", 50), " ")[:50]...)
		s.Repeat, s.Session = 0, fmt.Sprint(i)
		all, _ := quarter.looks(s)
		again, _ := quarter.looks(s)
		var turns []int
		for _, l := range all {
			turns = append(turns, l.turn)
		}
		if len(all) != len(again) {
			t.Fatal("not the same ones")
		}
		looked[fmt.Sprint(turns)] += len(all)
	}
	n := 0
	for _, k := range looked {
		n += k
	}
	if share := float64(n) / 20000; math.Abs(share-0.25) > 0.01 || len(looked) < 390 {
		t.Errorf("%v of all turns, %d choices", share, len(looked))
	}
	for _, c := range []struct {
		percent string
		want    bool
	}{{"0", false}, {"100", true}} {
		for i := range 100 {
			s := talk("yes")
			s.Repeat = i + 1
			if got := one(t, by("sample_sessions", `,"sample_percentage":`+c.percent, PackOptions{}), s); got.Skipped == c.want {
				t.Fatalf("%s %%: %+v", c.percent, got)
			}
		}
	}
}

func TestWhenAnEvalIsAsked(t *testing.T) {
	s := talk("no", "no", "no")
	s.Turns[1].Calls = []Call{{Name: "lookup"}, {Name: "refund"}}
	s = s.whole()
	s.Case.Vars = map[string]any{"tier": "gold", "none": nil}
	for when, want := range map[string]string{ // which turn is the first that is asked
		`{"turn_count_gte":3}`: "turn 3", `{"turn_count_lte":1}`: "turn 1", `{"turn_count_gt":1}`: "turn 2", `{"turn_count_lt":1}`: "", `{"turn_count_eq":2}`: "turn 2",
		`{"tool_called":"Lookup"}`: "turn 2", `{"tool_called":"pay"}`: "", `{"tool_called_pattern":"^ref"}`: "turn 2", `{"any_tool_called":true}`: "turn 2", `{"any_tool_called":false}`: "turn 1", `{"min_tool_calls":2}`: "turn 2", `{"min_tool_calls":3}`: "",
		`{"has_variable":"tier"}`: "turn 1", `{"has_variable":"none"}`: "", `{"has_variable":"tier","turn_count_gte":2}`: "turn 2", `{"tool_called":"lookup","turn_count_gte":3}`: "",
	} {
		by := scorersIn(t, `{"id":"e","type":"contains","trigger":"every_turn","params":{"patterns":["yes"]},"when":`+when+`}`, PackOptions{})[0]
		got := one(t, by, s)
		if want == "" && !got.Skipped || want != "" && !strings.HasPrefix(got.Why, want+": ") {
			t.Errorf("%s: %+v, want %s", when, got, want)
		}
	}
	by := scorersIn(t, `{"id":"e","type":"contains","trigger":"every_turn","params":{"patterns":["yes"]},"when":{"has_variable":"tier"}}`, PackOptions{})[0]
	onRecord := talk("yes")
	onRecord.Repeat = 0
	if _, err := by.Score(t.Context(), onRecord); !errdefs.NotAvailable.Is(err) {
		t.Errorf("variables that are on no record: %v", err)
	}
	onRecord.Case.Vars = map[string]any{"other": 1}
	if got := one(t, by, onRecord); !got.Skipped {
		t.Errorf("%+v", got)
	}
}

func TestAThresholdDecidesInTheRangeOfTheMetric(t *testing.T) {
	half := func(rest string) Score {
		by := scorersIn(t, `{"id":"e","type":"contains","trigger":"on_session_complete","params":{"patterns":["a","b"]},`+rest+`}`, PackOptions{})[0]
		return one(t, by, talk("a"))
	}
	for rest, want := range map[string]bool{
		`"groups":[]`: false, `"threshold":{"operator":"gte","value":0.5}`: true, `"threshold":{"operator":"gt","value":0.5}`: false, `"threshold":{"operator":"lte","value":0.5}`: true, `"threshold":{"operator":"lt","value":0.5}`: false,
		`"threshold":{"operator":"eq","value":0.5}`: true, `"threshold":{"operator":"eq","value":0.4}`: false,
		`"threshold":{"operator":"gte","value":3},"metric":{"name":"m","type":"gauge","range":{"min":1,"max":5}}`: true, `"threshold":{"operator":"gt","value":3},"metric":{"name":"m","type":"gauge","range":{"min":1,"max":5}}`: false,
		`"threshold":{"operator":"gte","value":0.6},"metric":{"name":"m","type":"gauge","range":{"min":0.5,"max":1}}`: false,
	} {
		if got := half(rest); got.Pass != want || got.Value != 0.5 {
			t.Errorf("%s: %+v", rest, got)
		}
	}
	if got := half(`"message":"Not kind","threshold":{"operator":"gte","value":0.8}`); got.Why != `Not kind: the value 0.5 is not gte 0.8: it lacks ["b"]` {
		t.Errorf("%+v", got)
	}
	each := func(typ string) *Metric {
		by := scorersIn(t, `{"id":"e","type":"contains","trigger":"on_session_complete","params":{"patterns":["a","b"]},"metric":{"name":"shop:m","type":"`+typ+`","range":{"min":1,"max":5}}}`, PackOptions{})
		answers := []string{"a b", "a", "a b", "x"}
		n := -1
		r := done(t, Suite{Cases: prompts("c"), How: said(func(Case) string { n++; return answers[n] }), Scorers: by, Repeats: 4, Parallel: 1, PassRate: -1})
		return r.Scores[1].Metric
	}
	for typ, want := range map[string]float64{"gauge": 1 + 4*0.625, "histogram": 3.5, "counter": 2, "boolean": 0.5} {
		if d := cmp.Diff(&Metric{"shop:m", typ, want}, each(typ)); d != "" {
			t.Errorf("%s: %s", typ, d)
		}
	}
}

func TestTypesOfOnesOwn(t *testing.T) {
	own := PackOptions{Types: map[string]Maker{"toxicity": func(p guard.Params) (Scorer, error) {
		r := p.Read()
		word := r.Text("word")
		return rule("", func(s Sample) Score { return verdict(strings.Repeat("rude", strings.Count(s.Answer, word))) }), r.Err()
	}}}
	by := scorersIn(t, `{"id":"e","type":"toxicity","trigger":"every_turn","params":{"word":"darn"}}`, own)[0]
	if one(t, by, talk("darn")).Pass || !one(t, by, talk("dear")).Pass {
		t.Error("it does not judge")
	}
	if _, err := Pack(packed(t, `{"id":"e","type":"toxicity","trigger":"every_turn","params":{"wort":"darn"}}`, ""), "", own); err == nil || !strings.Contains(err.Error(), `eval "e": type toxicity: params.wort: there is no such parameter: did you mean word?`) {
		t.Error(err)
	}
}

// The judge of a pack's eval is asked for by the name that the eval has, and told what the eval says.
func TestAPacksJudge(t *testing.T) {
	j := &judge{says: `{"reason":"So so.","score":0.5,"passed":true}`}
	var asked []string
	o := PackOptions{Judge: func(name string) (model.Model, error) {
		asked = append(asked, name)
		if name == "gone" {
			return nil, errdefs.NotFound.Errorf("no such model")
		}
		return j, nil
	}}
	all := scorersIn(t, `{"id":"a","type":"llm_judge","trigger":"every_turn","params":{"criteria":"It is kind.","rubric":"5: very","system_prompt":"Be strict.","model":"big","min_score":0.6}},
		{"id":"b","type":"llm_judge_session","trigger":"on_session_complete","params":{"judge_prompt":"It is short."}},{"id":"c","type":"llm_judge_tool_calls","trigger":"on_session_complete","params":{"criteria":"Wise.","tools":["lookup"]}},
		{"id":"d","type":"llm_judge","trigger":"every_turn","params":{"criteria":"x","model":"gone"}}`, o)
	s := talk("one", "two")
	s.Turns[0].Calls = []Call{{Name: "lookup", Input: "{}"}, {Name: "secret", Input: "{}"}}
	s = s.whole()
	if a, b := one(t, all[0], s), one(t, all[1], s); a.Pass || a.Value != 0.5 || a.Why != "turn 1: So so." || !b.Pass {
		t.Errorf("%+v %+v", a, b)
	}
	one(t, all[2], s)
	if _, err := all[3].Score(t.Context(), s); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if got := strings.Join(asked, ","); got != "big,big,,,gone" {
		t.Error(got)
	}
	has := func(i int, wants ...string) {
		for _, want := range wants {
			if !strings.Contains(j.asked[i], want) {
				t.Errorf("question %d has no %s:\n%s", i, want, j.asked[i])
			}
		}
	}
	has(0, "Be strict.", "It is kind.", "5: very", `"answered":"one"`, `"asked":"question 1"`)
	has(1, `"answered":"two"`)
	has(2, "It is short.", `{"role":"user","text":"question 1"},{"role":"assistant","text":"one"}`)
	has(3, `"lookup"`)
	if strings.Contains(j.asked[3], "secret") || strings.Contains(j.asked[1], "lookup") {
		t.Errorf("%s", j.asked[1:])
	}
}

// Evals of a pack that somebody else wrote.
func TestTheEvalsOfPacksThatOthersWrote(t *testing.T) {
	dir := os.Getenv("PAWL_FIXTURES")
	if dir == "" {
		t.Skip("no packs of others: set PAWL_FIXTURES")
	}
	files, err := filepath.Glob(filepath.Join(dir, "promptpack", "packs", "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	scored := 0
	for _, file := range files {
		p, err := pack.Load(file)
		if err != nil {
			continue // a test of package pack says which
		}
		for _, prompt := range append([]string{""}, slices.Collect(func(yield func(string) bool) {
			for name := range p.Prompts {
				if !yield(name) {
					return
				}
			}
		})...) {
			all, err := Pack(p, prompt, PackOptions{})
			if strings.Contains(file, "onnx-audio-emotion") {
				if err == nil || !strings.Contains(err.Error(), `eval "caller_anger": an eval of type "audio_emotion" can't be run here`) {
					t.Errorf("%s: %v", file, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			for _, by := range all {
				if sc := one(t, by, talk("hello, thank you, a response", "goodbye, please")); sc.Skipped {
					t.Errorf("%s: %s: %+v", file, nameOf(by), sc)
				}
				scored++
			}
		}
	}
	if scored < 10 {
		t.Errorf("only %d evals were asked", scored)
	}
}

// A conversation that goes by a workflow: which states it came to is on record.
func TestStatesOfAWorkflowOnRecord(t *testing.T) {
	store := journal.Memory()
	how := Conversation(store, func(_ Case, opts ...pawl.Option) (*pawl.Conversation, error) {
		m := scripted.New(asks("c0", "refund", `{"order":"7"}`), asks("c1", "workflow__set_artifact", `{"name":"receipt","value":"r"}`), asks("c2", "workflow__transition", `{"event":"Refunded","context":"7"}`), scripted.Text("It comes on Monday."))
		conv, err := pawl.OpenWorkflow("../testdata/refund.pack.json", append(opts, pawl.WithModel(m))...)
		if err == nil {
			conv.OnTool("refund", func(map[string]any) (any, error) { return "paid", nil })
		}
		return conv, err
	})
	s, r := sampled1(t, how, Case{Prompt: "Refund 7."})
	if r.Err() != nil || strings.Join(s.States, " ") != "farewell" || s.Answer != "It comes on Monday." {
		t.Errorf("%v, %+v", r.Err(), s.Turn)
	}
	p, err := pack.Load("../testdata/refund.pack.json")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(typ, params string, s Sample) Score {
		t.Helper()
		var e pack.Eval
		e.ID, e.Type, e.Trigger, e.Enabled = "e", typ, "on_session_complete", true
		v, err := parse(params)
		if err != nil {
			t.Fatal(err)
		}
		e.Params = v.(map[string]any)
		all, err := scorersOf([]pack.Eval{e}, p, PackOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return one(t, all[0], s)
	}
	for _, c := range []struct {
		typ, params string
		s           Sample
		pass        bool
	}{
		{"state_is", `{"state":"farewell"}`, s, true},
		{"workflow_state_is", `{"state":"triage"}`, s, false},
		{"state_is", `{"state":"triage"}`, talk("x"), true},
		{"transitioned_to", `{"state":"farewell"}`, s, true},
		{"workflow_transitioned_to", `{"state":"farewell"}`, talk("x"), false},
		{"workflow_transition_order", `{"sequence":["triage","farewell"]}`, s, true},
		{"workflow_transition_order", `{"sequence":["farewell","triage"]}`, s, false},
		{"workflow_complete", `{}`, s, true},
		{"workflow_complete", `{}`, talk("x"), false},
	} {
		if got := ask(c.typ, c.params, c.s); got.Pass != c.pass {
			t.Errorf("%s %s: %+v", c.typ, c.params, got)
		}
	}
	if _, err := scorersOf([]pack.Eval{{ID: "e", Type: "state_is", Trigger: "every_turn", Enabled: true, Params: map[string]any{"state": "farewel"}}}, p, PackOptions{}); err == nil || !strings.Contains(err.Error(), "did you mean farewell?") {
		t.Error(err)
	}
}

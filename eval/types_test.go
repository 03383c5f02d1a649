package eval

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/model"
)

func TestWhatEachTypeOfEvalSays(t *testing.T) {
	micros := int64(20_000)
	spent := Sample{Turn: Turn{Usage: model.Usage{Input: 60, Output: 40}, Cost: &micros, Duration: 2 * time.Second}}
	results := Sample{Turn: Turn{Calls: []Call{{Name: "lookup", Input: `{"id":7,"x":1}`, Output: "Shipped on Monday"}, {Name: "lookup", Input: `{"id":8}`, Output: "no such order", IsError: true}, {Name: "refund", Input: `{}`, Output: "ok"}}}}
	thrice := made("a {}", "a {}", "a {}")
	over := made("transfer_to_billing {}")
	skill := made(`skill {"name":"pdf"}`)
	used := map[string]int{}
	for _, c := range []struct {
		typ, params string
		s           Sample
		value       float64
		pass        bool
	}{
		{"contains", `{"patterns":["Yes","b"]}`, answered("yes"), 0.5, false},
		{"content_includes", `{"patterns":["Yes"]}`, answered("yes"), 1, true},
		{"contains_any", `{"patterns":["no","yes"]}`, answered("yes"), 1, true},
		{"content_includes_any", `{"patterns":["no","nay"]}`, answered("yes"), 0, false},
		{"content_excludes", `{"patterns":["no"]}`, answered("I know"), 0, false},
		{"content_not_includes", `{"patterns":["no"]}`, answered("yes"), 1, true},
		{"regex", `{"pattern":"^y"}`, answered("yes"), 1, true},
		{"regex", `{"pattern":"^y","expect_match":false}`, answered("yes"), 0, false},
		{"regex_match", `{"pattern":"^n"}`, answered("yes"), 0, false},
		{"content_matches", `{"pattern":"^y"}`, answered("yes"), 1, true},
		{"min_length", `{"min":4}`, answered("äöü"), 0.75, false},
		{"min_length", `{"min_characters":3}`, answered("äöü"), 1, true},
		{"max_length", `{"max_characters":3}`, answered("yes!"), 0, false},
		{"length", `{"max":4}`, answered("yes!"), 1, true},
		{"max_sentences", `{"max_sentences":1}`, answered("One. Two. Three."), 0, false},
		{"sentence_count", `{"max":3}`, answered("One. Two."), 1, true},
		{"banned_words", `{"words":["guarantee"]}`, answered("I guarantee it"), 0, false},
		{"banned_words", `{"patterns":["know"]}`, answered("unknown"), 1, true},
		{"required_fields", `{"fields":["a.b"]}`, answered(`{"a":{"b":1}}`), 1, true},
		{"field_presence", `{"fields":["c"]}`, answered(`{"a":{"b":1}}`), 0, false},
		{"pii_leakage", `{}`, answered("ada@example.com"), 0, false},
		{"pii_detection", `{}`, answered("hello"), 1, true},
		{"json_schema", `{"schema":{"type":"object"}}`, answered("[]"), 0, false},
		{"json_valid", `{}`, answered("[1]"), 1, true},
		{"is_valid_json", `{}`, answered("[1"), 0, false},
		{"valid_json", `{"allow_wrapped":true}`, answered("```json\n[1]\n```"), 1, true},
		{"json_path", `{"expression":"a[-1].b","expected":2}`, answered(`{"a":[{"b":1},{"b":2.0}]}`), 1, true},
		{"json_path", `{"expression":"a[0].b","expected":2}`, answered(`{"a":[{"b":1}]}`), 0, false},
		{"json_path", `{"expression":"\"odd name\"","contains":"x"}`, answered(`{"odd name":["x","y"]}`), 1, true},
		{"json_path", `{"expression":"n","contains":["x","z"]}`, answered(`{"n":["x","y"]}`), 0, false},
		{"json_path", `{"expression":"n","min":1,"max":2}`, answered(`{"n":3}`), 0, false},
		{"json_path", `{"jmespath_expression":"n","min_results":1,"max_results":2}`, answered(`{"n":[1]}`), 1, true},
		{"json_path", `{"expression":"n","max_results":2}`, answered(`{"n":[1,2,3]}`), 0, false},
		{"json_path", `{"expression":"n"}`, answered(`{}`), 0, false},
		{"json_path", `{"expression":"n"}`, answered(`no`), 0, false},
		{"tools_called", `{"tool_names":["lookup","pay"]}`, results, 0.5, false},
		{"tool_called", `{"tools":["lookup"],"min_calls":2}`, results, 1, true},
		{"tools_called", `{"tool_names":["lookup"],"max_calls":1}`, results, 0, false},
		{"tools_called_session", `{"tool_names":["refund"]}`, results, 1, true},
		{"tools_not_called", `{"tool_names":["refund"]}`, results, 0, false},
		{"tools_not_called_session", `{"tool_names":["pay"]}`, results, 1, true},
		{"tool_args", `{"tool_name":"lookup","expected_args":{"id":7}}`, results, 1, true},
		{"tool_args_session", `{"tool_name":"lookup","expected_args":{"id":9}}`, results, 0, false},
		{"tool_args_excluded_session", `{"tool_name":"lookup","excluded_args":{"id":7}}`, results, 0, false},
		{"tools_not_called_with_args", `{"tool_name":"lookup","excluded_args":{"id":9}}`, results, 1, true},
		{"tool_calls_with_args", `{"tool_name":"lookup","expected_args":{"id":7},"result_includes":["monday"],"result_matches":"^Ship","no_error":true}`, results, 1, true},
		{"tool_calls_with_args", `{"tool_name":"lookup","expected_args":{"id":8},"no_error":true}`, results, 0, false},
		{"tool_call_sequence", `{"sequence":["lookup","refund"]}`, results, 1, true},
		{"tool_call_sequence", `{"sequence":["refund","lookup"]}`, results, 0.5, false},
		{"tool_call_count", `{"tool":"lookup","min":4}`, results, 0.5, false},
		{"tool_call_count", `{"max":3}`, results, 1, true},
		{"tool_call_count", `{"max":0}`, results, 0, false},
		{"tool_no_repeat", `{}`, thrice, 0, false},
		{"tool_no_repeat", `{"max_repeats":3}`, thrice, 1, true},
		{"tool_no_repeat", `{"tools":["lookup"]}`, results, 1, true},
		{"no_tool_errors", `{"tools":["lookup"]}`, results, 0.5, false},
		{"no_tool_errors", `{}`, thrice, 1, true},
		{"tool_efficiency", `{"max_calls":3,"max_errors":1,"max_error_rate":0.4}`, results, 1, true},
		{"tool_efficiency", `{"max_errors":0}`, results, 0, false},
		{"tool_efficiency", `{"max_error_rate":0.25}`, results, 0.75, false},
		{"tool_result_includes", `{"tool":"lookup","patterns":["shipped"]}`, results, 1, true},
		{"tool_result_includes", `{"tool":"lookup","patterns":["shipped"],"occurrence":2}`, results, 0, false},
		{"tool_result_matches", `{"pattern":"^ok$","occurrence":3}`, results, 1, true},
		{"tool_result_matches", `{"pattern":"^ok$","occurrence":4}`, results, 0, false},
		{"agent_invoked", `{"agents":["billing"]}`, over, 1, true},
		{"agent_not_invoked", `{"agents":["billing"]}`, over, 0, false},
		{"skill_activated", `{"skill_names":["pdf"]}`, skill, 1, true},
		{"skill_activated", `{"skill_names":["xls"]}`, skill, 0, false},
		{"skill_not_activated", `{"skill_names":["pdf"]}`, skill, 0, false},
		{"cost_budget", `{"max_cost_usd":0.02,"max_input_tokens":60,"max_output_tokens":40,"max_total_tokens":100}`, spent, 1, true},
		{"cost_budget", `{"max_cost_usd":0.005,"max_output_tokens":20}`, spent, 0.25, false},
		{"cost_budget", `{"max_total_tokens":50}`, spent, 0.5, false},
		{"latency_budget", `{"max_ms":1000}`, spent, 0.5, false},
		{"latency_budget", `{"max_ms":2000}`, spent, 1, true},
	} {
		used[c.typ]++
		by := scorersIn(t, fmt.Sprintf(`{"id":"e","type":%q,"trigger":"on_session_complete","params":%s}`, c.typ, c.params), PackOptions{})[0]
		c.s.Turns = []Turn{c.s.Turn}
		if sc := one(t, by, c.s); sc.Value != c.value || sc.Pass != c.pass || !sc.Pass && sc.Why == "" {
			t.Errorf("%s %s: %+v", c.typ, c.params, sc)
		}
	}
	for _, typ := range PackTypes() {
		if used[typ] == 0 && !strings.Contains(typ, "judge") && !strings.Contains(typ, "workflow") && typ != "state_is" && typ != "transitioned_to" { // these have tests of their own
			t.Errorf("nothing asks %s", typ)
		}
	}
}

// An eval of a session looks at all of it, whatever its trigger is.
func TestATypeOfSessionsLooksAtAllTurns(t *testing.T) {
	s := talk("a", "b")
	s.Turns[0].Calls = []Call{{Name: "lookup"}}
	by := scorersIn(t, `{"id":"e","type":"tools_called_session","trigger":"every_turn","params":{"tool_names":["lookup"]}},{"id":"f","type":"tools_called","trigger":"every_turn","params":{"tool_names":["lookup"]}}`, PackOptions{})
	if a, b := one(t, by[0], s.whole()), one(t, by[1], s.whole()); !a.Pass || b.Pass || b.Value != 0.5 {
		t.Errorf("%+v %+v", a, b)
	}
}

// What package pack warns of is what can't be run here, and nothing else.
func TestPackagePackAndThisOneKnowTheSameTypes(t *testing.T) {
	warned := func(typ string) (all []string) {
		for _, w := range packed(t, fmt.Sprintf(`{"id":"e","type":%q,"trigger":"every_turn"}`, typ), "").Warnings {
			all = append(all, w.Reason)
		}
		return all
	}
	for _, typ := range PackTypes() {
		if w := warned(typ); len(w) > 0 {
			t.Errorf("%s: %q", typ, w)
		}
	}
	for _, typ := range strings.Fields("toxicity audio_emotion rest_eval tool_exec cosine_similarity workflow_tool_access skill_activation_order") {
		if w := warned(typ); len(w) != 1 || w[0] != "it has no effect: evals of type "+typ+" can't be run here" || slices.Contains(PackTypes(), typ) {
			t.Errorf("%s: %q", typ, w)
		}
	}
	if w := warned("containz"); len(w) != 1 || w[0] != `there is no eval "containz"` {
		t.Errorf("%q", w)
	}
}

// The page names every type, under one of its names, and shows the file of cases that a test reads.
func TestThePageShowsWhatThereIs(t *testing.T) {
	b, err := os.ReadFile("../docs/evals.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, typ := range PackTypes() {
		if !strings.Contains(page, "`"+strings.TrimSuffix(typ, "_session")+"`") && !strings.Contains(page, "`"+typ+"`") && also[typ] == "" && !slices.Contains([]string{"length", "regex_match", "pii_detection"}, typ) {
			t.Errorf("the page has no %s", typ)
		}
	}
	files := regexp.MustCompile("(?s)```json eval/(\\S+)\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(files) != 1 {
		t.Errorf("it shows %d files", len(files))
	}
	for _, m := range files {
		if want, err := os.ReadFile(m[1]); err != nil || string(want) != m[2] {
			t.Errorf("%s is not what the page shows: %v", m[1], err)
		}
	}
	conditions := append(slices.Collect(maps.Keys(counts)), slices.Collect(maps.Keys(others))...)
	for _, name := range conditions {
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "`"+strings.TrimPrefix(name, "turn_count")+"`") {
			t.Errorf("the page has no condition %s", name)
		}
	}
}

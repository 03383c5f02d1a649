package eval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestCasesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	text := `{"name":"order","prompt":"Where is order 7?","vars":{"n":1,"plan":"paid"},"want":"Shipped.","tags":["orders"],"evals":[{"type":"tools_called","params":{"tool_names":["lookup"]}},{"id":"short","type":"max_length","params":{"max_characters":9},"threshold":{"operator":"gte","value":1}}]}

{"name":"two","messages":[{"role":"user","parts":[{"type":"text","text":"a"}]},{"role":"user","parts":[{"type":"text","text":"b"}]}],"want":{"a": [1]}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := LoadCases(path, PackOptions{})
	if err != nil || len(cases) != 2 {
		t.Fatal(err)
	}
	a, b := cases[0], cases[1]
	if a.Name != "order" || a.Prompt != "Where is order 7?" || a.Vars["n"] != 1 || a.Vars["plan"] != "paid" || a.Want != "Shipped." || a.Tags[0] != "orders" || len(a.Scorers) != 2 || nameOf(a.Scorers[0]) != "tools_called" || nameOf(a.Scorers[1]) != "short" {
		t.Errorf("%+v", a)
	}
	if b.Want != `{"a": [1]}` || len(b.turns()) != 2 || b.Messages[1].Text() != "b" || b.Messages[1].Role() != message.RoleUser {
		t.Errorf("%+v", b)
	}
	// The scorers of a line are asked.
	r := done(t, Suite{Cases: cases[:1], How: said(func(Case) string { return "It was shipped." })})
	if got := kinds(r); got != "low order tools_called; low order short" {
		t.Error(got)
	}
	if _, err := LoadCases(path+"x", PackOptions{}); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
}

// What an eval of a line says besides type and params counts as in a pack.
func TestTheEvalsOfALineAreThoseOfPacks(t *testing.T) {
	text := `{"name":"a","prompt":"x","evals":[{"id":"off","type":"contains","params":{"patterns":["no"]},"enabled":false},{"id":"always","type":"contains","params":{"patterns":["x"]},"trigger":"sample_sessions","sample_percentage":100},
		{"id":"measured","type":"contains","params":{"patterns":["x","y"]},"metric":{"name":"m","type":"gauge","range":{"min":1,"max":5}},"threshold":{"operator":"gte","value":3}},{"type":"contains","params":{"patterns":["no"]},"when":{"turn_count_gte":2}}]}`
	cases, err := ReadCases(strings.NewReader(strings.ReplaceAll(text, "\n", "")), "f", PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := done(t, Suite{Cases: cases, How: echo})
	if r.Err() != nil || len(r.Scores) != 4 {
		t.Fatalf("%v, %+v", r.Err(), r.Scores)
	}
	if always, measured, late := r.Scores[1], r.Scores[2], r.Scores[3]; always.Scorer != "always" || always.Passed != 1 || measured.Passed != 1 || *measured.Metric != (Metric{"m", "gauge", 3}) || late.Scorer != "contains 4" || late.Skipped != 1 {
		t.Errorf("%+v", r.Scores)
	}
}

func TestALineThatIsWrongIsNamed(t *testing.T) {
	const fine = `{"name":"a","prompt":"x"}` + "\n"
	for line, want := range map[string]string{
		`{"name":"b","prompt":"x","wants":"y"}`:  `unknown field "wants"`,
		`{"name":"b","Prompt":"x"}`:              "Prompt",
		`{"name":"b","prompt":"x","prompt":"y"}`: "prompt",
		`{"name":"b","prompt":7}`:                "prompt",
		`{"name":"b","prompt":"x"} {}`:           "after top-level value",
		`{"name":"b"`:                            "unexpected",
		`{"name":"b"}`:                           "nothing is asked",
		`{"prompt":"x"}`:                         "no name",
		`{"name":"a","prompt":"x"}`:              `line 1 has the name "a" too`,
		`{"name":"b","prompt":"x","messages":[{"role":"user","parts":[{"type":"text","text":"a"}]}]}`: "a prompt and messages",
		`{"name":"b","messages":[{"role":"assistant","parts":[{"type":"text","text":"a"}]}]}`:         "message 1: it is no user's",
		`{"name":"b","messages":[null]}`:                                                                 "message 1",
		`{"name":"b","prompt":"x","evals":[{"type":"containz","params":{}}]}`:                            "did you mean contains?",
		`{"name":"b","prompt":"x","evals":[{"type":"contains"}]}`:                                        "params.patterns: it is missing",
		`{"name":"b","prompt":"x","evals":[{"type":"contains","param":{}}]}`:                             `unknown field "param"`,
		`{"name":"b","prompt":"x","evals":[{"type":"contains","params":{"patterns":["a"],"patern":1}}]}`: "params.patern: there is no such parameter",
		`{"name":"b","prompt":"x","vars":[1]}`:                                                           "vars",
		`[]`:                                                                                             "cannot unmarshal",
	} {
		_, err := ReadCases(strings.NewReader(fine+line+"\n"), "f.jsonl", PackOptions{})
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "f.jsonl, line 2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if _, err := ReadCases(strings.NewReader("x\n"+fine+"y\n"), "f", PackOptions{}); err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("all lines are told: %v", err)
	}
	if _, err := ReadCases(strings.NewReader(" \n"), "f", PackOptions{}); err == nil || !strings.Contains(err.Error(), "no cases") {
		t.Error(err)
	}
	if _, err := ReadCases(strings.NewReader(fine+strings.Repeat("x", mostOfLine+1)), "f", PackOptions{}); err == nil || !strings.Contains(err.Error(), "line 2: it has more than 16 MiB") {
		t.Error(err)
	}
}

func FuzzReadCases(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","prompt":"x","vars":{"n":1},"want":{"a":1},"tags":["t"],"evals":[{"type":"json_path","params":{"expression":"a[0].b","expected":1}}]}`,
		`{"name":"a","messages":[{"role":"user","parts":[{"type":"text","text":"a"}]}]}`, "{}\n\n[]\nnull",
		`{"name":"a","prompt":"x","evals":[{"type":"contains","trigger":"sample_turns","sample_percentage":1e9,"when":{"turn_count_gte":2},"metric":{"name":"m","type":"gauge","range":{"min":1,"max":5}},"threshold":{"operator":"gte","value":4},"params":{"patterns":["a"]}}]}`,
	} {
		f.Add(seed)
	}
	judge := func(string) (model.Model, error) { return nil, errdefs.NotAvailable.Errorf("none") }
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := ReadCases(strings.NewReader(text), "f", PackOptions{Judge: judge})
		if (err == nil) != (len(cases) > 0) || err != nil && errdefs.Of(err) == nil {
			t.Fatalf("%d cases, %v", len(cases), err)
		}
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, c := range cases { // what was read can be run, and scored, whatever the answer is
			if names[c.Name] || c.check() != nil {
				t.Fatalf("%+v", c)
			}
			names[c.Name] = true
			if _, err := c.hash(); err != nil {
				t.Fatal(err)
			}
		}
		s := Suite{Name: "s", Cases: cases, How: said(func(c Case) string { return c.Want })}
		if r, err := Do(t.Context(), s); err == nil {
			_, _ = r.String(), r.Markdown()
		} else if !errdefs.Validation.Is(err) {
			t.Fatal(err)
		}
	})
}

func FuzzReadBaseline(f *testing.F) {
	f.Add([]byte(`{"version":1,"suite":"s","cases":{"a":{"hash":"x","scores":{"exact":{"passed":1,"of":2,"mean":0.5}}}}}`))
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseBaseline(text)
		if err != nil && !errdefs.Validation.Is(err) {
			t.Fatalf("%v has no class", err)
		}
		if err != nil {
			return
		}
		for _, c := range b.Cases {
			for _, s := range c.Scores {
				if p := chance([]change{{1, 2, s.Passed, s.Of}}); !(p >= 0 && p <= 1) {
					t.Fatalf("%v of %+v", p, s)
				}
			}
		}
	})
}

package cli

import (
	"strings"
	"testing"
)

// The answer fits the schema that the command line names, also when somebody goes on with the run, and in a replay.
func TestAnAnswerByASchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schema := w.file("schema.json", `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`)
	script := w.file("s.yaml", `turns: [{text: "seven"}, {text: '{"n": 7}'}]`)
	run := func(args ...string) ran {
		return w.pawl(append([]string{"run", "--model", "scripted/" + script, "--journal", w.journal, "--session", "s"}, args...)...)
	}
	if r := run("--output-schema", schema, "How many?"); r.code != 0 || r.out != "{\"n\": 7}\n" {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal); r.code != 0 {
		t.Errorf("%+v", r)
	}
	bad := w.file("bad.yaml", `turns: [{text: a}, {text: b}, {text: c}, {text: '{"n": 7}'}]`)
	if r := w.pawl("run", "--model", "scripted/"+bad, "--journal", w.journal, "--output-schema", schema, "How many?"); r.code != 1 || !strings.Contains(r.err, "does not fit its schema") {
		t.Errorf("%+v", r)
	}
	for want, args := range map[string][]string{
		"goes with the loop":                         {"--engine", "script:x.star", "--output-schema", schema, "x"},
		"--output-schema missing.json: no such file": {"--output-schema", "missing.json", "x"},
		"--output-schema " + w.file("no.json", "{"):  {"--output-schema", w.file("no.json", "{"), "x"},
	} {
		if r := run(args...); r.code != 2 || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

package blackbox

import (
	"strings"
	"testing"
	"time"
)

func TestScript(t *testing.T) { runRows(t) }

// says is a row whose script has this answer.
func says(name, doc, script, answer string, flags ...string) row {
	return row{name, doc, "", func(w *world) {
		if r := w.plays(script, append(flags, "go")...); r.code != 0 || r.out != answer+"\n" {
			w.t.Error(r)
		}
	}}
}

var _ = table("TestScript",
	says("JSON does as YAML does", "plays a YAML or JSON file", `{"turns": [{"text": "Done."}]}`, "Done."),
	says("when tool_error plays where the call failed", "when: {tool_error: c2}", `turns:
- tool_calls: [{id: c2, name: read, input: {file_path: nosuch}}]
- {when: {tool_error: c2}, text: "That failed."}
- {when: {tool_ok: c2}, text: "That went well."}
`, "That failed."),
	says("when tool_ok plays where the call went well", "or tool_ok, contains: only if true of the results", `turns:
- tool_calls: [{id: c2, name: read, input: {file_path: go.mod}}]
- {when: {tool_error: c2}, text: "That failed."}
- {when: {tool_ok: c2}, text: "That went well."}
`, "That went well."),
	says("when contains looks at results", "(or, for contains, what the user said) behind the last reply; else the entry is skipped", `turns:
- tool_calls: [{name: read, input: {file_path: go.mod}}]
- {when: {contains: "nothing like it"}, text: "No."}
- {when: {contains: "module sample"}, text: "Yes."}
`, "Yes."),
	says("when contains looks at what the user said", "for contains, what the user said", `turns: [{when: {contains: stop}, text: "No."}, {when: {contains: go}, text: "Yes."}]`, "Yes."),
	row{"delay waits before the reply", "- delay: 200ms text: \"Done.\"", "", func(w *world) {
		const delay = 700 * time.Millisecond
		all, r := w.lines(`turns: [{delay: 700ms, text: "Done."}]`, "go")
		began, reply := all.of("run.started"), all.of("text.delta")
		if r.code != 0 || len(began) != 1 || len(reply) == 0 {
			w.t.Fatal(r)
		}
		if took := timeOf(w.t, reply[0]).Sub(timeOf(w.t, began[0])); took < delay {
			w.t.Errorf("the reply came after %v, want %v or more", took, delay)
		}
	}},
	row{"stop max_tokens has the reply go on", "stop: max_tokens", "", func(w *world) {
		all, r := w.lines("turns: [{text: \"Half \", stop: max_tokens}, {text: whole.}]", "go")
		if r.code != 0 || all.end(w.t)["steps"] != 2.0 || !strings.HasSuffix(all.end(w.t)["text"].(string), "whole.") {
			w.t.Errorf("%v", all.end(w.t))
		}
	}},
	row{"an error in the middle of a stream shows half of the words", "with mid_stream only: half of them come before it", "", func(w *world) {
		all, r := w.lines(`turns: [{error: {status: 529, code: overloaded, message: "Too much.", mid_stream: true}, text: "Half of these words"}]`, "go")
		text, _ := at(all.end(w.t), "error", "text").(string)
		if r.code != 1 || all.of("text.delta").text("text") != "Half of " || !strings.Contains(text, "529") || !strings.Contains(text, "overloaded") || !strings.Contains(text, "Too much.") {
			w.t.Errorf("%v", all)
		}
	}},
	row{"scripts of subagents are found by their names", "scripts of subagents, by their names", "", func(w *world) {
		all, r := w.delegates()
		if r.code != 0 || all.of("tool.finished").text("content") == "" || !strings.Contains(all.of("tool.finished").text("content"), "Looks right.") {
			w.t.Error(r)
		}
	}},
	row{"calls without an id are named after their place", "one a model call", "", func(w *world) {
		all, _ := w.lines(`turns: [{tool_calls: [{name: glob, input: {pattern: a}}, {name: glob, input: {pattern: b}}]}, {text: Done.}]`, "go")
		var ids []any
		for _, l := range all.of("tool.started") {
			ids = append(ids, l["call_id"])
		}
		if asJSON(ids) != "[\"call_1_1\",\"call_1_2\"]\n" {
			w.t.Errorf("%v", ids)
		}
	}},
	row{"an entry is played by the transcript, whichever process asks", "is decided by the transcript in the request, never by the state of a process: a session that goes on, goes on behind the entries that were played", "", func(w *world) {
		const script = "turns: [{text: One.}, {text: Two.}, {text: Three.}]"
		for _, want := range []string{"One.\n", "Two.\n", "Three.\n"} {
			if r := w.plays(script, "--session", "s", "go"); r.out != want {
				w.t.Errorf("%v, want %q", r, want)
			}
		}
	}},
	row{"an unknown field is wrong use with its line", "These are all its fields", "exit 2", func(w *world) {
		if r := w.plays("turns:\n- {text: a}\n- {colour: b}\n", "go"); r.code != 2 || !strings.Contains(r.err, "colour") || !strings.Contains(r.err, "3") {
			w.t.Error(r)
		}
	}},
	row{"moves lets conversations begin otherwise", "moves: true # only for a test of it: what conversations begin with may change", "", func(w *world) {
		// A deleted session's name is taken again, so that one conversation begins twice.
		for script, second := range map[string]string{"": "failed", "moves: true\n": "completed"} {
			w.write("model.yaml", script+"turns: [{text: Done.}]\n")
			s := w.serves()
			s.wants(200, []string{`"status":"completed"`}, "POST", "/v1/runs", `{"prompt": "one", "session": "s", "wait": true}`)
			s.ask("DELETE", "/v1/sessions/s", "")
			a := s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "two", "session": "s", "wait": true}`)
			if isRefused := strings.Contains(a.text, "the beginning of the request moved"); a.json("status") != second || isRefused != (script == "") {
				w.t.Errorf("with %q: %s", script, a.text)
			}
			s.ask("DELETE", "/v1/sessions/s", "")
			s.stop()
		}
	}},
)

// timeOf gives the time of a line.
func timeOf(t *testing.T, line object) time.Time {
	t.Helper()
	text, _ := line["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

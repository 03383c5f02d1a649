package blackbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRun_JSON(t *testing.T) { runRows(t) }

var _ = table("TestRun_JSON",
	row{"run.started says the model, the engine and the directory", "`model`, `engine`, `dir`", "run.started, pawl run", func(w *world) {
		all, _ := w.lines(touches, "go")
		start := all[0]
		if start["type"] != "run.started" || start["model"] != "scripted/"+w.dir+"/model.yaml" || start["engine"] != "loop" || start["dir"] != w.dir {
			w.t.Errorf("%v", start)
		}
	}},
	row{"every line says its session, run and place in the journal", "`seq` (position in the journal; deltas carry that of the step they belong to)", "", func(w *world) {
		all, _ := w.lines(touches, "--session", "s", "go")
		last := 0.0
		for _, l := range all {
			seq, _ := l["seq"].(float64)
			if l["session"] != "s" || l["run"] != all[0]["run"] || seq < last {
				w.t.Errorf("%v comes after entry %v", l, last)
			}
			last = seq
		}
		want := []string{
			"run.started", "message", "text.delta", "message", "usage", "tool.started", "tool.finished",
			"text.delta", "message", "usage", "run.finished",
		}
		if got := all.types(); !slices.Equal(got, want) {
			w.t.Errorf("types %v, want %v", got, want)
		}
	}},
	row{"text.delta has the words as they come", "`text`, `attempt`", "text.delta, message", func(w *world) {
		all, _ := w.lines("turns: [{text: one two three}]", "go")
		deltas := all.of("text.delta")
		said := all.of("message")
		if deltas.text("text") != "one two three" || len(deltas) != 3 || deltas[0]["attempt"] != 0.0 {
			w.t.Errorf("%v", deltas)
		}
		if len(said) != 2 || at(said[0], "message", "role") != "user" || at(said[1], "message", "parts", 0, "text") != "one two three" {
			w.t.Errorf("%v", said)
		}
	}},
	row{"reasoning.delta has the thoughts", "`text.delta`, `reasoning.delta`", "reasoning.delta", func(w *world) {
		all, _ := w.lines("turns: [{reasoning: Let me think., text: Done.}]", "go")
		if got := all.of("reasoning.delta").text("text"); got != "Let me think." {
			w.t.Errorf("%q", got)
		}
		if kind := at(all.of("message")[1], "message", "parts", 0, "type"); kind != "reasoning" {
			w.t.Errorf("the message has %v first", kind)
		}
	}},
	row{"tool.started has the input as an object", "`input` (an object; text when the model's input is no JSON)", "tool.started", func(w *world) {
		all, _ := w.lines(touches, "go")
		start := all.of("tool.started")
		if len(start) != 1 || start[0]["call_id"] != "w" || start[0]["name"] != "bash" || at(start[0], "input", "command") != "echo one >> effects" {
			w.t.Errorf("%v", start)
		}
	}},
	row{"tool.output tells the streams apart", "`call_id`, `text`, `stream` (`stdout`, `stderr`)", "tool.output", func(w *world) {
		all, _ := w.lines(`turns: [{tool_calls: [{id: b, name: bash, input: {command: "echo out; echo err >&2"}}]}, {text: Done.}]`, "go")
		got := map[any]any{}
		for _, l := range all.of("tool.output") {
			got[l["stream"]] = l["text"]
		}
		if got["stdout"] != "out\n" || got["stderr"] != "err\n" {
			w.t.Errorf("%v", got)
		}
	}},
	row{"tool.finished is ok", "`outcome` (`ok`, `error`, `denied`, `rejected`, `canceled`, `unknown`)", "tool.finished", func(w *world) {
		w.outcome("ok", false, "", `{id: c, name: bash, input: {command: "echo seen"}}`, "seen")
	}},
	row{"tool.finished is an error where the tool fails", "`outcome` (`ok`, `error`", "tool.finished", func(w *world) {
		w.outcome("error", true, "", `{id: c, name: bash, input: {command: "exit 3"}}`, "exit code: 3")
	}},
	row{"tool.finished is an error where there is no such tool", "`outcome` (`ok`, `error`", "tool.finished", func(w *world) {
		w.outcome("error", true, "", `{id: c, name: nosuch, input: {}}`, `there is no tool "nosuch"`)
	}},
	row{"tool.finished is an error where the input is no JSON", "`outcome` (`ok`, `error`", "tool.finished", func(w *world) {
		w.outcome("error", true, "", `{id: c, name: read, input: '{"file_path": "go.m'}`, "not valid JSON")
	}},
	row{"tool.finished is denied by a rule", "`error`, `denied`", "tool.finished", func(w *world) {
		w.outcome("denied", true, "--deny=Bash", `{id: c, name: bash, input: {command: "echo one >> effects"}}`, "Bash")
	}},
	row{"approval.requested says what waits and why", "`call_id`, `name`, `input`, `reason`, `unknown` when the call had begun", "approval.requested", func(w *world) {
		w.write("model.yaml", touches)
		r := w.pawl("run", "--json", "--model", "scripted/model.yaml", "--no-sandbox", "go")
		all := decode(w.t, r.out)
		asked := all.of("approval.requested")
		if r.code != 3 || len(asked) != 1 || asked[0]["call_id"] != "w" || asked[0]["name"] != "bash" || !strings.Contains(asked.text("reason"), "without a sandbox") {
			w.t.Errorf("%v", asked)
		}
		if pending := at(all.end(w.t), "pending"); asJSON(pending) != asJSON([]any{pick(asked[0], "call_id", "name", "input", "reason")}) {
			w.t.Errorf("pending %v", pending)
		}
	}},
	row{"command.started and command.ended tell of the background", "is stopped with the program: that is told, too, before `run.finished`", "command.started, command.ended", func(w *world) {
		all, _ := w.lines(`turns: [{tool_calls: [{id: b, name: bash, input: {command: "sleep 300", background: true}}]}, {text: Done.}]`, "go")
		start, end := all.of("command.started"), all.of("command.ended")
		if len(start) != 1 || start[0]["command"] != "sleep 300" || len(end) != 1 || end[0]["id"] != start[0]["id"] || end[0]["reason"] != "stopped" {
			w.t.Errorf("%v, %v", start, end)
		}
	}},
	row{"compacted has the sizes", "`tokens_before`, `tokens_after` (an estimate), `preserved_count`, `summary_size`", "compacted", func(w *world) {
		all, r := w.lines(longScript(), "go")
		got := all.of("compacted")
		if r.code != 0 || len(got) != 1 || got[0]["tokens_before"].(float64) <= got[0]["tokens_after"].(float64) || got[0]["preserved_count"] != 6.0 {
			w.t.Errorf("%v\n%s", got, r.err)
		}
	}},
	row{"usage has the tokens of each model call", "`usage`, `cost_usd` (null: the price is not known)", "usage", func(w *world) {
		all, _ := w.lines("turns: [{text: Done., usage: {input_tokens: 10, output_tokens: 5, cache_read_tokens: 3, cache_write_tokens: 2, reasoning_tokens: 1}}]", "go")
		want := object{"input_tokens": 10.0, "output_tokens": 5.0, "cache_read_tokens": 3.0, "cache_write_tokens": 2.0, "reasoning_tokens": 1.0}
		got := all.of("usage")
		if len(got) != 1 || asJSON(got[0]["usage"]) != asJSON(want) || got[0]["cost_usd"] != nil || asJSON(all.end(w.t)["usage"]) != asJSON(want) {
			w.t.Errorf("%v", got)
		}
	}},
	row{"usage has the cost of a known model", "`usage`, `cost_usd`", "usage", func(w *world) {
		p := newProvider(w.t, "Hello.")
		all := decode(w.t, w.asks(p, "--json", "--model", "openai/gpt-4o-mini", "hi").out)
		if cost, _ := all.end(w.t)["cost_usd"].(float64); cost < 0.0004 || cost > 0.0005 { // 1,000 in and 500 out
			w.t.Errorf("cost_usd is %v", all.end(w.t)["cost_usd"])
		}
	}},
	row{"retry tells of another attempt before the wait", "a model call is tried again; what came of an earlier one is void", "retry", func(w *world) {
		p := newProvider(w.t, "STATUS 503", "Hello.")
		all := decode(w.t, w.asks(p, "--json", "--model", "openai/m", "hi").out)
		got := all.of("retry")
		if len(got) != 1 || got[0]["attempt"] != 1.0 || all.of("text.delta")[0]["attempt"] != 1.0 || all.end(w.t)["text"] != "Hello." {
			w.t.Errorf("%v", all)
		}
	}},
	row{"warning says what has no effect", "`warning` | `text`", "warning", func(w *world) {
		w.write(".agents/settings.json", `{"colour": 1}`)
		all, _ := w.lines("turns: [{text: Done.}]", "go")
		if got := all.of("warning").text("text"); !strings.Contains(got, `.agents/settings.json:1:2: there is no key "colour"`) {
			w.t.Errorf("%q", got)
		}
	}},
	row{"run.finished has the answer and the steps", "`status`, `text`, `steps`, `usage`, `cost_usd`, `pending`", "run.finished, exit 0", func(w *world) {
		all, r := w.lines(touches, "go")
		end := all.end(w.t)
		if r.code != 0 || end["status"] != "completed" || end["text"] != "Done." || end["steps"] != 2.0 || end["error"] != nil || asJSON(end["pending"]) != "[]\n" {
			w.t.Errorf("%v", end)
		}
	}},
	row{"run.finished is the last line of wrong use, too", "The last line is always `run.finished`, on every exit but a kill", "run.finished", func(w *world) {
		for _, args := range [][]string{{"--nosuch", "x"}, {"--model", "nobody/x", "x"}, {}, {"--max-steps", "0", "x"}} {
			r := w.pawl(append([]string{"run", "--json"}, args...)...)
			end := decode(w.t, r.out).end(w.t)
			if r.code != 2 || at(end, "error", "class") != "validation" || end["status"] != "failed" {
				w.t.Errorf("%v: %v", args, r)
			}
		}
	}},
	row{"a child run's lines have parent_run", "`parent_run` for events of a child run", "", func(w *world) {
		all, _ := w.delegates()
		parent := all[0]["run"]
		child := 0
		for _, l := range all {
			if l["session"] == "s/t" {
				if child++; l["parent_run"] != parent {
					w.t.Errorf("%v", l)
				}
			} else if l["parent_run"] != nil {
				w.t.Errorf("%v", l)
			}
		}
		if w.wants("effects", "sub\n"); child < 7 {
			w.t.Errorf("%d lines of the child", child)
		}
	}},
)

// outcome runs one call and checks how it is told.
func (w *world) outcome(outcome string, isError bool, flag, call, content string) {
	w.t.Helper()
	args := []string{"go"}
	if flag != "" {
		args = []string{flag, "go"}
	}
	all, _ := w.lines("turns: [{tool_calls: ["+call+"]}, {text: Done.}]", args...)
	end := all.of("tool.finished")
	if len(end) != 1 || end[0]["call_id"] != "c" || end[0]["outcome"] != outcome || end[0]["is_error"] != isError || !strings.Contains(end.text("content"), content) {
		w.t.Errorf("%v", end)
	}
	w.wants("effects", "")
}

// delegates runs a task by a subagent that writes to effects, in the session s.
func (w *world) delegates(flags ...string) (lines, result) {
	w.t.Helper()
	w.write(".agents/agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews.\n---\nYou review.\n")
	return w.lines(`turns:
- {text: "I delegate.", tool_calls: [{id: t, name: task, input: {agent: reviewer, prompt: "Look."}}]}
- {text: "Done."}
agents:
  reviewer: {turns: [{tool_calls: [{id: w, name: bash, input: {command: "echo sub >> effects"}}]}, {text: "Looks right."}]}
`, append([]string{"--session", "s"}, append(flags, "go")...)...)
}

// longScript says so much that the transcript is compacted once.
func longScript() string {
	var b strings.Builder
	b.WriteString("turns:\n")
	for _, tokens := range []int{1000, 50_000, 100_000, 170_000} { // of 200,000, for a model that nobody knows
		fmt.Fprintf(&b, "- {text: %q, tool_calls: [{name: glob, input: {pattern: \"*.%d\"}}], usage: {input_tokens: %d}}\n",
			strings.Repeat("Let me look. ", 20), tokens, tokens)
	}
	return b.String() + "- {text: Done.}\n"
}

// pick copies some members of an object.
func pick(o object, names ...string) object {
	out := object{}
	for _, name := range names {
		if v, ok := o[name]; ok {
			out[name] = v
		}
	}
	return out
}

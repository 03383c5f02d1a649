package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

func TestPackRunAnswersByAPromptOfAPack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files(t, page(t, "docs/packs.md"), w.dir)
	pack := w.dir + "/support.pack.json"
	asked := make(chan string, 1)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = w.Write([]byte("shipped"))
	}))
	defer shop.Close()
	good := w.file("good.yaml", "turns: [{tool_calls: [{name: lookup_order, input: {order_id: \"7\"}}]}, {text: \"It is on its way.\", when: {contains: shipped}}]")
	bad := w.file("bad.yaml", "turns: [{text: \"You will get a refund.\"}]")
	tool := []string{"--tool", "lookup_order=" + shop.URL + "/orders/{order_id}"}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  ran
	}{
		"an answer":      {"Where is it?", append([]string{"--allow", "127.0.0.1", "--var", "name=Ada", "--model", "scripted/" + good, pack, "chat", "-"}, tool...), ran{0, "It is on its way.\n", "● lookup_order {\"order_id\":\"7\"}\n  ✓ lookup_order: shipped\ncompleted · 2 steps · 0 tokens · cost unknown\n"}},
		"blocked":        {"", append([]string{"--var", "name=Ada", "--model", "scripted/" + bad, pack, "chat", "Hello"}, tool...), ran{1, "You will get a I can't promise that.\n", "banned_words"}},
		"no variable":    {"", append([]string{"--model", "scripted/" + bad, pack, "chat", "Hello"}, tool...), ran{2, "", "name is required"}},
		"no handler":     {"", []string{"--var", "name=Ada", "--model", "scripted/" + bad, pack, "chat", "Hello"}, ran{2, "", "give --tool lookup_order=URL"}},
		"no model":       {"", append([]string{"--var", "name=Ada", pack, "chat", "Hello"}, tool...), ran{2, "", "give --model PROVIDER/NAME, or set one of OPENAI_API_KEY"}},
		"no such prompt": {"", []string{"--model", "scripted/" + bad, pack, "chap", "Hello"}, ran{2, "", "did you mean chat?"}},
		"a variable":     {"", []string{"--var", "name", pack, "chat", "Hello"}, ran{2, "", "NAME=VALUE"}},
		"too few":        {"", []string{pack, "chat"}, ran{2, "", "want a file, a prompt of it and a text"}},
	} {
		r := w.pawlIn(c.stdin, append([]string{"pack", "run"}, c.args...)...)
		if r.code != c.want.code || r.out != c.want.out || !strings.Contains(r.err, c.want.err) || (r.err == "") != (c.want.err == "") {
			t.Errorf("%s: exit %d, %q, %q", name, r.code, r.out, r.err)
		}
	}
	select {
	case got := <-asked:
		if got != "/orders/7" {
			t.Errorf("the shop was asked for %s", got)
		}
	default:
		t.Error("the shop was not asked")
	}
}

func TestPackRunGoesByTheWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pack := w.file("flow.json", `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {
"ask": {"id": "ask", "name": "Ask", "version": "1.0.0", "system_template": "You ask {{who}}.", "variables": [{"name": "who", "type": "string", "required": true}]},
"tell": {"id": "tell", "name": "Tell", "version": "1.0.0", "system_template": "You tell."}},
"workflow": {"version": 1, "entry": "start", "states": {"start": {"prompt_task": "ask", "on_event": {"Known": "end"}}, "end": {"prompt_task": "tell"}}}}`)
	script := w.file("flow.yaml", `turns: [{text: "A moment.", tool_calls: [{name: workflow__transition, input: {event: Known, context: "It is seven."}}]}, {text: "Seven."}]`)
	plain := w.file("plain.json", strings.Split(typedPack, `, "model_overrides"`)[0]+`}}}`)
	for name, c := range map[string]struct {
		args []string
		want ran
	}{
		"through its states": {[]string{"--workflow", "--var", "who=Ada", "--model", "scripted/" + script, pack, "How many?"}, ran{0, "Seven.\n", "workflow__transition"}},
		"without a variable": {[]string{"--workflow", "--model", "scripted/" + script, pack, "How many?"}, ran{2, "", "prompt ask: who is required"}},
		"with a prompt":      {[]string{"--workflow", pack, "ask", "How many?"}, ran{2, "", "with --workflow, want a file and a text"}},
		"without a workflow": {[]string{"--workflow", plain, "How many?"}, ran{2, "", "the pack has no workflow"}},
	} {
		if r := w.pawl(append([]string{"pack", "run"}, c.args...)...); r.code != c.want.code || r.out != c.want.out || !strings.Contains(r.err, c.want.err) {
			t.Errorf("%s: exit %d, %q, %q", name, r.code, r.out, r.err)
		}
	}
}

// typedPack has a variable of each type.
const typedPack = `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0",
"system_template": "{{s}} {{i}} {{n}} {{b}} {{a[1]}} {{o.x}} {{a}} {{free}}", "model_overrides": {"m": {"system_template_suffix": "{{suffix}}"}}, "variables": [
{"name": "s", "type": "string", "required": true}, {"name": "i", "type": "integer", "required": true, "validation": {"maximum": 9100000000000000}}, {"name": "n", "type": "number", "required": true},
{"name": "b", "type": "boolean", "required": true}, {"name": "a", "type": "array", "required": true}, {"name": "o", "type": "object", "required": true}]}}}`

func TestPackRunReadsVariablesByTheirTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("typed.json", typedPack)
	told := "7 9007199254740993 0.5 true y [2] [\"x\",\"y\"] words"
	script := w.file("s.yaml", "turns: [{text: Yes.}]")
	good := map[string]string{"s": "7", "i": "9007199254740993", "n": "0.5", "b": "true", "a": `["x","y"]`, "o": `{"x": [2]}`, "free": "words"}
	run := func(change map[string]string, more ...string) ran {
		args := []string{"pack", "run", "--model", "scripted/" + script}
		for name, value := range good {
			if v, ok := change[name]; ok {
				value = v
			}
			args = append(args, "--var", name+"="+value)
		}
		return w.pawl(append(append(args, more...), file, "chat", "Hello")...)
	}
	if r := run(nil); r.code != 0 || r.out != "Yes.\n" {
		t.Errorf("%+v", r)
	}
	if r := run(nil, "--var", "suffix=x"); r.code != 0 { // only an override for another model has it
		t.Errorf("%+v", r)
	}
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err == nil && len(body.Messages) > 0 {
			asked = body.Messages[0].Content
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	if r := run(nil, "--model", "openai/m1", "--base-url", server.URL); r.code != 1 || asked != told {
		t.Errorf("%+v: the prompt was %q, want %q", r, asked, told)
	}
	for name, values := range map[string][]string{
		"i": {"x", "1.5", "", "true", `"7"`, "null", "7 8"}, "n": {"x", "true", "NaN"}, "b": {"yes", "1", "null"}, "a": {"x", "{}", "1,2"}, "o": {"x", "[]", "null"},
	} {
		kind := map[string]string{"i": "integer", "n": "number", "b": "boolean", "a": "array", "o": "object"}[name]
		for _, value := range values {
			if r := run(map[string]string{name: value}); r.code != 2 || !strings.Contains(r.err, "--var "+name+": the pack says "+kind+": want a") || strings.Contains(r.err, "See pawl") {
				t.Errorf("%s=%s: %+v", name, value, r)
			}
		}
	}
	for want, more := range map[string][]string{
		"--var nix: prompt chat has no such variable: it has s, i, n, b, a, o, free, suffix": {"--var", "nix=1"},
		"--var suffx: prompt chat has no such variable: did you mean suffix?":                {"--var", "suffx=1"},
		"--var i is there twice":                        {"--var", "i=1"},
		"--tool t: prompt chat has no such tool":        {"--tool", "t=https://shop.example"},
		"--tool t is there twice":                       {"--tool", "t=https://shop.example", "--tool", "t=https://shop.example"},
		"it is more than 9100000000000000":              nil,
		"no key was found in ANTHROPIC_API_KEY: set it": {"--model", "claude-x"},
		"--base-url: want a URL such as":                {"--model", "claude-x", "--base-url", "https:///v1"},
	} {
		change := map[string]string{}
		if more == nil {
			change["i"], want = "9200000000000000", "want 9.1e+15 or less"
		}
		if r := run(change, more...); r.code != 2 || r.out != "" || !strings.Contains(r.err, want) || strings.Contains(r.err, "With") {
			t.Errorf("%s: %+v", want, r)
		}
	}
}

// crewPack has two prompts: one hands over to the other, which has a tool and a variable.
const crewPack = `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {
"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "You chat.", "tools": ["billing"]},
"billing": {"id": "billing", "name": "Billing", "version": "1.0.0", "system_template": "You bill {{years}}.", "tools": ["pay"], "tool_policy": {"max_rounds": 1},
 "variables": [{"name": "years", "type": "integer", "required": true}], "validators": [{"type": "max_sentences", "params": {"max_sentences": 1}}]}},
"tools": {"pay": {"name": "pay", "description": "Pay."}}, "agents": {"entry": "chat", "members": {"chat": {}, "billing": {}}}}`

func TestPackRunSaysOnStandardErrorWhatHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("crew.json", crewPack)
	run := func(script string, more ...string) ran {
		args := []string{"pack", "run", "--model", "scripted/" + w.file("s.yaml", script), "--var", "years=3", "--tool", "pay=https://127.0.0.1:1/pay"}
		return w.pawl(append(append(args, more...), file, "chat", "Hello")...)
	}
	r := run(`
turns:
  - {text: "I pass you on.", tool_calls: [{name: transfer_to_billing, input: {}}], usage: {input_tokens: 10, output_tokens: 5}}
  - {text: "One moment.", tool_calls: [{name: pay, input: {}}], usage: {input_tokens: 10, output_tokens: 5}}
  - {text: "Hello from billing. It failed.", usage: {input_tokens: 10, output_tokens: 5}}
`)
	if r.code != 0 || r.out != "Hello from billing. It failed.\n" {
		t.Errorf("%+v", r)
	}
	at := 0
	for _, want := range []string{"I pass you on.\n● transfer_to_billing {}\n  ✓ transfer_to_billing: ", "One moment.\n● pay {}\n  ✗ pay: ", "noted: max_sentences: ", "completed · 3 steps · 45 tokens · cost unknown\n"} {
		i := strings.Index(r.err[at:], want)
		if i < 0 {
			t.Fatalf("%q is not, or not there, in\n%s", want, r.err)
		}
		at += i
	}
	if strings.Contains(r.err, "session") || strings.Contains(r.err, "Hello from billing.") {
		t.Errorf("%s", r.err)
	}
	limit := "turns: [{tool_calls: [{name: transfer_to_billing, input: {}}]}, {tool_calls: [{name: pay, input: {}}]}, {tool_calls: [{name: pay, input: {}}]}]"
	if r := run(limit); r.code != 4 || r.out != "" || !strings.Contains(r.err, "failed · 3 steps") || strings.Contains(r.err, "See pawl") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("pack", "run", "--model", "scripted/"+w.file("s.yaml", limit), "--var", "years=3", file, "chat", "Hello"); r.code != 2 || !strings.Contains(r.err, "give --tool pay=URL") {
		t.Errorf("%+v", r)
	}
	if r := run(limit, "--tool", "pai=https://shop.example"); r.code != 2 || !strings.Contains(r.err, "did you mean pay?") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("pack", "run", "--model", "scripted/"+w.file("s.yaml", limit), "--var", "years=3", "--tool", "pay=shop", file, "chat", "Hello"); r.code != 2 || !strings.HasPrefix(r.err, `pawl: --tool pay: URL "shop": want http or https`) {
		t.Errorf("%+v", r)
	}
}

// broken is a standard output that can't be written.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestPackCommandsTellOfAnOutputThatCantBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file, script := w.file("crew.json", crewPack), w.file("s.yaml", "turns: [{text: Yes.}]")
	wrong := w.file("wrong.json", "{}")
	for _, args := range [][]string{
		{"run", "--model", "scripted/" + script, "--var", "years=3", "--tool", "pay=https://shop.example", file, "chat", "Hello"}, {"show", file}, {"validate", wrong},
	} {
		for err, want := range map[error]int{errors.New("the disk is full"): 1, syscall.EPIPE: 130} {
			var errs strings.Builder
			code := program(t.Context(), streams{strings.NewReader(""), broken{err}, &errs}, append([]string{"pack"}, args...))
			if code != want || strings.Contains(errs.String(), "See pawl") || want == 1 && !strings.Contains(errs.String(), "pawl: the disk is full\n") {
				t.Errorf("%s, %v: exit %d, %q", args[0], err, code, errs.String())
			}
		}
	}
}

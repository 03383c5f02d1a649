package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/pack/guard"
)

func TestPackValidateSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
"prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "x"}}}`
	warned := strings.Replace(good, `"system_template"`, `"pipeline": {"stages": []}, "system_template"`, 1)
	wrong := strings.Replace(warned, `"name": "Chat"`, `"labl\u001b[31m": "Chat"`, 1)
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{w.file("good.json", good)}, 0, "", ""},
		{[]string{w.file("warned.json", warned)}, 0, "warning: prompts.chat.pipeline: it has no effect: the stages are always the same (line 2, column 72)\n", ""},
		{
			[]string{w.file("wrong.json", wrong)},
			1,
			"prompts.chat.name: it is missing: add it, such as \"Support\" (line 2, column 13)\nprompts.chat[\"labl\\x1b[31m\"]: there is no such field: remove it (line 2, column 36)\n" +
				"warning: prompts.chat.pipeline: it has no effect: the stages are always the same (line 2, column 82)\n", "",
		},
		{[]string{w.file("good.json", good), w.file("empty.json", "")}, 1, filepath.Join(w.dir, "empty.json") + ": $: it is no JSON: it is empty: write a pack in braces (line 1, column 1)\n", ""},
		{[]string{filepath.Join(w.dir, "none.json")}, 2, "", "there is no file"},
		{nil, 2, "", "name a pack"},
		{[]string{"--strict", "x"}, 2, "", "unknown flag"},
		{[]string{w.dir}, 2, "", "is a directory"},
	} {
		r := w.pawl(append([]string{"pack", "validate"}, c.args...)...)
		if r.code != c.code || r.out != c.out || !strings.Contains(r.err, c.errs) || (c.errs == "") != (r.err == "") {
			t.Errorf("%v: exit %d, %q, %q", c.args, r.code, r.out, r.err)
		}
	}
}

func TestPackValidateAndShowFollowSkills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("skilled.json", `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
"prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "x"}}, "skills": [{"path": "refunds", "preload": true}]}`)
	missing := "skills[0]: there is no refunds: paths are relative to the pack's file: write another one, or add the skill (line 2, column 109)\n"
	if r := w.pawl("pack", "validate", file); r != (ran{1, missing, ""}) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("pack", "show", file); r.code != 2 || !strings.Contains(r.err, "skills[0]: there is no refunds") {
		t.Errorf("%+v", r)
	}
	if err := os.Mkdir(filepath.Join(w.dir, "refunds"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file("refunds/SKILL.md", "---\nname: refunds\ndescription: Money back.\n---\n")
	if r := w.pawl("pack", "validate", file); r != (ran{}) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("pack", "show", file); r.code != 0 || !strings.HasSuffix(r.out, "\nskills\n  refunds (refunds, preloaded): Money back.\n") {
		t.Errorf("%+v", r)
	}
}

func TestThePacksOfOthersAreValidButOne(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PAWL_FIXTURES")
	if dir == "" {
		t.Skip("no packs of others: set PAWL_FIXTURES to a directory with promptpack/packs/*.json")
	}
	files, err := filepath.Glob(filepath.Join(dir, "promptpack", "packs", "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d packs, %v", len(files), err)
	}
	w := newWorld(t)
	for _, file := range files {
		want := 0
		if strings.Contains(file, "guardrail-bad-type") {
			want = 1
		}
		if r := w.pawl("pack", "validate", file); r.code != want || r.err != "" || want == 1 && !strings.Contains(r.out, "prompts.chat.validators[0].type: there is no validator \"pii_leakge\"") {
			t.Errorf("%s: exit %d, %q, %q", file, r.code, r.out, r.err)
		}
		if r := w.pawl("pack", "show", file); r.code != 2*want || want == 0 && !strings.Contains(r.out, "\nprompt ") {
			t.Errorf("%s: exit %d, %q", file, r.code, r.err)
		}
	}
}

func TestPackShowPrintsWhatAPackHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.pawl("pack", "show", "../../pack/testdata/full.pack.json")
	for _, want := range []string{
		"full-pack v1.2.3-rc.1+build.5: Everything\n", "\nprompt closing 1.0.0: Closing\n", "  variable topics (array, default [\"orders\",2,0.5,true,{\"a\":\"b\"}])\n", "  variable age (integer, required; 18 or more; 120.5 or less)\n",
		"  tools lookup_order; choice required, at most 3 rounds and 7 calls a turn\n", "top_k 40", "  validator max_length: notes a violation\n", "  another template or parameters for gpt-4\n",
		"    | You work for {{company}}. Be kind. You help {{customer.name}}", "\nworkflow, it begins with open\n  closed (prompt closing; the end)\n  open (prompt support; persistent; hybrid; skills ./skills/billing; at most 5 visits, then closed; Done to closed; artifact log (text/plain, append)): Helps\n  at most 50 visits\n  at most 100 tool calls\n  at most 300 seconds\n", "\nagents, the first is support\n  support: Orders\n", "\nskills\n  escalation: When stuck\n  orders (skills/orders, allows lookup_order): How orders are looked up and changed.\n  @acme/billing\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	if r.code != 0 || !strings.Contains(r.err, "pawl: warning: workflow.engine.hint: it has no effect") {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	if r := w.pawl("pack", "show", "../../pack/testdata/full.pack.json", "closing"); r.code != 0 || r.out != "prompt closing 1.0.0: Closing\n  template\n    | Say goodbye.\n" {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
	if r := w.pawl("pack", "show", "../../pack/testdata/full.pack.json", "closng"); r.code != 2 || !strings.Contains(r.err, "did you mean closing?") {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	if r := w.pawl("pack", "show", "../../pack/testdata/wrong/unknown_field.json"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "promts: there is no such field") {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
}

func TestPackShowLeavesOutNothingThatBinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("all.json", `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {
"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "x", "tools": ["pay", "refund", "billing", "legal"], "tool_policy": {"blocklist": ["refund", "legal"]},
 "variables": [{"name": "age", "type": "integer", "required": false, "validation": {"minimum": 18, "maximum": 99}},
  {"name": "code", "type": "string", "required": true, "description": "Of the shop", "validation": {"pattern": "^<A", "min_length": 2, "max_length": 5, "enum": ["<A1", "<A2"]}}],
 "validators": [{"type": "regex", "fail_on_violation": true, "params": {"pattern": "x", "direction": "input"}}, {"type": "regex", "fail_on_violation": true, "params": {"pattern": "x", "direction": "both"}},
  {"type": "max_length", "params": {"max_characters": 9, "direction": "input"}}],
 "media": {"enabled": true, "supported_types": ["image", "model"], "image": {"max_size_mb": 2, "allowed_formats": ["png", "jpg"], "max_images_per_msg": 3}, "audio": {"max_size_mb": 1}, "model": {"allowed_formats": ["obj"], "validation_params": {}}}},
"billing": {"id": "billing", "name": "Billing", "version": "1.0.0", "system_template": "x", "media": {"enabled": false}},
"legal": {"id": "legal", "name": "Legal", "version": "1.0.0", "system_template": "x", "media": {"enabled": true, "audio": {"allowed_formats": ["wav"], "max_duration_sec": 30}}}},
"tools": {"pay": {"name": "pay", "description": "Pay.", "parameters": {"type": "object", "required": ["to"],
 "properties": {"to": {"type": "string", "description": "To whom"}, "sum": {"type": ["integer", "null"], "minimum": 1}, "any": {}}}}, "refund": {"name": "refund", "description": "Refund."}},
"agents": {"entry": "chat", "members": {"chat": {}, "billing": {}, "legal": {}}}}`)
	r := w.pawl("pack", "show", file)
	for _, want := range []string{
		"  variable age (integer, optional; 18 or more; 99 or less)\n", `  variable code (string, required; matches ^<A; at least 2 characters; at most 5 characters; one of "<A1", "<A2"): Of the shop` + "\n",
		"  tools pay; choice auto, at most 5 rounds and 10 calls a turn\n  hands over to billing\n  blocklist refund, legal\n",
		"  validator regex: blocks in what users say\n  validator regex: blocks in what users say and in replies; holds back the whole text\n  validator max_length: notes a violation in what users say\n",
		"  files image, model\n    image: png, jpg; at most 2 MiB; at most 3 in a message\n    model: obj\n  template\n", "  files none\n", "  files of any type\n    audio: wav; at most 30 seconds of wav\n",
		"prompt billing 1.0.0: Billing\n  tools none; choice auto, at most 5 rounds and 10 calls a turn\n  hands over to chat, legal\n",
		"\ntools\n  pay: Pay.\n    any (any, optional)\n    sum ([\"integer\",\"null\"], optional; {\"minimum\":1})\n    to (string, required): To whom\n  refund: Refund.\n\nagents",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	if r.code != 0 {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}

// What package pack takes for the name of a handoff's tool is what package agent calls it.
func TestPackValidateKnowsTheToolsOfHandoffs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"billing", "billing-2", "Billing", "a.b", "é"} {
		file := w.file("crew.json", strings.NewReplacer("ID", id, "TOOL", agent.DefaultHandoffToolName(id)).Replace(`{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
"prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "x", "tools": ["ID", "TOOL"]}, "ID": {"id": "ID", "name": "B", "version": "1.0.0", "system_template": "x"}},
"tools": {"TOOL": {"name": "TOOL", "description": "Do."}}, "agents": {"entry": "chat", "members": {"chat": {}, "ID": {}}}}`))
		if r := w.pawl("pack", "validate", file); r.code != 1 || !strings.Contains(r.out, "it has the name of the tool by which prompts.chat hands over to") {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

var consoleBlock = regexp.MustCompile("(?s)```console\n\\$ pawl ([^\n]*)\n(.*?)```")

// What docs/packs.md shows of the program is what it does.
func TestThePageOfPacksShowsWhatHappens(t *testing.T) {
	w := newWorld(t)
	text := page(t, "docs/packs.md")
	files(t, text, w.dir)
	w.file("wrong.pack.json", `{
  "id": "support",
  "name": "Support",
  "version": "1.0.0",
  "template_engine": {"version": "v1", "syntax": "{{variable}}"},
  "prompts": {
    "chat": {
      "id": "chat",
      "name": "Chat",
      "version": "1.0.0",
      "validators": [ {"type": "pii_leakge"}],
      "system_template": "You help people with their orders."}}, "evals": [{"id": "a", "type": "toxicity", "trigger": "every_turn"}]
}`)
	for _, typ := range guard.Known(nil) {
		if !strings.Contains(text, "`"+typ+"`") {
			t.Errorf("%s is not in the page", typ)
		}
	}
	t.Chdir(w.dir)
	blocks := consoleBlock.FindAllStringSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if r := w.pawl(strings.Fields(b[1])...); r.out != b[2] || r.err != "" {
			t.Errorf("pawl %s: %q, %q, want %q", b[1], r.out, r.err, b[2])
		}
	}
	for _, file := range []string{"support.pack.json", "shop.pack.json"} {
		if r := w.pawl("pack", "validate", file); r != (ran{}) {
			t.Errorf("%s: %+v", file, r)
		}
	}
}

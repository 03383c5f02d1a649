package pack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/pack"
)

func TestWhatOfAWorkflowIsWarnedOf(t *testing.T) {
	_, warnings := pack.Validate([]byte(`{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
		"tools": {"look": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}}, "agents": {"entry": "a", "members": {"a": {}, "b": {}}},
		"prompts": {"a": {"id": "a", "name": "A", "version": "1.0.0", "system_template": "x", "tools": ["workflow__transition", "b"]},
			"b": {"id": "b", "name": "B", "version": "1.0.0", "system_template": "x", "tools": ["look"], "tool_policy": {"blocklist": ["workflow__transition"]}}},
		"workflow": {"version": 1, "entry": "one", "engine": {"timeout": 3, "budget": {"max_tool_calls": 4}}, "states": {
			"one": {"prompt_task": "a", "on_event": {"Go": "two"}}, "two": {"prompt_task": "b", "orchestration": "internal", "on_event": {"Go": "one"}}, "three": {"prompt_task": "b", "orchestration": "external", "on_event": {"Go": "one"}, "on_max_visits": "one"}}}}`))
	var got []string
	for _, w := range warnings {
		got = append(got, fmt.Sprintf("%s: %s", w.Path, w.Reason))
	}
	want := []string{
		`prompts.a.tools[1]: in the state "one" it has no effect: a workflow goes by events, and its prompts hand over to no agent`,
		`workflow.engine.timeout: it has no effect: nobody knows what it means`,
		`workflow.states.two.on_event: the prompt "b" may not call workflow__transition, so nobody leaves the state`,
		`workflow.states.three: nothing leads to it`,
		`workflow.states.three.on_max_visits: it has no effect without max_visits`,
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n")+"\n", w+"\n") {
			t.Errorf("no warning %s", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d warnings, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

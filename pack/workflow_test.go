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
		"prompts": {"a": {"id": "a", "name": "A", "version": "1.0.0", "system_template": "{{workflow_context}} {{artifacts.note}} {{artifacts.nota}} {{artifacts.plan.x}} {{artifacts}} {{artifact}}", "tools": ["workflow__transition", "b"]},
			"b": {"id": "b", "name": "B", "version": "1.0.0", "system_template": "x", "tools": ["look"], "tool_policy": {"blocklist": ["workflow__transition"]}}, "c": {"id": "c", "name": "C", "version": "1.0.0", "system_template": "{{workflow_context}}"}},
		"workflow": {"version": 1, "entry": "one", "engine": {"timeout": 3, "budget": {"max_tool_calls": 4}}, "states": {
			"one": {"prompt_task": "a", "on_event": {"Go": "two"}, "artifacts": {"note": {"type": "text/plain"}}}, "two": {"prompt_task": "b", "orchestration": "internal", "on_event": {"Go": "one"}}, "three": {"prompt_task": "b", "orchestration": "external", "on_event": {"Go": "one"}, "on_max_visits": "one"}}}}`))
	var got []string
	for _, w := range warnings {
		got = append(got, fmt.Sprintf("%s: %s", w.Path, w.Reason))
	}
	want := []string{
		`prompts.a.system_template: {{artifacts.nota}}: no state has the artifact "nota": without a value there is an error`,
		`prompts.a.system_template: {{artifacts.plan.x}}: no state has the artifact "plan": without a value there is an error`,
		`prompts.a.system_template: {{artifact}} is no variable of the prompt: without a value from the program there is an error`,
		`prompts.c.system_template: {{workflow_context}} is no variable of the prompt: without a value from the program there is an error`,
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

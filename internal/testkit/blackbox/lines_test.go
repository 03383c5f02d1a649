package blackbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// object is a JSON object as a reader of --json sees it.
type object = map[string]any

// lines are those of --json.
type lines []object

// member says what a member of an object has to be. A name with a question mark may be
// absent.
type member struct {
	name string
	is   func(any) bool
}

func isText(v any) bool   { _, ok := v.(string); return ok }
func isNumber(v any) bool { _, ok := v.(float64); return ok }
func isBool(v any) bool   { _, ok := v.(bool); return ok }
func isAny(any) bool      { return true }
func isList(v any) bool   { _, ok := v.([]any); return ok }

func isWhole(v any) bool {
	n, ok := v.(float64)
	return ok && n == float64(int64(n)) && n >= 0
}

func isDollars(v any) bool { return v == nil || isNumber(v) }

func isTime(v any) bool {
	text, _ := v.(string)
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// oneOf accepts some words.
func oneOf(words ...string) func(any) bool {
	return func(v any) bool { text, ok := v.(string); return ok && slices.Contains(words, text) }
}

// isInput accepts what a call's input may be.
func isInput(v any) bool { _, ok := v.(object); return ok || isText(v) }

// fits accepts an object with these members and no others.
func fits(members ...member) func(any) bool {
	return func(v any) bool { return misfit(v, members) == "" }
}

// each accepts a list of what is accepted.
func each(is func(any) bool) func(any) bool {
	return func(v any) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !is(v) })
	}
}

// misfit says why a value is no object with these members, "" if it is one.
func misfit(v any, members []member) string {
	o, ok := v.(object)
	if !ok {
		return fmt.Sprintf("it is no object: %v", v)
	}
	known := map[string]bool{}
	for _, m := range members {
		name, optional := strings.CutSuffix(m.name, "?")
		known[name] = true
		switch value, there := o[name]; {
		case !there && !optional:
			return fmt.Sprintf("it lacks %q", name)
		case there && !m.is(value):
			return fmt.Sprintf("%q may not be %v", name, value)
		}
	}
	for name := range o {
		if !known[name] {
			return fmt.Sprintf("%q is not documented", name)
		}
	}
	return ""
}

// classes are the values of error.class.
var classes = []string{
	"validation", "unauthorized", "policy_denied", "not_found", "conflict", "interrupted", "aborted",
	"context_overflow", "refused", "truncated", "rate_limit", "budget_exceeded", "internal", "no_progress",
	"not_available", "timeout", "canceled",
}

var (
	usageMembers = []member{
		{"input_tokens", isWhole},
		{"output_tokens", isWhole},
		{"cache_read_tokens", isWhole},
		{"cache_write_tokens", isWhole},
		{"reasoning_tokens", isWhole},
	}
	questionMembers = []member{
		{"call_id", isText},
		{"name?", isText},
		{"input?", isInput},
		{"reason", isText},
		{"unknown?", isBool},
		{"once?", isBool},
		{"confirm?", isBool},
	}
	outcomes = oneOf("ok", "error", "denied", "rejected", "canceled", "unknown")
	endings  = oneOf("exited", "killed", "timeout", "stopped", "failed", "lost")
	statuses = oneOf("completed", "failed", "canceled", "aborted", "interrupted")
	// headMembers are those of every line, but for its type.
	headMembers = []member{
		{"type", isText}, {"session", isText}, {"run", isText}, {"seq", isWhole}, {"time", isTime}, {"parent_run?", isText},
	}
)

// lineMembers are the fields of each type of --json, as docs/cli.md has them.
var lineMembers = map[string][]member{
	"run.started":     {{"model", isText}, {"engine", isText}, {"dir", isText}},
	"text.delta":      {{"text", isText}, {"attempt", isWhole}},
	"reasoning.delta": {{"text", isText}, {"attempt", isWhole}},
	"message":         {{"message", isMessage}},
	"tool.started":    {{"call_id", isText}, {"name", isText}, {"input", isInput}},
	"tool.output":     {{"call_id", isText}, {"text", isText}, {"stream", oneOf("stdout", "stderr")}},
	"command.started": {{"id", isText}, {"call_id", isText}, {"command", isText}},
	"command.ended":   {{"id", isText}, {"reason", endings}, {"code", isNumber}, {"signal?", isText}},
	"tool.finished": {
		{"call_id", isText}, {"name", isText}, {"is_error", isBool}, {"outcome", outcomes}, {"content", isText},
	},
	"approval.requested": questionMembers,
	"compacted": {
		{"tokens_before", isWhole}, {"tokens_after", isWhole}, {"preserved_count", isWhole}, {"summary_size", isWhole},
	},
	"usage":   {{"usage", fits(usageMembers...)}, {"cost_usd", isDollars}},
	"retry":   {{"attempt", isWhole}, {"reason", isText}},
	"warning": {{"text", isText}},
	"run.finished": {
		{"status", statuses},
		{"text", isText},
		{"steps", isWhole},
		{"usage", fits(usageMembers...)},
		{"cost_usd", isDollars},
		{"pending", each(fits(questionMembers...))},
		{"error?", fits(member{"class", oneOf(classes...)}, member{"text", isText})},
	},
}

// sourceMembers are those of a citation.
var sourceMembers = []member{
	{"url?", isText}, {"title?", isText}, {"quote?", isText}, {"start?", isWhole}, {"end?", isWhole},
}

// partMembers are the fields of each type of part, as docs/cli.md has them.
var partMembers = map[string][]member{
	"text":      {{"text", isText}, {"citations?", each(fits(sourceMembers...))}, {"provider?", isText}, {"extra?", isAny}},
	"reasoning": {{"text", isText}, {"signature?", isText}, {"provider?", isText}, {"extra?", isAny}},
	"file": {
		{"mime?", isText},
		{"name?", isText},
		{"url?", isText},
		{"data?", isText},
		{"hash?", isText},
		{"provider?", isText},
		{"id?", isText},
	},
	"tool_call": {{"id", isText}, {"name", isText}, {"input", isInput}, {"provider?", isText}, {"extra?", isAny}},
	"tool_result": {
		{"call", isText}, {"name?", isText}, {"content", isText}, {"files?", isList}, {"is_error?", isBool},
	},
	"provider_call": {
		{"provider", isText},
		{"json", isAny},
		{"call?", isText},
		{"name?", isText},
		{"input?", isAny},
		{"content?", isText},
		{"sources?", each(fits(sourceMembers...))},
		{"is_error?", isBool},
	},
	"opaque": {{"provider", isText}, {"json", isAny}},
}

// isMessage accepts a message whose parts are documented.
func isMessage(v any) bool {
	return fits(member{"role", oneOf("user", "assistant", "tool")}, member{"parts", each(isPart)})(v)
}

func isPart(v any) bool {
	o, _ := v.(object)
	kind, _ := o["type"].(string)
	members, known := partMembers[kind]
	return known && misfit(v, append([]member{{"type", isText}}, members...)) == ""
}

// decode reads lines of --json and checks the shape of each.
func decode(t *testing.T, text string) (all lines) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kind, _ := o["type"].(string)
		members, known := lineMembers[kind]
		if !known {
			t.Errorf("the type %q is not documented: %s", kind, line)
			continue
		}
		if why := misfit(o, append(slices.Clone(headMembers), members...)); why != "" {
			t.Errorf("%s: %s\n%s", kind, why, line)
		}
		all = append(all, o)
	}
	if n := len(all); n > 0 && all[n-1]["type"] != "run.finished" {
		t.Errorf("the last line is %v, want run.finished", all[n-1]["type"])
	}
	return all
}

// of gives the lines of one type.
func (l lines) of(kind string) (all lines) {
	for _, o := range l {
		if o["type"] == kind {
			all = append(all, o)
		}
	}
	return all
}

// types gives the types in their order, each once where it stands several times in a row.
func (l lines) types() (all []string) {
	for _, o := range l {
		if kind, _ := o["type"].(string); len(all) == 0 || all[len(all)-1] != kind {
			all = append(all, kind)
		}
	}
	return all
}

// text joins a member of all lines.
func (l lines) text(name string) string {
	var b strings.Builder
	for _, o := range l {
		text, _ := o[name].(string)
		b.WriteString(text)
	}
	return b.String()
}

// end gives the last line.
func (l lines) end(t *testing.T) object {
	t.Helper()
	if len(l) == 0 {
		t.Fatal("there are no lines")
	}
	return l[len(l)-1]
}

// at gives what lies behind members of nested objects and numbers of lists, nil if nothing
// does.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(object)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step < 0 {
				step += len(list)
			}
			if step < 0 || step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

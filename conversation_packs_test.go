package pawl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// packFile is what a pack says, read by nothing of ours.
type packFile struct {
	Fragments map[string]string
	Tools     map[string]struct {
		Description string
		Parameters  sampled
	}
	Prompts map[string]promptText
	Agents  struct{ Members map[string]json.RawMessage }
	Skills  []any
}

type promptText struct {
	Template  string `json:"system_template"`
	Variables []struct {
		sampled
		Name    string
		Default any
		Example any
	}
	Tools  []string
	Policy struct {
		Choice    string `json:"tool_choice"`
		Blocklist []string
	} `json:"tool_policy"`
	Parameters map[string]float64
	Validators []struct {
		Type    string
		Enabled *bool
		Fail    bool `json:"fail_on_violation"`
		Params  map[string]any
	}
}

// sampled is what says of which form a value is.
type sampled struct {
	Type       string
	Properties map[string]sampled
	Required   any // names of properties; of a variable whether it is
	Enum       []any
	Validation struct {
		Enum    []any
		Minimum *float64
	}
}

// value is one of that form.
func (s sampled) value() any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	if len(s.Validation.Enum) > 0 {
		return s.Validation.Enum[0]
	}
	switch s.Type {
	case "integer", "number":
		if s.Validation.Minimum != nil {
			return *s.Validation.Minimum
		}
		return 7
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		all := map[string]any{}
		names, _ := s.Required.([]any)
		for _, name := range names {
			all[name.(string)] = s.Properties[name.(string)].value()
		}
		return all
	}
	return "some text"
}

// offered are the names of the tools that a model has to be told of, in order.
func (f packFile) offered(key string) (all []string) {
	p := f.Prompts[key]
	if p.Policy.Choice == "none" {
		return nil
	}
	var agents []string
	for _, name := range p.Tools {
		if slices.Contains(p.Policy.Blocklist, name) {
			continue
		}
		if _, ok := f.Tools[name]; ok {
			all = append(all, name)
		} else {
			agents = append(agents, name)
		}
	}
	_, member := f.Agents.Members[key]
	if member && !slices.ContainsFunc(p.Tools, func(name string) bool { _, tool := f.Tools[name]; return !tool }) {
		for name := range f.Agents.Members {
			if !slices.Contains(p.Policy.Blocklist, name) {
				agents = append(agents, name)
			}
		}
		slices.Sort(agents)
	}
	for _, name := range agents {
		if name != key {
			all = append(all, "transfer_to_"+name)
		}
	}
	if len(f.Skills) > 0 && !slices.Contains(p.Policy.Blocklist, "skill") {
		all = append(all, "skill")
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+).*?\}\}`)

// template is a prompt's, with its fragments in place.
func (f packFile) template(key string) string {
	text := f.Prompts[key].Template
	for range f.Fragments { // fragments may have fragments
		for name, body := range f.Fragments {
			text = strings.ReplaceAll(text, "{{fragments."+name+"}}", body)
		}
	}
	return text
}

// undeclared are the variables that a prompt's template has and the prompt does not: the program's own runtime was to know them.
func (f packFile) undeclared(key string) (all []string) {
	declared := map[string]bool{}
	for _, v := range f.Prompts[key].Variables {
		declared[v.Name] = true
	}
	for _, found := range placeholder.FindAllStringSubmatch(f.template(key), -1) {
		if name := found[1]; !declared[name] {
			all = append(all, name)
		}
	}
	return all
}

// refused are texts that validators refuse, by their type.
var refused = map[string]func(params map[string]any) string{
	"banned_words":    func(p map[string]any) string { return fmt.Sprint("It is ", p["words"].([]any)[0], " here.") },
	"max_length":      func(map[string]any) string { return strings.Repeat("much too long ", 10_000) },
	"max_sentences":   func(map[string]any) string { return strings.Repeat("Very short. ", 1000) },
	"pii_leakage":     func(map[string]any) string { return "Write to ada@example.com." },
	"required_fields": func(map[string]any) string { return "none of them" },
}

// packsOfAll are packs of ours, and with PAWL_FIXTURES those that others wrote.
func packsOfAll(t *testing.T) []string {
	t.Helper()
	all := []string{"testdata/support.pack.json", "pack/testdata/full.pack.json", packOf(t, `"system_template": "You are the {{ desk }}{{fragments.tone}}", "tools": ["look", "billing", "pay"], "tool_policy": {"blocklist": ["pay"]},
			"variables": [{"name": "desk", "type": "string", "required": true, "example": "front desk"}]},
		"billing": {"id": "billing", "name": "Billing", "version": "1.0.0", "system_template": "You bill.", "tools": ["pay"], "tool_policy": {"tool_choice": "none"}},
		"night": {"id": "night", "name": "Night", "version": "1.0.0", "system_template": "You wait."`,
		`"fragments": {"tone": " and kind."}, "agents": {"entry": "chat", "members": {"chat": {}, "billing": {}, "night": {}}},`)}
	dir := os.Getenv("PAWL_FIXTURES")
	if dir == "" {
		t.Log("the packs of others are left out: set PAWL_FIXTURES to a directory with promptpack/packs/*.json")
		return all
	}
	found, err := filepath.Glob(filepath.Join(dir, "promptpack", "packs", "*.json"))
	if err != nil || len(found) < 20 {
		t.Fatalf("%d packs, %v: unset PAWL_FIXTURES, or give the absolute path of a directory that has them", len(found), err)
	}
	return append(all, found...)
}

func TestEveryPromptOfEveryPackConverses(t *testing.T) {
	prompts := 0
	for _, file := range packsOfAll(t) {
		if strings.Contains(file, "guardrail-bad-type") {
			_, err := pawl.Open(file, "chat", pawl.WithModel(scripted.New(scripted.Text("x"))))
			var wrong *pack.Error
			if !errors.As(err, &wrong) || !errdefs.Validation.Is(err) || wrong.File != file || len(wrong.Problems) != 1 || wrong.Problems[0].Path != "prompts.chat.validators[0].type" || !strings.Contains(wrong.Problems[0].Reason, `no validator "pii_leakge"`) {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var f packFile
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for key := range f.Prompts {
			prompts++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".pack.json")+"/"+key, func(t *testing.T) { f.converses(t, file, key) })
		}
	}
	if os.Getenv("PAWL_FIXTURES") != "" && prompts < 20 {
		t.Errorf("only %d prompts", prompts)
	}
}

// open opens a conversation by a prompt, with all that it needs.
func (f packFile) open(t *testing.T, file, key string, m model.Model, called *[]string) *pawl.Conversation {
	t.Helper()
	c, err := pawl.Open(file, key, pawl.WithModel(m))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for name, p := range f.Prompts { // those of the agents that it may come to, too
		for _, v := range p.Variables {
			value := v.Example
			if value == nil {
				value = v.Default
			}
			if value == nil {
				value = v.value()
			}
			if v.Name == "customer" && name == "support" { // of which its template wants the name
				value = map[string]any{"name": "Ada"}
			}
			c.SetVar(v.Name, value)
		}
	}
	for _, name := range f.undeclared(key) {
		if _, err := c.Send(t.Context(), "a"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "{{"+name) {
			t.Errorf("nobody has set %s, and the error is %v", name, err)
		}
	}
	for _, name := range f.undeclared(key) {
		c.SetVar(name, "what only the program knows")
	}
	for name := range f.Tools {
		c.OnTool(name, func(args map[string]any) (any, error) {
			b, err := json.Marshal(args)
			*called = append(*called, name+" "+string(b))
			return map[string]any{"answered_by": name}, err
		})
	}
	return c
}

func (f packFile) converses(t *testing.T, file, key string) {
	p := f.Prompts[key]
	// The first turn calls each tool of the pack's that the prompt has.
	tools := f.offered(key)
	var calls []scripted.Call
	var wantCalled, wantResults []string
	for _, name := range tools {
		if tool, ok := f.Tools[name]; ok {
			input, err := json.Marshal(tool.Parameters.value())
			if err != nil {
				t.Fatal(err)
			}
			if tool.Parameters.Type == "" {
				input = []byte("{}")
			}
			calls = append(calls, callOf("c_"+name, name, string(input)))
			wantCalled = append(wantCalled, name+" "+string(input))
			wantResults = append(wantResults, fmt.Sprintf("c_%s %s false {%q:%q}", name, name, "answered_by", name))
		}
	}
	const first, second, third = `{"response": "The first answer"}`, "The second answer", "The third answer"
	turns := []scripted.Turn{scripted.Text(first), scripted.Text(second), scripted.Text(third)}
	if len(calls) > 0 {
		turns = append([]scripted.Turn{scripted.Calls(calls...)}, turns...)
	}
	m := listening(turns...)
	var called []string
	c := f.open(t, file, key, m, &called)

	if resp := send(t, c, "The first question"); resp.Text() != first || len(resp.Violations) > 0 {
		t.Errorf("got %q, %v", resp.Text(), resp.Violations)
	}
	slices.Sort(called)
	slices.Sort(wantCalled)
	wantLines(t, called, wantCalled...)
	wantLines(t, results(t, c), wantResults...)
	if got := send(t, c, "The second question").Text(); got != second {
		t.Errorf("got %q", got)
	}
	if got, err := streamText(t, c, "The third question"); got != third || err != nil {
		t.Errorf("streamed %q, %v", got, err)
	}

	all := m.asked()
	if len(all) != len(turns) {
		t.Fatalf("the model was called %d times, want %d", len(all), len(turns))
	}
	for i, req := range all {
		rest := req.System
		for _, piece := range placeholder.Split(f.template(key), -1) {
			_, after, ok := strings.Cut(rest, piece)
			if !ok {
				t.Errorf("call %d: the prompt has no %q: %q", i, piece, req.System)
			}
			rest = after
		}
		if strings.Contains(req.System, "{{") {
			t.Errorf("call %d: the prompt is %q", i, req.System)
		}
		var names []string
		for _, tool := range req.Tools {
			names = append(names, tool.Name)
			if own, ok := f.Tools[tool.Name]; ok && tool.Description != own.Description {
				t.Errorf("%s is described as %q", tool.Name, tool.Description)
			}
		}
		wantLines(t, names, tools...)
		if want, ok := p.Parameters["temperature"]; ok && (req.Temperature == nil || *req.Temperature != want) {
			t.Errorf("call %d: temperature %v, want %v", i, req.Temperature, want)
		}
		if want, ok := p.Parameters["max_tokens"]; ok && req.MaxTokens != int(want) {
			t.Errorf("call %d: max_tokens %v, want %v", i, req.MaxTokens, want)
		}
	}
	var heard []string
	for _, msg := range all[len(all)-1].Messages.All() {
		if msg.Text() != "" {
			heard = append(heard, string(msg.Role())+": "+msg.Text())
		}
	}
	wantLines(t, heard, "user: The first question", "assistant: "+first, "user: The second question", "assistant: "+second, "user: The third question")
	f.judges(t, file, key)
}

// judges has each validator of a prompt that is enabled refuse a reply.
func (f packFile) judges(t *testing.T, file, key string) {
	t.Helper()
	for _, v := range f.Prompts[key].Validators {
		wrong, ok := refused[v.Type]
		if direction, _ := v.Params["direction"].(string); !ok || direction == "input" {
			t.Errorf("nothing is known that %s would refuse: say so in this test", v.Type)
			continue
		}
		var called []string
		c := f.open(t, file, key, scripted.New(scripted.Text(wrong(v.Params))), &called)
		resp, err := c.Send(t.Context(), "a")
		found := resp != nil && slices.ContainsFunc(resp.Violations, func(got *guard.Violation) bool { return got.Guard.Type == v.Type })
		on := v.Enabled == nil || *v.Enabled
		if found != on || errdefs.PolicyDenied.Is(err) != (on && v.Fail) {
			t.Errorf("%s: it is enabled %v and fails %v, and the turn ends with %v", v.Type, on, v.Fail, err)
		}
	}
}

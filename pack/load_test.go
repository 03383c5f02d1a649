package pack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func full(t testing.TB) *pack.Pack {
	t.Helper()
	p, err := pack.Load("testdata/full.pack.json")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// minimal is a pack of one prompt with more members, in JSON.
func minimal(more string) []byte {
	return fmt.Appendf(nil, `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
"prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", %s}}}`, more)
}

// parsed is the prompt of a minimal pack.
func parsed(t testing.TB, more string) *pack.Prompt {
	t.Helper()
	p, err := pack.Parse(minimal(more))
	if err != nil {
		t.Fatal(err)
	}
	return p.Prompts["chat"]
}

// written is a value of the pack's types as the file has it, without what is empty.
func written(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return written(v.Elem())
	case reflect.Interface:
		return v.Interface()
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("json")
			if name == "" || name == "-" || v.Field(i).IsZero() && name != "required" {
				continue
			}
			below := written(v.Field(i))
			if name == "*" {
				for k, e := range below.(map[string]any) {
					out[k] = e
				}
				continue
			}
			out[name] = below
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[k.String()] = written(v.MapIndex(k))
		}
		return out
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			var out any
			if err := json.Unmarshal(raw, &out); err != nil {
				panic(err)
			}
			return out
		}
		out := []any{}
		for i := range v.Len() {
			out = append(out, written(v.Index(i)))
		}
		return out
	}
	return v.Interface()
}

// generic makes every number a float64.
func generic(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryFieldOfTheFormatIsTypedAndKept(t *testing.T) {
	var want map[string]any
	if err := json.Unmarshal(file(t, "full.pack.json"), &want); err != nil {
		t.Fatal(err)
	}
	got := generic(t, written(reflect.ValueOf(full(t)).Elem())).(map[string]any)
	got["skills"].([]any)[0] = "./skills/orders" // a skill that is a path is one with a path
	policy := map[string]any{"tool_choice": "auto", "max_rounds": 5.0, "max_tool_calls_per_turn": 10.0}
	want["prompts"].(map[string]any)["closing"].(map[string]any)["tool_policy"] = policy
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The fields of the types are those of the schema: what one of the two lacks is lost, or refused.
func TestTheTypesHaveTheFieldsOfTheSchema(t *testing.T) {
	var schema struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(pack.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	check := func(of any, properties map[string]any) {
		t.Helper()
		var fields, want []string
		typ := reflect.TypeOf(of)
		for i := range typ.NumField() {
			if name := typ.Field(i).Tag.Get("json"); name != "" && name != "-" && name != "*" {
				fields = append(fields, name)
			}
		}
		for name := range properties {
			want = append(want, name)
		}
		slices.Sort(fields)
		slices.Sort(want)
		if d := cmp.Diff(want, fields); d != "" {
			t.Errorf("%T: %s", of, d)
		}
	}
	check(pack.Pack{}, schema.Properties)
	for name, of := range map[string]any{
		"Prompt": pack.Prompt{}, "Variable": pack.Variable{}, "Tool": pack.Tool{}, "ToolPolicy": pack.ToolPolicy{}, "Middleware": pack.Middleware{}, "Parameters": pack.Parameters{},
		"Validator": pack.Validator{}, "TestedModel": pack.TestedModel{}, "ModelOverride": pack.ModelOverride{}, "Media": pack.Media{}, "Image": pack.ImageMedia{}, "Sound": pack.SoundMedia{},
		"Document": pack.DocumentMedia{}, "OtherMedia": pack.OtherMedia{}, "MediaExample": pack.MediaExample{}, "ContentPart": pack.ContentPart{}, "MediaReference": pack.MediaReference{},
		"Eval": pack.Eval{}, "Metric": pack.Metric{}, "Workflow": pack.Workflow{}, "State": pack.State{}, "Artifact": pack.Artifact{}, "Budget": pack.WorkflowBudget{}, "Agents": pack.Agents{},
		"Agent": pack.Agent{},
	} {
		check(of, schema.Defs[name].Properties)
	}
}

func TestDefaultsAreTheSpecifications(t *testing.T) {
	p := parsed(t, `"system_template": "x", "validators": [{"type": "pii_leakage"}], "evals": [{"id": "a", "type": "contains", "trigger": "every_turn"}],
		"media": {"enabled": true, "image": {}, "document": {}}`)
	if got := p.ToolPolicy; got.ToolChoice != "auto" || got.MaxRounds != 5 || got.MaxToolCallsPerTurn != 10 {
		t.Errorf("%+v", got)
	}
	if !p.Validators[0].Enabled || p.Validators[0].FailOnViolation || !p.Evals[0].Enabled || p.Evals[0].SamplePercentage != 5 {
		t.Errorf("%+v", p)
	}
	if p.Media.Image.DefaultDetail != "auto" || p.Media.Document.ExtractionMode != "text" {
		t.Errorf("%+v", p.Media)
	}
	if p := parsed(t, `"system_template": "x", "tool_policy": {"max_rounds": 2.0}`); p.ToolPolicy.MaxRounds != 2 || p.ToolPolicy.MaxToolCallsPerTurn != 10 {
		t.Errorf("%+v", p.ToolPolicy)
	}
}

func TestWhatIsReadOfAPrompt(t *testing.T) {
	p := full(t)
	support, err := p.Prompt("support")
	if err != nil {
		t.Fatal(err)
	}
	tools := p.ToolsOf(support)
	if len(tools) != 1 || tools[0].Name != "lookup_order" {
		t.Errorf("the blocklist has no effect: %v", tools)
	}
	if m := tools[0].Model(); m.Name != "lookup_order" || m.Description != "Look up an order." || !strings.Contains(string(m.Schema), `"order_id"`) {
		t.Errorf("%+v", m)
	}
	if m := p.Tools["refund"].Model(); !json.Valid(m.Schema) || !strings.Contains(string(m.Schema), `"object"`) {
		t.Errorf("%s", m.Schema)
	}
	for choice, want := range map[string]model.ToolChoice{"auto": model.ToolsAuto, "required": model.ToolsRequired, "none": model.ToolsNone} {
		if got := (pack.ToolPolicy{ToolChoice: choice}).Choice(); got != want {
			t.Errorf("%s: %q", choice, got)
		}
	}
	none := *support
	none.ToolPolicy.ToolChoice = "none"
	if tools := p.ToolsOf(&none); len(tools) != 0 {
		t.Error(tools)
	}
	if _, err := p.Prompt("suppor"); !errors.Is(err, errdefs.NotFound) || !strings.Contains(err.Error(), "did you mean support?") {
		t.Error(err)
	}
	if a, ok := p.Agent("support"); !ok || a.Description != "Orders" {
		t.Errorf("%+v", a)
	}
	if _, ok := p.Agent("closing"); ok {
		t.Error("closing is no agent")
	}
	if guards := support.Guards(); len(guards) != 2 || guards[0].Message != "No." || !guards[0].FailOnViolation || guards[1].FailOnViolation {
		t.Errorf("%v", guards)
	}
	s := support.Parameters.Settings()
	if *s.Temperature != 0.7 || s.MaxTokens != 1500 || *s.TopP != 0.9 || *s.TopK != 40 || *s.FrequencyPenalty != 0.5 || *s.PresencePenalty != -0.5 {
		t.Errorf("%+v", s)
	}
}

func TestAnAgentHasItsPromptsDescription(t *testing.T) {
	data := strings.Replace(string(minimal(`"system_template": "x", "description": "Talks."`)), `"prompts"`, `"agents": {"entry": "chat", "members": {"chat": {}}}, "prompts"`, 1)
	p, err := pack.Parse([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := p.Agent("chat"); !ok || a.Description != "Talks." || !slices.Equal(a.InputModes, []string{"text/plain"}) {
		t.Errorf("%+v", a)
	}
}

func TestAgentsThatAPromptCanHandOverTo(t *testing.T) {
	prompt := func(id, more string) string {
		return fmt.Sprintf(`"%s": {"id": "%s", "name": "N", "version": "1.0.0", "system_template": "x"%s}`, id, id, more)
	}
	p, err := pack.Parse([]byte(`{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
		"tools": {"look": {"name": "look", "description": "Look."}}, "agents": {"entry": "plan", "members": {"plan": {}, "write": {}, "review": {}, "calm": {}}}, "prompts": {` + strings.Join([]string{
		prompt("plan", `, "tools": ["write", "look"], "tool_policy": {"tool_choice": "required"}`), prompt("write", `, "tools": ["look"]`), prompt("review", `, "tool_policy": {"blocklist": ["plan"]}`),
		prompt("calm", `, "tools": ["write"], "tool_policy": {"tool_choice": "none"}`), prompt("apart", `, "tools": ["look"]`), prompt("caller", `, "tools": ["review"], "tool_policy": {"tool_choice": "required"}`),
	}, ", ") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plan": "write", "write": "calm plan review", "review": "calm write", "calm": "", "apart": "", "caller": "review"} {
		if got := strings.Join(p.AgentsOf(p.Prompts[name]), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if tools := p.ToolsOf(p.Prompts["plan"]); len(tools) != 1 || tools[0].Name != "look" {
		t.Errorf("an agent is no tool of the pack: %v", tools)
	}
	if got := full(t).AgentsOf(full(t).Prompts["support"]); len(got) != 0 {
		t.Error(got)
	}
}

func TestAnOverrideIsOfAModelByItsName(t *testing.T) {
	p := parsed(t, `"system_template": "Base {{a}}", "variables": [{"name": "a", "type": "string", "required": true}], "parameters": {"temperature": 0.5, "top_k": 3, "max_tokens": 5},
		"model_overrides": {"claude-3-opus": {"system_template_prefix": "<{{a}}>", "system_template_suffix": "!", "parameters": {"temperature": 0.1, "top_k": null}},
			"claude-3-opus-20240229": {"system_template": "Old"}, "openai/gpt-4": {"system_template": "Four {{a}}", "system_template_suffix": "."}, "": {"system_template": "none"}}`)
	for model, want := range map[string]string{
		"": "Base x", "claude-3": "Base x", "claude-3-opus": "<x>Base x!", "anthropic/claude-3-opus": "<x>Base x!", "claude-3-opus-20250101": "<x>Base x!", "claude-3-opus-latest": "<x>Base x!",
		"claude-3-opus-2025-01-01": "<x>Base x!", "claude-3-opus-mini": "Base x", "claude-3-opus-20240229": "Old", "anthropic/claude-3-opus-20240229": "Old", "openai/gpt-4": "Four x.", "gpt-4": "Base x",
	} {
		if got, err := p.Render(model, map[string]any{"a": "x"}); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", model, got, err, want)
		}
	}
	s := p.ParametersFor("claude-3-opus").Settings()
	if *s.Temperature != 0.1 || s.TopK != nil || s.MaxTokens != 5 {
		t.Errorf("%+v", s)
	}
	zero := 0.0
	if s := (pack.Parameters{FrequencyPenalty: &zero, PresencePenalty: &zero}).Settings(); s.FrequencyPenalty != nil || s.PresencePenalty != nil {
		t.Errorf("%+v", s)
	}
	if s := p.ParametersFor("other").Settings(); *s.Temperature != 0.5 || *s.TopK != 3 {
		t.Errorf("%+v", s)
	}
}

func TestWhatHasNoEffectIsWarnedOfByName(t *testing.T) {
	want := []string{
		"skills[0]: it has no effect: paths start at the pack's file, and this pack is in none", "skills[1]: it has no effect: packages of skills can't be fetched", "workflow.engine.hint: it has no effect: nobody knows what it means",
		"prompts.support.pipeline: ", "prompts.support.variables[1].binding: ",
		"prompts.support.media.image.default_detail: ", "prompts.support.media.image.require_caption: ", "prompts.support.media.audio.max_duration_sec: ", "prompts.support.media.audio.require_metadata: ",
		"prompts.support.media.video.max_duration_sec: ", "prompts.support.media.video.require_metadata: ", "prompts.support.media.document.max_pages: ",
		"prompts.support.media.document.extraction_mode: ", "prompts.support.media.document.require_metadata: ", "prompts.support.media.model3d.require_metadata: ",
		"prompts.support.media.model3d.validation_params: ", "prompts.support.media.model3d.unit: it has no effect: nobody knows what it means", "prompts.support.media.examples: ", "agents.members.support.input_modes: ", "agents.members.support.output_modes: ",
	}
	problems, warnings := pack.Validate(file(t, "full.pack.json"))
	if len(problems) > 0 {
		t.Error(problems)
	}
	for _, w := range want {
		i := slices.IndexFunc(warnings, func(p pack.Problem) bool { return strings.HasPrefix(p.String(), w) })
		if i < 0 {
			t.Errorf("no warning %s", w)
			continue
		}
		if warnings[i].Line == 0 {
			t.Errorf("%s has no place", w)
		}
		warnings = slices.Delete(warnings, i, i+1)
	}
	for _, w := range warnings {
		t.Errorf("a warning more: %s", w)
	}
	quiet := minimal(`"system_template": "x", "parameters": {"presence_penalty": 0}, "media": {"enabled": true, "image": {"default_detail": "auto", "require_caption": false}, "audio": {"require_metadata": false}, "examples": []}`)
	if _, warnings := pack.Validate(quiet); len(warnings) > 0 {
		t.Errorf("what asks for nothing is warned of: %v", warnings)
	}
	_, warnings = pack.Validate([]byte(strings.Replace(string(minimal(`"system_template": "x"`)), `"version": "v1"`, `"version": "v2", "features": ["loops", "filters", "fragments", "conditionals"]`, 1)))
	if len(warnings) != 4 || !strings.Contains(fmt.Sprint(warnings), "templates have no loops") || !strings.Contains(fmt.Sprint(warnings), "template_engine.version: it has no effect") {
		t.Error(warnings)
	}
}

// Two sections of later versions are known, and only these: anything else that is unknown is a problem.
func TestOnlyCompositionsAndTheStateOfAgentsAreWarnedOf(t *testing.T) {
	with := func(root, agent string) []byte {
		return []byte(strings.Replace(string(minimal(`"system_template": "x"`)), `"prompts"`, root+`"agents": {"entry": "chat", "members": {"chat": {`+agent+`}}}, "prompts"`, 1))
	}
	problems, warnings := pack.Validate(with(`"compositions": {"a": 1}, `, `"state": "x"`))
	if len(problems) > 0 || len(warnings) != 2 || warnings[0].Path != "compositions" || warnings[1].Path != "agents.members.chat.state" {
		t.Error(problems, warnings)
	}
	problems, _ = pack.Validate(with(`"state": "x", "composition": {}, `, `"compositions": {}`))
	if len(problems) != 3 {
		t.Error(problems)
	}
}

func TestAFileThatIsNotThereOrNoPackIsAnErrorOfItsClass(t *testing.T) {
	dir := t.TempDir()
	if _, err := pack.Load(filepath.Join(dir, "none.json")); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
	if _, err := pack.Load(dir); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
	path := filepath.Join(dir, "a.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pack.Load(path)
	var wrong *pack.Error
	if !errors.As(err, &wrong) || !errors.Is(err, errdefs.Validation) || wrong.File != path || len(wrong.Problems) != 5 || !strings.Contains(err.Error(), "pack: load "+path+": 5 problems:\n  id: it is missing: add it, such as \"customer-support\"") {
		t.Error(err)
	}
	if err := os.WriteFile(path, make([]byte, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Load(path); err == nil || !strings.Contains(err.Error(), "$: it has more than 8388608 bytes") {
		t.Error(err)
	}
}

func TestHostileTextsAreRefusedInTime(t *testing.T) {
	many := strings.Builder{}
	for i := range 50_000 {
		fmt.Fprintf(&many, `"k%d": 1, `, i)
	}
	doubling := strings.Builder{}
	for i := range 64 {
		fmt.Fprintf(&doubling, `"f%d": "{{fragments.f%d}}{{fragments.f%d}}", `, i, i+1, i+1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"deep":                   {strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "nested more than 100 deep"},
		"very deep":              {strings.Repeat(`[`, 1<<20), "it is no JSON"},
		"many unknown fields":    {"{" + many.String() + `"id": "x"}`, "k0: there is no such field"},
		"a number that explodes": {`{"id": 1e999999999}`, "id: the number is out of range"},
		"fragments that double":  {strings.Replace(string(minimal(`"system_template": "{{fragments.f0}}"`)), `"prompts"`, `"fragments": {`+doubling.String()+`"f64": "x"}, "prompts"`, 1), "with their fragments the pack's templates have more than"},
	} {
		t.Run(name, func(t *testing.T) {
			problems, _ := pack.Validate([]byte(c.text))
			if text := fmt.Sprint(problems); !strings.Contains(text, c.want) || len(problems) > 200 {
				t.Errorf("%d problems: %.300s", len(problems), text)
			}
		})
	}
}

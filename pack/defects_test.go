package pack_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Each test here is named after a defect that the format's first runtime has, and would fail on it.

func TestDefectVariablesAreFrozen(t *testing.T) {
	p := prompt(t, "T={{topic}}")
	for _, topic := range []string{"one", "two", "none"} {
		if got, err := p.Render("", vars{"topic": topic}); got != "T="+topic || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestDefectPromptReplacedOnMissingVariable(t *testing.T) {
	p := prompt(t, "You help {{name}}.", `{"name": "name", "type": "string", "required": true}`)
	got, err := p.Render("", nil)
	if got != "" || !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), "name is required") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectUnresolvedPlaceholderGivesTheRawTemplate(t *testing.T) {
	got, err := prompt(t, "You help {{name}}.").Render("", nil)
	if got != "" || err == nil || !strings.Contains(err.Error(), "{{name}} has no value") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectTemplateInjection(t *testing.T) {
	p := prompt(t, "You help {{name}}. {{secret}}")
	got, err := p.Render("", vars{"name": "{{secret}} {{fragments.x}} {{name}}", "secret": "S3CR3T"})
	if got != "You help {{secret}} {{fragments.x}} {{name}}. S3CR3T" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectSpacesInPlaceholdersStay(t *testing.T) {
	if got, err := prompt(t, "{{ name }}").Render("", vars{"name": "Ada"}); got != "Ada" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectEmptyStringCountsAsMissing(t *testing.T) {
	if got, err := prompt(t, "[{{name}}]", `{"name": "name", "type": "string", "required": true}`).Render("", vars{"name": ""}); got != "[]" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectDefaultOfAnObjectIsWrittenAsGoHasIt(t *testing.T) {
	if got, err := prompt(t, "{{m}}", `{"name": "m", "type": "object", "required": false, "default": {"a": 1}}`).Render("", nil); got != `{"a":1}` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectVariableTypesAndValidationAreIgnored(t *testing.T) {
	p := prompt(t, "{{n}}", `{"name": "n", "type": "number", "required": true, "validation": {"maximum": 5}}`)
	for _, v := range []any{"not-a-number", 6} {
		if got, err := p.Render("", vars{"n": v}); err == nil {
			t.Errorf("%v: %q", v, got)
		}
	}
}

func TestDefectFragmentsAreIgnored(t *testing.T) {
	got, err := full(t).Render("support", vars{"age": 20, "customer": vars{"name": "Ada"}})
	if err != nil || got != "You work for TechCo. Be kind. You help Ada, who is 20. First: orders" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDefectToolPolicyIsIgnored(t *testing.T) {
	p := full(t)
	support := p.Prompts["support"]
	if tp := support.ToolPolicy; tp.ToolChoice != "required" || tp.MaxRounds != 3 || tp.MaxToolCallsPerTurn != 7 {
		t.Errorf("%+v", tp)
	}
	if tools := p.ToolsOf(support); slices.ContainsFunc(tools, func(t pack.Tool) bool { return t.Name == "refund" }) {
		t.Error("a blocked tool is offered")
	}
}

func TestDefectModelOverridesAreLost(t *testing.T) {
	v := vars{"age": 20, "customer": vars{"name": "Ada"}}
	p := full(t).Prompts["support"]
	if got, err := p.Render("claude-3-opus", v); !strings.HasPrefix(got, "<task>\nYou work") || !strings.HasSuffix(got, "orders\n</task>") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := p.Render("gpt-4", v); got != "Short. 20" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got := p.ParametersFor("claude-3-opus"); *got.Temperature != 0.2 || *got.TopP != 0.9 {
		t.Errorf("%+v", got)
	}
}

func TestDefectParametersButTwoAreNotEvenParsed(t *testing.T) {
	p := full(t).Prompts["support"].Parameters
	if *p.TopP != 0.9 || *p.TopK != 40 || *p.FrequencyPenalty != 0.5 || *p.PresencePenalty != -0.5 {
		t.Errorf("%+v", p)
	}
}

func TestDefectEvalThresholdAndWhenDecodeToNothing(t *testing.T) {
	e := full(t).Prompts["support"].Evals[0]
	if e.Threshold.Operator != "gte" || *e.Threshold.Value != 0.8 || e.When["has_variable"] != "age" {
		t.Errorf("%+v", e)
	}
}

func TestDefectAnEditedPackIsNeverReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	info := func(text string) (string, error) {
		t.Helper()
		if err := os.WriteFile(path, minimal(`"system_template": "`+text+`"`), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := pack.Load(path)
		if err != nil {
			return "", err
		}
		return p.Render("chat", nil)
	}
	for _, text := range []string{"one", "two", "one"} { // of one length, maybe in one tick of the file's clock
		if got, err := info(text); got != text || err != nil {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if _, err := info("{{"); err == nil {
		t.Error("a pack that was right stays so")
	}
	if got, err := info("two"); got != "two" || err != nil {
		t.Errorf("a pack that was wrong stays so: %q, %v", got, err)
	}
}

// What one Loader takes as right, because it knows more validators, no other one does; and nothing registered is global.
func TestDefectWhatOneCallerAcceptsIsAcceptedForAll(t *testing.T) {
	data := minimal(`"system_template": "x", "validators": [{"type": "house_rule"}]`)
	knows := pack.Loader{Validators: guard.Types{"house_rule": func(guard.Params) (guard.Rule, error) {
		return guard.RuleFunc(func(context.Context, string) (string, error) { return "no", nil }), nil
	}}}
	p, err := knows.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Prompts["chat"].Guards()[0].Judge(t.Context(), "x"); v == nil {
		t.Error("it is not asked")
	}
	if _, err := pack.Parse(data); err == nil {
		t.Error("another loader knows it, too")
	}
}

func TestDefectConversationsShareWhatTheyChange(t *testing.T) {
	a, b := full(t), full(t)
	guards := a.Prompts["support"].Guards()
	guards[0] = nil
	if b.Prompts["support"].Guards()[0] == nil {
		t.Error("one caller's list is another's")
	}
	s := pack.Schema()
	s[0] = 'x'
	if pack.Schema()[0] != '{' {
		t.Error("one caller's schema is another's")
	}
}

func TestDefectAValidatorWithoutEnabledIsRefusedOrOff(t *testing.T) {
	p := parsed(t, `"system_template": "x", "validators": [{"type": "banned_words", "params": {"words": ["bad"]}}, {"type": "banned_words", "enabled": false, "params": {"words": ["bad"]}}]`)
	if guards := p.Guards(); len(guards) != 1 || guards[0].Judge(t.Context(), "bad") == nil {
		t.Error(guards)
	}
}

func TestDefectFailOnViolationIsIgnored(t *testing.T) {
	p := parsed(t, `"system_template": "x", "validators": [{"type": "banned_words", "params": {"words": ["bad"]}}]`)
	f := guard.NewFilter(p.Guards()...)
	if show, err := f.Write("a bad word"); show != "a bad word" || err != nil || len(f.Noted()) != 1 {
		t.Errorf("%q, %v, %v", show, err, f.Noted())
	}
}

func TestDefectTheGuardComesAfterTheChunk(t *testing.T) {
	p := parsed(t, `"system_template": "x", "validators": [{"type": "banned_words", "fail_on_violation": true, "message": "No.", "params": {"words": ["banned"]}}]`)
	f := guard.NewFilter(p.Guards()...)
	shown := ""
	var err error
	for _, chunk := range []string{"this is", " ban", "ned", " text"} {
		var show string
		show, err = f.Write(chunk)
		if shown += show; err != nil {
			break
		}
	}
	var v *guard.Violation
	if shown != "this is " || !errors.As(err, &v) || v.Message() != "No." {
		t.Errorf("%q, %v", shown, err)
	}
}

func TestDefectTruncationCutsInTheMiddleOfACharacter(t *testing.T) {
	p := parsed(t, `"system_template": "x", "validators": [{"type": "max_length", "fail_on_violation": true, "params": {"max_characters": 3}}]`)
	f := guard.NewFilter(p.Guards()...)
	if show, err := f.Write("日本語だ"); show != "日本語" || !utf8.ValidString(show) || err == nil {
		t.Errorf("%q, %v", show, err)
	}
}

func TestDefectBadParametersOfAValidatorAreSkipped(t *testing.T) {
	if _, err := pack.Parse(minimal(`"system_template": "x", "validators": [{"type": "length"}]`)); err == nil {
		t.Error("a limit without a number is taken")
	}
}

func TestDefectErrorsCantBeToldApart(t *testing.T) {
	p := full(t)
	if _, err := p.Render("nobody", nil); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
	_, err := pack.Load("testdata/wrong/unknown_field.json")
	var wrong *pack.Error
	if !errors.As(err, &wrong) || wrong.Problems[0].Path != "promts" {
		t.Error(err)
	}
}

func TestDefectUnknownFieldsAreDropped(t *testing.T) {
	problems, _ := pack.Validate(minimal(`"system_template": "x", "tool_polisy": {}`))
	if len(problems) != 1 || problems[0].Path != "prompts.chat.tool_polisy" {
		t.Error(problems)
	}
}

func TestDefectAToolThatIsNotThereIsFoundWhenItIsCalled(t *testing.T) {
	problems, _ := pack.Validate(minimal(`"system_template": "x", "tools": ["gone"]`))
	if len(problems) != 1 || problems[0].Path != "prompts.chat.tools[0]" {
		t.Error(problems)
	}
}

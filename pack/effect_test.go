package pack_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/pack"
)

// What is done about each field of the format: it has an effect, which a test shows; or it tells people and programs something and asks for nothing; or it is warned of by name. A field of the schema
// is in one of the three. In a path * is any name or index, and {a,b} is each of them; only what is warned of stands for all that is below it.
var (
	acted = map[string]string{
		"fragments": "pack/template_test.go TestFragmentsAreAPartOfTheTemplate", "template_engine.syntax": "pack/wrong_test.go TestEachWrongPackHasItsOneProblem",
		"tools.*.name": "conversation_test.go TestHandlersAnswerTheToolsOfThePack", "tools.*.description": "pack/load_test.go TestWhatIsReadOfAPrompt", "tools.*.parameters.{type,properties,required}": "conversation_test.go TestHandlersAnswerTheToolsOfThePack",
		"agents.members.*.description": "conversation_model_test.go TestAgentsOfThePackHandOverToEachOther", "skills": "conversation_skills_test.go TestSkillsAreListedInOrderAndTheSameInEachTurn",
		"skills.*.path": "pack/skill_test.go TestTheSkillsOfAPackAreThoseThatItsEntriesLeadTo", "skills.*.preload": "conversation_skills_test.go TestAPreloadedSkillIsInThePromptAtOnce",
		"skills.*.name": "conversation_skills_test.go TestASkillIsReadWithItsFilesAndNothingElse", "skills.*.description": "conversation_skills_test.go TestSkillsAreListedInOrderAndTheSameInEachTurn",
		"skills.*.instructions": "conversation_skills_test.go TestASkillIsReadWithItsFilesAndNothingElse",

		"prompts.*.system_template": "conversation_test.go TestDefectVariablesAreFrozen", "prompts.*.description": "pack/load_test.go TestAnAgentHasItsPromptsDescription",
		"prompts.*.tools": "conversation_test.go TestHandlersAnswerTheToolsOfThePack", "prompts.*.tool_policy.{tool_choice,max_rounds,max_tool_calls_per_turn,blocklist}": "conversation_test.go TestDefectToolPolicyIsIgnored",
		"prompts.*.parameters.{temperature,max_tokens,top_p,top_k,frequency_penalty,presence_penalty}": "conversation_test.go TestDefectParametersAndOverridesAreIgnored", "prompts.*.model_overrides.*.{system_template,system_template_prefix,system_template_suffix}": "pack/load_test.go TestAnOverrideIsOfAModelByItsName",
		"prompts.*.model_overrides.*.parameters.{temperature,max_tokens,top_p,top_k,frequency_penalty,presence_penalty}": "pack/load_test.go TestAnOverrideIsOfAModelByItsName",
		"prompts.*.variables.*.name": "pack/template_test.go TestWhatStandsInPlaceOfAPlaceholder", "prompts.*.variables.*.type": "pack/template_test.go TestVariablesAreWhatTheyAreDeclaredToBe",
		"prompts.*.variables.*.required": "pack/template_test.go TestDefaultsAndRequired", "prompts.*.variables.*.default": "pack/template_test.go TestDefaultsAndRequired",
		"prompts.*.variables.*.validation.{pattern,min_length,max_length,minimum,maximum,enum}": "pack/template_test.go TestVariablesAreWhatTheyAreDeclaredToBe",
		"prompts.*.validators.*.type": "pack/guard/guard_test.go TestWhatEachTypeRefuses", "prompts.*.validators.*.params": "pack/guard/guard_test.go TestWhatEachTypeRefuses",
		"prompts.*.validators.*.enabled":           "pack/defects_test.go TestDefectAValidatorWithoutEnabledIsRefusedOrOff",
		"prompts.*.validators.*.fail_on_violation": "conversation_guard_test.go TestDefectFailOnViolationIsIgnored",
		"prompts.*.validators.*.message":           "conversation_guard_test.go TestABlockedReplyIsNeitherShownNorOnRecordAndItsMessageIs",
		"prompts.*.media.enabled":                  "pack/media_test.go TestWhichFilesAUserMaySend", "prompts.*.media.supported_types": "pack/media_test.go TestWhichFilesAUserMaySend",
		"prompts.*.media.*.allowed_formats": "pack/media_test.go TestWhichFilesAUserMaySend", "prompts.*.media.*.max_size_mb": "pack/media_test.go TestWhichFilesAUserMaySend",
		"prompts.*.media.audio.max_duration_sec":   "pack/media_test.go TestHowLongAWavFileLasts",
		"prompts.*.media.image.max_images_per_msg": "pack/media_test.go TestWhichFilesAUserMaySend",

		"evals.*.{id,enabled,groups}": "eval/pack_test.go TestWhichEvalsOfAPackAreScorers", "prompts.*.evals.*.{id,enabled,groups}": "eval/pack_test.go TestWhichEvalsOfAPackAreScorers",
		"evals.*.{type,params}": "eval/types_test.go TestWhatEachTypeOfEvalSays", "prompts.*.evals.*.{type,params}": "eval/types_test.go TestWhatEachTypeOfEvalSays",
		"evals.*.{trigger,sample_percentage}": "eval/pack_test.go TestWhatATriggerLooksAt", "prompts.*.evals.*.{trigger,sample_percentage}": "eval/pack_test.go TestWhatATriggerLooksAt",
		"evals.*.when": "eval/pack_test.go TestWhenAnEvalIsAsked", "prompts.*.evals.*.when": "eval/pack_test.go TestWhenAnEvalIsAsked",
		"evals.*.threshold.{operator,value}": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric", "prompts.*.evals.*.threshold.{operator,value}": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric",
		"evals.*.message": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric", "prompts.*.evals.*.message": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric",
		"evals.*.metric.{name,type}": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric", "prompts.*.evals.*.metric.{name,type}": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric",
		"evals.*.metric.range.{min,max}": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric", "prompts.*.evals.*.metric.range.{min,max}": "eval/pack_test.go TestAThresholdDecidesInTheRangeOfTheMetric",

		"workflow.entry": "conversation_workflow_test.go TestAWorkflowGoesByEvents", "workflow.states.*.{prompt_task,on_event,description,terminal}": "conversation_workflow_test.go TestAWorkflowGoesByEvents",
		"workflow.states.*.orchestration": "conversation_workflow_test.go TestWhoLeadsAWorkflowOn", "workflow.states.*.persistence": "conversation_workflow_test.go TestATransientStateBeginsAnew",
		"workflow.states.*.{max_visits,on_max_visits}": "conversation_workflow_test.go TestVisitsAndBudgetsBoundAWorkflow", "workflow.engine.budget.{max_total_visits,max_tool_calls}": "conversation_workflow_test.go TestVisitsAndBudgetsBoundAWorkflow",
		"workflow.engine.budget.max_wall_time_sec": "conversation_workflow_test.go TestAWorkflowHasSoMuchTime", "workflow.states.*.skills": "conversation_workflow_test.go TestAStateHasTheSkillsOfItsScope",
		"workflow.states.*.artifacts.*.{type,description,mode}": "conversation_workflow_test.go TestArtifactsOfAWorkflow",
	}
	informative = []string{
		"$schema", "id", "name", "version", "description", "metadata.{domain,language,tags}", "metadata.cost_estimate.{min_cost_usd,max_cost_usd,avg_cost_usd}", "compilation.{compiled_with,created_at,schema,source}", "agents.entry", "agents.members.*.tags", "workflow.version", // who opens a conversation names the prompt
		"prompts.*.id", "prompts.*.name", "prompts.*.version", "prompts.*.tested_models.*.{provider,model,date,success_rate,avg_tokens,avg_cost,avg_latency_ms,notes}", "prompts.*.variables.*.description", "prompts.*.variables.*.example", "evals.*.description", "prompts.*.evals.*.description",
	}
	warned = []string{
		"template_engine.version", "template_engine.features", "agents.members.*.input_modes", "agents.members.*.output_modes", "prompts.*.pipeline", "prompts.*.variables.*.binding",
		"prompts.*.media.examples", "prompts.*.media.*.default_detail", "prompts.*.media.*.require_caption", "prompts.*.media.*.max_duration_sec", "prompts.*.media.*.max_pages", "prompts.*.media.*.require_metadata",
		"prompts.*.media.*.extraction_mode", "prompts.*.media.*.validation_params", "prompts.*.media.*.max_images_per_msg",
	}
)

// leaves are the paths of the fields that a schema has.
func leaves(t *testing.T) (all []string) {
	var schema map[string]any
	if err := json.Unmarshal(pack.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var walk func(rule any, at []string)
	walk = func(rule any, at []string) {
		node, _ := rule.(map[string]any)
		if ref, ok := node["$ref"].(string); ok {
			node = schema["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		below := 0
		step := func(name string, rule any) {
			if _, ok := rule.(map[string]any); !ok {
				return
			}
			below++
			next := slices.Clip(at)
			if name != "" {
				next = append(next, name)
			}
			walk(rule, next)
		}
		for _, key := range []string{"oneOf", "anyOf", "allOf"} {
			choices, _ := node[key].([]any)
			for _, c := range choices {
				step("", c)
			}
		}
		properties, _ := node["properties"].(map[string]any)
		for name, p := range properties {
			if p == true { // anything
				p = map[string]any{}
			}
			step(name, p)
		}
		step("*", node["items"])
		step("*", node["additionalProperties"])
		if path := strings.Join(at, "."); below == 0 && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	walk(schema, nil)
	slices.Sort(all)
	return all
}

// covers reports whether an entry of a list is about a path, and how exactly. One for all has what is below it.
func covers(entry, path string, all bool) (exact int, ok bool) {
	e, p := strings.Split(entry, "."), strings.Split(path, ".")
	if len(e) > len(p) {
		return 0, false
	}
	for _, rest := range p[len(e):] {
		if !all && rest != "*" {
			return 0, false
		}
	}
	for i := range e {
		switch e[i] {
		case p[i]:
			exact += 2
		case "*":
			exact++
		default:
			return 0, false
		}
	}
	return exact, true
}

func TestEveryFieldHasAnEffectOrInformsOrIsWarnedOf(t *testing.T) {
	entries := map[string]string{}
	list := func(name, text string) {
		head, tail, _ := strings.Cut(text, "{")
		for each := range strings.SplitSeq(strings.TrimSuffix(tail, "}"), ",") {
			entry := head + each
			if entries[entry] != "" {
				t.Errorf("%s is in two lists: %s and %s", entry, entries[entry], name)
			}
			entries[entry] = name
		}
	}
	for entry := range acted {
		list("acted", entry)
	}
	for _, entry := range informative {
		list("informative", entry)
	}
	for _, entry := range warned {
		list("warned", entry)
	}
	used, all := map[string]bool{}, leaves(t)
	if len(all) < 150 {
		t.Fatalf("the schema has %d fields only", len(all))
	}
	for _, path := range all {
		best, most := "", -1
		for entry, list := range entries {
			if exact, ok := covers(entry, path, list == "warned"); ok && exact > most {
				best, most = entry, exact
			}
		}
		if best == "" {
			t.Errorf("%s: nothing is done about it: act on it and show it by a test, warn of it (pack/effect.go), or say that it only informs", path)
		}
		used[best] = true
	}
	for entry := range entries {
		if !used[entry] {
			t.Errorf("%s is no field of the schema, or something else covers it", entry)
		}
	}
}

func TestTheEffectOfAFieldIsShownByATestThatIsThere(t *testing.T) {
	for entry, by := range acted {
		file, name, _ := strings.Cut(by, " ")
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("%s: %s has no test %s: %v", entry, file, name, err)
		}
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// Each path that is said to be warned of is, where a pack has it.
func TestWhatIsSaidToBeWarnedOfIs(t *testing.T) {
	_, warnings := pack.Validate(file(t, "full.pack.json"))
	more := `"media": {"enabled": true, "image": {"default_detail": "high"}, "scan": {"validation_params": {}, "default_detail": "low", "max_images_per_msg": 1, "require_caption": true, "dpi": 300},
		"clip": {"validation_params": {}, "max_duration_sec": 1}, "book": {"validation_params": {}, "max_pages": 1, "extraction_mode": "text", "max_size_mb": 1, "allowed_formats": ["x"]}}`
	problems, w := pack.Validate([]byte(strings.Replace(string(minimal(`"system_template": "x", `+more)), `"version": "v1"`, `"version": "v2", "features": ["loops"]`, 1)))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	warnings = append(warnings, w...)
	for _, entry := range warned {
		if !slices.ContainsFunc(warnings, func(w pack.Problem) bool {
			_, ok := covers(entry, strings.TrimPrefix(index.ReplaceAllString(w.Path, ".*"), "."), true)
			return ok && strings.Contains(w.Reason, "it has no effect")
		}) {
			t.Errorf("nothing warns of %s", entry)
		}
	}
	var media []string // other types of media may have any member: each that nobody acts on is told, once
	for _, w := range w {
		if rest, ok := strings.CutPrefix(w.Path, "prompts.chat.media."); ok {
			media = append(media, rest)
		}
	}
	slices.Sort(media)
	want := strings.Fields("book.extraction_mode book.max_pages clip.max_duration_sec image.default_detail scan.default_detail scan.dpi scan.max_images_per_msg scan.require_caption")
	if d := cmp.Diff(want, media); d != "" {
		t.Error(d)
	}
}

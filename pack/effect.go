package pack

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ineffective is what a pack can ask for and nobody does yet: whoever acts on more takes a line away. In a path, * stands for any name or index; unless is a value that asks for nothing. What
// only informs (names, descriptions, metadata, tested models, what compiled the file) is no wish, and not here.
var ineffective = []struct {
	path, reason string
	unless       any
}{
	{"prompts.*.pipeline", "the stages are always the same", nil},
	{"prompts.*.variables.*.binding", "values are what the program sets, or the default", nil},
	{"prompts.*.media.*.default_detail", "models can't be told of it yet", "auto"},
	{"prompts.*.media.*.require_caption", "files have no captions yet", false},
	{"prompts.*.media.*.max_duration_sec", "how long a file lasts is looked at for audio in wav alone", nil},
	{"prompts.*.media.*.max_pages", "pages are not counted yet", nil},
	{"prompts.*.media.*.require_metadata", "files have no metadata yet", false},
	{"prompts.*.media.*.extraction_mode", "documents go to the model as they are", "raw"},
	{"prompts.*.media.*.validation_params", "nobody knows what they mean", map[string]any{}},
	{"prompts.*.media.examples", "models are not shown them yet", []any{}},
	{"agents.members.*.input_modes", "agents are reached from within the pack alone, with text", []any{"text/plain"}},
	{"agents.members.*.output_modes", "agents are reached from within the pack alone, with text", []any{"text/plain"}},
}

// features are those of templates that are not there.
var features = []string{"conditionals", "loops", "filters"}

// namedMedia are the members of media that the format names; ofOtherMedia are the members of all others, which may have any, that something is done about, or warned of.
var (
	namedMedia   = []string{"enabled", "supported_types", "image", "audio", "video", "document", "examples"}
	ofOtherMedia = []string{"max_size_mb", "allowed_formats", "default_detail", "require_caption", "max_duration_sec", "max_pages", "require_metadata", "extraction_mode", "validation_params"}
)

// ineffective warns of what has no effect, by name.
func (r *report) ineffective(p *Pack) {
	for _, e := range ineffective {
		r.each(strings.Split(e.path, "."), nil, r.root, func(at path, n *node) {
			if !reflect.DeepEqual(n.any(), e.unless) && !timed(at, p) {
				r.warn(at, "it has no effect: "+e.reason, "")
			}
		})
	}
	for i, f := range p.TemplateEngine.Features {
		for _, missing := range features {
			if f == missing {
				r.warn(path{"template_engine", "features", i}, fmt.Sprintf("it has no effect: templates have no %s", f), "")
			}
		}
	}
	if v := p.TemplateEngine.Version; v != "" && v != "v1" && v != "1" {
		r.warn(path{"template_engine", "version"}, "it has no effect: templates are read as v1", "")
	}
	r.each([]string{"prompts", "*", "media", "*", "*"}, nil, r.root, func(at path, n *node) {
		kind, _ := at[len(at)-2].(string)
		if kind != "" && !slices.Contains(namedMedia, kind) && !slices.Contains(ofOtherMedia, n.name) {
			r.warn(at, "it has no effect: nobody knows what it means", "")
		}
	})
	r.each([]string{"workflow", "engine", "*"}, nil, r.root, func(at path, n *node) {
		if n.name != "budget" {
			r.warn(at, "it has no effect: nobody knows what it means", "")
		}
	})
	for i, s := range p.Skills {
		if s.remote() {
			r.warn(path{"skills", i}, "it has no effect: packages of skills can't be fetched", "name a directory or a file")
		}
	}
}

// timed reports whether a path is the limit of how long audio lasts, for files that are all of a format that it is looked at for.
func timed(at path, p *Pack) bool {
	if len(at) != 5 || at[3] != "audio" || at[4] != "max_duration_sec" {
		return false
	}
	name, _ := at[1].(string)
	pr := p.Prompts[name]
	if pr == nil || pr.Media == nil || pr.Media.Audio == nil || len(pr.Media.Audio.AllowedFormats) == 0 {
		return false
	}
	return !slices.ContainsFunc(pr.Media.Audio.AllowedFormats, func(f string) bool { return format(f) != "wav" })
}

// each calls f for all values that a path with stars leads to.
func (r *report) each(steps []string, at path, n *node, f func(path, *node)) {
	if n == nil || n.kind == 'n' {
		return
	}
	if len(steps) == 0 {
		f(at, n)
		return
	}
	step, rest := steps[0], steps[1:]
	if step != "*" {
		r.each(rest, at.to(step), n.member(step), f)
		return
	}
	for i, c := range n.children {
		if n.kind == '{' {
			r.each(rest, at.to(c.name), c, f)
		} else {
			r.each(rest, at.to(i), c, f)
		}
	}
}

// evalTypes are those that package eval runs, which holds itself to the list. Those of evalsElsewhere are of the specification's own runtime alone.
var evalTypes = strings.Fields(`
	agent_invoked agent_not_invoked banned_words contains contains_any content_excludes content_includes content_includes_any content_matches content_not_includes cost_budget
	field_presence is_valid_json json_path json_schema json_valid latency_budget length llm_judge llm_judge_conversation llm_judge_session llm_judge_tool_calls max_length
	max_sentences min_length no_tool_errors pii_detection pii_leakage regex regex_match required_fields sentence_count skill_activated skill_not_activated state_is tool_args
	tool_args_excluded_session tool_args_session tool_call_count tool_call_sequence tool_called tool_calls_with_args tool_efficiency tool_no_repeat tool_result_includes
	tool_result_matches tools_called tools_called_session tools_not_called tools_not_called_session tools_not_called_with_args transitioned_to valid_json workflow_complete
	workflow_state_is workflow_transition_order workflow_transitioned_to
`)

var evalsElsewhere = strings.Fields(`
	a2a_eval a2a_eval_session agent_response_contains answer_relevancy audio_duration audio_emotion audio_format bias composition_branch_taken composition_output
	composition_parallel_complete composition_step_output contextual_precision contextual_recall contextual_relevancy cosine_similarity directional faithfulness
	guardrail_triggered hallucination image_dimensions image_format image_moderation invariant_fields_preserved outcome_equivalent rest_eval rest_eval_session role_violation
	skill_activation_order spoke_in_state text_sentiment text_toxicity tool_anti_pattern tool_call_chain tool_exec tool_result_has_media tool_result_media_type toxicity
	video_duration video_resolution workflow_spoke_in_state workflow_tool_access
`)

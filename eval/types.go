package eval

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// maker makes the scorer of one eval.
type maker struct {
	typ     string
	pack    *pack.Pack // nil for a case's own
	options PackOptions
	read    *guard.Reader
	faults  []guard.Fault
}

// stock are the types that are always there, besides those of validators, which are made of package guard.
var stock = map[string]func(*maker, guard.Params) Scorer{
	"contains": (*maker).contains, "contains_any": (*maker).containsAny, "content_excludes": (*maker).excludes, "min_length": (*maker).minLength,
	"json_valid": (*maker).jsonValid, "json_path": (*maker).jsonPath,
	"tools_called": (*maker).toolsCalled, "tools_not_called": (*maker).toolsNotCalled, "tool_args": (*maker).toolArgs, "tool_calls_with_args": (*maker).callsWithArgs, "tool_call_sequence": (*maker).toolSequence,
	"tool_call_count": (*maker).toolCount, "tool_no_repeat": (*maker).noRepeat, "no_tool_errors": (*maker).noToolErrors, "tool_efficiency": (*maker).efficiency,
	"tool_result_includes": (*maker).resultIncludes, "tool_result_matches": (*maker).resultMatches,
	"tools_called_session": inSession((*maker).toolsCalled), "tools_not_called_session": inSession((*maker).toolsNotCalled), "tool_args_session": inSession((*maker).toolArgs), "tool_args_excluded_session": inSession((*maker).argsExcluded),
	"agent_invoked": (*maker).agentInvoked, "agent_not_invoked": (*maker).agentNotInvoked, "skill_activated": (*maker).skillActivated, "skill_not_activated": (*maker).skillNotActivated,
	"workflow_state_is": (*maker).stateIs, "workflow_transitioned_to": (*maker).movedTo, "workflow_transition_order": (*maker).movedInOrder, "workflow_complete": (*maker).workflowComplete,
	"llm_judge": judgeOf(shownTurn), "llm_judge_session": judgeOf(shownSession), "llm_judge_tool_calls": (*maker).judgeTools,
	"cost_budget": (*maker).costBudget, "latency_budget": (*maker).latencyBudget,
}

// ofAnyType are parameters that a type takes as they are.
var ofAnyType = map[string][]string{"json_path": {"expected", "contains"}}

// also are the specification's other names for types, of guard's too.
var also = map[string]string{
	"content_includes": "contains", "content_includes_any": "contains_any", "content_matches": "regex", "content_not_includes": "content_excludes", "is_valid_json": "json_valid", "valid_json": "json_valid",
	"field_presence": "required_fields", "sentence_count": "max_sentences", "tool_called": "tools_called", "tools_not_called_with_args": "tool_args_excluded_session", "llm_judge_conversation": "llm_judge_session",
	"state_is": "workflow_state_is", "transitioned_to": "workflow_transitioned_to",
}

// fromGuard are the types that package guard judges by; llm_judge gives more here than it does there.
func fromGuard() []string {
	return slices.DeleteFunc(guard.Known(nil), func(name string) bool { return stock[name] != nil })
}

// PackTypes names the types of evals that [Pack] and [ReadCases] know, in order.
func PackTypes() []string {
	all := append(fromGuard(), slices.Collect(maps.Keys(stock))...)
	all = append(all, slices.Collect(maps.Keys(also))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// make makes the scorer, or says all that is wrong with the parameters.
func (m *maker) make(params map[string]any) (Scorer, error) {
	if own, ok := m.options.Types[m.typ]; ok {
		s, err := own(params)
		return s, m.told(err)
	}
	name := m.typ
	if of, ok := also[name]; ok {
		name = of
	}
	p := guard.Params(maps.Clone(params))
	if p == nil {
		p = guard.Params{}
	}
	made, ok := stock[name]
	if !ok && slices.Contains(fromGuard(), name) {
		return m.guard(name, p)
	}
	if !ok {
		return nil, errdefs.Validation.Errorf("an eval of type %q can't be run here%s; PackOptions.Types may have more", m.typ, meant(m.typ, PackTypes()))
	}
	read := maps.Clone(p)
	for _, name := range ofAnyType[name] {
		delete(read, name)
	}
	m.read = read.Read()
	s := made(m, p)
	if err := m.told(m.read.Err()); err != nil {
		return nil, err
	}
	if len(m.faults) > 0 {
		return nil, m.told(&guard.Error{Faults: m.faults})
	}
	return s, checked(s)
}

// told tells of faults as an eval's.
func (m *maker) told(err error) error {
	var g *guard.Error
	if !errors.As(err, &g) {
		return err
	}
	var all []string
	for _, f := range g.Faults {
		place := "params." + f.Param
		if f.Param == "" {
			place = "params"
		}
		all = append(all, strings.TrimSuffix(place+": "+f.Reason+": "+f.Remedy, ": "))
	}
	return errdefs.Validation.Errorf("type %s: %s", m.typ, strings.Join(all, "; "))
}

func (m *maker) fault(param, reason, remedy string) {
	m.faults = append(m.faults, guard.Fault{Param: param, Reason: reason, Remedy: remedy})
}

// needs reads a list that has to be there.
func (m *maker) needs(names ...string) []string {
	all := m.read.Texts(names...)
	if len(all) == 0 {
		m.read.Missing(names[0], "list what is wanted")
	}
	return all
}

// need reads a text that has to be there.
func (m *maker) need(name string) string {
	s := m.read.Text(name)
	if s == "" {
		m.read.Missing(name, "write it")
	}
	return s
}

// number reads a number of at least 0, unless it is not there.
func (m *maker) number(name string, unless float64) float64 {
	n, ok := m.read.Number(name)
	if !ok {
		return unless
	}
	if !(n >= 0) {
		m.fault(name, "it is less than 0", "write a number, at least 0")
	}
	return n
}

func (m *maker) rule(judge func(Sample) Score) Scorer { return rule(m.typ, judge) }

// inSession has a type look at the whole session, whatever the trigger.
func inSession(of func(*maker, guard.Params) Scorer) func(*maker, guard.Params) Scorer {
	return func(m *maker, p guard.Params) Scorer {
		s := of(m, p)
		return ScorerFunc(func(ctx context.Context, sample Sample) (Score, error) { return s.Score(ctx, sample.whole()) })
	}
}

// guard has a validator judge the answer, or with direction input what was asked.
func (m *maker) guard(name string, p guard.Params) (Scorer, error) {
	g, err := guard.New(guard.Config{Type: name, Params: p}, nil)
	if err != nil {
		return nil, m.told(err)
	}
	return ScorerFunc(func(ctx context.Context, s Sample) (Score, error) {
		var texts []string
		if g.Output {
			texts = append(texts, s.Answer)
		}
		if g.Input {
			texts = append(texts, s.Prompt.Text())
		}
		for _, t := range texts {
			if v := g.Judge(ctx, t); v != nil {
				if v.Err != nil {
					return Score{}, v.Err
				}
				return Score{Why: v.Reason}, nil
			}
		}
		return verdict(""), nil
	}), nil
}

package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
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

func (m *maker) contains(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.rule(func(s Sample) Score { return containing(s.Answer, texts) })
}

func (m *maker) containsAny(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.rule(func(s Sample) Score {
		if sc := containing(s.Answer, texts); sc.Value == 0 {
			return sc
		}
		return verdict("")
	})
}

func (m *maker) excludes(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.rule(func(s Sample) Score {
		for _, t := range texts {
			if containing(s.Answer, []string{t}).Pass {
				return Score{Why: fmt.Sprintf("it has %q", t)}
			}
		}
		return verdict("")
	})
}

func (m *maker) minLength(guard.Params) Scorer {
	least := m.read.Count("min", "min_characters", "min_chars")
	if least == 0 {
		m.read.Missing("min", "say how many characters are wanted")
	}
	return m.rule(func(s Sample) Score {
		n, wrong := utf8.RuneCountInString(s.Answer), ""
		if n < least {
			wrong = fmt.Sprintf("it has %d characters, at least %d are wanted", n, least)
		}
		return share(min(n, least), least, wrong)
	})
}

func (m *maker) jsonValid(p guard.Params) Scorer {
	m.read.Flag("allow_wrapped", false)
	m.read.Flag("extract_json", false)
	p = maps.Clone(p)
	p["schema"] = map[string]any{} // that all JSON fits
	s, err := m.guard("json_schema", p)
	if err != nil {
		return m.rule(func(Sample) Score { return Score{} }) // the reader tells of it
	}
	return s
}

func (m *maker) toolsCalled(guard.Params) Scorer {
	names, least, most := m.needs("tool_names", "tools"), m.number("min_calls", 1), m.number("max_calls", -1)
	return m.rule(func(s Sample) Score {
		var wrong []string
		fine := 0
		for _, name := range names {
			switch n := float64(len(callsOfTool(s.Calls, name))); {
			case n < least:
				wrong = append(wrong, fmt.Sprintf("%s was called %.0f times, at least %v is wanted", name, n, least))
			case most >= 0 && n > most:
				wrong = append(wrong, fmt.Sprintf("%s was called %.0f times, at most %v is wanted", name, n, most))
			default:
				fine++
			}
		}
		return share(fine, len(names), strings.Join(wrong, "; "))
	})
}

func callsOfTool(calls []Call, name string) (all []Call) {
	for _, c := range calls {
		if (Use{Name: name}).is(c) {
			all = append(all, c)
		}
	}
	return all
}

func (m *maker) toolsNotCalled(guard.Params) Scorer {
	names := m.needs("tool_names", "tools")
	return ToolCalls(NoneOf, Uses(names...)...)
}

// use reads a tool with arguments.
func (m *maker) use(args string) Use {
	u := Use{Name: m.need("tool_name"), Args: m.read.Object(args)}
	if len(u.Args) == 0 {
		m.read.Missing(args, "write the arguments, such as {\"order_id\": \"7\"}")
	}
	return u
}

func (m *maker) toolArgs(guard.Params) Scorer { return ToolCalls(AnyOrder, m.use("expected_args")) }

func (m *maker) argsExcluded(guard.Params) Scorer { return ToolCalls(NoneOf, m.use("excluded_args")) }

func (m *maker) toolSequence(guard.Params) Scorer {
	return ToolCalls(InOrder, Uses(m.needs("sequence")...)...)
}

// callsWithArgs asks for one call that is all of what is said.
func (m *maker) callsWithArgs(guard.Params) Scorer {
	u := Use{Name: m.need("tool_name"), Args: m.read.Object("expected_args")}
	includes, matches, fine := m.read.Texts("result_includes"), m.pattern("result_matches", false), m.read.Flag("no_error", false)
	made, err := plain([]Use{u})
	if err == nil {
		u = made[0]
	}
	return m.rule(func(s Sample) Score {
		for _, c := range s.Calls {
			if u.is(c) && containing(c.Output, includes).Pass && (matches == nil || matches.MatchString(c.Output)) && (!fine || !c.IsError) {
				return verdict("")
			}
		}
		return Score{Why: "no call of " + u.String() + " is as wanted"}
	})
}

func (m *maker) pattern(name string, needed bool) *regexp.Regexp {
	text := m.read.Text(name)
	if text == "" {
		if needed {
			m.read.Missing(name, "write a regular expression")
		}
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		m.fault(name, err.Error(), "write it in RE2 syntax, which has no lookaround and no backreferences")
	}
	return re
}

func (m *maker) toolCount(guard.Params) Scorer {
	name, least, most := m.read.Text("tool"), m.number("min", -1), m.number("max", -1)
	if least < 0 && most < 0 {
		m.read.Missing("min", "write it, or max")
	}
	return m.rule(func(s Sample) Score {
		n := len(s.Calls)
		if name != "" {
			n = len(callsOfTool(s.Calls, name))
		}
		switch {
		case float64(n) < least:
			return Score{Value: float64(n) / least, Why: fmt.Sprintf("there were %d calls, at least %v are wanted", n, least)}
		case most >= 0 && float64(n) > most:
			return Score{Value: most / float64(n), Why: fmt.Sprintf("there were %d calls, at most %v are wanted", n, most)}
		}
		return verdict("")
	})
}

// of gives the calls of some tools, or with none named, all.
func of(calls []Call, names []string) (all []Call) {
	for _, c := range calls {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, c.Name) }) {
			all = append(all, c)
		}
	}
	return all
}

func (m *maker) noRepeat(guard.Params) Scorer {
	names, most := m.read.Texts("tools"), m.number("max_repeats", 1)
	return m.rule(func(s Sample) Score {
		n := 0.0
		var before Call
		for _, c := range of(s.Calls, names) {
			if c.Name != before.Name || c.Input != before.Input {
				n = 0
			}
			if n++; n > most {
				return Score{Why: fmt.Sprintf("%s%s was called %.0f times in a row", c.Name, clip(c.Input, 100), n)}
			}
			before = c
		}
		return verdict("")
	})
}

func (m *maker) noToolErrors(guard.Params) Scorer {
	names := m.read.Texts("tools")
	return m.rule(func(s Sample) Score {
		calls, fine, wrong := of(s.Calls, names), 0, ""
		for _, c := range calls {
			if !c.IsError {
				fine++
			} else if wrong == "" {
				wrong = c.Name + ": " + clip(c.Output, 200)
			}
		}
		if len(calls) == 0 {
			return verdict("")
		}
		return share(fine, len(calls), wrong)
	})
}

func (m *maker) efficiency(guard.Params) Scorer {
	calls, failed, rate := m.number("max_calls", -1), m.number("max_errors", -1), m.number("max_error_rate", -1)
	if calls < 0 && failed < 0 && rate < 0 {
		m.read.Missing("max_calls", "write it, or max_errors or max_error_rate")
	}
	return m.rule(func(s Sample) Score {
		n, bad := float64(len(s.Calls)), 0.0
		for _, c := range s.Calls {
			if c.IsError {
				bad++
			}
		}
		switch {
		case calls >= 0 && n > calls:
			return within("calls", n, calls, "")
		case failed >= 0 && bad > failed:
			return within("failed calls", bad, failed, "")
		case rate >= 0 && bad > rate*n:
			return within("share of calls that failed", bad/n, rate, "")
		}
		return verdict("")
	})
}

// result asks for something of one call's result: of all calls, or those of one tool, the occurrence-th, from 1.
func (m *maker) result(judge func(output string) string) Scorer {
	tool, occurrence := m.read.Text("tool"), max(1, m.read.Count("occurrence"))
	return m.rule(func(s Sample) Score {
		calls := s.Calls
		if tool != "" {
			calls = callsOfTool(calls, tool)
		}
		if len(calls) < occurrence {
			return Score{Why: fmt.Sprintf("there is no call %d", occurrence)}
		}
		return verdict(judge(calls[occurrence-1].Output))
	})
}

func (m *maker) resultIncludes(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.result(func(output string) string { return containing(output, texts).Why })
}

func (m *maker) resultMatches(guard.Params) Scorer {
	re := m.pattern("pattern", true)
	return m.result(func(output string) string {
		if re.MatchString(output) {
			return ""
		}
		return fmt.Sprintf("%q does not match %s", clip(output, 200), re)
	})
}

// handovers are calls by which a prompt hands over to agents.
func (m *maker) handovers() (all []Use) {
	for _, id := range m.needs("agents") {
		all = append(all, Use{Name: agent.DefaultHandoffToolName(id)})
	}
	return all
}

func (m *maker) agentInvoked(guard.Params) Scorer    { return ToolCalls(AnyOrder, m.handovers()...) }
func (m *maker) agentNotInvoked(guard.Params) Scorer { return ToolCalls(NoneOf, m.handovers()...) }

// activations are calls by which a model activates skills.
func (m *maker) activations() (all []Use) {
	for _, name := range m.needs("skill_names") {
		all = append(all, Use{Name: pack.SkillTool, Args: map[string]any{"name": name}})
	}
	return all
}

func (m *maker) skillActivated(guard.Params) Scorer { return ToolCalls(AnyOrder, m.activations()...) }

func (m *maker) skillNotActivated(guard.Params) Scorer { return ToolCalls(NoneOf, m.activations()...) }

func (m *maker) stateIs(guard.Params) Scorer {
	want := m.state("state")
	return m.rule(func(s Sample) Score {
		at := m.pack.Workflow.Entry
		if all := s.whole().States; len(all) > 0 {
			at = all[len(all)-1]
		}
		if at != want {
			return Score{Why: fmt.Sprintf("it is in the state %s, want %s", at, want)}
		}
		return verdict("")
	})
}

// state reads the name of a state of the pack's workflow.
func (m *maker) state(name string) string {
	want := m.need(name)
	m.isState(name, want)
	return want
}

func (m *maker) isState(param, want string) {
	if m.pack == nil || m.pack.Workflow == nil {
		m.fault(param, "there is no workflow", "use it in a pack that has one")
	} else if states := slices.Sorted(maps.Keys(m.pack.Workflow.States)); want != "" && !slices.Contains(states, want) {
		m.fault(param, fmt.Sprintf("there is no state %q", want), strings.TrimPrefix(meant(want, states), ": "))
	}
}

func (m *maker) movedTo(guard.Params) Scorer {
	want := m.state("state")
	return m.rule(func(s Sample) Score {
		if !slices.Contains(s.States, want) {
			return Score{Why: fmt.Sprintf("it moved on to %q, and not to %s", s.States, want)}
		}
		return verdict("")
	})
}

func (m *maker) movedInOrder(guard.Params) Scorer {
	want := m.needs("sequence")
	for _, name := range want {
		m.isState("sequence", name)
	}
	return m.rule(func(s Sample) Score {
		n, all := 0, s.whole().States
		for _, at := range append([]string{m.pack.Workflow.Entry}, all...) {
			if n < len(want) && want[n] == at {
				n++
			}
		}
		if n < len(want) {
			return share(n, len(want), fmt.Sprintf("it moved on to %q, want %q in this order", all, want))
		}
		return verdict("")
	})
}

func (m *maker) workflowComplete(guard.Params) Scorer {
	m.isState("", "")
	return m.rule(func(s Sample) Score {
		at := m.pack.Workflow.Entry
		if all := s.whole().States; len(all) > 0 {
			at = all[len(all)-1]
		}
		if !m.pack.Workflow.States[at].Final() {
			return Score{Why: fmt.Sprintf("it is in the state %s, which is not an end", at)}
		}
		return verdict("")
	})
}

func judgeOf(shows func(Sample) shown) func(*maker, guard.Params) Scorer {
	return func(m *maker, _ guard.Params) Scorer { return m.judge(shows) }
}

func (m *maker) judge(shows func(Sample) shown) Scorer {
	r := m.read
	criteria, rubric, system, name := r.Text("criteria", "judge_prompt"), r.Text("rubric"), r.Text("system_prompt"), r.Text("model")
	j := judging{rubric: strings.TrimSpace(criteria + "\n\n" + rubric), system: system, shows: shows}
	if least, ok := r.Number("min_score"); ok {
		if j.least = &least; !(least >= 0 && least <= 1) {
			m.fault("min_score", fmt.Sprintf("%v is out of range", least), "write a number from 0 to 1")
		}
	}
	if j.rubric == "" {
		r.Missing("criteria", "say what a good answer is")
	}
	open := m.options.Judge
	if open == nil {
		m.fault("model", "there is no model to judge", "set PackOptions.Judge")
	}
	j.open = func() (model.Model, error) { return open(name) }
	return j.scorer(m.typ)
}

// judgeTools has the calls alone judged: of some tools, or all.
func (m *maker) judgeTools(guard.Params) Scorer {
	names := m.read.Texts("tools")
	return m.judge(func(s Sample) shown {
		return shown{Asked: s.Prompt.Text(), ToolCalls: shownCalls(of(s.Calls, names))}
	})
}

func (m *maker) costBudget(guard.Params) Scorer {
	usd, in, out, total := m.number("max_cost_usd", -1), m.number("max_input_tokens", -1), m.number("max_output_tokens", -1), m.number("max_total_tokens", -1)
	if usd < 0 && in < 0 && out < 0 && total < 0 {
		m.read.Missing("max_cost_usd", "write it, or max_input_tokens, max_output_tokens or max_total_tokens")
	}
	return &scorer{name: m.typ, score: func(_ context.Context, s Sample) (Score, error) {
		input := s.Usage.Total() - s.Usage.Output
		worst := verdict("")
		look := func(what string, got, most float64) {
			if sc := within(what, got, most, ""); most >= 0 && !sc.Pass && (worst.Pass || sc.Value < worst.Value) {
				worst = sc
			}
		}
		look("input tokens", float64(input), in)
		look("output tokens", float64(s.Usage.Output), out)
		look("tokens", float64(s.Usage.Total()), total)
		if usd >= 0 {
			if s.Cost == nil {
				return Score{}, errdefs.NotAvailable.Errorf("the price of a call is not known: give the model a price in the catalogue, or leave max_cost_usd out")
			}
			look("US dollars", float64(*s.Cost)/1e6, usd)
		}
		return worst, nil
	}}
}

func (m *maker) latencyBudget(guard.Params) Scorer {
	most := m.number("max_ms", 0)
	if most == 0 {
		m.read.Missing("max_ms", "say how many milliseconds it may take")
	}
	return m.rule(func(s Sample) Score { return within("duration", float64(s.Duration.Milliseconds()), most, " ms") })
}

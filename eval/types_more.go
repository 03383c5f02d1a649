package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

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

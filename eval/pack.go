package eval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// PackOptions say how evals of packs are run here. The zero value runs all that need no judge.
type PackOptions struct {
	// Judge gives the model that judges, for llm_judge and its like: it is asked with the name that the eval has for it, "" for none. Default: such evals are errdefs.Validation.
	Judge func(name string) (model.Model, error)
	// Groups are those whose evals are run; an eval without groups is in "default". Empty: all.
	Groups []string
	// Unsampled looks at every turn and session, where a pack samples some of them to save money in service.
	Unsampled bool
	// Types are types of evals besides those that are always there, or in place of them.
	Types map[string]Maker
}

// Maker makes a scorer of an eval's parameters. See guard.Params.Read for how to read them.
type Maker func(p guard.Params) (Scorer, error)

// Pack gives the evals of a pack and of one of its prompts as scorers, each by the name of its id; of two with an id the prompt's counts. With the prompt "" they are the pack's alone. Those that are not enabled are left out; nothing else is: a type, a
// condition or a parameter that can't be had here is errdefs.Validation, for all of them at once, and so is a group that nothing is in. [PackTypes] names the types.
//
// An eval's trigger says what it looks at: every_turn each turn alone, on_workflow_step each turn in which the workflow moved on, on_session_complete and on_conversation_complete the whole, sample_turns and sample_sessions the turns, or sessions, that a hash of the session (of a
// fresh sample: of the case's name and the repeat) and the turn picks: the same ones each time. Its value is the mean of what it looked at, and it passes where each of them does. Where it looks at nothing, or its when does not hold, it is skipped.
//
// A threshold decides whether it passes; without one the type does. It goes by the value, which is from 0 to 1, or, where the metric has a range that goes beyond that, such as 1 to 5, by where in that range it lies. The message stands before the reason.
func Pack(p *pack.Pack, prompt string, o PackOptions) ([]Scorer, error) {
	all := slices.Clone(p.Evals)
	if prompt != "" {
		pr, err := p.Prompt(prompt)
		if err != nil {
			return nil, fmt.Errorf("eval: %w", err)
		}
		for _, e := range pr.Evals {
			if i := slices.IndexFunc(all, func(of pack.Eval) bool { return of.ID == e.ID }); i >= 0 {
				all[i] = e
			} else {
				all = append(all, e)
			}
		}
	}
	scorers, err := scorersOf(all, p, o)
	if err != nil {
		return nil, fmt.Errorf("eval: pack %s: %w", p.ID, err)
	}
	return scorers, nil
}

// scorersOf makes scorers of evals; p is the pack that they are of, or nil.
func scorersOf(evals []pack.Eval, p *pack.Pack, o PackOptions) (scorers []Scorer, err error) {
	var all []error
	found := map[string]bool{}
	for _, e := range evals {
		groups := e.Groups
		if len(groups) == 0 {
			groups = []string{"default"}
		}
		chosen := len(o.Groups) == 0
		for _, g := range groups {
			found[g] = true
			chosen = chosen || slices.Contains(o.Groups, g)
		}
		if !e.Enabled || !chosen {
			continue
		}
		s, err := makePackEval(e, p, o)
		if err != nil {
			all = append(all, fmt.Errorf("eval %q: %w", e.ID, err))
			continue
		}
		scorers = append(scorers, s)
	}
	for _, g := range o.Groups {
		if p != nil && !found[g] {
			all = append(all, errdefs.Validation.Errorf("there is no eval of the group %q", g))
		}
	}
	return scorers, errors.Join(all...)
}

// packEval is an eval of a pack.
type packEval struct {
	pack.Eval
	scorer    Scorer
	when      []condition
	low, high float64 // of the metric
	unsampled bool
}

func makePackEval(e pack.Eval, p *pack.Pack, o PackOptions) (*packEval, error) {
	out := &packEval{Eval: e, high: 1, unsampled: o.Unsampled}
	m := &maker{typ: e.Type, pack: p, options: o}
	var err error
	if out.scorer, err = m.make(e.Params); err != nil {
		return nil, err
	}
	if out.when, err = conditions(e.When); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"every_turn", "on_session_complete", "on_conversation_complete", "on_workflow_step", "sample_turns", "sample_sessions"}, e.Trigger) {
		return nil, errdefs.Validation.Errorf("there is no trigger %q: write every_turn, on_session_complete, on_conversation_complete, on_workflow_step, sample_turns or sample_sessions", e.Trigger)
	}
	if m := e.Metric; m != nil && m.Range != nil && m.Range.Min != nil && m.Range.Max != nil {
		low, high := *m.Range.Min, *m.Range.Max
		if !(low < high) {
			return nil, errdefs.Validation.Errorf("metric.range: its min %v is not below its max %v", low, high)
		}
		if low < 0 || high > 1 { // another scale, such as 1 to 5; what lies between 0 and 1 says only what is expected
			out.low, out.high = low, high
		}
	}
	if t := e.Threshold; t != nil {
		switch {
		case t.Value == nil:
			return nil, errdefs.Validation.Errorf("threshold: it has no value")
		case !slices.Contains([]string{"gte", "lte", "gt", "lt", "eq"}, t.Operator):
			return nil, errdefs.Validation.Errorf("threshold: there is no operator %q: write gte, lte, gt, lt or eq", t.Operator)
		case *t.Value < out.low || *t.Value > out.high:
			return nil, errdefs.Validation.Errorf("threshold: %v is out of range: values are from %v to %v; a metric.range with min and max gives another scale", *t.Value, out.low, out.high)
		}
	}
	return out, nil
}

func (e *packEval) String() string { return e.ID }
func (e *packEval) check() error   { return checked(e.scorer) }

// raw is a value in the metric's range.
func (e *packEval) raw(value float64) float64 { return e.low + value*(e.high-e.low) }

// passes applies the threshold.
func (e *packEval) passes(sc Score) bool {
	t := e.Threshold
	if t == nil {
		return sc.Pass
	}
	v := e.raw(sc.Value)
	if math.Abs(v-*t.Value) < 1e-9 { // what was reckoned in a range is not exact to the last bit
		v = *t.Value
	}
	switch t.Operator {
	case "gte":
		return v >= *t.Value
	case "lte":
		return v <= *t.Value
	case "gt":
		return v > *t.Value
	case "lt":
		return v < *t.Value
	}
	return v == *t.Value
}

func (e *packEval) metric(s *Stat) *Metric {
	if e.Metric == nil {
		return nil
	}
	m := &Metric{Name: e.Metric.Name, Type: e.Metric.Type}
	switch m.Type {
	case "counter":
		m.Value = float64(s.Passed)
	case "boolean":
		m.Value = s.Rate.Value
	default:
		m.Value = e.raw(s.Mean.Value)
	}
	return m
}

// look is a part of a sample that an eval looks at.
type look struct {
	Sample
	turn int // from 1; 0: the whole
}

// looks picks what the trigger says; why says what there was not.
func (e *packEval) looks(s Sample) (all []look, why string) {
	turns := func(pick func(i int, t Turn) bool) {
		for i, t := range s.Turns {
			if !t.Discarded && pick(i, t) {
				all = append(all, look{s.At(i), i + 1})
			}
		}
	}
	switch e.Trigger {
	case "every_turn":
		turns(func(_ int, t Turn) bool { return !t.noted() })
		return all, "there is no turn"
	case "sample_turns":
		turns(func(i int, t Turn) bool {
			return !t.noted() && (e.unsampled || sampled(s.key(), i+1, e.SamplePercentage))
		})
		return all, fmt.Sprintf("no turn is among the %v %% that are looked at", e.SamplePercentage)
	case "on_workflow_step":
		turns(func(_ int, t Turn) bool { return len(t.States) > 0 })
		return all, "no turn moved a workflow on"
	case "sample_sessions":
		if !e.unsampled && !sampled(s.key(), 0, e.SamplePercentage) {
			return nil, fmt.Sprintf("it is not among the %v %% of the sessions that are looked at", e.SamplePercentage)
		}
	}
	return []look{{s.whole(), 0}}, ""
}

// key is what sampling knows a sample by.
func (s Sample) key() string {
	if s.Repeat == 0 {
		return s.Session
	}
	return fmt.Sprintf("%s\x00%d", s.Case.Name, s.Repeat)
}

// sampled reports whether a turn is one of so many of a hundred: by a hash, so that it is always the same ones.
func sampled(key string, turn int, percent float64) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, turn))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11)/(1<<53) < percent/100
}

// Score implements Scorer.
func (e *packEval) Score(ctx context.Context, s Sample) (Score, error) {
	all, skipped := e.looks(s)
	n, out := 0, Score{Pass: true}
	for _, l := range all {
		at := ""
		if l.turn > 0 {
			at = fmt.Sprintf("turn %d: ", l.turn)
		}
		hold, why, err := e.holds(l.Sample)
		if err != nil {
			return Score{}, fmt.Errorf("%swhen: %w", at, err)
		}
		if !hold {
			skipped = at + why
			continue
		}
		sc, err := score(ctx, e.scorer, l.Sample)
		if err != nil {
			return Score{}, fmt.Errorf("%s%w", at, err)
		}
		if sc.Skipped {
			skipped = at + sc.Why
			continue
		}
		n++
		out.Value += sc.Value
		if !e.passes(sc) && out.Pass {
			out.Pass = false
			out.Why = at + e.reason(sc)
		}
	}
	if n == 0 {
		return Score{Skipped: true, Why: skipped}, nil
	}
	out.Value = min(1, out.Value/float64(n))
	return out, nil
}

func (e *packEval) reason(sc Score) string {
	why := sc.Why
	if t := e.Threshold; t != nil {
		why = strings.TrimSuffix(fmt.Sprintf("the value %s is not %s %v: %s", figure(e.raw(sc.Value)), t.Operator, *t.Value, why), ": ")
	}
	return strings.TrimPrefix(strings.TrimSuffix(e.Message+": "+why, ": "), ": ")
}

func (e *packEval) holds(s Sample) (bool, string, error) {
	for _, c := range e.when {
		if ok, err := c.holds(s); err != nil || !ok {
			return false, c.name + " does not hold", err
		}
	}
	return true, "", nil
}

// meant is a remedy: names that somebody may have meant.
func meant(name string, names []string) string {
	if n := near.Names(name, names); len(n) > 0 {
		return ": did you mean " + n[0] + "?"
	}
	return ": have one of " + strings.Join(names, ", ")
}

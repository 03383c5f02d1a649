package providertest

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

// reasoningLevels checks that each level that the model takes says something of its own, and that any other one is refused.
func (p Provider) reasoningLevels(t *testing.T) {
	can, _ := model.CapabilitiesOf(p.New())
	if len(can.Reasoning) == 0 && !p.lacks("reasoning_level") {
		t.Error("the model takes no level at all")
	}
	said := map[string]model.ReasoningLevel{"": model.ReasoningDefault}
	for _, level := range model.ReasoningLevels() {
		r := hi()
		r.Reasoning = level
		if !slices.Contains(can.Reasoning, level) {
			p.refused(t, r)
			continue
		}
		got, _ := p.ask(t, r)
		if other, ok := said[got.Reasoning]; ok {
			t.Errorf("level %q says %q, as %q does", level, got.Reasoning, other)
		}
		said[got.Reasoning] = level
	}
	got, _ := p.ask(t, hi())
	equal(t, "reasoning by default", "", got.Reasoning)
	if !slices.IsSortedFunc(can.Reasoning, func(a, b model.ReasoningLevel) int {
		return slices.Index(model.ReasoningLevels(), a) - slices.Index(model.ReasoningLevels(), b)
	}) {
		t.Errorf("not from least to most: %q", can.Reasoning)
	}
}

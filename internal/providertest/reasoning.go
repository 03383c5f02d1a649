package providertest

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

// reasoning asks for each level: those that the model says that it takes have to arrive, the others are refused.
func (p Provider) reasoning(t *testing.T) {
	can, _ := model.CapabilitiesOf(p.New())
	if p.lacks("reasoning_level") != (len(can.Reasoning) == 0) {
		t.Errorf("the model takes %q, and lacks it: %v", can.Reasoning, p.lacks("reasoning_level"))
	}
	for _, l := range model.ReasoningLevels() {
		t.Run(string(l), func(t *testing.T) {
			r := hi()
			r.Reasoning = l
			if !slices.Contains(can.Reasoning, l) {
				p.refused(t, r)
				return
			}
			got, _ := p.ask(t, r)
			equal(t, "reasoning", string(l), got.Reasoning)
		})
	}
	t.Run("none that is known", func(t *testing.T) {
		r := hi()
		r.Reasoning = "hardest"
		p.refused(t, r)
	})
	t.Run("default", func(t *testing.T) {
		got, _ := p.ask(t, hi())
		equal(t, "reasoning", "", got.Reasoning)
	})
}

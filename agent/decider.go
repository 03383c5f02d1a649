package agent

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/engine"
)

// BaseDecider has no opinion. Embed it.
type BaseDecider struct{}

// BeforeFinalize gives the zero decision.
func (BaseDecider) BeforeFinalize(context.Context, RunInfo, *Request, *Result) (FinalizeDecision, error) {
	return FinalizeDecision{}, nil
}

// DiscardOnInterruptCauses is a Decider that drops what an interrupted run said, when it was interrupted for one of its causes: half a sentence that a
// user talked into does not belong into the transcript. A run that is dropped is over, and can't be resumed. Make it with
// [NewDiscardOnInterruptCauses]; the zero value knows no cause.
type DiscardOnInterruptCauses struct {
	reason string
	causes []engine.Cause
}

// NewDiscardOnInterruptCauses makes one. The reason is recorded under StateFinalizeReason when it drops a run.
func NewDiscardOnInterruptCauses(reason string, causes ...engine.Cause) *DiscardOnInterruptCauses {
	return &DiscardOnInterruptCauses{reason, slices.Clone(causes)}
}

// BeforeFinalize implements [Decider].
func (d *DiscardOnInterruptCauses) BeforeFinalize(_ context.Context, _ RunInfo, _ *Request, res *Result) (FinalizeDecision, error) {
	if d == nil || res == nil || res.Status != StatusInterrupted || !slices.Contains(d.causes, res.Cause) {
		return FinalizeDecision{}, nil
	}
	return FinalizeDecision{DiscardOutput: true, Reason: d.reason}, nil
}

package loop

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/schema"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// How often the loop goes on by itself before it gives up.
const (
	maxContinues = 3 // of replies in a row that the output limit cut off
	maxBlank     = 1 // of replies in a row that say nothing
	maxMisfits   = 2 // of answers that don't fit their schema, in a run
	maxAgain     = 3 // times that stop hooks may send the model back, in a run
)

// What the loop says to the model on its own account.
const (
	tellContinue = "Your reply was cut off at the output limit. Go on exactly where it stopped, without repeating what you said."
	tellShorter  = "Your reply was cut off at the output limit before it said anything. Answer again, more briefly."
	tellBlank    = "Your reply was empty. Go on with the task, or say in a sentence that it is done."
	tellBadCall  = "Your tool call could not be read, and nothing was run. Make it again, with valid JSON as its input."
	tellUnknown  = "the process died while %s was under way: whether it took effect is unknown; run it again?" // to a person
	misfitBegins = "Your answer does not fit the JSON Schema that it has to have: "
	misfitEnds   = ". Answer again, with the JSON alone."
	tellRepeats  = "You have made the same call several times in a row, with the same result each time. It will not change. Try something else, or say what stops you."
)

// why says what a word of the loop's own is for.
func why(tell string) engine.Why {
	switch tell {
	case tellContinue:
		return engine.WhyContinue
	case tellRepeats:
		return engine.WhyRepeats
	}
	if _, ok := misfitOf(tell); ok {
		return engine.WhyMisfit
	}
	return engine.WhyEmpty
}

// next is what the loop does after a reply.
type next int

const (
	failed next = iota
	again
	stopped
	useTools
)

// tally is what a run has used. It is counted from outcomes alone, so it is the same on resume and in replay.
type tally struct {
	limits                                Limits
	output                                json.RawMessage // the schema of the answer; nil: any
	tokens, calls, cut, blank, sent, same int
	misfits                               int
	lastCalls                             []message.ToolCall
	lastResults                           []message.ToolResult
	room                                  room
}

// mayCall fails when a limit forbids the next model call.
func (t *tally) mayCall(step int) error {
	if n := t.limits.Steps; n > 0 && step > n {
		return errdefs.BudgetExceeded.Errorf("loop: %w: the run made %d model calls", ErrMaxSteps, n)
	}
	if n := t.limits.Tokens; n > 0 && t.tokens >= n {
		return errdefs.BudgetExceeded.Errorf("loop: the run used %d tokens, its limit is %d", t.tokens, n)
	}
	return nil
}

// after decides what follows a reply, with which talk ends, and what to tell the model if it has to go on.
func (t *tally) after(r *journal.ModelFinished, calls []message.ToolCall, talk message.History) (next, string, error) {
	t.room.replied(r, talk)
	t.tokens += r.Usage.Total()
	cut, blank := t.cut, t.blank
	t.cut, t.blank = 0, 0
	switch {
	case r.Stop == model.StopRefusal:
		return failed, "", errdefs.Refused.Errorf("loop: the model refused to answer%s", because(r.Reason))
	case r.Stop == model.StopFilter:
		return failed, "", errdefs.Refused.Errorf("loop: the provider's content filter stopped the reply%s", because(r.Reason))
	case r.Stop == model.StopWindow && t.room.overflow(r):
		if len(calls) == 0 && !r.Message.Blank() {
			return again, tellContinue, nil
		}
		return again, "", nil
	case r.Stop == model.StopWindow:
		if r.Message.Blank() {
			return failed, "", errdefs.Overflow.Errorf("loop: the transcript does not fit the model's context window%s", because(r.Reason))
		}
		return failed, "", errdefs.Overflow.Errorf("loop: the reply filled the model's context window")
	case r.Cut():
		if t.cut = cut + 1; t.cut > maxContinues {
			return failed, "", errdefs.Truncated.Errorf("loop: the reply was cut off at the output limit %d times in a row: raise it, or ask for less at once", t.cut)
		}
		switch {
		case len(calls) > 0: // their results say it
			return again, "", nil
		case r.Message.Blank():
			return again, tellShorter, nil
		}
		return again, tellContinue, nil
	case r.Stop == model.StopPause && len(calls) == 0 && !r.Message.Blank(): // with calls it can't be sent back as it is
		return again, "", nil
	case len(calls) > 0:
		if t.calls += len(calls); t.limits.ToolCalls > 0 && t.calls > t.limits.ToolCalls {
			return failed, "", errdefs.BudgetExceeded.Errorf("loop: the run would make %d tool calls, its limit is %d", t.calls, t.limits.ToolCalls)
		}
		return useTools, "", nil
	case r.Message.Blank(), r.Stop == model.StopBadCall:
		if t.blank = blank + 1; t.blank > maxBlank {
			return failed, "", errdefs.NoProgress.Errorf("loop: the model gave %d empty or unreadable replies in a row", t.blank)
		}
		if r.Stop == model.StopBadCall {
			return again, tellBadCall, nil
		}
		return again, tellBlank, nil
	}
	why := t.misfit(talk)
	switch {
	case why == "":
		return stopped, "", nil
	case cut > 0: // the same limit would cut it off again
		return failed, "", errdefs.Truncated.Errorf("loop: the answer was cut off at the output limit, and with what came after it does not fit its schema (%s): raise the limit, or ask for less at once", why)
	}
	if err := t.back(why); err != nil {
		return failed, "", err
	}
	return again, Misfit(why), nil
}

// back counts an answer that is sent back, and fails when it was sent back often enough.
func (t *tally) back(why string) error {
	if t.misfits++; t.misfits > maxMisfits {
		return errdefs.Validation.Errorf("loop: the answer does not fit its schema, after it was sent back %d times: %s", maxMisfits, why)
	}
	return nil
}

// Misfit is what the loop says of an answer that does not fit [Config].Output, to send it back. A stop hook that knows more of the answer than its schema says the same by [hook.Generation.Again]: then it is counted as one that does not fit, of which two are
// sent back in a run.
func Misfit(why string) string { return misfitBegins + why + misfitEnds }

// misfitOf gives what is wrong by words of [Misfit].
func misfitOf(again string) (why string, ok bool) {
	why, ok = strings.CutPrefix(again, misfitBegins)
	return strings.TrimSuffix(why, misfitEnds), ok
}

// misfit says where the answer that talk ends with is not what its schema says; "" when it is.
func (t *tally) misfit(talk message.History) string {
	if len(t.output) == 0 {
		return ""
	}
	of, err := schema.Compile(t.output) // which keeps what it compiled
	if err != nil {
		return err.Error()
	}
	const longest = 2*maxContinues + 1 // messages that an answer stands in
	v, err := schema.Parse([]byte(engine.Answer(talk.Slice(max(0, talk.Len()-longest), talk.Len()).Messages())))
	if err != nil {
		return "it is no JSON: " + err.Error()
	}
	faults, err := of.Check(v, false)
	if err != nil {
		return err.Error()
	}
	return schema.Problems(faults, 10)
}

// repeated notices a model that goes in circles: the same calls with the same results, in a row. It gives what to tell it the first
// time, and an error when that was of no use.
func (t *tally) repeated(calls []message.ToolCall, results []message.ToolResult) (string, error) {
	if t.limits.Repeats < 0 {
		return "", nil
	}
	if !slices.EqualFunc(calls, t.lastCalls, sameCall) || !slices.EqualFunc(results, t.lastResults, sameResult) {
		clear(t.lastResults)
		t.same, t.lastCalls, t.lastResults = 0, calls, append(t.lastResults[:0], results...) // a copy: with the results themselves all that was in one piece with them would stay
	}
	switch t.same++; {
	case t.same == t.limits.Repeats:
		return tellRepeats, nil
	case t.same > t.limits.Repeats:
		return "", errdefs.NoProgress.Errorf("loop: the model made the same call (%s) %d times in a row with the same result, and went on after it was told", calls[0].Name, t.same)
	}
	return "", nil
}

func sameCall(a, b message.ToolCall) bool { return a.Name == b.Name && a.Input == b.Input }

func sameResult(a, b message.ToolResult) bool {
	return a.Content == b.Content && a.IsError == b.IsError && slices.Equal(a.Files, b.Files)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

package journal

import "github.com/pawl-dev/pawl/message"

// CalledOf gives a model's call as it is to run.
func CalledOf(c message.ToolCall) Called { return Called{c.ID, c.Name, c.Input} }

// Result is what the model is told of a tool run.
func (d ToolFinished) Result() message.ToolResult {
	return message.ToolResult{Call: d.Call, Name: d.Name, Content: d.Content, Files: d.Files, IsError: d.IsError}
}

// Refused reports whether the call does not run: neither allowed, nor put to a person. A verdict that nobody here knows refuses.
func (d ToolJudged) Refused() bool { return d.Verdict != "allow" && d.Verdict != "ask" }

// Result is what the model is told of a call that was refused.
func (d ToolJudged) Result(c message.ToolCall) message.ToolResult { return refusal(c, d.Reason) }

// ResultAgain is what the model is told of a call that was to run again, because its outcome was unknown, and was refused as a person had changed it: what it did before stays unknown.
func (d ToolJudged) ResultAgain(c message.ToolCall) message.ToolResult {
	return refusal(c, Unknown(c).Content+" It was not run again: "+d.Reason)
}

// Result is what the model is told of a rejected call.
func (a Answered) Result(c message.ToolCall) message.ToolResult {
	switch {
	case a.By == ByDeadline:
		return refusal(c, "Not run: nobody approved it in time.")
	case a.By == ByNobody:
		return refusal(c, "Not run: it would have to be approved, and nobody is asked here.")
	case a.Text == "":
		return refusal(c, "Rejected by a person. It was not run.")
	}
	return refusal(c, "Rejected by a person: "+a.Text)
}

// Result is what the model is told of a call when a person said no to it: that it was not run, or, if it had begun, that its outcome stays unknown.
func (q Asked) Result(c message.ToolCall, a Answered) message.ToolResult {
	if !q.Unknown {
		return a.Result(c)
	}
	r := Unknown(c)
	if r.Content += " It was not run again."; a.Text != "" {
		r.Content += " A person says: " + a.Text
	}
	return r
}

// NotRun is what the model is told of a call that had no result when its run ended.
func NotRun(c message.ToolCall) message.ToolResult {
	return refusal(c, "Not run: the run ended before its turn came.")
}

// unanswered is what the model is told of a call that waited for a person who said something else.
func unanswered(c message.ToolCall) message.ToolResult {
	return refusal(c, "Not answered: the person said something else instead.")
}

// Unknown is what the model is told of a call that had begun when its process died or lost its journal: it may have taken effect.
func Unknown(c message.ToolCall) message.ToolResult {
	return refusal(c, "The process died while this call was under way. Whether it took effect is unknown: check before you repeat it.")
}

// CutOff is what the model is told of the calls in a reply that was cut off at the output limit. None of them runs: the last may be half written.
func CutOff(c message.ToolCall) message.ToolResult {
	return refusal(c, "Not run: the reply with this call was cut off at the output limit, so the call may be incomplete. Make it again, with less text.")
}

func refusal(c message.ToolCall, why string) message.ToolResult {
	return message.ToolResult{Call: c.ID, Name: c.Name, Content: why, IsError: true}
}

// To is the answer to q, as it goes on record.
func (a Answered) To(q Asked) Answered {
	if a.ID, a.Name = q.ID, ""; !a.Approved && q.Call != nil {
		a.Name = q.Call.Name
	}
	return a
}

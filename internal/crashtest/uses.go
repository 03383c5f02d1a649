package crashtest

import (
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// uses are the side effects by call.
func (h *past) uses() map[string][]use {
	out := map[string][]use{}
	for _, l := range h.record {
		if l.Use != nil {
			out[l.Use.Call] = append(out[l.Use.Call], *l.Use)
		}
	}
	return out
}

// repeatable are the calls that may run again: those whose side effect says so, and, where there is none, whose tool does.
func (h *past) repeatable() map[string]bool {
	out := map[string]bool{}
	for _, l := range h.record {
		if l.Repeat != "" {
			out[l.Repeat] = true
		}
	}
	for id, us := range h.uses() {
		out[id] = us[0].Repeatable
	}
	return out
}

// words are what the model is told of a call that has no result of its tool.
type words func(message.ToolCall) message.ToolResult

// unknown gives the calls of which the model may be told that their outcome is unknown, with what it may be told: those that must not be repeated, where
// the policy is to report them, and those of which a person said that they shall not run again, where it is to ask. Those that must not be repeated, and whose run was left
// between their begin on record and the tool's own, it may be told that they did not run.
func (h *past) unknown(got *past, policy engine.Unknown) map[string]words {
	out := map[string]words{}
	repeatable := h.repeatable()
	for _, l := range got.record {
		if l.Found != nil {
			for _, id := range l.Found.Unbegun {
				if !repeatable[id] {
					out[id] = journal.NotRun
				}
			}
		}
		switch {
		case l.Found != nil && (policy == "" || policy == engine.UnknownReport):
			for _, id := range l.Found.Open {
				if !repeatable[id] {
					out[id] = journal.Unknown
				}
			}
		case l.Answer != nil && l.Answer.Asked.Unknown:
			if a := l.Answer; a.Answered.Approved {
				delete(out, a.Asked.Call.ID)
			} else {
				out[a.Asked.Call.ID] = func(c message.ToolCall) message.ToolResult { return journal.Asked{Unknown: true}.Result(c, a.Answered) }
			}
		}
	}
	return out
}

// uses judges side effects, in the order in which they happened: each happened once, and with the key that it had undisturbed. One that may be repeated
// (its tool or the policy says so) may come once more in each life that found it under way; any other only where a person was asked
// because it was found so, and said yes. Those in unknown may be missing.
func (v *verdict) uses(want, got *past, policy engine.Unknown, unknown map[string]words) {
	once, repeatable := want.uses(), want.repeatable()
	first := map[string]use{}
	lost, free := map[string]bool{}, map[string]bool{} // found under way; may take effect again
	for _, l := range got.record {
		switch {
		case l.Found != nil:
			for _, id := range l.Found.Open {
				lost[id] = true
				free[id] = free[id] || repeatable[id] || policy == engine.UnknownRetry
			}
		case l.Answer != nil && l.Answer.Asked.Unknown:
			id := l.Answer.Asked.Call.ID
			if !lost[id] {
				v.again("life %d: a person is asked whether %s runs again: it was not under way", l.Life, id)
			}
			lost[id], free[id] = false, l.Answer.Answered.Approved
		case l.Use != nil:
			u := *l.Use
			f, ran := first[u.Call]
			switch w := once[u.Call]; {
			case len(w) == 0:
				v.again("%s %s took effect: undisturbed it does not", u.Tool, u.Call)
			case ran && u.Key != f.Key:
				v.again("%s %s took effect with the key %s: it was %s", u.Tool, u.Call, u.Key, f.Key)
			case u.Same != w[0].Same:
				v.again("%s %s took effect with the key %s: want %s", u.Tool, u.Call, u.Same, w[0].Same)
			case ran && !free[u.Call]:
				v.again("life %d: %s %s took effect again", l.Life, u.Tool, u.Call)
			}
			if !ran {
				first[u.Call] = u
			}
			free[u.Call] = false
		}
	}
	for id, w := range once {
		if _, may := unknown[id]; !may && first[id] == (use{}) {
			v.missing("%s %s never took effect", w[0].Tool, id)
		}
	}
}

// replays looks whether every session was replayed in the end, without a difference.
func (v *verdict) replays(h *past) {
	var done []string
	for _, l := range h.record {
		if l.Replay == nil {
			continue
		}
		done = append(done, l.Replay.Session)
		if l.Replay.Difference != "" {
			v.missing("life %d: the replay of session %s differs: %s", l.Life, l.Replay.Session, l.Replay.Difference)
		}
	}
	for session := range h.last.states {
		if !slices.Contains(done, session) {
			v.missing("the session %s was not replayed", session)
		}
	}
}

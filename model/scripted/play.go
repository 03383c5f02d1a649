package scripted

import (
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// next walks turns beside the transcript h and gives the turn that the next reply is, len(turns) when there is none, and how many
// turns lie behind. The rules are in the package's documentation.
func next(turns []Turn, h message.History, attempt int) (turn, played int) {
	at := 0        // turns[:at] were played or skipped
	asked := false // there is something that a reply was due to, so one that left no message may lie here
	for i, m := range h.All() {
		switch own := byLoop(m); {
		case own && why(m).Why == "summary":
			for range why(m).Replies {
				at = min(reply(turns, at, message.History{}, false)+1, len(turns))
			}
		case m.Role() == message.RoleAssistant && !own:
			if at = reply(turns, at, h.Slice(0, i), m.Blank()); at == len(turns) {
				asked = false
				continue
			}
			asked = goesOn(turns[at].Stop)
			at++
		case own && saysEmpty(m) && i > 0 && h.At(i-1).Role() != message.RoleAssistant:
			at = min(reply(turns, at, h.Slice(0, i), true)+1, len(turns))
		case m.Role() == message.RoleUser && !own && asked:
			at = silent(turns, at, h.Slice(0, i))
		case m.Role() == message.RoleUser || m.Role() == message.RoleTool:
			asked = true
		}
	}
	for played = at; at < len(turns); at++ {
		t := &turns[at]
		if !t.When.holds(h) {
			continue
		}
		if t.Error == nil || attempt <= 0 {
			return at, played
		}
		attempt--
	}
	return at, played
}

// reply gives the turn from at on that an assistant message stands for, which was asked for with h; len(turns) when there is none.
func reply(turns []Turn, at int, h message.History, blank bool) int {
	for ; at < len(turns); at++ {
		t := &turns[at]
		if t.Error == nil && (blank || !t.blank()) && t.When.holds(h) {
			break
		}
	}
	return at
}

// silent passes what may have been played in answer to h without leaving a message: errors in a row, and a blank reply.
func silent(turns []Turn, at int, h message.History) int {
	for i := at; i < len(turns); i++ {
		t := &turns[i]
		switch {
		case !t.When.holds(h): // not there; but it is, again, for the next request, unless something behind it was played
		case t.Error != nil:
			at = i + 1
		case t.blank():
			return i + 1
		default:
			return at
		}
	}
	return at
}

// goesOn reports whether a loop asks again after a reply that ended so, even if it makes no calls.
func goesOn(s model.StopReason) bool { return s == model.StopLength || s == model.StopPause }

// why is what the loop says of a message that it made.
func why(m message.Message) (w struct {
	Why     string
	Replies int
},
) {
	if m.Len() == 0 {
		return w
	}
	if t, ok := m.Part(0).(message.Text); ok && t.Extra != "" {
		_ = json.Unmarshal([]byte(t.Extra), &w)
	}
	return w
}

// saysEmpty reports whether the loop says with m that the reply before it said nothing; that reply left no message.
func saysEmpty(m message.Message) bool { return why(m).Why == "empty" }

// byLoop reports whether the loop made m, not a person or a model.
func byLoop(m message.Message) bool {
	for p := range m.Parts() {
		var o message.Origin
		switch p := p.(type) {
		case message.Text:
			o = p.Origin
		case message.Reasoning:
			o = p.Origin
		case message.ToolCall:
			o = p.Origin
		}
		if o.Provider != "pawl" {
			return false
		}
	}
	return m.Len() > 0
}

// holds reports whether w is true of the transcript h.
func (w When) holds(h message.History) bool {
	if w == (When{}) {
		return true
	}
	if w.ToolError != "" {
		if failed, found := outcome(h, w.ToolError); !found || !failed {
			return false
		}
	}
	if w.ToolOK != "" {
		if failed, found := outcome(h, w.ToolOK); !found || failed {
			return false
		}
	}
	return w.Contains == "" || contains(h, w.Contains)
}

// outcome looks for the last result of a call.
func outcome(h message.History, call string) (failed, found bool) {
	for i := h.Len() - 1; i >= 0; i-- {
		for r := range message.Of[message.ToolResult](h.At(i)) {
			if r.Call == call {
				return r.IsError, true
			}
		}
	}
	return false, false
}

// contains looks for text in what came after the last assistant message.
func contains(h message.History, text string) bool {
	for i := h.Len() - 1; i >= 0 && h.At(i).Role() != message.RoleAssistant; i-- {
		if strings.Contains(h.At(i).Text(), text) {
			return true
		}
		for r := range message.Of[message.ToolResult](h.At(i)) {
			if strings.Contains(r.Content, text) {
				return true
			}
		}
	}
	return false
}

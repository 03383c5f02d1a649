package scripted

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// Script is what a script file says. [Script.Model] plays it.
type Script struct {
	Name  string // what the model is called after "scripted/"
	Turns []Turn // of the agent itself
	// Moves lets the beginning of conversations change from one request to the next, for a test that changes it: see the package on prompt caches.
	Moves  bool
	Agents map[string][]Turn // of child agents, by name: in a Runtime (package pawl) the ID of a subagent
}

// Turn is one entry of a script: a reply, or an error in its place.
type Turn struct {
	Text      string // streamed word by word
	Reasoning string // streamed before the text
	Calls     []Call // at the end of the reply
	Usage     model.Usage
	Stop      model.StopReason // "": tool_use with calls, else end_turn
	When      When             // the zero When is always true
	Error     *Failure         // instead of a reply
	Delay     time.Duration    // before anything is played
}

// Call is a tool call in a reply.
type Call struct {
	ID    string // "": call_N_K, see the package
	Name  string
	Input string // JSON, or what isn't quite; "": {}
}

// When is a condition on the transcript. All that is set has to be true.
type When struct {
	ToolError string // the last result of the call with this id is an error
	ToolOK    string // the last result of the call with this id is not an error
	Contains  string // a user's text or a result after the last assistant message contains it
}

// Failure is a provider's error. It becomes a [model.Error] of class [model.ClassOfStatus].
type Failure struct {
	Status     int // 400 to 599; 0: 500
	RetryAfter time.Duration
	Code       string
	Message    string
	MidStream  bool // streaming, half of the turn's words come first
}

// Text is the turn that says text and ends the run; with "", a blank reply.
func Text(text string) Turn { return Turn{Text: text, Stop: model.StopEnd} }

// Calls is the turn that makes calls and says nothing.
func Calls(calls ...Call) Turn { return Turn{Calls: calls} }

// Fail is the turn in which the provider fails with an HTTP status.
func Fail(status int) Turn { return Turn{Error: &Failure{Status: status}} }

// blank reports whether the turn's reply says nothing that a transcript keeps.
func (t *Turn) blank() bool { return len(t.Calls) == 0 && strings.TrimSpace(t.Text) == "" }

// problem says what is wrong with a turn; "" when nothing is.
func (t *Turn) problem() string {
	if t.Delay < 0 {
		return "delay is negative: give 0s or more"
	}
	for _, c := range t.Calls {
		if c.Name == "" {
			return "a call has no name: give the name of a tool"
		}
	}
	f := t.Error
	switch {
	case f == nil && t.blank() && t.Reasoning == "" && t.Text == "" && t.Stop == "":
		return `nothing to play: give text, reasoning, tool_calls, stop or error (text: "" is a blank reply)`
	case f == nil:
		return ""
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return "error: status " + strconv.Itoa(f.Status) + " is not an error: give 400 to 599"
	case f.RetryAfter < 0:
		return "error: retry_after is negative: give 0s or more"
	case len(t.Calls) > 0 || t.Stop != "" || t.Usage != (model.Usage{}):
		return "an error has no reply: leave tool_calls, stop and usage out"
	case f.MidStream && t.Text == "" && t.Reasoning == "":
		return "mid_stream needs text to break off: give text"
	case !f.MidStream && (t.Text != "" || t.Reasoning != ""):
		return "an error shows no text: leave it out or set mid_stream: true"
	}
	return ""
}

// ready gives turns as they are played: with ids, inputs and stop reasons filled in.
func ready(turns []Turn) ([]Turn, error) {
	if len(turns) == 0 {
		return nil, errdefs.Validation.Errorf("the script is empty: give at least one turn")
	}
	taken := map[string]bool{}
	for _, t := range turns {
		for _, c := range t.Calls {
			taken[c.ID] = true
		}
	}
	out := make([]Turn, len(turns))
	for i, t := range turns {
		if p := t.problem(); p != "" {
			return nil, errdefs.Validation.Errorf("turn %d: %s", i+1, p)
		}
		calls := make([]Call, len(t.Calls))
		for k, c := range t.Calls {
			if c.ID == "" {
				c.ID = freshID(i+1, k+1, taken)
			}
			c.Input = tidy(c.Input)
			calls[k] = c
		}
		t.Calls = calls
		if t.Stop == "" {
			t.Stop = model.StopEnd
			if len(calls) > 0 {
				t.Stop = model.StopTools
			}
		}
		out[i] = t
	}
	return out, nil
}

// freshID names the k-th call of the n-th turn as no other call in the script is named.
func freshID(n, k int, taken map[string]bool) string {
	id := "call_" + strconv.Itoa(n) + "_" + strconv.Itoa(k)
	for taken[id] {
		id += "x"
	}
	taken[id] = true
	return id
}

// tidy makes input what message.ToolCall wants: compact when it is JSON, as it is otherwise.
func tidy(input string) string {
	if strings.TrimSpace(input) == "" {
		return "{}"
	}
	if compact, ok := wire.AppendCompact(nil, []byte(input)); ok {
		return string(compact)
	}
	return input
}

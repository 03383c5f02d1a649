package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/process"
)

// The limits of what a hook says.
const (
	textLimit   = 10_000  // characters of each text
	outputLimit = 1 << 20 // bytes of its standard output that are read as an answer; of its standard error as much is kept
)

// answer is what a hook said to an event.
type answer struct {
	by      *handler
	err     error        // it gave no answer that counts; where it judges, that is a no
	verdict hook.Verdict // Deny is "block" too
	reason  string
	input   string  // the call's new input
	output  *string // the result's new text
	context string  // for the model
	ends    bool    // the run, or the wait for it to go on
	ending  string  // why it ends
}

// ran is one hook process, when it is over.
type ran struct {
	process.End
	stdout, stderr capped
	err            error // it could not be started
}

// spoken is the JSON that a hook writes.
type spoken struct {
	Continue      *bool   `json:"continue"`
	StopReason    string  `json:"stopReason"`
	Decision      *string `json:"decision"`
	Reason        string  `json:"reason"`
	SystemMessage string  `json:"systemMessage"`
	Suppress      bool    `json:"suppressOutput"`
	Specific      struct {
		Event      EventType       `json:"hookEventName"`
		Decision   *string         `json:"permissionDecision"`
		Reason     string          `json:"permissionDecisionReason"`
		Input      json.RawMessage `json:"updatedInput"`
		Context    string          `json:"additionalContext"`
		Output     json.RawMessage `json:"updatedToolOutput"`
		MCPsOutput json.RawMessage `json:"updatedMCPToolOutput"`
	} `json:"hookSpecificOutput"`
}

// answer makes an answer of how a process ended and what it wrote, and tells people what is for them.
func (h *handler) answer(r ran, tell func(NoticeKind, string)) answer {
	a := answer{by: h}
	words := r.stderr.text()
	if r.Background {
		tell(NoticeWarning, "processes that it left behind still held its output and were stopped: send their output to a file")
	}
	switch signal := r.signal(); {
	case r.err != nil:
		a.err = errdefs.NotAvailable.Errorf("it could not be started: %w", r.err)
	case r.TimedOut:
		a.err = errdefs.Timeout.Errorf("it was not done after %v and was killed: make it faster, or give it a longer timeout", h.limit)
	case signal != "":
		a.err = errdefs.NotAvailable.Errorf("it was killed by %s", signal)
	case r.Code == 0:
		h.read(r, &a, tell)
	case (r.Code == 126 || r.Code == 127) && h.Event == PreToolUse: // a shell says so of a program that it can't run, or doesn't find: who was to judge did not
		a.err = errdefs.NotAvailable.Errorf("its program could not be started (exit code %d)", r.Code)
	case r.Code == 2:
		a.verdict, a.reason = hook.Deny, words
	default:
		tell(NoticeWarning, strings.TrimSuffix(fmt.Sprintf("it failed with exit code %d, which decides nothing (2 refuses): %s", r.Code, words), ": "))
	}
	h.surplus(&a, tell)
	if a.err != nil {
		tell(NoticeWarning, strings.TrimSuffix(fmt.Sprintf("%v: %s", a.err, words), ": "))
	}
	return a
}

// signal names what killed it. A shell whose command was killed says so by its exit code.
func (r ran) signal() string {
	if r.Signal == "" && r.Code > 128 && r.Code < 160 {
		return fmt.Sprintf("signal %d", r.Code-128)
	}
	return r.Signal
}

// read takes the answer from the standard output of a hook that ended well.
func (h *handler) read(r ran, a *answer, tell func(NoticeKind, string)) {
	out := bytes.TrimSpace(r.stdout.kept)
	if len(out) == 0 {
		return
	}
	if out[0] != '{' {
		tell(NoticeOutput, r.stdout.text())
		if h.Event == SessionStart {
			a.context = r.stdout.text()
		}
		return
	}
	bad := func(format string, args ...any) {
		*a = answer{by: h, err: errdefs.Validation.Errorf("what it wrote begins like an answer in JSON and is none: "+format, args...)}
	}
	var s spoken
	if r.stdout.more {
		bad("it is longer than %d bytes", outputLimit)
		return
	}
	var typ *json.UnmarshalTypeError
	if err := json.Unmarshal(out, &s); errors.As(err, &typ) {
		bad("its %s is of the type %s: want %v", typ.Field, typ.Value, typ.Type)
		return
	} else if err != nil {
		bad("%w", err)
		return
	}
	if !s.Suppress {
		tell(NoticeOutput, r.stdout.text())
	}
	if s.SystemMessage != "" {
		tell(NoticeMessage, clip(s.SystemMessage))
	}
	sp := s.Specific
	if sp.Event != "" && sp.Event != h.Event {
		bad("its hookEventName is %q, not %q", sp.Event, h.Event)
		return
	}
	verdict, ok := verdictOf(s.Decision)
	special, ok2 := verdictOf(sp.Decision)
	switch {
	case !ok:
		bad("its decision is %q: want approve, allow, block, deny or ask", *s.Decision)
		return
	case !ok2:
		bad("its permissionDecision is %q: want allow, deny, ask or defer", *sp.Decision)
		return
	}
	a.verdict, a.reason = verdict, s.Reason
	if special > verdict || s.Decision == nil {
		a.verdict, a.reason = special, sp.Reason
	}
	if a.reason == "" {
		a.reason = s.Reason + sp.Reason // one of them is ""
	}
	a.reason, a.context = clip(a.reason), clip(sp.Context)
	if s.Continue != nil && !*s.Continue {
		a.ends, a.ending = true, clip(s.StopReason)
	}
	a.input = given(sp.Input)
	for _, output := range []json.RawMessage{sp.Output, sp.MCPsOutput} {
		if text := given(output); text != "" {
			_ = json.Unmarshal(output, &text) // what is no text is told as JSON
			a.output = &text
		}
	}
}

// surplus tells of what has no meaning at this event, and takes it out.
func (h *handler) surplus(a *answer, tell func(NoticeKind, string)) {
	if a.input != "" && h.Event != PreToolUse {
		tell(NoticeWarning, "updatedInput has no effect but in PreToolUse")
		a.input = ""
	}
	if a.output != nil && h.Event != PostToolUse {
		tell(NoticeWarning, "updatedToolOutput has no effect but in PostToolUse")
		a.output = nil
	}
	if a.verdict == hook.Ask && h.Event != PreToolUse {
		tell(NoticeWarning, "the decision ask has no effect but in PreToolUse")
		a.verdict = hook.Continue
	}
	if a.verdict == hook.Deny && (h.Event == SessionStart || h.Event == SessionEnd || h.Event == SubagentStart) {
		tell(NoticeWarning, "there is nothing to refuse in "+string(h.Event)+": "+a.reason)
		a.verdict = hook.Continue
	}
	if a.context != "" && (h.Event == SessionEnd || h.Event == SubagentStop) {
		tell(NoticeWarning, "no model hears additionalContext after "+string(h.Event))
		a.context = ""
	}
	if a.ends && h.Event != PreToolUse && h.Event != PostToolUse { // there it is in the error that the run ends with
		tell(NoticeMessage, a.ending)
	}
	if h.Async && (a.verdict != hook.Continue || a.ends || a.input != "" || a.output != nil || a.context != "") {
		tell(NoticeWarning, "what it decided, or had to say to the model, comes too late: it runs in the background")
	}
}

func verdictOf(word *string) (hook.Verdict, bool) {
	if word == nil {
		return hook.Continue, true
	}
	switch strings.ToLower(*word) {
	case "":
		return hook.Continue, true
	case "approve", "allow":
		return hook.Allow, true
	case "ask", "defer":
		return hook.Ask, true
	case "block", "deny":
		return hook.Deny, true
	}
	return hook.Deny, false
}

// given is a member's JSON, "" when it is not there.
func given(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// clip cuts a text off that is too long, and says so.
func clip(s string) string {
	if len(s) <= textLimit || utf8.RuneCountInString(s) <= textLimit {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > textLimit {
			return fmt.Sprintf("%s\n[cut off after %d characters]", s[:i], textLimit)
		}
	}
	return s
}

// capped keeps the beginning of what is written to it.
type capped struct {
	kept []byte
	more bool
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), outputLimit-len(c.kept))
	c.kept = append(c.kept, p[:n]...)
	c.more = c.more || n < len(p)
	return len(p), nil
}

// text is what was written, for people and models.
func (c *capped) text() string {
	return clip(strings.ToValidUTF8(string(bytes.TrimSpace(bytes.ReplaceAll(c.kept, []byte{0}, nil))), "\uFFFD"))
}

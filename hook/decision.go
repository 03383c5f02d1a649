package hook

import "github.com/pawl-dev/pawl/errdefs"

// Verdict orders the decisions: the strictest wins.
type Verdict int

// The verdicts.
const (
	Continue Verdict = iota // no opinion
	Allow
	Ask
	Deny
)

// String gives "continue", "allow", "ask" or "deny"; "deny" for what is no verdict.
func (v Verdict) String() string {
	if v < Continue || v > Deny {
		return "deny"
	}
	return [...]string{"continue", "allow", "ask", "deny"}[v]
}

// MarshalText gives the words of String.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads them; errdefs.Validation for any other.
func (v *Verdict) UnmarshalText(text []byte) error {
	for known := Continue; known <= Deny; known++ {
		if string(text) == known.String() {
			*v = known
			return nil
		}
	}
	return errdefs.Validation.Errorf("hook: %q is no verdict: want continue, allow, ask or deny", text)
}

// Decision is a PreToolUse answer. The zero Decision is no opinion.
type Decision struct {
	Verdict Verdict
	Reason  string // reaches the model when denied, the person when asked, the journal always
	Input   string // rewritten input; "" leaves it. It is validated, and judged again by every hook.
	By      any    // with Input: whose it is, in a value of the hook's own, which ToolUse.By has when the call is judged again. Nobody else reads it
	Session bool   // with Ask: an approval for the session, which ToolUse.Granted has then, keeps the hook from asking about the like again
	Context string // for the model: it stands behind the result of the call, or behind the reason when the call is denied
}

// Allowed lets the call run unless another hook objects.
func Allowed(reason string) Decision { return Decision{Verdict: Allow, Reason: reason} }

// Denied refuses the call.
func Denied(reason string) Decision { return Decision{Verdict: Deny, Reason: reason} }

// Asking lets a person decide.
func Asking(prompt string) Decision { return Decision{Verdict: Ask, Reason: prompt} }

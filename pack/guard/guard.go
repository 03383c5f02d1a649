package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// DefaultMessage is what a user is shown in place of a blocked reply when the pack has no message of its own.
const DefaultMessage = "This reply was withheld: it breaks a rule of this conversation."

// The same, where it is not, or not surely, about a reply, and where nothing was blocked.
const (
	refusedMessage  = "This message was refused: it breaks a rule of this conversation."
	withheldMessage = "This was withheld: it breaks a rule of this conversation."
	notedMessage    = "This breaks a rule of this conversation."
)

// Config says what a validator is, as a pack does.
type Config struct {
	Type            string
	Params          Params
	Message         string // shown in place of what is blocked; "": see [Violation.Message]
	FailOnViolation bool   // false: what breaks the rule is noted, and shown all the same
}

// Rule judges whole texts. Implementations are immutable and safe for concurrent use.
type Rule interface {
	// Judge says what is wrong with a text, in a few words, or "". With an error the text counts as wrong: nothing is let through because nobody could judge it.
	Judge(ctx context.Context, text string) (wrong string, err error)
}

// RuleFunc is a Rule made of a function.
type RuleFunc func(ctx context.Context, text string) (wrong string, err error)

// Judge calls the function.
func (f RuleFunc) Judge(ctx context.Context, text string) (string, error) { return f(ctx, text) }

// Streamer is a Rule that can judge a text as it comes. Of any other Rule the whole text is held back until its end.
type Streamer interface {
	Rule
	Scanner() Scanner
	Holds() string // at most how much is held back, in a few words
}

// Scanner judges one text as it comes. It is used by one goroutine.
type Scanner interface {
	// Scan takes the next piece, of whole characters. clear is how many bytes of the text so far may be shown whatever comes; it never falls. With wrong, it is where the violation begins, and
	// Scan is not called again.
	Scan(piece string) (clear int, wrong string)
	// End says that no more comes; clear matters only with wrong.
	End() (clear int, wrong string)
}

// Maker makes a Rule of a validator's parameters. Its error is an [Error] when it can name the parameter that is wrong: see [Params.Read].
type Maker func(Params) (Rule, error)

// Types are validators by type.
type Types map[string]Maker

// builtin are the types that are always there. The names in the second half are the specification's other ones for the same things.
var builtin = Types{
	"banned_words":    newWords,
	"max_length":      newLength,
	"max_sentences":   newSentences,
	"required_fields": newFields,
	"regex":           newRegex,
	"json_schema":     newSchema,
	"pii_leakage":     newPII,
	"llm_judge":       newJudge,

	"length":        newLength,
	"regex_match":   newRegex,
	"pii_detection": newPII,
}

// Known are the names of the types that can be used, in order: the built-in ones and more.
func Known(more Types) []string {
	all := maps.Clone(builtin)
	maps.Copy(all, more)
	return slices.Sorted(maps.Keys(all))
}

// Fault is something wrong with a Config.
type Fault struct {
	Param  string // the parameter; "": the type itself
	Reason string
	Remedy string
}

// Error is why a guard can't be made. Its class is errdefs.Validation.
type Error struct {
	Type   string
	Faults []Fault // at least one
}

// Error lists the faults.
func (e *Error) Error() string {
	var all []string
	for _, f := range e.Faults {
		text := f.Reason
		if f.Param != "" {
			text = f.Param + ": " + text
		}
		if f.Remedy != "" {
			text += ": " + f.Remedy
		}
		all = append(all, text)
	}
	return fmt.Sprintf("guard: %s: %s", e.Type, strings.Join(all, "; "))
}

// Unwrap gives the class.
func (e *Error) Unwrap() error { return errdefs.Validation }

// Guard is a validator, ready to judge. Immutable and safe for concurrent use.
type Guard struct {
	Config
	Input  bool // it judges what users say
	Output bool // it judges replies
	rule   Rule
}

// New makes a guard; more are types besides the built-in ones, which they can replace. The error is an [*Error].
//
// Every type takes the parameter direction: "output" (the default), "input" or "both"; and message, where older packs have the Config's Message.
func New(c Config, more Types) (*Guard, error) {
	g := &Guard{Config: c}
	maker, ok := more[c.Type]
	if !ok {
		maker, ok = builtin[c.Type]
	}
	if !ok {
		f := Fault{Reason: fmt.Sprintf("there is no validator %q", c.Type), Remedy: "have one of " + strings.Join(Known(more), ", ")}
		if names := near.Names(c.Type, Known(more)); len(names) > 0 {
			f.Remedy = "did you mean " + names[0] + "?"
		}
		return nil, &Error{c.Type, []Fault{f}}
	}
	params := maps.Clone(c.Params)
	r := params.Read()
	direction := r.OneOf("direction", "output", "input", "both")
	if message := r.Text("message"); g.Message == "" {
		g.Message = message
	}
	delete(params, "direction")
	delete(params, "message")
	g.Input, g.Output = direction != "output", direction != "input"
	faults := r.faults
	rule, err := maker(params)
	if err != nil {
		var own *Error
		if !asError(err, &own) {
			own = &Error{Faults: []Fault{{Param: "", Reason: err.Error(), Remedy: "correct its params"}}}
		}
		faults = append(faults, own.Faults...)
	}
	if len(faults) > 0 {
		return nil, &Error{c.Type, faults}
	}
	g.rule = rule
	return g, nil
}

// With gives the guard with a model to ask, for llm_judge; other guards are given back as they are.
func (g *Guard) With(ask Ask) *Guard {
	j, ok := g.rule.(*judge)
	if !ok {
		return g
	}
	bound, asking := *g, *j
	asking.ask = ask
	bound.rule = &asking
	return &bound
}

// Holds says at most how much of a stream the guard holds back.
func (g *Guard) Holds() string {
	if !g.FailOnViolation {
		return "nothing: what it finds is noted"
	}
	if s, ok := g.rule.(Streamer); ok {
		return s.Holds()
	}
	return "the whole text"
}

// Judge judges a whole text: nil when it keeps the rule. A rule that fails, or panics, has not let it through.
func (g *Guard) Judge(ctx context.Context, text string) *Violation {
	wrong, err := g.judge(ctx, text)
	if err != nil {
		return &Violation{Guard: g, Reason: "it could not be judged: " + err.Error(), Err: err}
	}
	if wrong == "" {
		return nil
	}
	return &Violation{Guard: g, Reason: wrong}
}

// judge takes a rule that panics for one that could not judge.
func (g *Guard) judge(ctx context.Context, text string) (wrong string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Internal.Errorf("it panicked: %v", p)
		}
	}()
	return g.rule.Judge(ctx, text)
}

// Violation is a text that breaks a rule. As an error it is of class errdefs.PolicyDenied.
type Violation struct {
	Guard  *Guard
	Reason string // for logs and developers; it has nothing of what was found where that is somebody's data
	Err    error  // why it could not be judged, if that is it
}

// Error says which validator refused, and why.
func (v *Violation) Error() string { return fmt.Sprintf("guard: %s: %s", v.Guard.Type, v.Reason) }

// Unwrap gives the class, and the error that kept the guard from judging.
func (v *Violation) Unwrap() []error {
	if v.Err != nil {
		return []error{errdefs.PolicyDenied, v.Err}
	}
	return []error{errdefs.PolicyDenied}
}

// Message is what a user is shown in place of what was blocked: the pack's own words, or else [DefaultMessage] for a reply. What a user said, what a validator of both directions judged, and what was only noted, has words of its own that say so.
func (v *Violation) Message() string {
	switch g := v.Guard; {
	case g.Message != "":
		return g.Message
	case !g.FailOnViolation:
		return notedMessage
	case !g.Input:
		return DefaultMessage
	case g.Output:
		return withheldMessage
	}
	return refusedMessage
}

// scanned judges a whole text as a stream of one piece, so that both come to the same.
func scanned(s Scanner, text string) string {
	_, wrong := s.Scan(text)
	if wrong == "" {
		_, wrong = s.End()
	}
	return wrong
}

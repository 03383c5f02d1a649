package star

import (
	"errors"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
)

// Elsewhere is an error of another thread, whose calls stand behind those that led there.
type Elsewhere struct {
	In  string // what the thread did
	Err error
}

func (e *Elsewhere) Error() string { return e.Err.Error() }

func (e *Elsewhere) Unwrap() error { return e.Err }

// failure is what an evaluation failed of, with its place: by the limit or the context that was over, if any, and otherwise with the class of its cause, errdefs.Validation if that has none.
// With trace the calls that led there follow, the outermost first.
func failure(err, over error, trace bool) error {
	var stack []string
	where := calls(err, &stack)
	if over != nil {
		if errdefs.Of(over) == nil && errdefs.Canceled(over) {
			return over
		}
		err = over
	}
	class := errdefs.Of(err)
	if class == nil {
		if errdefs.Canceled(err) {
			return err
		}
		class = errdefs.Validation
	}
	text := ""
	if trace {
		text = strings.Join(stack, "")
	}
	if where != "" {
		where += ": "
	}
	return class.Errorf("%s%w%s", where, shortened{err}, text)
}

// calls adds the calls that led to an error, and gives the place of the innermost.
func calls(err error, stack *[]string) (where string) {
	var at *starlark.EvalError
	if !errors.As(err, &at) {
		return ""
	}
	for _, f := range at.CallStack {
		if f.Pos.Line > 0 { // else a builtin
			where = place(f.Pos)
			*stack = append(*stack, "\n  "+where+": in "+strings.TrimPrefix(f.Name, "@"))
		}
	}
	var other *Elsewhere
	if errors.As(at.Unwrap(), &other) {
		*stack = append(*stack, "\n  in "+other.In+":")
		if inner := calls(other.Err, stack); inner != "" {
			where = inner
		}
	}
	return where
}

// shortened is an error with a text of at most 2000 bytes: a script may quote anything in it.
type shortened struct{ error }

func (s shortened) Error() string {
	const most = 2000
	text := s.error.Error()
	if len(text) <= most {
		return text
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

func (s shortened) Unwrap() error { return s.error }

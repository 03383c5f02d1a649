package star

import (
	"cmp"
	"errors"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
)

// failure is what an evaluation failed of, with its place: by the limit or the context that was over, if any, and otherwise with the class of its cause, errdefs.Validation if that has none.
// With trace the calls that led there follow, the outermost first.
func failure(err, over error, trace bool) error {
	var at *starlark.EvalError
	where, calls := "", ""
	if errors.As(err, &at) {
		for _, f := range at.CallStack {
			if f.Pos.Line == 0 || !f.Pos.IsValid() { // a builtin
				continue
			}
			where = place(f.Pos) + ": "
			calls += "\n  " + place(f.Pos) + ": in " + strings.TrimPrefix(f.Name, "@")
		}
	}
	if !trace {
		calls = ""
	}
	if over != nil {
		if errdefs.Canceled(over) {
			return over
		}
		err = over
	}
	class := cmp.Or(errdefs.Of(err), errdefs.Validation)
	return class.Errorf("%s%w%s", where, shortened{err}, calls)
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

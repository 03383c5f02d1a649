package event

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Subject makes a predicate of a pattern of subjects, as [Event.Subject] has them: "*" is any one part, and ">", at the end only, all that follow, at
// least one. An id goes into it through [Part]. A pattern that is written wrong, or that no subject can ever match, is an errdefs.Validation at once.
// Matching allocates nothing and is safe for concurrent use.
func Subject(pattern string) (func(Event) bool, error) {
	fail := func(format string, args ...any) (func(Event) bool, error) {
		return nil, errdefs.Validation.Errorf("event: subject %q: "+format, append([]any{pattern}, args...)...)
	}
	parts := strings.Split(pattern, ".")
	want := slices.Clone(parts) // without escapes
	for i, p := range parts {
		switch {
		case pattern == "":
			return fail(`the pattern is empty: ">" matches everything`)
		case p == "":
			return fail(`part %d is empty: "*" stands for any one part, "-" for an empty id`, i+1)
		case p == ">" && i+1 < len(parts):
			return fail(`part %d is ">", which takes all that follows: leave out what stands behind it, or write "*"`, i+1)
		case p == "*" || p == ">":
			continue
		}
		id := ""
		if p != "-" {
			var err error
			if id, err = url.PathUnescape(p); err != nil {
				return fail(`part %d is %q, with a "%%" that begins no escape: put ids through event.Part`, i+1, p)
			}
		}
		if spelled := Part(id); spelled != p {
			return fail(`part %d is %q: an id like that is spelled %q, see event.Part; "*" and ">" stand alone`, i+1, p, spelled)
		}
		want[i] = id
	}
	if why := unknown(parts); why != "" {
		return fail("%s", why)
	}
	return func(e Event) bool {
		p := e.path()
		for i, w := range want {
			part, ok := p.next()
			if !ok || parts[i] == ">" {
				return ok
			}
			if part != w && parts[i] != "*" {
				return false
			}
		}
		_, more := p.next()
		return !more
	}, nil
}

// unknown says why no subject can match; "" when one can.
func unknown(pattern []string) string {
	at, words := -1, []string(nil) // where those shapes differ that fit furthest, and what they have there
	for _, s := range shapes {
		shape := strings.Split(s, ".")
		i := differ(pattern, shape)
		if i < 0 {
			return ""
		}
		if i > at {
			at, words = i, nil
		}
		if word := "no more parts"; i == at {
			if i < len(shape) {
				word = shape[i]
			}
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	wanted := "want " + strings.Join(words, " or ") + ", see event.Event.Subject"
	if at == len(pattern) {
		return "no subject ends with part " + strconv.Itoa(at) + `: add ".>" for all below, or go on; ` + wanted
	}
	return "part " + strconv.Itoa(at+1) + " is " + strconv.Quote(pattern[at]) + ", and no subject has that there: " + wanted
}

// differ is where a pattern and a shape have no subject in common any more; -1 when they have one.
func differ(pattern, shape []string) int {
	for i := 0; ; i++ {
		switch {
		case i == len(pattern) && i == len(shape):
			return -1
		case i == len(pattern) || i == len(shape):
			return i
		case shape[i] == ">" || pattern[i] == ">":
			return -1
		case pattern[i] != shape[i] && pattern[i] != "*" && shape[i] != "*":
			return i
		}
	}
}

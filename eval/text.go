package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/internal/schema"
)

// scorer is a stock scorer.
type scorer struct {
	name  string
	wrong error // with how it was made
	score func(ctx context.Context, s Sample) (Score, error)
}

func (s *scorer) String() string { return s.name }
func (s *scorer) check() error   { return s.wrong }

func (s *scorer) Score(ctx context.Context, sample Sample) (Score, error) {
	if s.wrong != nil {
		return Score{}, s.wrong
	}
	return s.score(ctx, sample)
}

// rule is a stock scorer that can't fail.
func rule(name string, judge func(s Sample) Score) Scorer {
	return &scorer{name: name, score: func(_ context.Context, s Sample) (Score, error) { return judge(s), nil }}
}

// wanted is a scorer that goes by the case's Want.
func wanted(name string, judge func(s Sample, want string) (Score, error)) Scorer {
	return &scorer{name: name, score: func(_ context.Context, s Sample) (Score, error) {
		if s.Case.Want == "" {
			return Score{}, errdefs.Validation.Errorf("the case has no Want: give it one, or leave the scorer %s out", name)
		}
		return judge(s, s.Case.Want)
	}}
}

// Exact asks for the answer to be the case's Want, but for white space at both ends.
func Exact() Scorer {
	return wanted("exact", func(s Sample, want string) (Score, error) {
		if got := strings.TrimSpace(s.Answer); got != strings.TrimSpace(want) {
			return Score{Why: fmt.Sprintf("got %q, want %q", clip(got, 200), clip(want, 200))}, nil
		}
		return verdict(""), nil
	})
}

// Contains asks for the answer to have all of texts in it, in upper or lower case; without any, the case's Want. The value is the share of those that it has.
func Contains(texts ...string) Scorer {
	if len(texts) == 0 {
		return wanted("contains", func(s Sample, want string) (Score, error) { return containing(s.Answer, []string{want}), nil })
	}
	return rule("contains "+clip(strings.Join(texts, ", "), 60), func(s Sample) Score { return containing(s.Answer, texts) })
}

func containing(answer string, texts []string) Score {
	answer = strings.ToLower(answer)
	missing := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return strings.Contains(answer, strings.ToLower(t)) })
	wrong := ""
	if len(missing) > 0 {
		wrong = fmt.Sprintf("it lacks %q", missing)
	}
	return share(len(texts)-len(missing), len(texts), wrong)
}

// Regexp asks for re to match the answer, anywhere in it.
func Regexp(re *regexp.Regexp) Scorer {
	return rule("regexp "+clip(re.String(), 60), func(s Sample) Score {
		if !re.MatchString(s.Answer) {
			return Score{Why: fmt.Sprintf("%q does not match %s", clip(s.Answer, 200), re)}
		}
		return verdict("")
	})
}

// JSON asks for the answer to be the same JSON as the case's Want: members in any order, 1.0 the same as 1. A Want that is no JSON is an error.
func JSON() Scorer {
	return wanted("json", func(s Sample, want string) (Score, error) {
		w, err := parse(want)
		if err != nil {
			return Score{}, errdefs.Validation.Errorf("the case's Want is no JSON: %w", err)
		}
		got, err := parse(s.Answer)
		switch {
		case err != nil:
			return Score{Why: "it is no JSON: " + err.Error()}, nil
		case !fits(got, w, false):
			return Score{Why: fmt.Sprintf("got %s, want %s", clip(s.Answer, 200), clip(want, 200))}, nil
		}
		return verdict(""), nil
	})
}

// JSONSchema asks for the answer to be JSON that fits a JSON Schema, whose references are followed only inside it.
func JSONSchema(text json.RawMessage) Scorer {
	compiled, err := schema.Compile(text)
	if err != nil {
		err = errdefs.Validation.Errorf("it is no JSON Schema: %w", err)
	}
	return &scorer{name: "json schema", wrong: err, score: func(_ context.Context, s Sample) (Score, error) {
		v, err := schema.Parse([]byte(s.Answer))
		if err != nil {
			return Score{Why: "it is no JSON: " + err.Error()}, nil
		}
		faults, err := compiled.Check(v, false)
		if err != nil || len(faults) > 0 {
			return Score{Why: "it does not fit the schema: " + schema.Problems(faults, 5)}, err
		}
		return verdict(""), nil
	}}
}

// parse reads one value of JSON, with numbers as they are written, and no member twice.
func parse(text string) (v any, err error) {
	if err := exact.Once([]byte(text)); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errdefs.Validation.Errorf("there is more behind the value")
	}
	return v, nil
}

// fits reports whether a value of JSON is the one that is wanted; with part, objects may have further members, however deep. Lists have to be as long.
func fits(got, want any, part bool) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || !part && len(g) != len(w) {
			return false
		}
		for name, v := range w {
			if below, ok := g[name]; !ok || !fits(below, v, part) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, w, func(g, w any) bool { return fits(g, w, part) })
	}
	switch got.(type) {
	case map[string]any, []any: // can't be compared by ==
		return false
	}
	g, isNumber := numeral(got)
	if w, ok := numeral(want); ok || isNumber {
		return ok && isNumber && sameNumber(g, w)
	}
	return got == want
}

// numeral is a number as it is written, or a Go number of a table.
func numeral(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// sameNumber compares integers exactly, and other numbers as float64.
func sameNumber(a, b string) bool {
	i, err := strconv.ParseInt(a, 10, 64)
	j, err2 := strconv.ParseInt(b, 10, 64)
	if err == nil && err2 == nil {
		return i == j
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err == nil && err2 == nil && x == y
}

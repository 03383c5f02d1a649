package eval

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// condition is one of an eval's when: all of them have to hold.
type condition struct {
	name  string
	holds func(s Sample) (bool, error)
}

// counts are conditions on how many turns there were, this one included.
var counts = map[string]func(n, of float64) bool{
	"turn_count_gte": func(n, of float64) bool { return n >= of },
	"turn_count_lte": func(n, of float64) bool { return n <= of },
	"turn_count_gt":  func(n, of float64) bool { return n > of },
	"turn_count_lt":  func(n, of float64) bool { return n < of },
	"turn_count_eq":  func(n, of float64) bool { return n == of },
}

// others are the other conditions, made of their values.
var others = map[string]func(v any) (func(s Sample) (bool, error), error){
	"has_variable":        hasVariable,
	"tool_called":         toolCalled,
	"tool_called_pattern": toolCalledPattern,
	"any_tool_called": func(v any) (func(Sample) (bool, error), error) {
		want, ok := v.(bool)
		if !ok {
			return nil, errdefs.Validation.Errorf("write true or false")
		}
		return func(s Sample) (bool, error) { return !want || len(s.Calls) > 0, nil }, nil
	},
	"min_tool_calls": func(v any) (func(Sample) (bool, error), error) {
		n, err := count(v)
		return func(s Sample) (bool, error) { return float64(len(s.Calls)) >= n, nil }, err
	},
}

// conditions reads a when.
func conditions(when map[string]any) (all []condition, err error) {
	for _, name := range slices.Sorted(maps.Keys(when)) {
		c := condition{name: name}
		if compare, ok := counts[name]; ok {
			var of float64
			of, err = count(when[name])
			c.holds = func(s Sample) (bool, error) { return compare(float64(taken(s)), of), nil }
		} else if makes, ok := others[name]; ok {
			c.holds, err = makes(when[name])
		} else {
			known := append(slices.Collect(maps.Keys(counts)), slices.Collect(maps.Keys(others))...)
			slices.Sort(known)
			return nil, errdefs.Validation.Errorf("when: there is no condition %q%s", name, meant(name, known))
		}
		if err != nil {
			return nil, fmt.Errorf("when: %s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// taken is how many turns count.
func taken(s Sample) (n int) {
	for _, t := range s.Turns {
		if !t.Discarded {
			n++
		}
	}
	return n
}

func count(v any) (float64, error) {
	switch n := v.(type) {
	case int:
		return float64(n), nil
	case float64:
		return n, nil
	}
	return 0, errdefs.Validation.Errorf("write a number")
}

func text(v any) (string, error) {
	if s, ok := v.(string); ok && strings.TrimSpace(s) != "" {
		return s, nil
	}
	return "", errdefs.Validation.Errorf("write a string that is not empty")
}

// hasVariable looks at what a case or a run was given. The variables of conversations are on no record.
func hasVariable(v any) (func(Sample) (bool, error), error) {
	name, err := text(v)
	return func(s Sample) (bool, error) {
		if s.Repeat == 0 && len(s.Case.Vars) == 0 && len(s.Vars) == 0 {
			return false, errdefs.NotAvailable.Errorf("no variables are on record of this session: set Case.Vars of the sample")
		}
		for _, vars := range []map[string]any{s.Case.Vars, s.Vars} {
			if vars[name] != nil {
				return true, nil
			}
		}
		return false, nil
	}, err
}

func toolCalled(v any) (func(Sample) (bool, error), error) {
	name, err := text(v)
	return func(s Sample) (bool, error) { return slices.ContainsFunc(s.Calls, Use{Name: name}.is), nil }, err
}

func toolCalledPattern(v any) (func(Sample) (bool, error), error) {
	pattern, err := text(v)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errdefs.Validation.Errorf("%w", err)
	}
	return func(s Sample) (bool, error) {
		return slices.ContainsFunc(s.Calls, func(c Call) bool { return re.MatchString(c.Name) }), nil
	}, nil
}

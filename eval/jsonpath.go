package eval

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/pack/guard"
)

// step is one of a path into JSON: a member, or an element, from the end where it is negative.
type step struct {
	member  string
	element int
	indexed bool
}

// jsonPath is JMESPath as far as it names one place: members and elements, such as items[0].name or "odd name"[-1]. Projections, filters and functions can't be had.
func (m *maker) jsonPath(p guard.Params) Scorer {
	expression := m.read.Text("expression", "jmespath_expression")
	if expression == "" {
		m.read.Missing("expression", "name a place, such as items[0].name")
	}
	steps, err := pathOf(expression)
	if err != nil && expression != "" {
		m.fault("expression", err.Error(), "name one place by members and elements, such as items[0].name")
	}
	expected, isExpected := p["expected"]
	part, isPart := p["contains"]
	low, isLow := m.read.Number("min")
	high, isHigh := m.read.Number("max")
	least, most := m.read.Count("min_results"), m.read.Count("max_results")
	return m.rule(func(s Sample) Score {
		root, err := parse(s.Answer)
		if err != nil {
			return Score{Why: "it is no JSON: " + err.Error()}
		}
		v := valueAt(root, steps)
		list, isList := v.([]any)
		n, isNumber := numeral(v)
		f, _ := strconv.ParseFloat(n, 64)
		switch {
		case isExpected && !fits(v, expected, false):
			return Score{Why: fmt.Sprintf("%s is %s, want %s", expression, clip(fmt.Sprint(v), 100), clip(fmt.Sprint(expected), 100))}
		case isPart && !holds(v, part):
			return Score{Why: fmt.Sprintf("%s is %s, which does not have %s", expression, clip(fmt.Sprint(v), 100), clip(fmt.Sprint(part), 100))}
		case (isLow || isHigh) && (!isNumber || isLow && f < low || isHigh && f > high):
			return Score{Why: fmt.Sprintf("%s is %s, which is not within the limits", expression, clip(fmt.Sprint(v), 100))}
		case least+most > 0 && (!isList || len(list) < least || most > 0 && len(list) > most):
			return Score{Why: fmt.Sprintf("%s is no list of the length that is wanted", expression)}
		case v == nil && !isExpected:
			return Score{Why: "there is no " + expression}
		}
		return verdict("")
	})
}

// holds reports whether a list has an element, or all of a list of them, or a text another one.
func holds(v, part any) bool {
	if text, ok := v.(string); ok {
		p, ok := part.(string)
		return ok && strings.Contains(text, p)
	}
	list, _ := v.([]any)
	parts, ok := part.([]any)
	if !ok {
		parts = []any{part}
	}
	for _, p := range parts {
		found := false
		for _, e := range list {
			found = found || fits(e, p, false)
		}
		if !found {
			return false
		}
	}
	return true
}

// valueAt is the value at a path; nil when there is none.
func valueAt(v any, steps []step) any {
	for _, s := range steps {
		if !s.indexed {
			object, _ := v.(map[string]any)
			v = object[s.member]
			continue
		}
		list, _ := v.([]any)
		i := s.element
		if i < 0 {
			i += len(list)
		}
		if i < 0 || i >= len(list) {
			return nil
		}
		v = list[i]
	}
	return v
}

func pathOf(text string) (steps []step, err error) {
	rest, first := strings.TrimSpace(text), true
	for rest != "" {
		switch {
		case rest[0] == '[':
			inner, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(inner)
			if !ok || err != nil {
				return nil, fmt.Errorf("[%s is no element", rest[1:])
			}
			steps, rest = append(steps, step{element: n, indexed: true}), after
		case rest[0] == '.' && !first, first:
			if !first {
				rest = rest[1:]
			}
			name, after, err := memberOf(rest)
			if err != nil {
				return nil, err
			}
			steps, rest = append(steps, step{member: name}), after
		default:
			return nil, fmt.Errorf("%q can't be understood", rest)
		}
		first = false
	}
	return steps, nil
}

// memberOf reads a name, in quotes or of letters, digits and _.
func memberOf(text string) (name, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("%q has no end", text)
		}
		name, err = strconv.Unquote(quoted)
		return name, text[len(quoted):], err
	}
	end := 0
	for end < len(text) && (text[end] == '_' || text[end] >= 'a' && text[end] <= 'z' || text[end] >= 'A' && text[end] <= 'Z' || end > 0 && text[end] >= '0' && text[end] <= '9') {
		end++
	}
	if end == 0 {
		return "", "", fmt.Errorf("%q is no name", text)
	}
	return text[:end], text[end:], nil
}

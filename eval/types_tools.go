package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/pack/guard"
)

func (m *maker) toolsCalled(guard.Params) Scorer {
	names, least, most := m.needs("tool_names", "tools"), m.number("min_calls", 1), m.number("max_calls", -1)
	return m.rule(func(s Sample) Score {
		var wrong []string
		fine := 0
		for _, name := range names {
			switch n := float64(len(callsOfTool(s.Calls, name))); {
			case n < least:
				wrong = append(wrong, fmt.Sprintf("%s was called %.0f times, at least %v is wanted", name, n, least))
			case most >= 0 && n > most:
				wrong = append(wrong, fmt.Sprintf("%s was called %.0f times, at most %v is wanted", name, n, most))
			default:
				fine++
			}
		}
		return share(fine, len(names), strings.Join(wrong, "; "))
	})
}

func callsOfTool(calls []Call, name string) (all []Call) {
	for _, c := range calls {
		if (Use{Name: name}).is(c) {
			all = append(all, c)
		}
	}
	return all
}

func (m *maker) toolsNotCalled(guard.Params) Scorer {
	names := m.needs("tool_names", "tools")
	return ToolCalls(NoneOf, Uses(names...)...)
}

// use reads a tool with arguments.
func (m *maker) use(args string) Use {
	u := Use{Name: m.need("tool_name"), Args: m.read.Object(args)}
	if len(u.Args) == 0 {
		m.read.Missing(args, "write the arguments, such as {\"order_id\": \"7\"}")
	}
	return u
}

func (m *maker) toolArgs(guard.Params) Scorer { return ToolCalls(AnyOrder, m.use("expected_args")) }

func (m *maker) argsExcluded(guard.Params) Scorer { return ToolCalls(NoneOf, m.use("excluded_args")) }

func (m *maker) toolSequence(guard.Params) Scorer {
	return ToolCalls(InOrder, Uses(m.needs("sequence")...)...)
}

// callsWithArgs asks for one call that is all of what is said.
func (m *maker) callsWithArgs(guard.Params) Scorer {
	u := Use{Name: m.need("tool_name"), Args: m.read.Object("expected_args")}
	includes, matches, fine := m.read.Texts("result_includes"), m.pattern("result_matches", false), m.read.Flag("no_error", false)
	made, err := plain([]Use{u})
	if err == nil {
		u = made[0]
	}
	return m.rule(func(s Sample) Score {
		for _, c := range s.Calls {
			if u.is(c) && containing(c.Output, includes).Pass && (matches == nil || matches.MatchString(c.Output)) && (!fine || !c.IsError) {
				return verdict("")
			}
		}
		return Score{Why: "no call of " + u.String() + " is as wanted"}
	})
}

func (m *maker) pattern(name string, needed bool) *regexp.Regexp {
	text := m.read.Text(name)
	if text == "" {
		if needed {
			m.read.Missing(name, "write a regular expression")
		}
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		m.fault(name, err.Error(), "write it in RE2 syntax, which has no lookaround and no backreferences")
	}
	return re
}

func (m *maker) toolCount(guard.Params) Scorer {
	name, least, most := m.read.Text("tool"), m.number("min", -1), m.number("max", -1)
	if least < 0 && most < 0 {
		m.read.Missing("min", "write it, or max")
	}
	return m.rule(func(s Sample) Score {
		n := len(s.Calls)
		if name != "" {
			n = len(callsOfTool(s.Calls, name))
		}
		switch {
		case float64(n) < least:
			return Score{Value: float64(n) / least, Why: fmt.Sprintf("there were %d calls, at least %v are wanted", n, least)}
		case most >= 0 && float64(n) > most:
			return Score{Value: most / float64(n), Why: fmt.Sprintf("there were %d calls, at most %v are wanted", n, most)}
		}
		return verdict("")
	})
}

// of gives the calls of some tools, or with none named, all.
func of(calls []Call, names []string) (all []Call) {
	for _, c := range calls {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, c.Name) }) {
			all = append(all, c)
		}
	}
	return all
}

func (m *maker) noRepeat(guard.Params) Scorer {
	names, most := m.read.Texts("tools"), m.number("max_repeats", 1)
	return m.rule(func(s Sample) Score {
		n := 0.0
		var before Call
		for _, c := range of(s.Calls, names) {
			if c.Name != before.Name || c.Input != before.Input {
				n = 0
			}
			if n++; n > most {
				return Score{Why: fmt.Sprintf("%s%s was called %.0f times in a row", c.Name, clip(c.Input, 100), n)}
			}
			before = c
		}
		return verdict("")
	})
}

func (m *maker) noToolErrors(guard.Params) Scorer {
	names := m.read.Texts("tools")
	return m.rule(func(s Sample) Score {
		calls, fine, wrong := of(s.Calls, names), 0, ""
		for _, c := range calls {
			if !c.IsError {
				fine++
			} else if wrong == "" {
				wrong = c.Name + ": " + clip(c.Output, 200)
			}
		}
		if len(calls) == 0 {
			return verdict("")
		}
		return share(fine, len(calls), wrong)
	})
}

func (m *maker) efficiency(guard.Params) Scorer {
	calls, failed, rate := m.number("max_calls", -1), m.number("max_errors", -1), m.number("max_error_rate", -1)
	if calls < 0 && failed < 0 && rate < 0 {
		m.read.Missing("max_calls", "write it, or max_errors or max_error_rate")
	}
	return m.rule(func(s Sample) Score {
		n, bad := float64(len(s.Calls)), 0.0
		for _, c := range s.Calls {
			if c.IsError {
				bad++
			}
		}
		switch {
		case calls >= 0 && n > calls:
			return within("calls", n, calls, "")
		case failed >= 0 && bad > failed:
			return within("failed calls", bad, failed, "")
		case rate >= 0 && bad > rate*n:
			return within("share of calls that failed", bad/n, rate, "")
		}
		return verdict("")
	})
}

// result asks for something of one call's result: of all calls, or those of one tool, the occurrence-th, from 1.
func (m *maker) result(judge func(output string) string) Scorer {
	tool, occurrence := m.read.Text("tool"), max(1, m.read.Count("occurrence"))
	return m.rule(func(s Sample) Score {
		calls := s.Calls
		if tool != "" {
			calls = callsOfTool(calls, tool)
		}
		if len(calls) < occurrence {
			return Score{Why: fmt.Sprintf("there is no call %d", occurrence)}
		}
		return verdict(judge(calls[occurrence-1].Output))
	})
}

func (m *maker) resultIncludes(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.result(func(output string) string { return containing(output, texts).Why })
}

func (m *maker) resultMatches(guard.Params) Scorer {
	re := m.pattern("pattern", true)
	return m.result(func(output string) string {
		if re.MatchString(output) {
			return ""
		}
		return fmt.Sprintf("%q does not match %s", clip(output, 200), re)
	})
}

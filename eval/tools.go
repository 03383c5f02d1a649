package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Match is how the calls that were made have to be those of a list.
type Match string

// The ways.
const (
	AnyOrder Match = "any order" // each was made, in whatever order; others may be there
	InOrder  Match = "in order"  // each was made after the one before it; others may stand in between
	Exactly  Match = "exactly"   // these were made in this order, and no other
	NoneOf   Match = "none of"   // none of these was made
)

// Use is a tool call as a case has it.
type Use struct {
	Name string         `json:"name"` // of the tool, in upper or lower case
	Args map[string]any `json:"args"` // that the call has to have, of the types of JSON; others may be there, in objects below too. Nil: any
}

// Uses are calls of tools with any arguments.
func Uses(names ...string) (all []Use) {
	for _, name := range names {
		all = append(all, Use{Name: name})
	}
	return all
}

// ToolCalls asks for the calls that the agent made. One that was refused was made, too. The value is the share of the list that was found; of [Exactly] and [NoneOf] it is 0 or 1.
func ToolCalls(how Match, uses ...Use) Scorer {
	var names []string
	for _, u := range uses {
		names = append(names, u.String())
	}
	s := &scorer{name: clip("tools "+string(how)+" "+strings.Join(names, ", "), 80)}
	uses, s.wrong = plain(uses)
	switch {
	case s.wrong != nil:
	case !slices.Contains([]Match{AnyOrder, InOrder, Exactly, NoneOf}, how):
		s.wrong = errdefs.Validation.Errorf("there is no match %q: have AnyOrder, InOrder, Exactly or NoneOf", how)
	case len(uses) == 0 && how != Exactly:
		s.wrong = errdefs.Validation.Errorf("tools %s nothing: name tools", how)
	}
	s.score = func(_ context.Context, sample Sample) (Score, error) { return called(how, uses, sample.Calls), nil }
	return s
}

// plain makes values of JSON of the arguments.
func plain(uses []Use) ([]Use, error) {
	out := slices.Clone(uses)
	for i, u := range out {
		if u.Name == "" {
			return nil, errdefs.Validation.Errorf("call %d names no tool", i+1)
		}
		if u.Args == nil {
			continue
		}
		b, err := json.Marshal(u.Args)
		if err == nil {
			var v any
			v, err = parse(string(b))
			out[i].Args, _ = v.(map[string]any)
		}
		if err != nil {
			return nil, errdefs.Validation.Errorf("the arguments of %s: %w", u.Name, err)
		}
	}
	return out, nil
}

// String is the call as reports show it.
func (u Use) String() string {
	if len(u.Args) == 0 {
		return u.Name
	}
	b, err := json.Marshal(u.Args)
	if err != nil {
		return u.Name
	}
	return u.Name + string(b)
}

// is reports whether a call is one like it. A call whose input is no JSON has no arguments.
func (u Use) is(c Call) bool {
	if !strings.EqualFold(u.Name, c.Name) {
		return false
	}
	if len(u.Args) == 0 {
		return true
	}
	got, err := parse(c.Input)
	return err == nil && fits(got, u.Args, true)
}

func called(how Match, uses []Use, calls []Call) Score {
	made := func() string {
		var all []string
		for _, c := range calls {
			all = append(all, c.Name+c.Input)
		}
		if len(all) == 0 {
			return "no tool was called"
		}
		return "called were " + clip(strings.Join(all, ", "), 300)
	}
	switch how {
	case NoneOf:
		for _, c := range calls {
			if slices.ContainsFunc(uses, func(u Use) bool { return u.is(c) }) {
				return Score{Why: "it called " + clip(c.Name+c.Input, 200)}
			}
		}
		return verdict("")
	case Exactly:
		if !slices.EqualFunc(uses, calls, Use.is) {
			return Score{Why: made()}
		}
		return verdict("")
	case InOrder:
		n := 0
		for _, c := range calls {
			if n < len(uses) && uses[n].is(c) {
				n++
			}
		}
		if n < len(uses) {
			return share(n, len(uses), fmt.Sprintf("no call of %s after the %d before it: %s", uses[n], n, made()))
		}
		return verdict("")
	}
	missing := pairing(uses, calls)
	if len(missing) > 0 {
		return share(len(uses)-len(missing), len(uses), fmt.Sprintf("no call of %s: %s", missing[0], made()))
	}
	return verdict("")
}

// pairing gives those of uses that no call is left for when each call stands for one of them: the fewest that can be (by augmenting paths).
func pairing(uses []Use, calls []Call) (missing []Use) {
	of := make([]int, len(calls)) // which use a call stands for, from 1
	var place func(u int, seen []bool) bool
	place = func(u int, seen []bool) bool {
		for i, c := range calls {
			if seen[i] || !uses[u].is(c) {
				continue
			}
			seen[i] = true
			if of[i] == 0 || place(of[i]-1, seen) {
				of[i] = u + 1
				return true
			}
		}
		return false
	}
	for u := range uses {
		if !place(u, make([]bool, len(calls))) {
			missing = append(missing, uses[u])
		}
	}
	return missing
}

package crashtest

import (
	"runtime"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// effort says how much of a matrix is tried.
type effort struct {
	all      bool // every point, also where one stands for several
	points   int  // of a scenario; 0: every point that counts
	kinds    bool // and one point of each kind that there is, however many they are
	stride   int  // one of so many scenarios is played; 0 and 1: each
	offset   int  // the first scenario that is played
	problems int  // of a scenario: the rest would say the same
}

// effort is that of the tier that runs. In the whole suite nothing is left out. Else a few
// points are tried: on SQLite, which says most for its time, of each scenario in the middle
// tier, and elsewhere of a part of the scenarios. Each fault has another part of them.
func (f *Fault) effort(elsewhere bool) effort {
	e := effort{problems: 50}
	switch {
	case tier.All():
	case tier.Quick():
		e.points, e.stride = 2, 5
		if f != nil {
			e.points, e.stride = 1, 9
		}
	case f != nil:
		e.points, e.stride, e.offset = 2, 4, f.Turn
	case elsewhere:
		e.points, e.stride = 2, 3
	default:
		e.points, e.kinds = 2, true
	}
	return e
}

// chosen are the scenarios that are played.
func (e effort) chosen(scenarios []Scenario) (out []*Scenario) {
	stride := max(e.stride, 1)
	for i := range scenarios {
		if i%stride == e.offset%min(stride, len(scenarios)) {
			out = append(out, &scenarios[i])
		}
	}
	return out
}

// kindOf names what happens at a point, whichever time and wherever it does.
func kindOf(point string) string {
	words := strings.Fields(point)
	if len(words) < 2 {
		return point
	}
	if key := words[1]; strings.Contains(key, "/") {
		_, key, scoped := strings.Cut(key, ":")
		if !scoped {
			key = words[1]
		}
		op, _, _ := strings.Cut(key, "/")
		return words[0] + " " + op
	}
	if words[1] == "append" {
		return words[0] + " append"
	}
	point, _, _ = strings.Cut(point, " in main")
	point, _, _ = strings.Cut(point, " of ")
	point, _, _ = strings.Cut(point, " (")
	return point
}

// sample chooses points of each scenario: first one of each kind that no other scenario has
// in its sample so far, then others, spread over the run. It depends on nothing but names.
func (e effort) sample(scenarios [][]death) [][]death {
	n, known := e.points, map[string]bool{}
	out := make([][]death, len(scenarios))
	for i, points := range scenarios {
		points = slices.SortedFunc(slices.Values(points), func(a, b death) int {
			if a.life != b.life {
				return a.life - b.life
			}
			return strings.Compare(a.point, b.point)
		})
		take := func(j int) {
			known[kindOf(points[j].point)] = true
			out[i] = append(out[i], points[j])
			points = slices.Delete(points, j, j+1)
		}
		for len(out[i]) < n || e.kinds {
			j := slices.IndexFunc(points, func(d death) bool { return !known[kindOf(d.point)] })
			if j < 0 {
				break
			}
			take(j)
		}
		for len(out[i]) < n && len(points) > 0 {
			take((2*len(out[i]) + 1) * len(points) / (2*n + 1) % len(points))
		}
	}
	return out
}

// lanes is how many cases of a scenario are played at a time.
func (f *Fault) lanes() int {
	if f != nil && f.Alone {
		return 1
	}
	return max(4, runtime.NumCPU())
}

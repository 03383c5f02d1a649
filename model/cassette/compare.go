package cassette

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/wire"
)

// difference is the first place at which two values of JSON are not the same. The zero difference is none.
type difference struct{ place, recorded, asked string }

const nothing = "nothing"

func (d difference) none() bool { return d == difference{} }

func (d difference) String() string {
	return fmt.Sprintf("%s:\n\trecorded: %s\n\tasked:    %s", d.place, d.recorded, d.asked)
}

// compare looks for the first difference of two values; nil is an absent one.
func compare(place string, recorded, asked []byte) difference {
	switch {
	case string(recorded) == string(asked):
		return difference{}
	case len(recorded) == 0 || len(asked) == 0 || recorded[0] != asked[0]:
	case recorded[0] == '"':
		a, b := wire.String(recorded), wire.String(asked)
		if a == b { // other escapes say the same
			return difference{}
		}
		a, b = around(a, b)
		return difference{place, a, b}
	case recorded[0] == '{':
		if d := compareMembers(place, members(recorded), members(asked)); !d.none() {
			return d
		}
		if sameOrder(members(recorded), members(asked)) {
			return difference{}
		}
	case recorded[0] == '[':
		a, b := elements(recorded), elements(asked)
		for i := range max(len(a), len(b)) {
			if d := compare(place+"["+strconv.Itoa(i)+"]", at(a, i), at(b, i)); !d.none() {
				return d
			}
		}
		return difference{}
	}
	return difference{place, show(recorded), show(asked)}
}

type member struct {
	name  string
	value []byte
}

// compareMembers looks at the members by their names; a name that stands twice is looked at as often.
func compareMembers(place string, recorded, asked []member) difference {
	under := func(name string) string { return strings.TrimPrefix(place+"."+name, ".") }
	left := map[string][][]byte{}
	for _, m := range asked {
		left[m.name] = append(left[m.name], m.value)
	}
	for _, m := range recorded {
		other := at(left[m.name], 0)
		if other != nil {
			left[m.name] = left[m.name][1:]
		}
		if d := compare(under(m.name), m.value, other); !d.none() {
			return d
		}
	}
	for _, m := range asked {
		if len(left[m.name]) > 0 {
			return difference{under(m.name), nothing, show(m.value)}
		}
	}
	return difference{}
}

func sameOrder(a, b []member) bool {
	for i := range a {
		if i >= len(b) || a[i].name != b[i].name {
			return false
		}
	}
	return len(a) == len(b)
}

func members(raw []byte) (out []member) {
	for o := wire.Object(raw); o.Next(); {
		out = append(out, member{string(o.Key), o.Value})
	}
	return out
}

func elements(raw []byte) (out [][]byte) {
	for a := wire.Array(raw); a.Next(); {
		out = append(out, a.Value)
	}
	return out
}

func at(list [][]byte, i int) []byte {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// around shows two texts where they begin to differ.
func around(a, b string) (string, string) {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	for i -= 40; i > 0 && !utf8.RuneStart(a[i]); i-- { // a rune that is split is shown whole
	}
	from := func(s string) string {
		if i <= 0 {
			return strconv.Quote(clip(s))
		}
		return "…" + strconv.Quote(clip(s[i:]))
	}
	return from(a), from(b)
}

func show(raw []byte) string {
	if len(raw) == 0 {
		return nothing
	}
	return clip(string(raw))
}

// clip is a text, short enough for an error.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

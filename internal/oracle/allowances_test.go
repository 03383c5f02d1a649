package oracle

import (
	"path"
	"testing"
)

// allowance is a difference between a vendor's SDK and us that is meant, and why.
type allowance struct {
	vendor, name, field string // name: of the answer or the case, as path.Match has it, each of its two parts by itself
	why                 string
}

// place is where some fields differ.
type place struct {
	vendor, name string
	fields       []string
}

func at(vendor, name string, fields ...string) place { return place{vendor, name, fields} }

// differing gives the reason for what differs in some places.
func differing(why string, places ...place) (table []allowance) {
	for _, p := range places {
		for _, f := range p.fields {
			table = append(table, allowance{p.vendor, p.name, f, why})
		}
	}
	return table
}

// allowances notes which of a table were needed.
type allowances struct {
	table []allowance
	used  []bool
	cases int
}

func newAllowances(table []allowance) *allowances {
	return &allowances{table: table, used: make([]bool, len(table))}
}

// has reports whether a difference is meant.
func (a *allowances) has(vendor, name, field string) (meant bool) {
	for i, l := range a.table {
		if ok, _ := path.Match(l.name, name); ok && l.vendor == vendor && l.field == field {
			a.used[i], meant = true, true
		}
	}
	return meant
}

// ran notes that a case was looked at.
func (a *allowances) ran() { a.cases++ }

// unused fails for differences that don't occur any more, if all of the cases were looked at.
func (a *allowances) unused(t *testing.T, all int, recorded bool) {
	t.Helper()
	if a.cases < all {
		return
	}
	for i, l := range a.table {
		if !a.used[i] && (recorded || !ofRecording(l.name)) {
			t.Errorf("%s of %s %s doesn't differ any more, so its line in the table goes: %s", l.field, l.vendor, l.name, l.why)
		}
	}
}

// ofRecording reports whether a name is that of a recorded answer: these have a number.
func ofRecording(name string) bool { return path.Dir(name) != "." }

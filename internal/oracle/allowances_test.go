package oracle

import (
	"fmt"
	"path"
	"testing"
)

// allowance is a difference between a vendor's SDK and us that is meant, and why.
type allowance struct {
	vendor      string
	name, field string // name: of the answer or the case; field: of a reply, or a JSON pointer; * is anything but a slash
	why         string
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
		named, _ := path.Match(l.name, name)
		placed, _ := path.Match(l.field, field)
		if l.vendor == vendor && named && placed {
			a.used[i], meant = true, true
		}
	}
	return meant
}

// ran notes that a case was looked at.
func (a *allowances) ran() { a.cases++ }

// unused tells of the differences that don't occur any more; of none before all cases were looked at.
func (a *allowances) unused(all int, recorded bool) (gone []string) {
	if a.cases < all {
		return nil
	}
	for i, l := range a.table {
		if !a.used[i] && (recorded || !ofRecording(l.name)) {
			gone = append(gone, fmt.Sprintf("%s %s doesn't differ in %q any more, so its line in the table goes: %s", l.vendor, l.name, l.field, l.why))
		}
	}
	return gone
}

// check fails for these.
func (a *allowances) check(t *testing.T, all int, recorded bool) {
	t.Helper()
	for _, gone := range a.unused(all, recorded) {
		t.Error(gone)
	}
}

// ofRecording reports whether a name is that of a recorded answer: these have a number.
func ofRecording(name string) bool { return path.Dir(name) != "." }

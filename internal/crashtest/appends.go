package crashtest

import (
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// appends looks whether each append is there whole or not at all, and those that were reported are.
func (v *verdict) appends(h *past) {
	for _, l := range h.record {
		a := l.Append
		if a == nil {
			continue
		}
		switch n := h.last.written[written{a.Session, a.Time}]; {
		case a.Ended == reported && n != a.Entries:
			v.missing("life %d: an append of %d entries was reported: %d of them are there", l.Life, a.Entries, n)
		case a.Ended != reported && n != 0 && n != a.Entries:
			v.missing("life %d: of an append of %d entries %d are there", l.Life, a.Entries, n)
		}
	}
}

// starts looks whether each side effect comes behind a start that is on record, or was found there.
func (v *verdict) starts(h *past) {
	started := map[string]bool{}
	for _, l := range h.record {
		switch {
		case l.Append != nil && l.Append.Ended == reported:
			for _, id := range l.Append.Starts {
				started[id] = true
			}
		case l.Found != nil:
			for _, id := range l.Found.Open {
				started[id] = true
			}
		case l.Use != nil && !started[l.Use.Call]:
			v.again("life %d: %s %s took effect, and its start is not on record", l.Life, l.Use.Tool, l.Use.Call)
		}
	}
}

// failures looks whether each process whose store failed said so: it ended with an error if an append did not go through, and the error has the
// class for it and names the store and the place.
func (v *verdict) failures(h *past, f *Fault) {
	failed, said := map[int]string{}, map[int]bool{}
	for _, l := range h.record {
		switch {
		case l.Append != nil && h.fell(l.Life) && l.Append.Ended != "" && l.Append.Ended != reported && l.Append.Ended != errdefs.Conflict.Error():
			failed[l.Life] = l.Append.Ended
		case l.Failed != nil:
			said[l.Life] = true
			if l.Failed.Class != errdefs.NotAvailable.Error() {
				v.missing("life %d: the error is %s: want %v: %s", l.Life, l.Failed.Class, errdefs.NotAvailable, l.Failed.Text)
			}
			for _, name := range f.names(h.dir) {
				if !strings.Contains(l.Failed.Text, name) {
					v.missing("life %d: the error does not name %s: %s", l.Life, name, l.Failed.Text)
				}
			}
		}
	}
	for life, class := range failed {
		if !said[life] {
			v.missing("life %d: an append failed (%s), and the process says nothing of it", life, class)
		}
	}
}

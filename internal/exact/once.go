package exact

import (
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// mostNested is how deep a value may be.
const mostNested = 100

// Once refuses a value that gives a member of an object twice, however deep: one reader takes the first, another one the last. It is for JSON: of anything else it says nothing.
func Once(value []byte) error { return once(value, 0) }

func once(value []byte, deep int) error {
	if deep > mostNested { // each value is read once for each that it is in
		return errdefs.Validation.Errorf("it is nested more than %d deep", mostNested)
	}
	for i, c := range value {
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '{':
			seen := map[string]bool{}
			m := wire.Object(value[i:])
			for m.Next() {
				if seen[string(m.Key)] {
					return errdefs.Validation.Errorf("%q is given twice", m.Key)
				}
				seen[string(m.Key)] = true
				if err := once(m.Value, deep+1); err != nil {
					return err
				}
			}
		case '[':
			for e := wire.Array(value[i:]); e.Next(); {
				if err := once(e.Value, deep+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return nil
}

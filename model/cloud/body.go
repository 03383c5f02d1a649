package cloud

import (
	"bytes"
	"errors"
	"slices"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
)

// edit is a change of a request's top-level members.
type edit struct {
	add  string   // members to begin with: `"a":1`
	drop []string // names of members to leave out

	model  string // what the request says
	stream bool
}

// apply gives the body with the change. The pieces of a body of ours are its beginning, up to an array that is left open, what is in that, and its end: only the first and the last one are looked at, and
// nothing is copied but the end. Any other body is joined.
func (e *edit) apply(body httpapi.Body) (httpapi.Body, error) {
	if len(body) == 0 {
		return nil, errors.New("the request has no body")
	}
	last := len(body) - 1
	if last > 0 && bytes.HasPrefix(body[last], []byte("]")) {
		head, open := e.members(body[0], true)
		end, whole := e.members(object(body[last][1:]), false)
		if open != nil && whole == nil && e.model != "" {
			out := append(make(httpapi.Body, 0, len(body)+len(head)+len(end)+2), []byte("{"+e.add))
			out = append(append(out, head...), body[1:last]...)
			return append(append(out, closed), end...), nil
		}
	}
	joined, err := e.members(bytes.Join(body, nil), true)
	if err != nil {
		return nil, err
	}
	return append(httpapi.Body{[]byte("{" + e.add)}, joined...), nil
}

var closed = []byte("]")

// object makes an object of what comes behind the array at a body's end: `,"a":1}` or `}`.
func object(end []byte) []byte {
	if len(end) > 0 && end[0] == ',' {
		end = end[1:]
	}
	return append([]byte("{"), end...)
}

// members reads the members of an object and gives what is kept of it, without the bracket at its beginning, as something that stands behind another member. With an error it is what was
// read, and the rest as it is.
func (e *edit) members(data []byte, head bool) (rest httpapi.Body, err error) {
	keep := func(piece []byte) {
		if len(piece) > 0 {
			rest = append(rest, piece)
		}
	}
	from, before := -1, 0 // what is kept begins at from; the last member ended at before
	m := wire.Object(data)
	for m.Next() {
		start, end := m.Span()
		switch name := string(m.Key); {
		case name == "model" && head:
			e.model = wire.String(m.Value)
		case name == "stream":
			e.stream = wire.Bool(m.Value)
		}
		switch dropped := slices.Contains(e.drop, string(m.Key)); {
		case dropped && from < 0:
			from = end
		case dropped:
			keep(data[from:before])
			from = end
		case from < 0:
			keep([]byte(","))
			from = start
		}
		before = end
	}
	if from < 0 { // no member that could be read
		if from = bytes.IndexByte(data, '{') + 1; m.Err() != nil {
			keep([]byte(","))
		}
	}
	keep(data[from:])
	return rest, m.Err()
}

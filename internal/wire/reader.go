package wire

// Reader reads a JSON value in one pass: what is nested is walked where it
// stands, rather than passed over and then looked at again. See [Read].
type Reader struct {
	data  []byte
	at    int
	depth int    // objects and arrays that are open
	buf   []byte // for names with escapes
	want  string // what was expected at data[at], once it wasn't there
}

// Read returns a Reader of data, one JSON value with white space around allowed.
// It looks at nothing yet.
//
// Object and Array are loops over what is next, and may be nested:
//
//	r := wire.Read(data)
//	for key := range r.Object {
//		switch string(key) {
//		case "type":
//			typ = r.Value()
//		case "delta":
//			for key := range r.Object {
//				…
//			}
//		}
//	}
//	if err := r.Err(); err != nil {
//		return err
//	}
//
// A value that a loop's body does not read is passed over, and so is the rest of
// an object or array that it breaks out of. Values are handed out before what
// follows them was looked at: what they say counts once Err returned nil.
func Read(data []byte) Reader { return Reader{data: data} }

// Object yields the name of each member of the object that is next, in their
// order and with duplicates; none when the next value is no object. A name is as
// [Members.Key] has it, and valid until the next one.
func (r *Reader) Object(yield func(name []byte) bool) {
	wanted := true
	for more := r.open('{'); more; more = r.more('{') {
		name, has, at, want := skipName(r.data, r.at)
		if want != "" {
			r.fail(at, want)
			return
		}
		r.at = at
		if wanted {
			if !has.plain(name) {
				r.buf = appendDecoded(r.buf[:0], name)
				name = r.buf
			}
			wanted = yield(name[:len(name):len(name)])
		}
		if r.at == at {
			r.Value()
		}
	}
}

// Array yields the index of each element of the array that is next; none when the
// next value is no array.
func (r *Reader) Array(yield func(int) bool) {
	wanted := true
	i := 0
	for more := r.open('['); more; more = r.more('[') {
		at := r.at
		if wanted {
			wanted = yield(i)
			i++
		}
		if r.at == at {
			r.Value()
		}
	}
}

// Value reads the next value: valid JSON without white space around, and a part
// of the data. It is nil when there is none, and after a fault.
func (r *Reader) Value() []byte {
	if r.want != "" {
		return nil
	}
	if r.depth == 0 {
		r.at = skipSpace(r.data, r.at)
	}
	end, want := r.at, ""
	if end < len(r.data) && r.data[end] == '"' {
		end, _, want = skipString(r.data, end+1)
	} else {
		end, want = skipValue(r.data, end, maxDepth-r.depth)
	}
	if want != "" {
		r.fail(end, want)
		return nil
	}
	start := r.at
	r.at = end
	return r.data[start:end:end]
}

// Offset is how far the data was read: between two of them, around a loop over an
// object, stands the object.
func (r *Reader) Offset() int { return r.at }

// Err returns nil when data was read to its end, and is one well formed value and
// nothing else. An error names the byte offset and what was expected there.
func (r *Reader) Err() error {
	if r.want == "" && r.depth == 0 {
		switch end := skipSpace(r.data, r.at); {
		case r.at == 0:
			r.fail(end, wantValue) // nothing was read
		case end < len(r.data):
			r.fail(end, wantEnd)
		}
	}
	if r.want != "" {
		return fault(r.data, r.at, r.want)
	}
	return nil
}

// open goes into what bracket begins, and reports whether something is in it. At
// the outermost level there has to be one.
func (r *Reader) open(bracket byte) bool {
	if r.want != "" {
		return false
	}
	if r.depth == 0 {
		r.at = skipSpace(r.data, r.at)
	}
	switch {
	case r.at < len(r.data) && r.data[r.at] == bracket:
	case r.depth > 0: // it is another value
		return false
	case bracket == '{':
		return r.fail(r.at, wantObject)
	default:
		return r.fail(r.at, wantArray)
	}
	if r.depth++; r.depth > maxDepth {
		return r.fail(r.at, wantShallower)
	}
	r.at = skipSpace(r.data, r.at+1)
	return !r.closed(bracket)
}

// more goes over the comma behind an item, or over what closes bracket.
func (r *Reader) more(bracket byte) bool {
	if r.want != "" {
		return false
	}
	r.at = skipSpace(r.data, r.at)
	if r.at < len(r.data) && r.data[r.at] == ',' {
		r.at = skipSpace(r.data, r.at+1)
		return true
	}
	if !r.closed(bracket) {
		r.fail(r.at, wantAfter(bracket))
	}
	return false
}

func (r *Reader) closed(bracket byte) bool {
	if r.at == len(r.data) || r.data[r.at] != closing(bracket) {
		return false
	}
	r.at++
	r.depth--
	return true
}

// fail ends the reading. It returns false for its callers to pass on.
func (r *Reader) fail(at int, want string) bool {
	r.at, r.want = at, want
	return false
}

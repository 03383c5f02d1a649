package wire

// cursor is the place of a walk over an object or array.
type cursor struct {
	data   []byte
	at     int
	inside bool // the opening bracket was passed
	done   bool
	want   string // what was expected at data[at], once it wasn't there
	err    error  // the same, once somebody asked
}

// step moves to the next item of what open, '{' or '[', begins, over the bracket
// or comma before it. It returns false at the closing bracket and at a fault.
func (c *cursor) step(open byte) bool {
	if c.done {
		return false
	}
	i := skipSpace(c.data, c.at)
	var b byte // 0 at the end of data, and no bracket or comma either
	if i < len(c.data) {
		b = c.data[i]
	}
	switch {
	case !c.inside && b == open:
		c.inside = true
		c.at = skipSpace(c.data, i+1)
		if c.at == len(c.data) || c.data[c.at] != closing(open) {
			return true
		}
		i = c.at
	case !c.inside && open == '{':
		return c.fail(i, wantObject)
	case !c.inside:
		return c.fail(i, wantArray)
	case b == ',':
		c.at = skipSpace(c.data, i+1)
		return true
	case b != closing(open):
		return c.fail(i, wantAfter(open))
	}
	c.done = true
	if i = skipSpace(c.data, i+1); i < len(c.data) {
		return c.fail(i, wantEnd)
	}
	return false
}

// value reads the value at the cursor; nil after a fault.
func (c *cursor) value() []byte {
	end, want := skipValue(c.data, c.at, maxDepth-1)
	if want != "" {
		c.fail(end, want)
		return nil
	}
	start := c.at
	c.at = end
	return c.data[start:end:end]
}

// fail ends the walk. It returns false for its callers to pass on.
func (c *cursor) fail(at int, want string) bool {
	c.done, c.at, c.want = true, at, want
	return false
}

// fault makes the error only for who asks: that a value is absent or of another kind
// is mostly none.
func (c *cursor) fault() error {
	if c.err == nil && c.want != "" {
		c.err = fault(c.data, c.at, c.want)
	}
	return c.err
}

// Members is a cursor over the members of an object, in their order and with
// duplicates. See [Object].
type Members struct {
	// Key is the name of the member, its escapes resolved and invalid UTF-8
	// replaced by U+FFFD. It lies in the data that was given to [Object] when
	// there was nothing to change, otherwise in a buffer of the cursor, which is
	// the one thing a walk allocates. It is valid until the next call of Next.
	Key []byte

	// Value is the member's value: valid JSON without white space around, and a
	// part of the data that was given to [Object].
	Value []byte

	cursor cursor
	start  int
	buf    []byte
}

// Object returns a cursor before the first member of the object that data is,
// white space around allowed. It looks at nothing yet: that data is no object at
// all is for [Members.Err] to say.
//
// It is a pointer, and stays on the stack where it is used: a loop that declares a
// cursor copies what it declares at each turn.
func Object(data []byte) *Members { return &Members{cursor: cursor{data: data}} }

// Next moves to the next member and sets Key and Value. It returns false, and
// sets both to nil, after the last member and at the first fault.
func (m *Members) Next() bool {
	m.Key, m.Value = nil, nil
	c := &m.cursor
	if !c.step('{') {
		return false
	}
	m.start = c.at
	name, has, next, want := skipName(c.data, c.at)
	if want != "" {
		return c.fail(next, want)
	}
	c.at = next
	value := c.value()
	if value == nil {
		return false
	}
	if !has.plain(name) {
		m.buf = appendDecoded(m.buf[:0], name)
		name = m.buf
	}
	m.Key, m.Value = name[:len(name):len(name)], value
	return true
}

// Span returns where the member stands in the data: from the quote before its name
// to the end of its value. It is for the member that Next moved to.
func (m *Members) Span() (start, end int) { return m.start, m.cursor.at }

// Err returns nil when data was one well formed object and nothing else. It
// knows that once Next returned false; earlier, it speaks for the members so far.
// An error names the byte offset and what was expected there.
func (m *Members) Err() error { return m.cursor.fault() }

// Elements is a cursor over the elements of an array. See [Array].
type Elements struct {
	// Value is the element: valid JSON without white space around, and a part of
	// the data that was given to [Array].
	Value []byte

	cursor cursor
}

// Array returns a cursor before the first element of the array that data is,
// white space around allowed. It looks at nothing yet: that data is no array at
// all is for [Elements.Err] to say.
func Array(data []byte) *Elements { return &Elements{cursor: cursor{data: data}} }

// Next moves to the next element and sets Value. It returns false, and sets
// Value to nil, after the last element and at the first fault.
func (e *Elements) Next() bool {
	e.Value = nil
	if e.cursor.step('[') {
		e.Value = e.cursor.value()
	}
	return e.Value != nil
}

// Err returns nil when data was one well formed array and nothing else. It knows
// that once Next returned false; earlier, it speaks for the elements so far. An
// error names the byte offset and what was expected there.
func (e *Elements) Err() error { return e.cursor.fault() }

// Get returns the raw value at a path of object keys, a part of data; the whole
// value for an empty path. It returns nil when there is no such value, when
// something on the way is no object, and when data as a whole is not exactly one
// JSON value.
//
// Of members with the same name the first is taken, and only the first: a later
// one is not tried when the path leads nowhere in it. To read several values of
// one object, walk it with [Object] instead.
func Get(data []byte, path ...string) []byte {
	if len(path) == 0 {
		if !Valid(data) {
			return nil
		}
		data = trim(data)
		return data[:len(data):len(data)]
	}
	for depth, key := range path {
		var found []byte
		m := Object(data)
		for m.Next() {
			if found == nil && string(m.Key) == key {
				found = m.Value
				if depth > 0 {
					break // the rest is known to be well formed
				}
			}
		}
		if found == nil || m.cursor.want != "" {
			return nil
		}
		data = found
	}
	return data
}

// First is [Get] of one name for data that is known to be valid, such as a part of
// it that was handed out: it looks no further than that member.
func First(data []byte, key string) []byte {
	for m := Object(data); m.Next(); {
		if string(m.Key) == key {
			return m.Value
		}
	}
	return nil
}

// trim returns data without white space around it.
func trim(data []byte) []byte {
	for len(data) > 0 && isSpace(data[0]) {
		data = data[1:]
	}
	for len(data) > 0 && isSpace(data[len(data)-1]) {
		data = data[:len(data)-1]
	}
	return data
}

package cassette

import (
	"bytes"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// The form of a file: JSON, indented, in which a text of several lines is {"|": ["first", "second"]}. A member whose name begins with "|" gets
// one more, so that nothing in the data can be taken for that. Numbers, the order of members and all other escapes stay.

const (
	bar  = "|"
	wide = 120 // what is shorter stands on one line
)

// appendReadable writes raw, which is compact JSON, for people.
func appendReadable(dst, raw []byte, indent int) []byte {
	open, n := raw[0], 0
	before := func() {
		dst = newline(comma(dst, n), indent+1)
		n++
	}
	if len(raw) <= wide && !bytes.Contains(raw, []byte(`\n`)) {
		before = func() {
			if dst = comma(dst, n); n > 0 {
				dst = append(dst, ' ')
			}
			n++
		}
	}
	short := len(dst)
	switch open {
	case '"':
		lines := cutLines(raw)
		if len(lines) < 2 {
			return append(dst, raw...)
		}
		dst = append(dst, `{"|": [`...)
		for _, line := range lines {
			before()
			dst = append(dst, line...)
		}
		return append(newline(dst, indent), "]}"...)
	case '{':
		dst = append(dst, open)
		for o := wire.Object(raw); o.Next(); {
			before()
			key := string(o.Key)
			if strings.HasPrefix(key, bar) {
				key = bar + key
			}
			dst = append(wire.AppendString(dst, key), ": "...)
			dst = appendReadable(dst, o.Value, indent+1)
		}
	case '[':
		dst = append(dst, open)
		for a := wire.Array(raw); a.Next(); {
			before()
			dst = appendReadable(dst, a.Value, indent+1)
		}
	default:
		return append(dst, raw...)
	}
	if bytes.IndexByte(dst[short:], '\n') >= 0 {
		dst = newline(dst, indent)
	}
	return append(dst, open+2)
}

func comma(dst []byte, n int) []byte {
	if n > 0 {
		return append(dst, ',')
	}
	return dst
}

func newline(dst []byte, indent int) []byte {
	dst = append(dst, '\n')
	for range min(indent, 40) { // what is nested deeper is nobody's to read, and would be mostly tabs
		dst = append(dst, '\t')
	}
	return dst
}

// cutLines cuts a JSON string at each \n into JSON strings.
func cutLines(raw []byte) (lines [][]byte) {
	body := raw[1 : len(raw)-1]
	start := 0
	cut := func(end int) {
		lines = append(lines, append(append([]byte{'"'}, body[start:end]...), '"'))
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		if i++; body[i] == 'n' {
			cut(i - 1)
			start = i + 1
		}
	}
	cut(len(body))
	return lines
}

// appendPlain undoes appendReadable: raw is any JSON value, what comes out is compact.
func appendPlain(dst, raw []byte) ([]byte, error) {
	n := 0
	switch raw[0] {
	case '{':
		dst = append(dst, '{')
		o := wire.Object(raw)
		for ; o.Next(); n++ {
			key := string(o.Key)
			if key == bar {
				if n > 0 || !bytes.HasPrefix(bytes.TrimSpace(o.Value), []byte{'['}) {
					return nil, errdefs.Validation.Errorf(`a member "|" that is no list of lines on its own`)
				}
				lines := o.Value
				if o.Next() {
					return nil, errdefs.Validation.Errorf(`a member %q beside "|"`, o.Key)
				}
				return appendLines(dst[:len(dst)-1], lines)
			}
			dst = append(wire.AppendString(comma(dst, n), strings.TrimPrefix(key, bar)), ':')
			var err error
			if dst, err = appendPlain(dst, o.Value); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), o.Err()
	case '[':
		dst = append(dst, '[')
		a := wire.Array(raw)
		for ; a.Next(); n++ {
			var err error
			if dst, err = appendPlain(comma(dst, n), a.Value); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), a.Err()
	}
	return append(dst, raw...), nil
}

// appendLines joins JSON strings to one.
func appendLines(dst, list []byte) ([]byte, error) {
	dst = append(dst, '"')
	a := wire.Array(list)
	for n := 0; a.Next(); n++ {
		if a.Value[0] != '"' {
			return nil, errdefs.Validation.Errorf(`a line that is no text: %s`, clip(string(a.Value)))
		}
		if n > 0 {
			dst = append(dst, `\n`...)
		}
		dst = append(dst, a.Value[1:len(a.Value)-1]...)
	}
	return append(dst, '"'), a.Err()
}

// eachText gives compact JSON with every text in it, names of members too, as f makes it. What f leaves as it is keeps its bytes.
func eachText(dst, raw []byte, f func(string) string) []byte {
	text := func(dst, raw []byte) []byte {
		was := wire.String(raw)
		if is := f(was); is != was {
			return wire.AppendString(dst, is)
		}
		return append(dst, raw...)
	}
	n := 0
	switch raw[0] {
	case '"':
		return text(dst, raw)
	case '{':
		dst = append(dst, '{')
		for o := wire.Object(raw); o.Next(); n++ {
			dst = append(wire.AppendString(comma(dst, n), f(string(o.Key))), ':')
			dst = eachText(dst, o.Value, f)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for a := wire.Array(raw); a.Next(); n++ {
			dst = eachText(comma(dst, n), a.Value, f)
		}
		return append(dst, ']')
	}
	return append(dst, raw...)
}

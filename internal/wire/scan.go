package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may nest, as in encoding/json.
const maxDepth = 10000

// What the scanner may have expected. A skip function returns one of these, and
// the offset of the byte that broke the expectation, or "" when all went well:
// telling a fault then costs nothing where nobody asks for its text.
const (
	wantValue     = "a value"
	wantObject    = "'{'"
	wantArray     = "'['"
	wantName      = "'\"' to begin a member name"
	wantColon     = "':' after a member name"
	wantMember    = "',' or '}' after a member"
	wantElement   = "',' or ']' after an element"
	wantQuote     = "'\"' to end a string"
	wantEscaped   = "an escaped control character in a string"
	wantEscape    = "one of \"\\/bfnrtu after a backslash"
	wantHex       = "four hexadecimal digits after \\u"
	wantDigit     = "a digit"
	wantTrue      = "true"
	wantFalse     = "false"
	wantNull      = "null"
	wantShallower = "at most 10000 levels of nesting"
	wantEnd       = "nothing after the value"
)

// fault is the error for a byte of data that is not what was wanted.
func fault(data []byte, at int, want string) error {
	found := "the end"
	if at < len(data) {
		if c := data[at]; c < utf8.RuneSelf {
			found = strconv.QuoteRune(rune(c))
		} else {
			found = fmt.Sprintf("byte 0x%x", c)
		}
	}
	return fmt.Errorf("wire: offset %d: expected %s, found %s", at, want, found)
}

// Valid reports whether data is exactly one JSON value, white space around
// allowed. It agrees with [encoding/json.Valid], the limit of 10000 levels of
// nesting included.
func Valid(data []byte) bool {
	end, want := skipValue(data, skipSpace(data, 0), maxDepth)
	return want == "" && skipSpace(data, end) == len(data)
}

// skipValue returns the offset after the value that begins at data[i]. Up to
// depth levels may nest in it. What is open is kept in a list rather than in
// nested calls, so that hostile nesting costs a byte for each level.
func skipValue(data []byte, i, depth int) (end int, want string) {
	var few [64]byte
	open := few[:0]
value:
	for {
		if i >= len(data) {
			return i, wantValue
		}
		switch c := data[i]; c {
		case '"':
			if i, _, want = skipString(data, i+1); want != "" {
				return i, want
			}
		case '{', '[':
			if len(open) == depth {
				return i, wantShallower
			}
			i = skipSpace(data, i+1)
			if i < len(data) && data[i] == closing(c) {
				i++
				break
			}
			open = append(open, c)
			if c == '{' {
				if _, _, i, want = skipName(data, i); want != "" {
					return i, want
				}
			}
			continue
		default:
			if i, want = skipWord(data, i); want != "" {
				return i, want
			}
		}
		// A value ended at i: close what ends with it, up to the next comma.
		for len(open) > 0 {
			i = skipSpace(data, i)
			last := open[len(open)-1]
			switch {
			case i < len(data) && data[i] == ',':
				i = skipSpace(data, i+1)
				if last == '{' {
					if _, _, i, want = skipName(data, i); want != "" {
						return i, want
					}
				}
				continue value
			case i < len(data) && data[i] == closing(last):
				i++
				open = open[:len(open)-1]
			default:
				return i, wantAfter(last)
			}
		}
		return i, ""
	}
}

// closing returns the bracket that closes open, '{' or '['. In ASCII it is two
// further on.
func closing(open byte) byte { return open + 2 }

// wantAfter is what may follow an item of what open, '{' or '[', began.
func wantAfter(open byte) string {
	if open == '{' {
		return wantMember
	}
	return wantElement
}

// skipName reads a member's name and colon at data[i]. name is what stands
// between the quotes, has says what is in it, and next is where the value has to
// begin or, when want is set, the fault.
func skipName(data []byte, i int) (name []byte, has contents, next int, want string) {
	if i >= len(data) || data[i] != '"' {
		return nil, 0, i, wantName
	}
	end, has, want := skipString(data, i+1)
	if want != "" {
		return nil, 0, end, want
	}
	next = skipSpace(data, end)
	if next >= len(data) || data[next] != ':' {
		return nil, 0, next, wantColon
	}
	return data[i+1 : end-1], has, skipSpace(data, next+1), ""
}

// contents is what was seen in a string while it was passed over.
type contents uint64

const (
	escapes  contents = 1
	nonASCII contents = highBits // any bit of it
)

// plain reports whether body, the inside of a string with such contents, is its
// text as it stands: without escapes, and UTF-8.
func (c contents) plain(body []byte) bool {
	return c == 0 || c&escapes == 0 && utf8.Valid(body)
}

// skipString returns the offset after the string whose opening quote stands just
// before data[i], and what is in it.
func skipString(data []byte, i int) (end int, has contents, want string) {
	for {
		run, seen := plainRun(data, i)
		has |= seen
		if i = run; i >= len(data) {
			return i, has, wantQuote
		}
		switch data[i] {
		case '"':
			return i + 1, has, ""
		case '\\':
			has |= escapes
		default:
			return i, has, wantEscaped
		}
		i++
		if i >= len(data) {
			return i, has, wantEscape
		}
		switch data[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i++
		case 'u':
			i++
			for digits := i + 4; i < digits; i++ {
				if i >= len(data) || hexValue(data[i]) < 0 {
					return i, has, wantHex
				}
			}
		default:
			return i, has, wantEscape
		}
	}
}

// hexValue is the value of a hexadecimal digit, -1 of any other byte.
func hexValue(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return -1
}

// skipWord returns the offset after the literal or number at data[i].
func skipWord(data []byte, i int) (end int, want string) {
	switch data[i] {
	case 't':
		want = wantTrue
	case 'f':
		want = wantFalse
	case 'n':
		want = wantNull
	default:
		return skipNumber(data, i)
	}
	if end = i + len(want); end <= len(data) && string(data[i:end]) == want {
		return end, ""
	}
	return i, want
}

// skipNumber returns the offset after the number at data[i].
func skipNumber(data []byte, i int) (end int, want string) {
	want = wantValue
	if i < len(data) && data[i] == '-' {
		i++
		want = wantDigit
	}
	switch digits := skipDigits(data, i); {
	case digits == i:
		return i, want
	case data[i] == '0':
		i++ // a zero at the front stands alone
	default:
		i = digits
	}
	if i < len(data) && data[i] == '.' {
		i++
		digits := skipDigits(data, i)
		if digits == i {
			return i, wantDigit
		}
		i = digits
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		digits := skipDigits(data, i)
		if digits == i {
			return i, wantDigit
		}
		i = digits
	}
	return i, ""
}

func skipDigits(data []byte, i int) int {
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	return i
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

const (
	ones     = 0x0101010101010101 // times a byte: that byte eight times over
	highBits = 0x80 * ones
)

// special marks the bytes of x that are a quote, a backslash or a control
// character by their high bit. Marks above the lowest one may be wrong, the lowest
// never is.
func special(x uint64) uint64 {
	quote, backslash := x^'"'*ones, x^'\\'*ones // zero where one is
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (x-' '*ones)&^x) & highBits
}

// plainRun returns the offset of the first byte from data[i] on that is a quote,
// a backslash or a control character, len(data) if there is none, and whether
// anything before it is beyond ASCII. It looks at eight bytes at a time.
func plainRun(data []byte, i int) (end int, has contents) {
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		if found := special(x); found != 0 {
			x &= found&-found - 1 // what stands before it
			return i + bits.TrailingZeros64(found)/8, has | contents(x)&nonASCII
		}
		has |= contents(x) & nonASCII
	}
	for ; i < len(data); i++ {
		c := data[i]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		has |= contents(c) & nonASCII
	}
	return i, has
}

// plainASCII returns the offset of the first byte from data[i] on that ends a
// plainRun or is beyond ASCII.
func plainASCII(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		if found := special(x) | x&highBits; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] < utf8.RuneSelf && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

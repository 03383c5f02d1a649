package wire

import (
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// String returns the text of raw, a JSON string. As in [encoding/json], a pair
// of escaped surrogates is one character; a lone one, and each byte of invalid
// UTF-8, becomes U+FFFD. It returns "" when raw is anything but a string: absent,
// null, another kind of value, malformed.
//
// It allocates the text it returns, once, and nothing for "".
func String(raw []byte) string {
	body, has := stringBody(raw)
	if has.plain(body) {
		return string(body)
	}
	size := 0
	for rest := body; len(rest) > 0; {
		run, r, after := cutRune(rest)
		size += len(run)
		if r >= 0 {
			size += utf8.RuneLen(r)
		}
		rest = after
	}
	var text strings.Builder
	text.Grow(size)
	for rest := body; len(rest) > 0; {
		run, r, after := cutRune(rest)
		text.Write(run)
		if r >= 0 {
			text.WriteRune(r)
		}
		rest = after
	}
	return text.String()
}

// Quotes reports whether raw is the JSON string of s, written without an escape. It
// spares a copy where a text is known already.
func Quotes(raw []byte, s string) bool {
	return len(raw) == len(s)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == s && !strings.ContainsAny(s, `"\`)
}

// AppendText appends to dst the text that [String] would return for raw. It
// allocates only when dst lacks room.
func AppendText(dst, raw []byte) []byte {
	body, has := stringBody(raw)
	if has.plain(body) {
		return append(dst, body...)
	}
	return appendDecoded(dst, body)
}

// Text is a text that comes in pieces, each a JSON string, such as the deltas of a
// stream. It grows in place: a piece is a part of the whole, and takes no
// allocation of its own. Who keeps a piece keeps what the text was by then. The
// zero Text is empty; don't copy it.
type Text struct{ whole strings.Builder }

// Append adds the text that [String] would return for raw, and returns it.
func (t *Text) Append(raw []byte) (piece string) {
	body, has := stringBody(raw)
	n := t.whole.Len()
	if room := t.whole.Cap(); room-n < len(body) {
		t.whole.Grow(max(firstText, 2*room, len(body))) // in big steps
	}
	if has.plain(body) {
		t.whole.Write(body)
		return t.whole.String()[n:]
	}
	for len(body) > 0 {
		run, r, rest := cutRune(body)
		t.whole.Write(run)
		if r >= 0 {
			t.whole.WriteRune(r)
		}
		body = rest
	}
	return t.whole.String()[n:]
}

// firstText is the room for a text that begins.
const firstText = 64

// Len is the number of bytes.
func (t *Text) Len() int { return t.whole.Len() }

// String is all of it, without a copy.
func (t *Text) String() string { return t.whole.String() }

// Kept is all of it, for who keeps it for long: a copy where a good part of what it
// lies in is room for more.
func (t *Text) Kept() string {
	if n := t.whole.Len(); t.whole.Cap() > firstText && t.whole.Cap()-n > n/8 {
		return strings.Clone(t.whole.String())
	}
	return t.whole.String()
}

// stringBody returns what stands between the quotes of raw, a JSON string, and
// what is in it; nil when raw is no string.
func stringBody(raw []byte) (body []byte, has contents) {
	raw = trim(raw)
	if len(raw) == 0 || raw[0] != '"' {
		return nil, 0
	}
	end, has, want := skipString(raw, 1)
	if want != "" || end != len(raw) {
		return nil, 0
	}
	return raw[1 : end-1], has
}

// appendDecoded appends the text of body, the inside of a valid JSON string.
func appendDecoded(dst, body []byte) []byte {
	for len(body) > 0 {
		run, r, rest := cutRune(body)
		dst = append(dst, run...)
		if r >= 0 {
			dst = utf8.AppendRune(dst, r)
		}
		body = rest
	}
	return dst
}

// cutRune splits body, the inside of a valid JSON string, in three: the run that
// stands for itself, the character r that follows in another guise, as an escape
// or as a byte of invalid UTF-8, and the rest. r is -1 when the run is all.
func cutRune(body []byte) (run []byte, r rune, rest []byte) {
	for i := 0; ; {
		i = plainASCII(body, i)
		switch {
		case i == len(body):
			return body, -1, nil
		case body[i] < utf8.RuneSelf:
			r, size := unescape(body[i:])
			return body[:i], r, body[i+size:]
		}
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return body[:i], r, body[i+1:]
		}
		i += size
	}
}

// unescape returns the character that b, valid and beginning with a backslash,
// stands for and the length of its escape.
func unescape(b []byte) (r rune, size int) {
	switch b[1] {
	case 'u':
		r = unescapeHex(b)
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if pair := utf16.DecodeRune(r, unescapeHex(b[6:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	}
	return rune(b[1]), 2 // a quote, a slash or a backslash
}

// unescapeHex returns the number in b, which begins with \u and four digits.
func unescapeHex(b []byte) rune {
	return hexValue(b[2])<<12 | hexValue(b[3])<<8 | hexValue(b[4])<<4 | hexValue(b[5])
}

// Int returns the number raw when it is integral, however it is written: 12, 12.0
// and 1.2e1 are all 12. It returns 0 when raw is absent, null or no number, and
// for a number with a fraction or beyond the range of int64.
func Int(raw []byte) int64 {
	raw = trim(raw)
	if end, want := skipNumber(raw, 0); want != "" || end != len(raw) {
		return 0
	}
	limit := uint64(math.MaxInt64)
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
		limit++
	}
	// The number is n followed by that many zeros, times ten to the power. Zeros
	// wait until a digit follows, for a negative power may yet take them away.
	// Without zeros at its end, an n over the limit is no int64 in any case: it
	// has a fraction, or it is too large.
	var n uint64
	var zeros, power int64
	fraction := false
digits:
	for i, c := range raw {
		switch c {
		case '.':
			fraction = true
			continue
		case 'e', 'E':
			power += exponent(raw[i+1:])
			break digits
		case '0':
			zeros++
		default:
			n = timesPowerOfTen(n, zeros+1, limit) + uint64(c-'0')
			if n > limit {
				return 0
			}
			zeros = 0
		}
		if fraction {
			power--
		}
	}
	if power += zeros; power < 0 {
		return 0
	}
	n = timesPowerOfTen(n, power, limit)
	switch {
	case n > limit:
		return 0
	case negative:
		return -int64(n) //nolint:gosec // right for the least int64 too: both steps wrap
	}
	return int64(n) //nolint:gosec // n is at most limit
}

// timesPowerOfTen returns n times ten to the power, or limit+1 when that is more
// than limit.
func timesPowerOfTen(n uint64, power int64, limit uint64) uint64 {
	if n == 0 {
		return 0
	}
	for ; power > 0; power-- {
		if n > limit/10 {
			return limit + 1
		}
		n *= 10
	}
	return n
}

// exponent returns the number in b: an optional sign and digits. It stops
// counting at a size that no input is long enough to make up for.
func exponent(b []byte) int64 {
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	var n int64
	for _, c := range b {
		n = min(n*10+int64(c-'0'), 1<<56)
	}
	if negative {
		return -n
	}
	return n
}

// Bool reports whether raw is the literal true.
func Bool(raw []byte) bool { return string(trim(raw)) == "true" }

// IsNull reports whether raw is absent or the literal null.
func IsNull(raw []byte) bool {
	raw = trim(raw)
	return len(raw) == 0 || string(raw) == "null"
}

package wire

import (
	"encoding/base64"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s to dst as a JSON string, quotes included.
//
// Control characters, the quote and the backslash are escaped, and so are U+2028
// and U+2029, which JavaScript once took for line ends. Each byte that is not
// part of valid UTF-8 becomes U+FFFD. Characters that matter to HTML stay as they
// are. The result equals that of an [encoding/json.Encoder] with SetEscapeHTML
// off, but for U+FFFD, which stands as it is: a text that was read back from its
// own JSON must give the same bytes again.
func AppendString(dst []byte, s string) []byte {
	// The conversion copies nothing: src is only read and stays in here.
	src := []byte(s)
	dst = append(dst, '"')
	done := 0 // src[:done] was written
	for i := 0; ; {
		i = plainASCII(src, i)
		if i == len(src) {
			break
		}
		c := src[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(src[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(dst, src[done:i]...)
				dst = append(dst, "\uFFFD"...)
				done = i + size
			case r == '\u2028' || r == '\u2029':
				dst = append(dst, src[done:i]...)
				dst = append(dst, `\u202`...)
				dst = append(dst, hexDigits[r&0xf])
				done = i + size
			}
			i += size
			continue
		}
		dst = append(dst, src[done:i]...)
		dst = appendEscape(dst, c)
		i++
		done = i
	}
	dst = append(dst, src[done:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of c: a quote, a backslash or a control
// character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\t':
		return append(dst, '\\', 't')
	case '\r':
		return append(dst, '\\', 'r')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// AppendWord appends to dst a JSON string of letters, digits, _ and -, which is all
// that providers take in ids and names. Another byte of s is written as _ and its
// code, so that different ones stay different. What would take more than longest
// bytes, 0 for no limit, otherwise at least 24, is cut off, and ends with a hash of
// all of s instead. "" is "_". The same s always gives the same word.
func AppendWord(dst []byte, s string, longest int) []byte {
	dst = append(dst, '"')
	start := len(dst)
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(s) {
		c := s[i]
		hash = (hash ^ uint64(c)) * 1099511628211
		switch {
		case longest > 0 && len(dst)-start > longest: // enough is known
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			dst = append(dst, c)
		default:
			dst = append(dst, '_', hexDigits[c>>4], hexDigits[c&0xf])
		}
	}
	switch n := len(dst) - start; {
	case n == 0:
		dst = append(dst, '_')
	case longest > 0 && n > longest:
		dst = append(dst[:start+longest-17], '_')
		for shift := 60; shift >= 0; shift -= 4 {
			dst = append(dst, hexDigits[hash>>shift&0xf])
		}
	}
	return append(dst, '"')
}

// AppendBase64 appends to dst a JSON string that holds data in standard base64,
// padded.
func AppendBase64(dst []byte, data string) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, []byte(data))
	return append(dst, '"')
}

// Compact reports whether raw is exactly one JSON value, without insignificant
// white space: what [AppendCompact] would leave as it is.
func Compact(raw []byte) bool {
	if !Valid(raw) {
		return false
	}
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i, _, _ = skipString(raw, i+1)
		case ' ', '\t', '\n', '\r':
			return false
		default:
			i++
		}
	}
	return true
}

// AppendCompact appends raw to dst without its insignificant white space, every
// other byte as it is: escapes, numbers and the order of members stay.
//
// It reports whether raw was exactly one JSON value, white space around allowed.
// When it was not, dst is returned as it came. raw and the spare capacity of dst
// must not overlap.
func AppendCompact(dst, raw []byte) ([]byte, bool) {
	if !Valid(raw) {
		return dst, false
	}
	done := 0 // raw[:done] was written
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i, _, _ = skipString(raw, i+1)
		case ' ', '\t', '\n', '\r':
			dst = append(dst, raw[done:i]...)
			i = skipSpace(raw, i+1)
			done = i
		default:
			i++
		}
	}
	return append(dst, raw[done:]...), true
}

package main

import (
	"strconv"
	"unicode/utf8"
)

// The floor's own reading of JSON: any order of members, any nesting, any escape but surrogate pairs. What is no JSON is not found out.

// field gives the bytes of an object's member; nil if it has none of that name, or is no object.
func field(b []byte, name string) []byte {
	i := blank(b, 0)
	if i >= len(b) || b[i] != '{' {
		return nil
	}
	for i++; i < len(b); i++ {
		i = blank(b, i)
		if i >= len(b) || b[i] != '"' {
			return nil
		}
		end := value(b, i)
		here := string(b[i+1:end-1]) == name
		i = blank(b, blank(b, end)+1) // behind the colon
		end = value(b, i)
		if here {
			return b[i:end]
		}
		if i = blank(b, end); i >= len(b) || b[i] != ',' {
			return nil
		}
	}
	return nil
}

func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// value gives the end of the value that begins at b[i].
func value(b []byte, i int) int {
	deep := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			deep++
		case '}', ']':
			if deep == 0 {
				return i
			}
			deep--
		case ',':
			if deep == 0 {
				return i
			}
			i++
			continue
		default:
			if deep == 0 {
				for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
					i++
				}
				return i
			}
		}
		i++
		if deep == 0 {
			return i
		}
	}
	return i
}

// plain is a string without escapes.
func plain(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// unquote appends what a string says.
func unquote(b, raw []byte) []byte {
	raw = plain(raw)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 >= len(raw) {
			b = append(b, c)
			continue
		}
		i++
		switch c = raw[i]; c {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'u':
			if i+4 < len(raw) {
				n, _ := strconv.ParseUint(string(raw[i+1:i+5]), 16, 32)
				b = utf8.AppendRune(b, rune(n)) //nolint:gosec // four digits
				i += 4
			}
		default:
			b = append(b, c)
		}
	}
	return b
}

// appendQuoted appends a string.
func appendQuoted(b, s []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

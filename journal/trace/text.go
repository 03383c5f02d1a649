package trace

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text writes what comes from the journal. Nothing in it is markup: what would be is escaped, sequences that colour a terminal are left out, and what can't be seen or turns the order of
// what can be is written so that it is seen. Bytes that are no UTF-8 become U+FFFD.
func (p *page) text(s string) {
	from := 0 // what comes before is written
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && c >= ' ' && c != 0x7f && c != '<' && c != '>' && c != '&' && c != '"' && c != '\'' || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && visible(r, size) {
			i += size
			continue
		}
		p.raw(s[from:i])
		if c == 0x1b {
			if n := coloured(s[i:]); n > 0 {
				i += n
				from = i
				continue
			}
		}
		if c == '\r' && i+1 < len(s) && s[i+1] == '\n' {
			i++
			from = i
			continue
		}
		p.odd(r, size)
		i += size
		from = i
	}
	p.raw(s[from:])
}

// visible reports whether a rune beyond ASCII is shown as it is. What joins and parts letters is: scripts and pictures are written with it.
func visible(r rune, size int) bool {
	return r == '\u200c' || r == '\u200d' || (r != utf8.RuneError || size > 1) && !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Co, r) && r != '\u2028' && r != '\u2029'
}

// odd writes a rune that is not shown as it is.
func (p *page) odd(r rune, size int) {
	switch {
	case r == '<':
		p.raw("&lt;")
	case r == '>':
		p.raw("&gt;")
	case r == '&':
		p.raw("&amp;")
	case r == '"':
		p.raw("&#34;")
	case r == '\'':
		p.raw("&#39;")
	case r == utf8.RuneError && size <= 1:
		p.raw("\ufffd")
	case r < ' ':
		p.raw(string(rune('\u2400' + r))) // its picture
	case r == 0x7f:
		p.raw("\u2421")
	default:
		fmt.Fprintf(p.w, "[U+%04X]", r)
	}
}

// coloured is the length of a sequence at the beginning of s that sets colours and weights of a terminal (SGR); 0: there is none.
func coloured(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case (c < '0' || c > '9') && c != ';' && c != ':':
			return 0
		}
	}
	return 0
}

// oneLine is the beginning of a text, on one line.
func oneLine(s string, most int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		if n == most {
			return b.String() + "…"
		}
		if unicode.IsSpace(r) {
			if !space && n > 0 {
				b.WriteByte(' ')
				n++
			}
			space = true
			continue
		}
		space = false
		b.WriteRune(r)
		n++
	}
	return b.String()
}

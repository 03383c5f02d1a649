package wire

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Partial reads one JSON value that comes in pieces, and tells what there is of it so far as JSON that is whole: each piece is looked at once,
// whatever came before. The zero value waits for the first piece.
//
// A text that is being written is there as far as it goes, without half an escape or character; a list, an object and its member are there once they
// have begun; a number, true, false and null once they are over, which is when something follows them. So what is there only ever grows. What is no
// JSON ends it: from then on it has nothing more to tell.
type Partial struct {
	text []byte // all that came
	open []byte // brackets that are open, the innermost last
	cut  int    // up to there text is whole, but for what is open
	next int    // up to there it was looked at
	at   place
	word int  // where the word or number began
	left int  // what an escape still needs: escapeBegun, or digits
	rune rune // of the digits so far
	held bool // half a pair of surrogates waits for the other one
}

// place is what the next byte may be.
type place uint8

const (
	atValue     place = iota // the beginning of a value
	atFirst                  // that, or the end of a list
	atFirstName              // the beginning of a name, or the end of an object
	atName                   // the beginning of a name
	inName
	atColon
	inText
	inWord
	atMore // a comma or a closing bracket
	atEnd
	broken
)

const escapeBegun = 5 // a backslash came; from 4 on the digits of \u are counted down

// Write adds a piece, and reports whether there is more now than before.
func (p *Partial) Write(piece string) (more bool) {
	p.text = append(p.text, piece...)
	for p.next < len(p.text) && p.at != broken {
		if p.step() {
			more = true
		}
	}
	return more && p.at != broken
}

// Len is how many bytes have come.
func (p *Partial) Len() int { return len(p.text) }

// Back takes back what came after the first n bytes.
func (p *Partial) Back(n int) {
	*p = Partial{text: p.text[:0], open: p.open[:0]}
	p.Write(string(p.text[:n]))
}

// Append appends the value so far to dst; nothing while none has begun, and once it turned out to be no JSON.
func (p *Partial) Append(dst []byte) []byte {
	if p.at == broken {
		return dst
	}
	dst = append(dst, p.text[:p.cut]...)
	if p.at == inText {
		dst = append(dst, '"')
	}
	for i := len(p.open) - 1; i >= 0; i-- {
		dst = append(dst, closing(p.open[i]))
	}
	return dst
}

// step looks at the next byte, or at the next run of plain ones.
func (p *Partial) step() (more bool) {
	c := p.text[p.next]
	switch {
	case p.at == inText, p.at == inName:
		return p.char(c)
	case p.at == inWord && isWord(c):
	case p.at == inWord:
		if end, want := skipWord(p.text[:p.next], p.word); want != "" || end != p.next {
			p.at = broken
			return false
		}
		p.cut = p.next
		p.over()
		return true // and c is looked at again
	case isSpace(c):
	default:
		more = p.token(c)
	}
	p.next++
	return more
}

// token takes a byte between texts and words.
func (p *Partial) token(c byte) (more bool) {
	switch {
	case c == '"' && (p.at == atName || p.at == atFirstName):
		p.at = inName
	case c == ':' && p.at == atColon:
		p.at = atValue
	case c == ',' && p.at == atMore && p.open[len(p.open)-1] == '{':
		p.at = atName
	case c == ',' && p.at == atMore:
		p.at = atValue
	case c == '}' && (p.at == atFirstName || p.at == atMore), c == ']' && (p.at == atFirst || p.at == atMore):
		last := len(p.open) - 1
		if closing(p.open[last]) != c {
			p.at = broken
			return false
		}
		p.open, p.cut = p.open[:last], p.next+1
		p.over()
	case p.at != atValue && p.at != atFirst:
		p.at = broken
	case c == '"':
		p.at, p.cut, more = inText, p.next+1, true
	case (c == '{' || c == '[') && len(p.open) < maxDepth:
		p.open, p.cut, more = append(p.open, c), p.next+1, true
		if p.at = atFirst; c == '{' {
			p.at = atFirstName
		}
	case isWord(c):
		p.at, p.word = inWord, p.next
	default:
		p.at = broken
	}
	return more
}

// over says that a value has ended.
func (p *Partial) over() {
	if p.at = atMore; len(p.open) == 0 {
		p.at = atEnd
	}
}

// char takes a byte of a text or name that is being read, or a run of plain ones.
func (p *Partial) char(c byte) (more bool) {
	switch {
	case p.left == escapeBegun:
		return p.escape(c)
	case p.left > 0:
		return p.digit(c)
	case c == '\\':
		p.left = escapeBegun
	case c == '"' && p.at == inName:
		p.at, p.held = atColon, false
	case c == '"':
		more, p.held = p.held, false // a lone surrogate is a character after all
		p.cut = p.next + 1
		p.over()
	case c < ' ':
		p.at = broken
	default:
		p.next, _ = plainRun(p.text, p.next)
		return p.said(p.next - half(p.text[:p.next]))
	}
	p.next++
	return more
}

// escape takes what follows a backslash.
func (p *Partial) escape(c byte) bool {
	p.next++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.left = 0
		return p.said(p.next)
	case 'u':
		p.left, p.rune = 4, 0
	default:
		p.at = broken
	}
	return false
}

// digit takes a digit of \u. Half a pair of surrogates is not said before its other half: alone it is another character.
func (p *Partial) digit(c byte) bool {
	h := hexValue(c)
	if h < 0 {
		p.at = broken
		return false
	}
	p.next++
	p.rune = p.rune<<4 | h
	if p.left--; p.left > 0 {
		return false
	}
	if utf16.IsSurrogate(p.rune) && p.rune < 0xDC00 {
		p.held = true
		return false
	}
	return p.said(p.next)
}

// said notes that a text goes up to end.
func (p *Partial) said(end int) (more bool) {
	p.held = false
	if p.at != inText || end <= p.cut {
		return false
	}
	p.cut = end
	return true
}

// half is how many bytes of a character stand at the end of text whose rest is not there yet.
func half(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// isWord reports whether c may be in a number, or in true, false and null.
func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

package guard

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// folder turns characters into keys that are the same for what a reader takes for the same: in any case (Unicode's full case folding: "STRASSE" is "straße"), composed or not, wide or not, with
// straight or curly apostrophes, with any white space, whatever invisible characters stand between.
type folder struct {
	fold   cases.Caser
	known  map[rune]string // of characters that were met before; at most knownKeys
	spaced bool            // the last key was white space
}

const knownKeys = 4096

func newFolder() *folder {
	return &folder{fold: cases.Fold(), known: map[rune]string{}, spaced: true}
}

// unseen are characters that nobody sees, besides ASCII's: of formatting, fillers (which count as letters), and those that Unicode keeps free for such. The next line (U+0085) is white space, and not here.
var unseen = []*unicode.RangeTable{
	unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
	{R16: []unicode.Range16{{Lo: 0x80, Hi: 0x84, Stride: 1}, {Lo: 0x86, Hi: 0x9f, Stride: 1}}, R32: []unicode.Range32{{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}}, LatinOffset: 2},
}

// keys gives the keys of a character to emit, in order; none for what is not seen.
func (f *folder) keys(r rune, emit func(key rune)) {
	if r < utf8.RuneSelf {
		switch {
		case 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		case (r < ' ' || r == 0x7f) && !unicode.IsSpace(r):
			return
		}
		f.key(r, emit)
		return
	}
	keys, ok := f.known[r]
	if !ok {
		if !unicode.In(r, unseen...) {
			keys = f.fold.String(norm.NFKD.String(string(r)))
		}
		if len(f.known) < knownKeys {
			f.known[r] = keys
		}
	}
	for _, k := range keys {
		f.key(k, emit)
	}
}

func (f *folder) key(k rune, emit func(rune)) {
	switch {
	case unicode.IsSpace(k):
		if f.spaced {
			return
		}
		f.spaced = true
		emit(' ')
		return
	case k == '\u2018', k == '\u2019', k == '\u02BC':
		k = '\''
	case '\u2010' <= k && k <= '\u2015':
		k = '-'
	}
	f.spaced = false
	emit(k)
}

// unspaced are the scripts that put no space between words: there every place may be the edge of one.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// inWord reports whether a key and its neighbour of the same kind are of one word.
func inWord(k rune) bool {
	if k < utf8.RuneSelf {
		return 'a' <= k && k <= 'z' || '0' <= k && k <= '9' || k == '_'
	}
	return (unicode.IsLetter(k) || unicode.IsDigit(k) || unicode.IsMark(k)) && !unicode.In(k, unspaced...)
}

package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/tokens"
)

// length refuses texts with more than so many characters, or tokens by estimate.
type length struct{ characters, tokens int }

func newLength(p Params) (Rule, error) {
	r := p.Read()
	l := &length{characters: r.Count("max_characters", "max_chars", "max"), tokens: r.Count("max_tokens")}
	if l.characters == 0 && l.tokens == 0 {
		r.Missing("max_characters", "say how many characters are allowed, or max_tokens")
	}
	return l, r.Err()
}

func (l *length) Judge(_ context.Context, text string) (string, error) {
	return scanned(l.Scanner(), text), nil
}

func (l *length) Holds() string    { return "nothing: what is within the limit is shown" }
func (l *length) Scanner() Scanner { return &lengthScanner{length: l} }

type lengthScanner struct {
	*length
	at, characters, ascii int
}

func (s *lengthScanner) Scan(piece string) (int, string) {
	for i, c := range piece {
		s.characters++
		if c < utf8.RuneSelf {
			s.ascii++
		}
		at := s.at + i
		if s.length.characters > 0 && s.characters > s.length.characters {
			return at, fmt.Sprintf("it has more than %d characters", s.length.characters)
		}
		size := max(1, len(string(c)))
		if s.tokens > 0 && tokens.Bytes(s.ascii, at+size-s.ascii) > s.tokens {
			return at, fmt.Sprintf("it has more than %d tokens, by estimate", s.tokens)
		}
	}
	s.at += len(piece)
	return s.at, ""
}

func (s *lengthScanner) End() (int, string) { return s.at, "" }

// sentences refuses texts with more than so many sentences.
//
// A sentence ends with . ! ? … (and what closes a quotation or a bracket) before white space, with 。 ！ ？ anywhere, and with an empty line. A point ends none behind a usual abbreviation, a
// single letter or the number of a list, and before a small letter.
type sentences struct{ most int }

func newSentences(p Params) (Rule, error) {
	r := p.Read()
	s := &sentences{r.Count("max_sentences", "max")}
	if s.most == 0 {
		r.Missing("max_sentences", "say how many sentences are allowed")
	}
	return s, r.Err()
}

func (s *sentences) Judge(_ context.Context, text string) (string, error) {
	return scanned(s.Scanner(), text), nil
}

func (s *sentences) Holds() string    { return "nothing: sentences within the limit are shown" }
func (s *sentences) Scanner() Scanner { return &sentenceScanner{sentences: s, first: true} }

type sentenceScanner struct {
	*sentences
	at, count int
	within    bool   // a sentence has begun and not ended
	stop      rune   // behind the last word: it may have ended the sentence; 0: none
	spaced    bool   // white space since the last character
	lines     int    // line ends since then
	word      []rune // the last one, in lower case, its beginning
	heads     bool   // it is the first of its line
	first     bool   // nothing was said yet
}

const (
	stops       = ".!?…"
	plainStops  = "。！？" // end a sentence without white space
	closers     = "\"'”’»)]}*_`」』）"
	longestName = 12 // of what may be an abbreviation
)

// abbreviations have a point that ends no sentence.
var abbreviations = []string{"mr", "mrs", "ms", "dr", "prof", "st", "vs", "e.g", "i.e", "fig", "approx", "inc", "ltd", "jr", "sr", "cf", "z.b", "bzw", "ca", "nr"}

func (s *sentenceScanner) Scan(piece string) (int, string) {
	for i, c := range piece {
		if s.take(c); s.count > s.most {
			return s.at + i, fmt.Sprintf("it has more than %d sentences", s.most)
		}
	}
	s.at += len(piece)
	return s.at, ""
}

func (s *sentenceScanner) End() (int, string) { return s.at, "" }

func (s *sentenceScanner) take(c rune) {
	if unicode.IsSpace(c) {
		s.spaced = true
		if c == '\n' {
			s.lines++
		}
		s.within = s.within && s.lines < 2
		return
	}
	switch {
	case !s.within:
		s.begin(c)
	case s.stop == 0:
		s.on(c)
	case s.spaced:
		if s.stop == '.' && (unicode.IsLower(c) || s.abbreviated()) {
			s.stop = 0
			s.on(c)
		} else {
			s.begin(c)
		}
	case strings.ContainsRune(stops+plainStops, c):
		s.stop = c
	case strings.ContainsRune(closers, c):
	case strings.ContainsRune(plainStops, s.stop):
		s.begin(c)
	default: // 3.14, example.com
		s.letter(s.stop)
		s.stop = 0
		s.on(c)
	}
	s.spaced, s.lines = false, 0
}

// begin is a character behind a sentence: the next one begins with a letter or a number.
func (s *sentenceScanner) begin(c rune) {
	s.stop = 0
	if s.within = unicode.IsLetter(c) || unicode.IsNumber(c); s.within {
		s.count++
		s.spaced = true // a word begins, too
		s.on(c)
	}
}

// on is a character within a sentence.
func (s *sentenceScanner) on(c rune) {
	if strings.ContainsRune(stops+plainStops, c) {
		s.stop = c
		return
	}
	if s.spaced {
		s.word, s.heads = s.word[:0], s.lines > 0 || s.first
	}
	s.first = false
	s.letter(c)
}

func (s *sentenceScanner) letter(c rune) {
	if len(s.word) < longestName {
		s.word = append(s.word, unicode.ToLower(c))
	}
}

// abbreviated reports whether a point behind the last word is a part of it.
func (s *sentenceScanner) abbreviated() bool {
	number := !slices.ContainsFunc(s.word, func(c rune) bool { return !unicode.IsDigit(c) })
	return len(s.word) == 1 && unicode.IsLetter(s.word[0]) || s.heads && number || slices.Contains(abbreviations, string(s.word))
}

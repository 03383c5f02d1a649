package guard

import (
	"context"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pii refuses texts with personal data of a form that can be known for sure: addresses and numbers, where they have one with their check digits. It finds no names.
type pii struct{ kinds []piiKind }

type piiKind struct {
	name, called string
	find         *regexp.Regexp
	is           func(match string) bool // nil: every match is one
}

var piiKinds = []piiKind{
	{"email", "an e-mail address", regexp.MustCompile(`[\pL\pN._%+-]{1,64}@(?:[\pL\pN-]{1,63}\.){1,8}\pL{2,63}`), nil},
	{"iban", "an IBAN", regexp.MustCompile(`[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?`), prefix(iban)},
	{"credit_card", "a card number", regexp.MustCompile(`[2-6](?:[ -]?[0-9]){12,18}`), prefix(luhn)},
	{"ssn", "a US social security number", regexp.MustCompile(`[0-9]{3}-[0-9]{2}-[0-9]{4}`), ssn},
	{"phone", "a phone number", regexp.MustCompile(`\+[0-9](?:[ ().-]{0,2}[0-9]){7,14}|(?:\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}`), nil},
}

func newPII(p Params) (Rule, error) {
	r := p.Read()
	wanted := r.Texts("types", "entities")
	rule := &pii{}
	var known []string
	for _, k := range piiKinds {
		known = append(known, k.name)
		if wanted == nil || slices.Contains(wanted, k.name) {
			rule.kinds = append(rule.kinds, k)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			r.fault("types", "there is no kind \""+name+"\"", "have some of "+strings.Join(known, ", "))
		}
	}
	return rule, r.Err()
}

// find gives the first personal data of a text: where it begins, and what it is. Cut says that the text's beginning is the middle of another.
func (p *pii) find(text string, cut bool) (at int, what string) {
	for _, k := range p.kinds {
		for from := 0; from < len(text); {
			if from = k.from(text, from); from < 0 {
				break
			}
			m := k.find.FindStringIndex(text[from:])
			if m == nil {
				break
			}
			begin, end := from+m[0], from+m[1]
			before, _ := utf8.DecodeLastRuneInString(text[:begin])
			after, _ := utf8.DecodeRuneInString(text[end:])
			apart := (begin > 0 || !cut) && !joins(before) && !joins(after)
			if apart && (k.is == nil || k.is(text[begin:end])) && (what == "" || begin < at) {
				at, what = begin, "it has "+k.called
				break
			}
			from = begin // what begins further on in the same word or number has something before it
			for c, size := utf8.DecodeRuneInString(text[from:]); from == begin || joins(c) && from < len(text); c, size = utf8.DecodeRuneInString(text[from:]) {
				from += size
			}
		}
	}
	return at, what
}

// longestLocal is how many bytes stand before the @ of an address, at most.
const longestLocal = 64 * utf8.UTFMax

// from is where one can begin at the earliest, from a place on; -1 is nowhere. Looking is dear: each of the expressions is tried only where there is what it cannot do without.
func (k piiKind) from(text string, from int) int {
	if k.name != "email" {
		if i := strings.IndexAny(text[from:], "0123456789"); i < 0 {
			return -1
		}
		return from
	}
	i := strings.IndexByte(text[from:], '@')
	if i < 0 {
		return -1
	}
	at := max(from, from+i-longestLocal)
	for at > from && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// joins reports whether a character next to a match makes it a part of something longer. There is none at the edge of a text.
func joins(c rune) bool { return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c)) }

func (p *pii) Judge(_ context.Context, text string) (string, error) {
	return scanned(p.Scanner(), text), nil
}

// A stretch of text that may be one number is looked at as a whole up to longestRun bytes; of a longer one the last longestPII go on: nothing that is looked for is longer.
const (
	longestRun = 640
	longestPII = 320
)

func (p *pii) Holds() string    { return "the last words, at most 640 bytes" }
func (p *pii) Scanner() Scanner { return &piiScanner{pii: p} }

// piiScanner holds back the words that may be, or become, one piece of data: the last one, and before it those that look like parts of a number.
type piiScanner struct {
	*pii
	run  []byte
	from int  // where run begins in the text
	word int  // where its last word begins, in run
	cut  bool // run begins in the middle of something
}

func (s *piiScanner) Scan(piece string) (int, string) {
	for i, c := range piece {
		size := utf8.RuneLen(c)
		if c == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(piece[i:])
		}
		s.run = append(s.run, piece[i:i+size]...)
		ended := false
		if unicode.IsSpace(c) {
			ended = !numeric(s.run[s.word : len(s.run)-size])
			s.word = len(s.run)
		}
		if !ended && len(s.run) < longestRun {
			continue
		}
		if at, what := s.find(string(s.run), s.cut); what != "" {
			return s.from + at, what
		}
		keep := 0
		if !ended {
			keep = longestPII
		}
		gone := len(s.run) - keep
		s.run = append(s.run[:0], s.run[gone:]...)
		s.from, s.word, s.cut = s.from+gone, max(0, s.word-gone), !ended
	}
	return s.from, ""
}

func (s *piiScanner) End() (int, string) {
	at, what := s.find(string(s.run), s.cut)
	return s.from + at, what
}

// numeric reports whether a word looks like a part of a number.
func numeric(word []byte) bool {
	digit := false
	for _, c := range word {
		switch {
		case '0' <= c && c <= '9':
			digit = true
		case 'A' <= c && c <= 'Z', c == '+', c == '-', c == '(', c == ')', c == '.':
		default:
			return false
		}
	}
	return digit
}

func digits(s string) string {
	return strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, s)
}

// prefix is for patterns that may have taken a number too many: it reports whether is holds of the match, or of it up to a separator.
func prefix(is func(string) bool) func(string) bool {
	return func(match string) bool {
		for end := len(match); end > 0; end = strings.LastIndexAny(match[:end], " -") {
			if is(match[:end]) {
				return true
			}
		}
		return false
	}
}

// luhn checks the check digit of a card's number.
func luhn(match string) bool {
	d := digits(match)
	if len(d) < 13 {
		return false
	}
	sum := 0
	for i := range len(d) {
		n := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// iban checks the check digits of an account's number.
func iban(match string) bool {
	s := strings.ReplaceAll(match, " ", "")
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	var number strings.Builder
	for _, c := range s[4:] + s[:4] {
		if 'A' <= c && c <= 'Z' {
			number.WriteByte(byte('1' + (c-'A')/10))
			number.WriteByte(byte('0' + (c-'A')%10))
		} else {
			number.WriteRune(c)
		}
	}
	n, ok := new(big.Int).SetString(number.String(), 10)
	return ok && n.Mod(n, big.NewInt(97)).Int64() == 1
}

// ssn leaves out the numbers that are never given.
func ssn(match string) bool {
	return match[:3] != "000" && match[:3] != "666" && match[0] != '9' && match[4:6] != "00" && match[7:] != "0000"
}

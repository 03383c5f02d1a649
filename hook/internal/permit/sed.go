package permit

import "strings"

// sedReads reports whether a program for sed only chooses and changes what is printed: addresses, and the commands p, d, s, y and their like. One that names files or runs
// commands (r, w, e, and the flags w and e of s), or that takes text or labels, does not, nor does what is not plain.
func sedReads(program string) bool {
	s := sedScript{program}
	for {
		s.rest = strings.TrimLeft(s.rest, " \t\n;")
		if s.rest == "" {
			return true
		}
		if !s.addresses() || !s.command() {
			return false
		}
	}
}

type sedScript struct{ rest string }

func (s *sedScript) skip(chars string) (skipped bool) {
	n := len(s.rest)
	s.rest = strings.TrimLeft(s.rest, chars)
	return len(s.rest) < n
}

func (s *sedScript) next() (c byte) {
	if s.rest != "" {
		c, s.rest = s.rest[0], s.rest[1:]
	}
	return c
}

const digits = "0123456789"

// addresses reads what stands before a command: 1 $ 1,5 /a/,/b/I 0~3 +2 !
func (s *sedScript) addresses() bool {
	for {
		switch {
		case strings.HasPrefix(s.rest, "/"):
			if s.next(); !s.section('/') {
				return false
			}
			s.skip("IM")
		case !s.skip("$" + digits):
		}
		s.skip(" \t")
		if !strings.HasPrefix(s.rest, ",") && !strings.HasPrefix(s.rest, "~") {
			break
		}
		s.next()
		s.skip(" \t+~")
	}
	s.skip("! \t")
	return true
}

// command reads one command, and that nothing else follows it.
func (s *sedScript) command() bool {
	switch c := s.next(); c {
	case '{', '}':
		return true
	case 'q', 'Q', 'l':
		s.skip(" \t")
		s.skip(digits)
	case 's', 'y':
		delimiter := s.next()
		if delimiter == 0 || delimiter == '\\' || delimiter == '\n' || !s.section(delimiter) || !s.section(delimiter) {
			return false
		}
		if c == 's' {
			s.skip("gpiIM" + digits)
		}
	default:
		if c == 0 || !strings.ContainsRune("pPdDgGhHxnN=zF", rune(c)) {
			return false
		}
	}
	s.skip(" \t")
	return s.rest == "" || strings.ContainsRune(";}\n", rune(s.rest[0]))
}

// section reads a pattern or a replacement, up to its delimiter. One that has the delimiter in brackets is not plain: there sed's differ.
func (s *sedScript) section(delimiter byte) bool {
	open := false
	for s.rest != "" {
		switch c := s.next(); {
		case c == '\\' && s.next() != 0:
		case c == '\\', c == '\n':
			return false
		case c == delimiter:
			return !open
		case c == '[' && open && s.rest != "" && strings.ContainsRune(":.=", rune(s.rest[0])): // [[:alpha:]]
			_, rest, ok := strings.Cut(s.rest[1:], s.rest[:1]+"]")
			if !ok {
				return false
			}
			s.rest = rest
		case c == '[' && !open:
			if open = true; strings.HasPrefix(strings.TrimPrefix(s.rest, "^"), "]") { // this one closes nothing
				return false
			}
		case c == ']':
			open = false
		}
	}
	return false
}

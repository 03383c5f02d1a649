package chat

import "strings"

// stream cuts a reply that comes in pieces into blocks of Markdown, each of which is rendered once: a paragraph, a list with all its items, code between fences.
type stream struct {
	text  strings.Builder // what came and was not given away as a block
	seen  int             // of text: up to here lines were looked at
	begun bool            // the open block has a line
	list  bool            // it is a list, which goes on behind empty lines
	blank bool            // the line before was empty
	fence string          // what closes the code that is open; "": none is
}

// add takes a piece, and gives the text of the blocks that are whole now, "" when none is.
func (s *stream) add(piece string) (whole string) {
	at := s.text.Len() // in the line that is open no end was found before
	s.text.WriteString(piece)
	text, cut := s.text.String(), 0
	for {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			break
		}
		from := s.seen
		at += n + 1
		s.seen = at
		before, after := s.line(strings.TrimRight(text[from:s.seen-1], "\r"))
		if before {
			cut = from
		}
		if after {
			cut = s.seen
		}
	}
	if cut > 0 {
		s.text.Reset()
		s.text.WriteString(text[cut:])
		s.seen -= cut
	}
	return text[:cut]
}

// line looks at a line, and says whether a block ends before it, or with it.
func (s *stream) line(line string) (before, after bool) {
	bare := strings.TrimSpace(line)
	switch {
	case s.fence != "":
		if strings.HasPrefix(bare, s.fence) && strings.Trim(bare, s.fence[:1]) == "" {
			s.fence, after = "", !s.list
		}
	case bare == "":
		after = s.begun && !s.list
		s.blank = true
	default:
		if before = s.list && s.blank && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") && !item(bare); before {
			s.list = false
		}
		s.list = s.list || item(bare)
		s.begun, s.blank, s.fence = true, false, fence(bare)
	}
	if after {
		s.begun, s.list, s.blank = false, false, false
	}
	return before, after
}

// rest is the text of the open block.
func (s *stream) rest() string { return s.text.String() }

// end gives the open block away.
func (s *stream) end() (rest string) {
	rest = s.text.String()
	*s = stream{}
	return rest
}

// item reports whether a line begins an item of a list.
func item(bare string) bool {
	if len(bare) > 1 && strings.ContainsRune("-*+", rune(bare[0])) && bare[1] == ' ' {
		return true
	}
	rest := strings.TrimLeft(bare, "0123456789")
	return len(rest) < len(bare) && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' '
}

// fence is what closes the code that a line opens, "" when it opens none.
func fence(bare string) string {
	marker := bare[:len(bare)-len(strings.TrimLeft(bare, bare[:1]))]
	if len(marker) < 3 || marker[0] != '`' && marker[0] != '~' || marker[0] == '`' && strings.Contains(bare[len(marker):], "`") {
		return ""
	}
	return marker
}

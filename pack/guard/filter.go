package guard

import (
	"context"
	"strings"
	"unicode/utf8"
)

// Filter lets a text through as it comes, as far as its guards have judged it. It is used by one goroutine, for one text.
//
// Cost: each byte is looked at a bounded number of times by each guard, however the text is cut into pieces. A text that a guard judges as a whole is kept until its end, any other one
// only as far as it is held back.
type Filter struct {
	scans  []*scan  // guards that judge as it comes
	whole  []*Guard // guards that judge at the end
	keep   bool     // a whole text is needed
	hold   bool     // nothing may be shown before the end
	text   strings.Builder
	held   []byte // what is not shown yet
	shown  int    // bytes of the text that are
	part   []byte // the beginning of a character
	noted  []*Violation
	failed *Violation
	ended  bool
}

type scan struct {
	guard   *Guard
	scanner Scanner
	clear   int
	done    bool // it found something, and holds nothing back
}

// NewFilter begins a text.
func NewFilter(guards ...*Guard) *Filter {
	f := &Filter{}
	for _, g := range guards {
		if s, ok := g.rule.(Streamer); ok {
			f.scans = append(f.scans, &scan{guard: g, scanner: s.Scanner()})
			continue
		}
		f.whole = append(f.whole, g)
		f.keep = true
		f.hold = f.hold || g.FailOnViolation
	}
	return f
}

// Write takes the next piece of the text and gives what may be shown now. A violation that blocks is an error, a [*Violation]: show is the last that may be shown, its Message stands in
// place of the rest, and every further call gives the same error.
func (f *Filter) Write(piece string) (show string, err error) {
	if f.failed != nil {
		return "", f.failed
	}
	piece = f.complete(piece)
	if f.keep {
		f.text.WriteString(piece)
	}
	f.held = append(f.held, piece...)
	for _, s := range f.scans {
		if !s.done {
			var wrong string
			s.clear, wrong = s.scanner.Scan(piece)
			f.found(s, wrong)
		}
	}
	return f.release(false)
}

// End says that the text is complete, has the guards judge it that need all of it, and gives the rest. The error is as with Write; of several violations it is the first.
func (f *Filter) End(ctx context.Context) (show string, err error) {
	if f.failed != nil {
		return "", f.failed
	}
	if f.ended {
		return "", nil
	}
	f.ended = true
	if len(f.part) > 0 { // half a character
		rest := f.part
		f.part = nil
		show, err = f.Write(string([]rune(string(rest))))
		if err != nil {
			return show, err
		}
	}
	for _, s := range f.scans {
		if s.done {
			continue
		}
		clear, wrong := s.scanner.End()
		if wrong != "" {
			s.clear = clear
		}
		f.found(s, wrong)
	}
	for _, g := range f.whole {
		if f.failed != nil {
			break
		}
		if v := g.Judge(ctx, f.text.String()); v != nil {
			f.note(v)
		}
	}
	more, err := f.release(true)
	return show + more, err
}

// Noted are the violations so far of guards that don't fail on them, each guard's first.
func (f *Filter) Noted() []*Violation { return f.noted }

func (f *Filter) found(s *scan, wrong string) {
	if wrong == "" {
		return
	}
	s.done = !s.guard.FailOnViolation
	f.note(&Violation{Guard: s.guard, Reason: wrong})
}

func (f *Filter) note(v *Violation) {
	if !v.Guard.FailOnViolation {
		f.noted = append(f.noted, v)
	} else if f.failed == nil {
		f.failed = v
	}
}

// release gives what all guards that block have cleared.
func (f *Filter) release(ended bool) (string, error) {
	n := f.shown + len(f.held)
	if f.hold && (!ended || f.failed != nil) {
		n = f.shown
	}
	for _, s := range f.scans {
		if s.guard.FailOnViolation && (!ended || f.failed != nil) {
			n = min(n, s.clear)
		}
	}
	n = max(0, n-f.shown)
	show := string(f.held[:n])
	f.shown += n
	if n > 0 { // what is held for long is not moved for each piece
		f.held = f.held[:copy(f.held, f.held[n:])]
	}
	if f.failed != nil {
		f.held = nil
		return show, f.failed
	}
	return show, nil
}

// complete gives the piece up to its last whole character, after what was left of the one before.
func (f *Filter) complete(piece string) string {
	if len(f.part) > 0 {
		piece = string(f.part) + piece
		f.part = f.part[:0]
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(piece); cut++ {
		if tail := piece[len(piece)-cut:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				f.part = append(f.part, tail...)
				return piece[:len(piece)-cut]
			}
			break
		}
	}
	return piece
}

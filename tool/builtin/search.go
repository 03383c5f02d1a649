package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// search is one grep under way.
type search struct {
	re            *regexp.Regexp
	prefix        string // every match begins with it
	in            grepInput
	names         []string // patterns for names, of the type asked for
	numbers       bool
	before, after int
	out           page

	large, unreadable []string
}

// file searches the content of one file.
func (s *search) file(ctx context.Context, name string, content []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if !bytes.Contains(content, []byte(s.prefix)) {
		return nil
	}
	if s.in.Multiline { // so that $ stands before every line end
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	f := newLines(content)
	var hits []hit
	var err error
	if s.in.Multiline {
		hits, err = s.spanning(ctx, f)
	} else {
		hits, err = s.byLine(ctx, f)
	}
	if err != nil || len(hits) == 0 {
		return err
	}
	switch s.in.Mode {
	case "content":
		return s.show(name, f, hits)
	case "count":
		return s.out.put(fmt.Sprintf("%s:%d", name, len(hits)))
	}
	return s.out.put(name)
}

// hit is a line with a match, and where in it the match begins.
type hit struct{ line, at int }

// enough says after how many matching lines of a file there is no need to look for more.
func (s *search) enough() int {
	switch s.in.Mode {
	case "content":
		return s.out.skip + s.out.most + 1
	case "count":
		return int(^uint(0) >> 1)
	}
	return 1
}

func (s *search) byLine(ctx context.Context, f lines) (hits []hit, err error) {
	for n := range f.count() {
		if n%1000 == 999 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if at := s.re.FindIndex(f.line(n)); at != nil {
			if hits = append(hits, hit{n, at[0]}); len(hits) >= s.enough() {
				break
			}
		}
	}
	return hits, nil
}

// spanning finds matches that may go over several lines: each line that has a part of one is a hit.
func (s *search) spanning(ctx context.Context, f lines) (hits []hit, err error) {
	const some = 1000 // matches at a time, so that neither their number nor a cancel matters
	for from := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		matches := s.re.FindAllIndex(f.text[from:], some)
		last := 0
		for _, m := range matches {
			begin, end := from+m[0], from+m[1]
			last = f.lineAt(max(begin, end-1))
			for n := f.lineAt(begin); n <= last && n < f.count(); n++ {
				if len(hits) == 0 || hits[len(hits)-1].line < n {
					hits = append(hits, hit{n, max(0, begin-f.starts[n])})
				}
			}
		}
		if len(matches) < some || len(hits) >= s.enough() || last >= f.count() {
			return hits, nil
		}
		// On with the line of the last match, as ^ matches where we begin; or behind it if all of them were in one line.
		if f.starts[last] <= from {
			last++
		}
		from = f.starts[last]
	}
}

// show writes hits with the lines around them.
func (s *search) show(name string, f lines, hits []hit) error {
	done := -1 // the last line written
	for i, h := range hits {
		first := max(h.line-s.before, done+1)
		if (s.before > 0 || s.after > 0) && s.out.seen > 0 && (i == 0 || first > done+1) {
			if err := s.out.put("--"); err != nil {
				return err
			}
		}
		last := min(h.line+s.after, f.count()-1)
		if i+1 < len(hits) {
			last = min(last, hits[i+1].line-1)
		}
		for n := first; n <= last; n++ {
			sign, at := "-", 0
			if n == h.line {
				sign, at = ":", h.at
			}
			number := ""
			if s.numbers {
				number = fmt.Sprint(n+1) + sign
			}
			if err := s.out.put(name + sign + number + excerptOf(f.line(n), at)); err != nil {
				return err
			}
		}
		done = max(done, last)
	}
	return nil
}

// excerptOf shows a line, or grepLineCap bytes of it, so that what stands at is seen.
func excerptOf(line []byte, at int) string {
	if len(line) <= grepLineCap {
		return valid(string(line))
	}
	from := 0
	if at > grepLineCap/2 {
		from = min(at-grepLineCap/4, len(line)-grepLineCap)
	}
	to := from + grepLineCap
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	return fmt.Sprintf("%s [cut: bytes %d to %d of %d]", valid(string(line[from:to])), from, to, len(line))
}

// text is the result of the search.
func (s *search) text() string {
	out := s.out.lines
	if len(out) == 0 {
		switch {
		case s.out.seen > 0:
			out = append(out, fmt.Sprintf("no more output: there are %s in all", plural(s.out.seen, "line")))
		default:
			out = append(out, "no matches")
		}
	}
	if s.out.full {
		out = append(out, fmt.Sprintf("[there is more: go on with offset %d, or narrow the search]", s.out.skip+len(s.out.lines)))
	}
	out = append(out, skippedNote("unreadable", s.unreadable)...)
	out = append(out, skippedNote("larger than 20 MiB", s.large)...)
	return strings.Join(out, "\n")
}

// page is the part of the output that is shown.
type page struct {
	skip, most int
	seen, size int
	lines      []string
	full       bool
}

var errFull = errors.New("the page is full")

// put adds a line, or gives errFull when one more doesn't fit.
func (p *page) put(line string) error {
	p.seen++
	if p.seen <= p.skip {
		return nil
	}
	if len(p.lines) >= p.most || p.size > grepCap {
		p.full = true
		return errFull
	}
	p.lines, p.size = append(p.lines, line), p.size+len(line)
	return nil
}

// lines is a text with the places where its lines begin, and its end.
type lines struct {
	text   []byte
	starts []int
}

func newLines(text []byte) lines {
	f := lines{text, make([]int, 1, 1+bytes.Count(text, []byte("\n"))+1)}
	for i, c := range text {
		if c == '\n' {
			f.starts = append(f.starts, i+1)
		}
	}
	if f.starts[len(f.starts)-1] != len(text) {
		f.starts = append(f.starts, len(text))
	}
	return f
}

func (f lines) count() int { return len(f.starts) - 1 }

// line is line n, from 0, without its line end.
func (f lines) line(n int) []byte {
	l := bytes.TrimSuffix(f.text[f.starts[n]:f.starts[n+1]], []byte("\n"))
	return bytes.TrimSuffix(l, []byte("\r"))
}

// lineAt is the line that the byte at is in.
func (f lines) lineAt(at int) int {
	lo, hi := 0, len(f.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; f.starts[mid] <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

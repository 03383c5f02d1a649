package gemini

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// cite puts what the API says of sources where readers look for it: citations on the texts, and a step for a search or a fetch that no part tells of.
func (g *grounding) cite(parts []message.Part) []message.Part {
	for _, s := range append(g.supports, g.cited...) {
		i, start, end := s.place(parts)
		if i < 0 {
			continue
		}
		t := parts[i].(message.Text)
		if s.source != (message.Citation{}) {
			s.source.Start, s.source.End = start, end
			t.Citations = append(t.Citations, s.source)
		}
		for _, k := range s.chunks {
			if k >= 0 && k < len(g.chunks) && g.chunks[k] != (message.Citation{}) {
				c := g.chunks[k]
				c.Start, c.End = start, end
				t.Citations = append(t.Citations, c)
			}
		}
		parts[i] = t
	}
	told := false // by parts of their own
	for _, p := range parts {
		c, ok := p.(message.ProviderCall)
		told = told || ok && (c.Name == model.WebSearch || c.Name == model.WebFetch)
	}
	var steps []message.Part
	if !told && g.queries != nil {
		steps = append(steps, message.ProviderCall{Opaque: message.Opaque{Provider: provider}, Name: model.WebSearch, Input: string(g.queries), Sources: g.chunks})
	}
	if !told && len(g.pages) > 0 {
		steps = append(steps, message.ProviderCall{Opaque: message.Opaque{Provider: provider}, Name: model.WebFetch, Sources: g.pages})
	}
	if steps == nil {
		return parts
	}
	return append(steps, parts...)
}

// place finds the piece: the part that it is in, and where. i is -1 when there is no text. What can't be found is said of all of the first text.
func (s support) place(parts []message.Part) (i, start, end int) {
	i = -1
	at, found := 0, -1 // where the part begins in all texts together
	var from int
	for k, p := range parts {
		t, ok := p.(message.Text)
		if !ok {
			continue
		}
		if i < 0 {
			i = k
		}
		a, b := s.start-at, s.end-at
		inside := a >= 0 && a < b && b <= len(t.Text) && onRunes(t.Text, a, b)
		switch {
		case inside && (s.said == "" || t.Text[a:b] == s.said):
			return k, a, b
		case s.said != "" && found < 0:
			if n := strings.Index(t.Text, s.said); n >= 0 {
				found, from = k, n
			}
		}
		at += len(t.Text)
	}
	if found >= 0 {
		return found, from, from + len(s.said)
	}
	return i, 0, 0
}

// onRunes reports whether a piece begins and ends between characters.
func onRunes(t string, a, b int) bool {
	return utf8.RuneStart(t[a]) && (b == len(t) || utf8.RuneStart(t[b]))
}

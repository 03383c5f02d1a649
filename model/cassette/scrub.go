package cassette

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// Redacted stands in a file where a secret was.
const Redacted = secret.Redacted

// scrubber takes secrets out of texts: always the same ones in the same way, so that a replay compares like with like.
type scrubber struct {
	known []string // the longest first: one may be a part of another
	own   []func(string) string
}

// words are no secrets, whatever a variable says: they are the file's own.
var words = []string{string(message.RoleAssistant), "reasoning", "tool_call", "tool_result", "text/plain", "application/json", "text/event-stream"}

func newScrubber(own []func(string) string) *scrubber {
	s := &scrubber{own: own}
	var known []string
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); secret.Named(name) && len(value) >= secret.Least && !slices.Contains(words, value) {
			known = append(known, value)
		}
	}
	return s.with(known)
}

// with gives a scrubber that knows more secrets.
func (s *scrubber) with(more []string) *scrubber {
	known := slices.Concat(s.known, more)
	slices.SortFunc(known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return &scrubber{slices.Compact(known), s.own}
}

// keysOfTools are the secrets in the options of tools that a provider runs: what it reaches servers of others with. They are known by the names that they have there.
func keysOfTools(raw []byte) (found []string) {
	if len(raw) == 0 {
		return nil
	}
	switch raw[0] {
	case '{':
		for o := wire.Object(raw); o.Next(); {
			if name := string(o.Key); o.Value[0] != '"' || !secret.Header(name) && !secret.Named(name) {
				found = append(found, keysOfTools(o.Value)...)
			} else if v := wire.String(o.Value); len(v) >= secret.Least {
				found = append(found, v)
				if _, bare, ok := strings.Cut(v, " "); ok && len(bare) >= secret.Least {
					found = append(found, bare)
				}
			}
		}
	case '[':
		for a := wire.Array(raw); a.Next(); {
			found = append(found, keysOfTools(a.Value)...)
		}
	}
	return found
}

var patterns = secret.Patterns()

func (s *scrubber) text(t string) string {
	for _, k := range s.known {
		t = strings.ReplaceAll(t, k, Redacted)
	}
	for _, p := range patterns {
		t = p.ReplaceAllLiteralString(t, Redacted)
	}
	for _, f := range s.own {
		t = f(t)
	}
	return t
}

// json scrubs compact JSON, text by text. Without a secret in it, it is raw itself.
func (s *scrubber) json(raw []byte) []byte {
	found := false
	clean := eachText(make([]byte, 0, len(raw)), raw, func(t string) string {
		c := s.text(t)
		found = found || c != t
		return c
	})
	if !found {
		return raw
	}
	return clean
}

// message gives m's JSON, scrubbed; of files, those of text inside, too.
func (s *scrubber) message(m message.Message) []byte {
	if m.HasFiles() {
		var parts []message.Part
		for p := range m.Parts() {
			switch f := p.(type) {
			case message.File:
				p = s.file(f)
			case message.ToolResult:
				f.Files = slices.Clone(f.Files)
				for i := range f.Files {
					f.Files[i] = s.file(f.Files[i])
				}
				p = f
			}
			parts = append(parts, p)
		}
		m = message.New(m.Role(), parts...)
	}
	return s.json(m.AppendJSON(nil))
}

func (s *scrubber) file(f message.File) message.File {
	if strings.HasPrefix(f.MIME, "text/") || f.MIME == "application/json" {
		f.Data = s.text(f.Data)
	}
	return f
}

// header keeps the names and, of those that hold no secrets, the values.
func (s *scrubber) header(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		for _, v := range values {
			if v = s.text(v); secret.Header(name) {
				v = Redacted
			}
			out[http.CanonicalHeaderKey(name)] = append(out[http.CanonicalHeaderKey(name)], v)
		}
	}
	return out
}

// address keeps no user, and no value of a parameter whose name says that it is a secret.
func (s *scrubber) address(u *url.URL) string {
	c := *u
	if c.User != nil {
		c.User = url.User("redacted")
	}
	pairs := strings.Split(c.RawQuery, "&")
	for i, pair := range pairs {
		if name, _, ok := strings.Cut(pair, "="); ok && secret.Named(name) {
			pairs[i] = name + "=redacted"
		}
	}
	c.RawQuery = strings.Join(pairs, "&")
	return s.text(c.String())
}

// body scrubs what goes over the wire: the texts in a JSON document, those in the events of a stream, else all of it as one text. ok is
// false when a secret is spread over the events of a stream: it can't be taken out of there without knowing what they mean.
func (s *scrubber) body(b []byte, kind string) (out []byte, ok bool) {
	if compact, is := wire.AppendCompact(nil, b); is {
		if clean := s.json(compact); string(clean) != string(compact) {
			return clean, true
		}
		return b, true
	}
	if !strings.HasPrefix(kind, "text/event-stream") {
		return []byte(s.text(string(b))), true
	}
	lines := strings.SplitAfter(string(b), "\n")
	spread := map[string]*strings.Builder{} // what all events together say at a place
	for i, line := range lines {
		data, is := strings.CutPrefix(line, "data:")
		compact, isJSON := wire.AppendCompact(nil, []byte(data))
		if !is || !isJSON {
			lines[i] = s.text(line)
			continue
		}
		if clean := s.json(compact); string(clean) != string(compact) {
			end := data[len(strings.TrimRight(data, "\r\n")):]
			lines[i], compact = "data: "+string(clean)+end, clean
		}
		gather(spread, "", compact)
	}
	for _, all := range spread {
		if t := all.String(); s.text(t) != t {
			return nil, false
		}
	}
	return []byte(strings.Join(lines, "")), true
}

// gather joins the texts of a value, place by place, to those of the values before.
func gather(into map[string]*strings.Builder, place string, raw []byte) {
	switch raw[0] {
	case '"':
		if into[place] == nil {
			into[place] = &strings.Builder{}
		}
		_, _ = into[place].WriteString(wire.String(raw))
	case '{':
		for o := wire.Object(raw); o.Next(); {
			gather(into, place+"."+string(o.Key), o.Value)
		}
	case '[':
		for a := wire.Array(raw); a.Next(); {
			gather(into, place+"[]", a.Value)
		}
	}
}

// bodyJSON is a body in a file: {"json": …} when it is compact JSON, {"text": …}, or {"base64": …} for what is no text; nil for none.
func bodyJSON(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if compact, ok := wire.AppendCompact(nil, b); ok && string(compact) == string(b) {
		if again, err := appendPlain(nil, appendReadable(nil, b, 0)); err == nil && string(again) == string(b) {
			return append(append([]byte(`{"json":`), b...), '}')
		}
	}
	if text := wire.AppendString(nil, string(b)); wire.String(text) == string(b) {
		return append(append([]byte(`{"text":`), text...), '}')
	}
	return append(wire.AppendBase64([]byte(`{"base64":`), string(b)), '}')
}

// bodyOf undoes bodyJSON.
func bodyOf(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if v := wire.Get(raw, "json"); v != nil {
		return v, nil
	}
	if v := wire.Get(raw, "base64"); v != nil {
		return base64.StdEncoding.DecodeString(wire.String(v))
	}
	return []byte(wire.String(wire.Get(raw, "text"))), nil
}

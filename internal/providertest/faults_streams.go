package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/model"
)

// oddStreams say what the good one says, in odd ways that the standard or habit allows.
func (p Provider) oddStreams(t *testing.T) {
	for _, name := range []string{"text", "calls", "reasoning"} {
		good := p.complete(t, name)
		all := p.fixture(t, name+".sse")
		list := events(all)
		last := list[len(list)-1]
		if bytes.HasPrefix(last, []byte("data: [DONE]")) {
			last = list[len(list)-2]
		}
		for odd, c := range map[string]struct {
			lacks string
			sse   []byte
		}{
			"a byte order mark":                  {"", append([]byte("\ufeff"), all...)},
			"CR ends the lines":                  {"", bytes.ReplaceAll(all, []byte("\n"), []byte("\r"))},
			"events the protocol doesn't have":   {"", between(all, "event: weather\ndata: {\"type\":\"weather\",\"rain\":[1]}\n\n", "event: weather\ndata:\n\n")},
			"fields the protocol doesn't have":   {"", bytes.ReplaceAll(all, []byte("\ndata:"), []byte("\nid: 1\nretry: 5\nweather: rain\nrain\ndata:"))},
			"data in several lines":              {"", indented(t, all)},
			"no end of the last line":            {"", bytes.TrimRight(all, "\n")},
			"blank lines everywhere":             {"", bytes.ReplaceAll(all, []byte("\n\n"), []byte("\n\n\n\n\n"))},
			"[DONE] at the end, and again":       {"", append(bytes.Clone(all), "data: [DONE]\n\ndata: [DONE]\n\n"...)},
			"no [DONE]":                          {"", bytes.ReplaceAll(all, []byte("data: [DONE]\n\n"), nil)},
			"the last event twice":               {"", append(append(bytes.Clone(bytes.TrimSuffix(all, []byte("data: [DONE]\n\n"))), last...), last...)},
			"a text behind the end":              {"terminal", append(bytes.Clone(all), list[2]...)},
			"an error behind the end":            {"terminal", append(bytes.Clone(all), "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"late\"}}\n\n"...)},
			"what is no event stream behind it ": {"", append(bytes.Clone(all), "<html>\nBye\n"...)},
		} {
			if p.lacks(c.lacks) {
				continue
			}
			_, got, err := hear(t, p.over(sse(c.sse)))
			if err != nil {
				t.Errorf("%s, %s: %v", name, odd, err)
				continue
			}
			if p.same(t, good, got); t.Failed() {
				t.Fatalf("%s, %s", name, odd)
			}
		}
	}
}

// indented spreads the JSON of each event over several data lines.
func indented(t *testing.T, sse []byte) (out []byte) {
	t.Helper()
	for line := range bytes.Lines(sse) {
		data, is := bytes.CutPrefix(line, []byte("data: "))
		var b bytes.Buffer
		if !is || json.Indent(&b, bytes.TrimSpace(data), "data: ", " ") != nil {
			out = append(out, line...)
			continue
		}
		out = append(append(append(out, "data: "...), b.Bytes()...), '\n')
	}
	return out
}

// cutOff ends each reply after each of its bytes, as a closed connection and as a broken one. It is never taken for the whole.
func (p Provider) cutOff(t *testing.T) {
	for _, name := range []string{"text", "calls", "reasoning"} {
		good := p.complete(t, name)
		all := p.fixture(t, name+".sse")
		step := 1
		if sample() {
			step = 13
		}
		for n := 0; n < len(all); n += step {
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
				a := sse(nil)
				a.body = io.MultiReader(bytes.NewReader(all[:n]), ending{end})
				_, got, err := hear(t, p.over(a))
				if err == nil {
					p.sameMessage(t, good, got)
				} else {
					failed(t, err, "truncated_stream", "malformed_reply")
				}
				if t.Failed() {
					t.Fatalf("%s: after %d bytes, with %v: %q", name, n, end, all[:n])
				}
			}
		}
		body := bytes.TrimSpace(p.fixture(t, name+".json"))
		for n := 0; n < len(body); n += step {
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
				a := typed("application/json", nil)
				a.body = io.MultiReader(bytes.NewReader(body[:n]), ending{end})
				_, err := p.over(a).Complete(t.Context(), hi())
				failed(t, err, "truncated_stream", "malformed_reply")
			}
		}
	}
}

// ending is a reader that is at its end.
type ending struct{ error }

func (e ending) Read([]byte) (int, error) { return 0, e.error }

// notUTF8 has bytes in texts that are no UTF-8: they become U+FFFD, for the listener, the journal and the next request alike.
func (p Provider) notUTF8(t *testing.T) {
	bad := func(name string) []byte {
		return bytes.ReplaceAll(p.fixture(t, name), []byte("wörld"), []byte("w\xff\xc3rld\xe4\xb8"))
	}
	heard, got, err := hear(t, p.over(sse(bad("text.sse"))))
	whole, err2 := p.over(typed("application/json", bad("text.json"))).Complete(t.Context(), hi())
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	const replaced = "Hello, w\ufffdrld\ufffd 👋! <b>&amp;</b>"
	equal(t, "heard", replaced, heard)
	equal(t, "text", replaced, got.Message.Text())
	p.same(t, whole, got)
	p.sound(t, got, nil)

	// Wherever a text stands.
	for _, name := range []string{"calls", "reasoning", "unknown_block", "pause"} {
		if p.lacks(name) {
			continue
		}
		body := p.fixture(t, name+".json")
		for at, c := range body {
			if c != '"' {
				continue
			}
			broken := append(append(bytes.Clone(body[:at+1]), 0xff), body[at+1:]...)
			got, err := p.over(typed("application/json", broken)).Complete(t.Context(), hi())
			if !p.sound(t, got, err) {
				t.Fatalf("%s: at byte %d", name, at)
			}
		}
	}
	_, err = p.over(answer{status: 400, header: http.Header{"X-Request-Id": {"r\xff"}}, body: strings.NewReader("{\"error\":{\"message\":\"no \xff\",\"type\":\"t\xff\"}}")}).Complete(t.Context(), hi())
	if e := modelError(t, err); !utf8.ValidString(e.Error()) {
		t.Errorf("an error that is not UTF-8: %q", e.Error())
	}
}

// odds are what a value may be instead.
var odds = []string{`null`, `true`, `-1`, `1e999`, `0.5`, `""`, `"x"`, "\"\xff\"", `"\ud800"`, `[]`, `{}`, `[null]`, `[[1]]`, `{"x":null}`, `[{"type":null}]`}

// members puts each of odds in the place of each value of each reply, in turn, and leaves it out: no panic, and an error with a class or a
// reply that all wires take back.
func (p Provider) members(t *testing.T) {
	for _, want := range replies {
		if p.lacks(want.name) || sample() && want.name != "calls" && want.name != "reasoning" {
			continue
		}
		body := p.fixture(t, want.name+".json")
		seen := map[string]bool{}
		for _, other := range otherwise(t, body) {
			got, err := p.over(typed("application/json", other)).Complete(t.Context(), hi())
			if !p.soundOnce(t, seen, got, err) {
				t.Fatalf("%s: %s", want.name, other)
			}
		}
	}
	for _, name := range []string{"calls", "reasoning", "unknown_block", "pause", "refusal"} {
		if p.lacks(name) || sample() && name != "calls" {
			continue
		}
		list := events(p.fixture(t, name+".sse"))
		seen := map[string]bool{}
		for i, e := range list {
			head, data, _ := bytes.Cut(e, []byte("data: "))
			if !json.Valid(data) {
				continue
			}
			for _, other := range append(otherwise(t, data), nil) { // at last without the event
				var all [][]byte
				all = append(append(all, list[:i]...), nil)
				if other != nil {
					all[i] = append(append(append(bytes.Clone(head), "data: "...), other...), "\n\n"...)
				}
				all = append(all, list[i+1:]...)
				_, got, err := hear(t, p.over(sse(bytes.Join(all, nil))))
				if !p.soundOnce(t, seen, got, err) {
					t.Fatalf("%s: event %d: %s", name, i, other)
				}
			}
		}
	}
}

// soundOnce is sound for replies that differ from those before.
func (p Provider) soundOnce(t *testing.T, seen map[string]bool, resp *model.Response, err error) bool {
	t.Helper()
	if err == nil {
		key := fmt.Sprint(resp.Usage, resp.Message.Len()) + string(resp.Message.AppendJSON(nil))
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return p.sound(t, resp, err)
}

// otherwise gives a document with each of its values replaced by each of odds, or left out.
func otherwise(t *testing.T, doc []byte) (out [][]byte) {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, doc); err != nil {
		t.Fatal(err)
	}
	doc = compact.Bytes()
	put := func(from, to int, with string) {
		out = append(out, append(append(bytes.Clone(doc[:from]), with...), doc[to:]...))
	}
	var walk func(at int) int
	walk = func(at int) int {
		end := at
		if c := doc[at]; c == '{' || c == '[' {
			for end++; doc[end] != c+2; {
				from := end
				if c == '{' {
					end = skip(t, doc, end) + 1 // the name and its colon
				}
				end = walk(end)
				switch {
				case doc[end] == ',':
					end++
					put(from, end, "")
				case doc[from-1] == ',':
					put(from-1, end, "")
				default:
					put(from, end, "")
				}
			}
			end++
		} else {
			end = skip(t, doc, at)
		}
		for _, o := range odds {
			put(at, end, o)
		}
		return end
	}
	walk(0)
	return out
}

// skip gives the end of the string, number or word at doc[at].
func skip(t *testing.T, doc []byte, at int) int {
	t.Helper()
	var raw json.RawMessage
	d := json.NewDecoder(bytes.NewReader(doc[at:]))
	if doc[at] != '"' {
		return at + bytes.IndexAny(append(bytes.Clone(doc[at:]), ','), ",]}")
	}
	if err := d.Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return at + len(raw)
}

// nesting puts values that nest deeply in the place of each value: 100,000 levels are no JSON for anybody, 5,000 are an error or a reply.
func (p Provider) nesting(t *testing.T) {
	body := p.fixture(t, "calls.json")
	places := otherwise(t, body)
	for _, levels := range []int{5_000, 100_000} {
		deep := []byte(strings.Repeat(`[`, levels) + strings.Repeat(`]`, levels))
		for _, place := range places {
			if !bytes.Contains(place, []byte(`"\ud800"`)) || sample() && len(place)%4 > 0 {
				continue
			}
			for _, deep := range [][]byte{deep, append(append([]byte(`"`), deep...), '"'), append(append([]byte(`{"x":`), deep...), '}')} {
				got, err := p.over(typed("application/json", bytes.Replace(place, []byte(`"\ud800"`), deep, 1))).Complete(t.Context(), hi())
				if !p.sound(t, got, err) {
					t.Fatalf("%d levels: %s", levels, place)
				}
				if levels > 10_000 && deep[0] != '"' {
					failed(t, err, "malformed_reply")
				}
			}
		}
	}
}

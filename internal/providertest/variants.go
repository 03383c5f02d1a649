package providertest

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// variant is a way in which the bytes of a stream may arrive. None of them changes what the stream says.
type variant struct {
	name  string
	lacks string // the ability without which it isn't played
	cut   func(sse []byte) [][]byte
}

var variants = []variant{
	{"as it is", "", func(sse []byte) [][]byte { return [][]byte{sse} }},
	{"event by event", "", events},
	{"with CRLF", "", func(sse []byte) [][]byte {
		return [][]byte{bytes.ReplaceAll(sse, []byte("\n"), []byte("\r\n"))}
	}},
	{"byte by byte", "", func(sse []byte) [][]byte {
		return slices.Collect(slices.Chunk(sse, 1))
	}},
	{"with comments between events", "", func(sse []byte) [][]byte { return [][]byte{between(sse, ": still here\n\n", ":\n")} }},
	{"with pings between events", "ping", func(sse []byte) [][]byte {
		return [][]byte{between(sse, "event: ping\ndata: {\"type\": \"ping\"}\n\n")}
	}},
	{"padded before the last brace", "", func(sse []byte) [][]byte { return [][]byte{padded(sse)} }},
	{"without spaces after the colons", "", func(sse []byte) [][]byte {
		return [][]byte{bytes.ReplaceAll(bytes.ReplaceAll(sse, []byte("\ndata: "), []byte("\ndata:")), []byte("\nevent: "), []byte("\nevent:"))}
	}},
	{"split inside of characters", "", insideRunes},
}

// between puts one of extras before each event, in turn.
func between(sse []byte, extras ...string) []byte {
	var out []byte
	for i, e := range events(sse) {
		out = append(out, extras[i%len(extras)]...)
		out = append(out, e...)
	}
	return out
}

// padded puts spaces before the brace that ends a data line.
func padded(sse []byte) []byte {
	lines := bytes.Split(sse, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("data:")) && bytes.HasSuffix(line, []byte("}")) {
			lines[i] = append(bytes.Clone(line[:len(line)-1]), "      }"...)
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// insideRunes cuts after the first byte of each character that has several.
func insideRunes(sse []byte) (out [][]byte) {
	start := 0
	for i, c := range sse {
		if c >= utf8.RuneSelf && utf8.RuneStart(c) {
			out = append(out, sse[start:i+1])
			start = i + 1
		}
	}
	return append(out, sse[start:])
}

package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/raced"
)

// delta is the commonest event of a streamed answer.
const delta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, \"world\"\n"}}`

// scanDelta reads delta as a provider does, its text appended to dst.
func scanDelta(data, dst []byte) (index int64, text []byte) {
	text = dst
	m := Object(data)
	for m.Next() {
		switch string(m.Key) {
		case "index":
			index = Int(m.Value)
		case "delta":
			for d := Object(m.Value); d.Next(); {
				switch string(d.Key) {
				case "text":
					text = AppendText(dst, d.Value)
				case "partial_json":
					index = -1
				}
			}
		}
	}
	if m.Err() != nil {
		return -1, nil
	}
	return index, text
}

// gate fails when f allocates more than most times on average.
func gate(t *testing.T, name string, most float64, f func()) {
	t.Helper()
	if got := testing.AllocsPerRun(100, f); got > most {
		t.Errorf("%s: %v allocations, want at most %v", name, got, most)
	}
}

func TestScanningAndAppendingDoNotAllocate(t *testing.T) {
	data := []byte(delta)
	room := make([]byte, 0, 1<<16)
	list := []byte(`[1,{"a":[2]},"three",null,` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `]`)
	plain := []byte(`"plain text of some length, with 世界"`)
	escaped := []byte(`"line\nline\tquote\" \u4e16\ud83d\ude00 \ud800 and some more of it"`)
	long := strings.Repeat("a long text with \"quotes\"\n, 世界 and \xff bytes. ", 100)
	gate(t, "a delta", 0, func() {
		if index, text := scanDelta(data, room); index != 0 || string(text) != "Hello, \"world\"\n" {
			t.Errorf("got %d, %q", index, text)
		}
	})
	gate(t, "Array", 0, func() {
		for e := Array(list); e.Next(); {
		}
	})
	gate(t, "Valid", 0, func() { Valid(list) })
	gate(t, "Get", 0, func() { Get(data, "delta", "text") })
	gate(t, "First", 0, func() { First(data, "delta") })
	gate(t, "Quotes", 0, func() { Quotes(data[8:29], "content_block_delta") })
	gate(t, "Int, Bool and IsNull", 0, func() { Int(list[1:2]); Bool(list); IsNull(list) })
	gate(t, "AppendText", 0, func() { AppendText(AppendText(room, plain), escaped) })
	gate(t, "AppendString", 0, func() { AppendString(room, long) })
	gate(t, "AppendBase64", 0, func() { AppendBase64(room, long) })
	gate(t, "AppendCompact", 0, func() { AppendCompact(room, list) })
}

func TestOnlyTheResultIsAllocated(t *testing.T) {
	for _, raw := range []string{
		`"plain text of some length"`, `"escaped\ntext\u0041\ud83d\ude00"`, "\"bad \xff\xfe UTF-8\"",
		`"` + strings.Repeat(`\ud800`, 1000) + `"`, `"` + strings.Repeat("\xff", 1000) + `"`, `"` + strings.Repeat("x\\n", 1000) + `"`,
	} {
		gate(t, "String", 1, func() { String([]byte(raw)) })
	}
	for _, raw := range []string{``, `null`, `""`, `12`, `{"a":"a text of some length"}`, `"unended`, `"trailing" x`} {
		gate(t, "String of no text", 0, func() { String([]byte(raw)) })
	}
	// Escaped names share one buffer, however many there are.
	data := []byte("{" + strings.Repeat(`"a\u0041":1,`, 1000) + `"":2}`)
	gate(t, "Object with escaped names", 1, func() {
		for m := Object(data); m.Next(); {
		}
	})
}

func TestReadingAnEventDoesNotAllocate(t *testing.T) {
	for name, one := range map[string]string{
		"a delta":        "event: content_block_delta\ndata: " + delta + "\n\n",
		"several lines":  "event: x\r\ndata: a\r\ndata: b\r\nid: 1\r\n: comment\r\n\r\n",
		"a larger event": "data: " + strings.Repeat("x", 3000) + "\n\n",
	} {
		const runs = 1000
		e := NewEvents(strings.NewReader(strings.Repeat(one, 100+runs+10)))
		for range 100 { // the buffers grow
			e.Next()
		}
		if got := testing.AllocsPerRun(runs, func() {
			if !e.Next() || len(e.Data()) == 0 {
				t.Error("no event")
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func BenchmarkDelta(b *testing.B) {
	data, room := []byte(delta), make([]byte, 0, 1<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		scanDelta(data, room)
	}
}

func BenchmarkEvents(b *testing.B) {
	stream := []byte(strings.Repeat("event: content_block_delta\ndata: "+delta+"\n\n", 1000))
	r := bytes.NewReader(stream)
	e := NewEvents(readerFunc(func(p []byte) (int, error) { // without an end
		if r.Len() == 0 {
			r.Reset(stream)
		}
		return r.Read(p)
	}))
	b.SetBytes(int64(len(stream) / 1000))
	b.ReportAllocs()
	for b.Loop() {
		if !e.Next() {
			b.Fatal(e.Err())
		}
	}
}

func BenchmarkEventAndDelta(b *testing.B) {
	stream := []byte(strings.Repeat("event: content_block_delta\ndata: "+delta+"\n\n", 1000))
	r := bytes.NewReader(stream)
	e := NewEvents(readerFunc(func(p []byte) (int, error) {
		if r.Len() == 0 {
			r.Reset(stream)
		}
		return r.Read(p)
	}))
	room := make([]byte, 0, 1<<10)
	b.SetBytes(int64(len(stream) / 1000))
	b.ReportAllocs()
	for b.Loop() {
		if !e.Next() {
			b.Fatal(e.Err())
		}
		scanDelta(e.Data(), room)
	}
}

func BenchmarkString(b *testing.B) {
	for name, raw := range map[string]string{"plain": `"Hello, world"`, "escaped": `"if x {\n\treturn \"y\"\n}\n"`} {
		b.Run(name, func(b *testing.B) {
			data := []byte(raw)
			b.ReportAllocs()
			for b.Loop() {
				String(data)
			}
		})
	}
}

func BenchmarkAppendString(b *testing.B) {
	text := strings.Repeat("A paragraph of plain text, and \"a quotation\" in it.\n", 100)
	room := make([]byte, 0, 2*len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		AppendString(room, text)
	}
}

func BenchmarkValid(b *testing.B) {
	data := []byte("[" + strings.Repeat(delta+",", 1000) + "0]")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		Valid(data)
	}
}

func TestPiecesOfATextStayAsTheyWereAndTakeNoAllocation(t *testing.T) {
	raw := []byte(`"twenty bytes of text"`)
	var text Text
	var pieces []string
	for range 1000 {
		pieces = append(pieces, text.Append(raw))
	}
	if whole := strings.Join(pieces, ""); whole != text.String() || whole != strings.Repeat("twenty bytes of text", 1000) {
		t.Errorf("%q are the pieces of %q", whole, text.String())
	}
	if got := testing.AllocsPerRun(5, func() {
		var text Text
		for range 2000 {
			text.Append(raw)
		}
	}); got > 8 {
		t.Errorf("2,000 pieces: %v allocations, want at most 8", got)
	}
}

func TestEventsAreUsedAgainWithNothingOfTheOnesBefore(t *testing.T) {
	const first, second = "event: a\ndata: one\n\ndata: never read\n\n", "data: two\n\n"
	read := func(stream string) (name, data string) {
		e := NewEvents(strings.NewReader(stream))
		defer e.Release()
		if !e.Next() {
			t.Fatal(e.Err())
		}
		return string(e.Name()), string(e.Data())
	}
	for range 3 {
		if name, data := read(first); name != "a" || data != "one" {
			t.Errorf("%q, %q", name, data)
		}
		if name, data := read(second); name != "" || data != "two" {
			t.Errorf("%q, %q", name, data)
		}
	}
	if raced.Enabled {
		return // a pool forgets at random then
	}
	in := strings.NewReader("")
	gate(t, "a stream", 1, func() {
		in.Reset(second)
		e := NewEvents(in)
		for e.Next() {
		}
		e.Release()
	})
}

func TestAValueThatIsAbsentOrOfAnotherKindIsNoError(t *testing.T) {
	data := []byte(`{"a":[1]}`)
	gate(t, "Get", 0, func() {
		if Get(nil, "a") != nil || Get(data, "a", "b") != nil {
			t.Error("something was found")
		}
		for m := Object(nil); m.Next(); {
			t.Error("a member of nothing")
		}
		for e := Array(data); e.Next(); {
			t.Error("an element of an object")
		}
	})
}

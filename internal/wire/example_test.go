package wire_test

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
)

// Walk an object, and an object in it, for the members that matter.
func Example() {
	data := []byte(`{"type":"delta","index":1,"delta":{"text":"Gr\u00fc\u00dfe\n"},"usage":null}`)

	var typ, text string
	var index int64
	m := wire.Object(data)
	for m.Next() {
		switch string(m.Key) {
		case "type":
			typ = wire.String(m.Value)
		case "index":
			index = wire.Int(m.Value)
		case "delta":
			for d := wire.Object(m.Value); d.Next(); {
				if string(d.Key) == "text" {
					text = wire.String(d.Value)
				}
			}
		}
	}
	if err := m.Err(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %d %q\n", typ, index, text)
	// Output: delta 1 "Grüße\n"
}

// Walk an object and one in it at once.
func ExampleRead() {
	var text string
	r := wire.Read([]byte(`{"type":"delta","delta":{"role":"assistant","text":"Gr\u00fc\u00dfe"},"usage":null}`))
	for key := range r.Object {
		if string(key) != "delta" {
			continue // its value is passed over
		}
		for key := range r.Object {
			if string(key) == "text" {
				text = wire.String(r.Value())
			}
		}
	}
	fmt.Println(text, r.Err())
	// Output: Grüße <nil>
}

// Read events until the reader ends.
func ExampleEvents() {
	stream := "event: greeting\ndata: {\"text\":\"hello\"}\n\n: keep-alive\n\ndata: [DONE]\n\n"

	events := wire.NewEvents(strings.NewReader(stream))
	for events.Next() {
		fmt.Printf("%q %s\n", events.Name(), events.Data())
	}
	if err := events.Err(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// "greeting" {"text":"hello"}
	// "" [DONE]
}

// Write an object member by member.
func ExampleAppendString() {
	out := []byte(`{"role":"user","text":`)
	out = wire.AppendString(out, "say \"hi\"")
	out = append(out, `,"schema":`...)
	out, ok := wire.AppendCompact(out, []byte("{\n  \"type\": \"object\"\n}"))
	out = append(out, '}')
	fmt.Println(string(out), ok)
	// Output: {"role":"user","text":"say \"hi\"","schema":{"type":"object"}} true
}

// An array in an object.
func ExampleArray() {
	e := wire.Array(wire.Get([]byte(`{"stop":["a","b"]}`), "stop"))
	for e.Next() {
		fmt.Println(wire.String(e.Value))
	}
	fmt.Println(e.Err())
	// Output:
	// a
	// b
	// <nil>
}

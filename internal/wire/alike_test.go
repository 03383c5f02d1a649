package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhatDiffersInTheTextAloneIsAlike(t *testing.T) {
	const first, text = `{"type":"delta","index":0,"delta":{"type":"text","text":"Hello"}}`, `"Hello"`
	var a Alike
	kept := []byte(first)
	a.Keep(kept, part(kept, text))
	clear(kept) // it has what it needs
	for _, test := range []struct {
		name, in, want string // "" for nil
	}{
		{"the same again", first, text},
		{"another text", strings.Replace(first, "Hello", "world, and more", 1), `"world, and more"`},
		{"no text", strings.Replace(first, "Hello", "", 1), `""`},
		{"escapes, brackets and UTF-8", strings.Replace(first, "Hello", `\u00e9\ud83d\ude00\"}}世`, 1), `"\u00e9\ud83d\ude00\"}}世"`},
		{"white space at the end", first[:len(first)-1] + " \t} \r\n", text},
		{"another index", strings.Replace(first, "0", "1", 1), ""},
		{"another order", `{"index":0,"type":"delta","delta":{"type":"text","text":"Hello"}}`, ""},
		{"white space before the text", strings.Replace(first, `"text":"H`, `"text": "H`, 1), ""},
		{"no string", strings.Replace(first, text, "null", 1), ""},
		{"a member behind", strings.Replace(first, `Hello"`, `Hello","x":1`, 1), ""},
		{"a member behind that", first[:len(first)-1] + `,"x":1}`, ""},
		{"a bracket less", first[:len(first)-1], ""},
		{"a bracket more", first + "}", ""},
		{"another bracket", first[:len(first)-1] + "]", ""},
		{"something behind", first + " 1", ""},
		{"an end in the text", first[:len(first)-5], ""},
		{"an end before it", first[:20], ""},
		{"a bad escape", strings.Replace(first, "Hello", `\q`, 1), ""},
		{"a control character", strings.Replace(first, "Hello", "\n", 1), ""},
		{"nothing", "", ""},
	} {
		got := a.Text([]byte(test.in))
		if string(got) != test.want || (got == nil) != (test.want == "") {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if got != nil && !Valid([]byte(test.in)) {
			t.Errorf("%s: %s is no JSON", test.name, test.in)
		}
	}
}

// part is where text stands in data first.
func part(data []byte, text string) []byte {
	i := bytes.Index(data, []byte(text))
	return data[i : i+len(text)]
}

func TestWhatCannotBeKeptIsForgotten(t *testing.T) {
	data := []byte(`{"a":"x","b":"x"}`)
	for name, test := range map[string]struct{ data, text []byte }{
		"a text that is not in it, and equals one that is": {data, []byte(`"x"`)},
		"too much behind it":  {[]byte(`["y","` + strings.Repeat("x", 520) + `"]`), nil},
		"no string":           {[]byte(`[12]`), []byte(`12`)},
		"no text":             {data, nil},
		"of other data":       {data, []byte(`"x"`)},
		"too much before it":  {[]byte(`["` + strings.Repeat("x", 520) + `","y"]`), nil},
		"too many brackets":   {[]byte(strings.Repeat("[", 300) + `"y"` + strings.Repeat("]", 300)), nil},
		"nothing, twice over": {nil, nil},
	} {
		var a Alike
		a.Keep(data, data[len(data)-4:len(data)-1])
		if a.Text(data) == nil {
			t.Fatal("nothing was kept")
		}
		if strings.HasPrefix(name, "too") {
			test.text = part(test.data, `"y"`)
		}
		a.Keep(test.data, test.text)
		if got := a.Text(data); got != nil {
			t.Errorf("%s: %s is still known, as %s", name, data, got)
		}
		if got := a.Text(test.data); got != nil {
			t.Errorf("%s: %q is known", name, got)
		}
	}
}

func TestWhatFollowsTheTextIsTheSameToo(t *testing.T) {
	data := []byte(`{"c":[{"d":{"x":"a"},"l":"a b","f":null}],"u":null}`)
	var a Alike
	a.Keep(data, part(data, `"a"`))
	for in, want := range map[string]string{
		`{"c":[{"d":{"x":"more"},"l":"a b","f":null}],"u":null}`:       `"more"`,
		`{"c":[{"d":{"x":"more"},"l":"a b","f":null}],"u":null }`:      `"more"`,
		`{"c":[{"d":{"x":"more"},"l":"ab","f":null}],"u":null}`:        "",
		`{"c":[{"d":{"x":"more"},"l":"a b","f":null}],"u":1}`:          "",
		`{"c":[{"d":{"x":"more"},"l":"a b","f":null}],"u":null`:        "",
		`{"c":[{"d":{"x":"more"},"l":"a b"`:                            "",
		`{"c":[{"d":{"x":"more","x":2},"l":"a b","f":null}],"u":null}`: "",
	} {
		if got := a.Text([]byte(in)); string(got) != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestKnowingWhatIsAlikeTakesNoAllocation(t *testing.T) {
	data := []byte(delta)
	text := part(data, `"Hello, \"world\"\n"`)
	var a Alike
	gate(t, "Alike", 0, func() {
		a.Keep(data, text)
		if len(a.Text(data)) != len(text) {
			t.Error("not known")
		}
	})
}

// Whatever is taken to be alike is JSON, and the same as what was kept but for the text.
func FuzzAlike(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"x"}]}`), []byte(`{"a":[1,{"b":"\u00e9"} ] }`))
	f.Add([]byte(`["x"]`), []byte(`["x"]]`))
	f.Add([]byte(`"a"`), []byte(` "b"`))
	f.Add([]byte(`{"a":"b","c":"b"}`), []byte(`{"a":"d","c":"b"}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if !Valid(first) {
			return
		}
		for i, c := range first {
			if c != '"' {
				continue
			}
			end, _, want := skipString(first, i+1)
			if want != "" || !Valid(append(append(first[:i:i], "0"...), first[end:]...)) {
				continue // it is no value: a name, or the end of one
			}
			var a Alike
			a.Keep(first, first[i:end])
			got := a.Text(second)
			if got == nil {
				continue
			}
			like, ok := AppendCompact(nil, append(append(first[:i:i], got...), first[end:]...))
			compact, valid := AppendCompact(nil, second)
			if !ok || !valid || !bytes.Equal(like, compact) {
				t.Fatalf("%q is taken to be %q with %q", second, first, got)
			}
		}
	})
}

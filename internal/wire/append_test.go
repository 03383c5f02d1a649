package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// texts are strings that stress escapes and UTF-8, for tables and as seeds.
var texts = []string{
	"",
	"Hello",
	"exactly8",
	"a run of more than eight bytes, then a \"quote\"",
	`back\slash`,
	"\x00\x01\b\t\n\v\f\r\x1f\x20\x7f",
	"<script>&amp;</script>",
	"größer, 世界, 😀",
	"世界\u2028line\u2029paragraph\u202a",
	"\ufffd is itself",
	"bad \xff\xfe byte",
	"cut \xe4\xb8",
	"surrogate \xed\xa0\x80 in UTF-8",
	strings.Repeat("1234567", 9) + "\n",
	"12345678\"",
	"1234567\"",
	"\x80",
}

// encoderString is the oracle for AppendString.
func encoderString(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	// The one difference: U+FFFD stands as it is.
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), `\ufffd`, "\uFFFD")
}

func TestAppendStringEqualsTheStandardEncoder(t *testing.T) {
	for _, s := range texts {
		if got, want := string(AppendString(nil, s)), encoderString(t, s); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
	}
	// Every byte at every place of a word, and after a word.
	for c := range 256 {
		for at := range 20 {
			b := []byte("abcdefghijklmnopqrst")
			b[at] = byte(c)
			s := string(b)
			if got, want := string(AppendString(nil, s)), encoderString(t, s); got != want {
				t.Fatalf("AppendString(%q) = %s, want %s", s, got, want)
			}
		}
	}
}

func TestAppendStringKeepsWhatIsInTheBuffer(t *testing.T) {
	if got, want := string(AppendString([]byte(`{"a":`), "b\n")), `{"a":"b\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAppendWordKeepsDifferentTextsApart(t *testing.T) {
	for in, want := range map[string]string{
		"toolu_01-A": `"toolu_01-A"`, "functions.read:0": `"functions_2eread_3a0"`, "": `"_"`, "é\"": `"_c3_a9_22"`,
		strings.Repeat("a", 40): `"` + strings.Repeat("a", 40) + `"`,
	} {
		if got := string(AppendWord(nil, in, 40)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	seen := map[string]string{}
	for _, in := range []string{strings.Repeat("a", 41), strings.Repeat("a", 42), strings.Repeat("a", 40) + "b", strings.Repeat("é", 10), strings.Repeat("é", 11), strings.Repeat("x", 1<<20)} {
		got := string(AppendWord([]byte("x"), in, 40))
		if len(got) != len(`x""`)+40 || seen[got] != "" || got != string(AppendWord([]byte("x"), in, 40)) || strings.Trim(got[2:42], "_0123456789abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%.50q gives %s, as does %.50q", in, got, seen[got])
		}
		seen[got] = in
	}
	if got := string(AppendWord(nil, strings.Repeat("a", 100), 0)); got != `"`+strings.Repeat("a", 100)+`"` {
		t.Errorf("without a limit: %s", got)
	}
}

func TestAppendBase64WritesAQuotedString(t *testing.T) {
	for _, s := range []string{"", "a", "ab", "abc", "\x00\xff\xfe", strings.Repeat("x\xfa", 5000)} {
		want := `["` + base64.StdEncoding.EncodeToString([]byte(s)) + `"`
		if got := string(AppendBase64([]byte("["), s)); got != want {
			t.Errorf("AppendBase64(%.10q) = %.40s, want %.40s", s, got, want)
		}
	}
}

func TestAppendCompactRemovesOnlyWhiteSpaceBetweenTokens(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"white space around goes", " \t\r\n1 \n", `1`},
		{"white space between tokens goes", "{ \"a\" :\n[ 1 ,\t2 ] ,\r\"b\" : { } }", `{"a":[1,2],"b":{}}`},
		{"white space in strings stays", `[ " a  b " ]`, `[" a  b "]`},
		{"an escaped quote does not end a string", `[ "\" \\" , " " ]`, `["\" \\"," "]`},
		{"numbers stay as they were written", `[ 1.50, -0, 1E+2, 12345678901234567890 ]`, `[1.50,-0,1E+2,12345678901234567890]`},
		{"escapes stay as they were written", `[ "\u0041\/<>` + "\u2028\xff" + `" ]`, `["\u0041\/<>` + "\u2028\xff" + `"]`},
		{"duplicates and order stay", `{"b":1, "a":2, "b":3}`, `{"b":1,"a":2,"b":3}`},
		{"compact input is copied", `{"a":[true,false,null]}`, `{"a":[true,false,null]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := AppendCompact([]byte("x"), []byte(test.in))
			if Compact([]byte(test.in)) != (ok && string(got) == "x"+test.in) {
				t.Errorf("Compact(%q) = %t", test.in, Compact([]byte(test.in)))
			}
			if !ok || string(got) != "x"+test.want {
				t.Errorf("got %s, %t, want x%s", got, ok, test.want)
			}
		})
	}
}

func TestAppendCompactLeavesTheBufferAloneWhenRawIsNoValue(t *testing.T) {
	for _, raw := range invalid {
		room := []byte("before|after")
		got, ok := AppendCompact(room[:6], []byte(raw))
		if ok || string(got) != "before" || string(room) != "before|after" {
			t.Errorf("AppendCompact(%.40q) = %q, %t, buffer %q", raw, got, ok, room)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		if want := encoderString(t, s); string(got) != want {
			t.Fatalf("AppendString(%q) = %s, want %s", s, got, want)
		}
		// The conversion to runes replaces bad bytes one by one, as JSON does.
		if back, want := String(got), string([]rune(s)); back != want {
			t.Fatalf("String(%s) = %q, want %q", got, back, want)
		}
	})
}

func FuzzAppendCompact(f *testing.F) {
	for _, s := range slices.Concat(valid, invalid) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := AppendCompact(nil, raw)
		var want bytes.Buffer
		err := json.Compact(&want, raw)
		if ok != (err == nil) || ok && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("AppendCompact(%q) = %s, %t; encoding/json: %s, %v", raw, got, ok, &want, err)
		}
		if Compact(raw) != (ok && len(got) == len(raw)) {
			t.Fatalf("Compact(%q) = %t", raw, Compact(raw))
		}
	})
}

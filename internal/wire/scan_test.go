package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var valid = []string{
	`null`, `true`, `false`, `0`, `-0`, `7`, `-12`, `1.5`, `0.0`, `1e5`, `1E+5`, `-1.25e-7`,
	`12345678901234567890123`, `""`, `"a"`, `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`,
	"\"\x7f\xff\u2028\"", ` [ ] `, "\t{\r}\n", `[[],{}]`, `[1,[2,[3]]]`,
	`{"a":1}`, `{"a":{"b":[{"c":null}]},"a":2}`, `{"":""}`, `{ "a" : 1 , "b" : [ true , false ] }`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
	`[` + strings.Repeat(`[`, 63) + strings.Repeat(`]`, 63) + `]`,
	strings.Repeat(`{"a":[`, 100) + strings.Repeat(`]}`, 100),
}

var invalid = []string{
	``, ` `, `nul`, `nulll`, `True`, `tru `, `f`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.e2`, `1e`, `1e+`, `0x10`,
	`NaN`, `--1`, `1 2`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u"`, "\"\n\"", "\"\x00\"", "\"01234567\x1f\"",
	`'a'`, `[`, `]`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{`, `}`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`,
	`{"a":1,}`, `{,}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1]`, `{"a"}`, `{"a":}`, `{"a":,}`, `[[]`, `{}{}`, `[]]`,
	"\ufeff1", "1\x00", "\v1", "\u00a01", `{"a\q":1}`, `[tru]`, `[nul`, `"a"b`, "[1,\x00]",
}

func TestValidTakesEveryKindOfValue(t *testing.T) {
	for _, s := range valid {
		if !Valid([]byte(s)) || !json.Valid([]byte(s)) {
			t.Errorf("Valid(%q) = %t, encoding/json says %t", s, Valid([]byte(s)), json.Valid([]byte(s)))
		}
	}
}

func TestValidRefusesWhatIsNotExactlyOneValue(t *testing.T) {
	for _, s := range invalid {
		if Valid([]byte(s)) || json.Valid([]byte(s)) {
			t.Errorf("Valid(%q) = %t, encoding/json says %t", s, Valid([]byte(s)), json.Valid([]byte(s)))
		}
	}
}

func TestValidAgreesOnEveryPrefixAndEveryChangedByte(t *testing.T) {
	const value = `{"a\u00e9\n" : [ -1.5e+3 , true,null ], "bcdefghijkl":"\"x" }`
	check := func(b []byte) {
		if got, want := Valid(b), json.Valid(b); got != want {
			t.Fatalf("Valid(%q) = %t, want %t", b, got, want)
		}
	}
	for i := range value {
		check([]byte(value[:i]))
		for c := range 256 {
			b := []byte(value)
			b[i] = byte(c)
			check(b)
		}
	}
}

func TestNestingEndsAtTheLimitOfTheStandardLibrary(t *testing.T) {
	for _, depth := range []int{64, 65, maxDepth - 1, maxDepth, maxDepth + 1, maxDepth + 2, 3 * maxDepth} {
		for name, s := range map[string]string{
			"arrays":         strings.Repeat("[", depth) + strings.Repeat("]", depth),
			"full arrays":    strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth),
			"objects":        strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1),
			"unended arrays": strings.Repeat("[", depth),
		} {
			data := []byte(s)
			want := json.Valid(data)
			if got := Valid(data); got != want {
				t.Errorf("%d %s: Valid = %t, want %t", depth, name, got, want)
			}
			// A walk has the same limit, counted from its outermost bracket.
			var err error
			if s[0] == '[' {
				e := Array(data)
				for e.Next() {
				}
				err = e.Err()
			} else {
				m := Object(data)
				for m.Next() {
				}
				err = m.Err()
			}
			if (err == nil) != want {
				t.Errorf("%d %s: a walk ended with %v, want success %t", depth, name, err, want)
			}
		}
	}
}

func TestHostileInputTakesLinearTime(t *testing.T) {
	// Were one of these quadratic, the test would run for many seconds, not for milliseconds.
	const size = 1 << 18
	for name, s := range map[string]string{
		"opening brackets": strings.Repeat("[", size),
		"backslashes":      `"` + strings.Repeat(`\\`, size/2) + `"`,
		"bad UTF-8":        `"` + strings.Repeat("\xff", size) + `"`,
		"lone surrogates":  `"` + strings.Repeat(`\ud800`, size/6) + `"`,
		"white space":      strings.Repeat(" ", size) + "1" + strings.Repeat(" ", size),
		"digits":           strings.Repeat("10", size/2),
		"zeros":            "1" + strings.Repeat("0", size) + "e-" + strings.Repeat("9", size),
		"elements":         "[" + strings.Repeat("0,", size/2) + "0]",
		"members":          "{" + strings.Repeat(`"\n":0,`, size/7) + `"":0}`,
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(s)
			if got, want := Valid(data), name != "opening brackets"; got != want {
				t.Errorf("Valid = %t, want %t", got, want)
			}
			String(data)
			Int(data)
			Get(data, "a", "b")
			AppendCompact(nil, data)
			for e := Array(data); e.Next(); {
			}
			for m := Object(data); m.Next(); {
			}
		})
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range slices.Concat(valid, invalid) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, want := Valid(data), json.Valid(data); got != want {
			t.Fatalf("Valid(%q) = %t, want %t", data, got, want)
		}
	})
}

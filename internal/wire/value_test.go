package wire

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

func TestStringDecodesAsTheStandardLibrary(t *testing.T) {
	for _, raw := range []string{
		`""`, `"a"`, `"Hello, world"`, `"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9\u4e16\u0000"`,
		`"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"x\ud83d\ude00y"`,
		`"\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ude00\ud83d"`, `"\ude00"`,
		`"\ud83d\\ude00"`, `"\ufffd"`, "\"世界😀\"", "\"\ufffd\"", "\"\xff\"", "\"a\xffb\\n\xe4\xb8\"", "\"\xed\xa0\x80\"",
		"\"a longer run before \\u2028 and a longer run after\"", " \"white space around\"\n",
	} {
		var want string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		if got := String([]byte(raw)); got != want {
			t.Errorf("String(%s) = %q, want %q", raw, got, want)
		}
		if got := string(AppendText([]byte("x"), []byte(raw))); got != "x"+want {
			t.Errorf("AppendText(%s) = %q, want %q", raw, got, want)
		}
		var text Text
		if first, again := text.Append([]byte(raw)), text.Append([]byte(raw)); first != want || again != want || text.String() != want+want || text.Len() != 2*len(want) {
			t.Errorf("Text of twice %s: %q, %q, %q, want %q", raw, first, again, text.String(), want)
		}
	}
}

func TestStringOfAnythingButAStringIsEmpty(t *testing.T) {
	for _, raw := range append([]string{`null`, `true`, `1`, `{"a":1}`, `["a"]`, `"a" "b"`}, invalid...) {
		if got := String([]byte(raw)); got != "" {
			t.Errorf("String(%q) = %q", raw, got)
		}
		var text Text
		if got := text.Append([]byte(raw)); got != "" || text.Len() > 0 {
			t.Errorf("Text of %q: %q", raw, got)
		}
		if got := string(AppendText([]byte("x"), []byte(raw))); got != "x" {
			t.Errorf("AppendText(%q) = %q", raw, got)
		}
	}
	if got := String(nil); got != "" {
		t.Errorf("String(nil) = %q", got)
	}
}

func TestIntReadsIntegralNumbersHoweverTheyAreWritten(t *testing.T) {
	for raw, want := range map[string]int64{
		``: 0, `null`: 0, `true`: 0, `"12"`: 0, `[1]`: 0, `{}`: 0, `-`: 0, `1.`: 0, `+1`: 0, `012`: 0, `1 2`: 0, `0x1`: 0,
		`0`: 0, `-0`: 0, `0.000`: 0, `0e99999999999999999999`: 0, `-0.0e-5`: 0,
		`7`: 7, `-7`: -7, `1234567890`: 1234567890, ` 12 `: 12,
		`12.0`: 12, `1e3`: 1000, `1E+3`: 1000, `1.5e1`: 15, `1200e-2`: 12, `-12.50e1`: -125, `0.001e3`: 1, `100.00`: 100,
		`1.5`: 0, `1e-1`: 0, `12e-1`: 0, `0.1`: 0, `1.00000000000000000000000000001`: 0,
		`9223372036854775807`: math.MaxInt64, `9223372036854775808`: 0, `-9223372036854775808`: math.MinInt64,
		`-9223372036854775809`: 0, `9223372036854775807.0`: math.MaxInt64, `922337203685477580.7e1`: math.MaxInt64,
		`9223372036854775810`: 0, `18446744073709551616`: 0, `18446744073709551617`: 0, `1e18`: 1e18, `1e19`: 0,
		`1e99999999999999999999`: 0, `1e-99999999999999999999`: 0, `-1e18`: -1e18,
		`1` + strings.Repeat("0", 1000) + `e-1000`:      1,
		`0.` + strings.Repeat("0", 1000) + `12e1002`:    12,
		`12` + `.` + strings.Repeat("0", 1000) + `e3`:   12000,
		`123456789012345678901234567890e-20`:            0,
		`92233720368547758070000000000000000000000e-22`: math.MaxInt64,
	} {
		if got := Int([]byte(raw)); got != want {
			t.Errorf("Int(%.60s) = %d, want %d", raw, got, want)
		}
	}
}

func TestBoolIsTrueOnlyForTrue(t *testing.T) {
	for raw, want := range map[string]bool{
		`true`: true, ` true `: true, `false`: false, ``: false, `null`: false, `"true"`: false, `1`: false, `True`: false, `truee`: false,
	} {
		if got := Bool([]byte(raw)); got != want {
			t.Errorf("Bool(%q) = %t", raw, got)
		}
	}
}

func TestIsNullIsTrueForNullAndForAbsence(t *testing.T) {
	for raw, want := range map[string]bool{
		``: true, `null`: true, "null\n": true, `"null"`: false, `0`: false, `false`: false, `{}`: false, `nul`: false,
	} {
		if got := IsNull([]byte(raw)); got != want {
			t.Errorf("IsNull(%q) = %t", raw, got)
		}
	}
	if !IsNull(nil) || !IsNull(Get([]byte(`{}`), "a")) {
		t.Error("an absent value is not null")
	}
}

func FuzzString(f *testing.F) {
	for _, s := range texts {
		f.Add(AppendString(nil, s))
		f.Add([]byte(`"` + s + `"`))
	}
	for _, s := range slices.Concat(valid, invalid) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var value any
		_ = json.Unmarshal(raw, &value)
		want, _ := value.(string)
		if got := String(raw); got != want {
			t.Fatalf("String(%q) = %q, want %q", raw, got, want)
		}
		if got := string(AppendText([]byte("x"), raw)); got != "x"+want {
			t.Fatalf("AppendText(%q) = %q, want %q", raw, got, want)
		}
	})
}

func FuzzInt(f *testing.F) {
	for _, s := range []string{"0", "-0.0", "12", "12.0", "1e3", "15e-1", "-9223372036854775808", "9223372036854775808", "1e19", "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var number json.Number
		if json.Unmarshal([]byte(raw), &number) != nil || strings.Contains(raw, `"`) {
			number = ""
		}
		if _, exp, ok := strings.Cut(strings.ToLower(string(number)), "e"); ok && len(exp) > 4 {
			t.Skip("more digits than the oracle should write out")
		}
		var want int64
		if exact, ok := new(big.Rat).SetString(string(number)); ok && exact.IsInt() && exact.Num().IsInt64() {
			want = exact.Num().Int64()
		}
		if got := Int([]byte(raw)); got != want {
			t.Fatalf("Int(%q) = %d, want %d", raw, got, want)
		}
	})
}

func TestQuotesKnowsATextThatIsWrittenAsItIs(t *testing.T) {
	for raw, want := range map[string]bool{
		`"a text"`: true, `"a texT"`: false, `"a text`: false, `a text"`: false, `"a text" `: false, `"\u0061 text"`: false, ``: false, `null`: false,
	} {
		if Quotes([]byte(raw), "a text") != want {
			t.Errorf("%s: %v", raw, !want)
		}
	}
	for _, s := range []string{`a"b`, `a\n`} { // such a text stands for another one
		if Quotes([]byte(`"`+s+`"`), s) {
			t.Errorf("%q", s)
		}
	}
	if !Quotes([]byte(`""`), "") {
		t.Error("the empty text")
	}
}

func TestWhatIsKeptOfATextTakesLittleMoreThanTheText(t *testing.T) {
	kept := func(pieces int) (string, float64) {
		var text Text
		for range pieces {
			text.Append([]byte(`"a piece of a text, "`))
		}
		if text.Kept() != text.String() {
			t.Fatalf("%q is kept of %q", text.Kept(), text.String())
		}
		return text.Kept(), testing.AllocsPerRun(1, func() { _ = text.Kept() })
	}
	if text, allocs := kept(3); len(text) != 57 || allocs != 0 {
		t.Errorf("a short text of %d bytes is copied: %v allocations", len(text), allocs)
	}
	if text, allocs := kept(1000); len(text) != 19_000 || allocs != 1 { // it lies in twice as much
		t.Errorf("a text of %d bytes takes %v allocations, want 1", len(text), allocs)
	}
}

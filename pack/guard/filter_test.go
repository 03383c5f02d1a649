package guard_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/pack/guard"
)

// through gives what of the pieces was shown by the end, and the error.
func through(t testing.TB, pieces []string, guards ...*guard.Guard) (string, []*guard.Violation, error) {
	t.Helper()
	f := guard.NewFilter(guards...)
	var shown strings.Builder
	for _, p := range pieces {
		show, err := f.Write(p)
		shown.WriteString(show)
		if err != nil {
			if more, again := f.Write("x"); more != "" || again != err { //nolint:errorlint // the very same
				t.Errorf("after %v: %q, %v", err, more, again)
			}
			if more, again := f.End(t.Context()); more != "" || again != err { //nolint:errorlint // the very same
				t.Errorf("after %v: %q, %v", err, more, again)
			}
			return shown.String(), f.Noted(), err
		}
	}
	show, err := f.End(t.Context())
	shown.WriteString(show)
	return shown.String(), f.Noted(), err
}

func bytes(text string) (pieces []string) {
	for i := range len(text) {
		pieces = append(pieces, text[i:i+1])
	}
	return pieces
}

func TestNothingOfAViolationIsShownHoweverTheTextIsCut(t *testing.T) {
	for _, c := range []struct {
		guard       *guard.Guard
		text, shown string
		bad         bool
	}{
		{blocking(t, "banned_words", params{"words": list("secret plan", "Straße")}), "The Secret\n  PLAN is", "The ", true},
		{blocking(t, "banned_words", params{"words": list("secret plan", "Straße")}), "a STRASSE", "a ", true},
		{blocking(t, "banned_words", params{"words": list("secret plan", "Straße")}), "a secret planet, strasser", "a secret planet, strasser", false},
		{blocking(t, "banned_words", params{"words": list("bad")}), "it is bad", "it is ", true},
		{blocking(t, "banned_words", params{"words": list("最低")}), "これは最低だ", "これは", true},
		{blocking(t, "max_length", params{"max_characters": 4}), "日本語だよ", "日本語だ", true},
		{blocking(t, "max_length", params{"max_tokens": 1}), "12345", "1234", true},
		{blocking(t, "max_sentences", params{"max_sentences": 1}), "One 3.5. Two.", "One 3.5. ", true},
		{blocking(t, "pii_leakage", nil), "Mail to ada@example.org, now", "Mail to ", true},
		{blocking(t, "pii_leakage", nil), "It is 4111 1111 1111 1111, I think", "It is ", true},
		{blocking(t, "pii_leakage", nil), "It is 4111 1111 1111 1112, I think", "It is 4111 1111 1111 1112, I think", false},
		{blocking(t, "regex", params{"pattern": "^x$"}), "xy", "", true},
		{blocking(t, "json_schema", params{"schema": map[string]any{}}), `{"a": `, "", true},
		{blocking(t, "json_schema", params{"schema": map[string]any{}}), `{"a": "ä"}`, `{"a": "ä"}`, false},
		{blocking(t, "required_fields", params{"fields": list("id")}), "nothing", "", true},
	} {
		for _, pieces := range [][]string{{c.text}, bytes(c.text), strings.SplitAfter(c.text, " "), {c.text[:len(c.text)/2], c.text[len(c.text)/2:]}} {
			shown, noted, err := through(t, pieces, c.guard)
			if shown != c.shown || (err != nil) != c.bad || len(noted) > 0 {
				t.Errorf("%s on %q: %q, %v, want %q", c.guard.Type, pieces, shown, err, c.shown)
			}
		}
	}
}

func TestWhatDoesNotFailOnViolationIsShownAtOnceAndNoted(t *testing.T) {
	var guards []*guard.Guard
	for typ, p := range map[string]params{"banned_words": {"words": list("bad")}, "max_length": {"max_characters": 2}, "regex": {"pattern": "^x"}, "pii_leakage": nil} {
		g, err := guard.New(guard.Config{Type: typ, Params: p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		guards = append(guards, g)
	}
	f := guard.NewFilter(guards...)
	for _, piece := range bytes("a bad word bad") {
		if show, err := f.Write(piece); show != piece || err != nil {
			t.Errorf("%q: %q, %v", piece, show, err)
		}
	}
	if show, err := f.End(t.Context()); show != "" || err != nil || len(f.Noted()) != 3 {
		t.Errorf("%q, %v, %v", show, err, f.Noted())
	}
}

func TestSeveralGuardsHoldBackWhatAnyOfThemDoes(t *testing.T) {
	words, mail := blocking(t, "banned_words", params{"words": list("bad")}), blocking(t, "pii_leakage", nil)
	f := guard.NewFilter(words, mail)
	for _, c := range [][2]string{{"ba", ""}, {"con and ada@", "bacon and "}, {"x y", "ada@x "}, {" b", "y "}} {
		if show, err := f.Write(c[0]); show != c[1] || err != nil {
			t.Errorf("%q: %q, %v, want %q", c[0], show, err, c[1])
		}
	}
	if show, err := f.End(t.Context()); show != "b" || err != nil {
		t.Errorf("%q, %v", show, err)
	}
}

func TestTheMessageStandsInPlaceOfWhatIsBlocked(t *testing.T) {
	for message, want := range map[string]string{"": guard.DefaultMessage, "No.": "No."} {
		g, err := guard.New(guard.Config{Type: "max_length", Params: params{"max": 1}, Message: message, FailOnViolation: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = through(t, []string{"ab"}, g)
		var v *guard.Violation
		if !errors.As(err, &v) || v.Message() != want {
			t.Errorf("%v", err)
		}
	}
}

func TestEachGuardStatesWhatItHoldsBack(t *testing.T) {
	words := blocking(t, "banned_words", params{"words": list("bad", "longer")})
	if got := words.Holds(); !strings.Contains(got, "at most 7 characters") {
		t.Error(got)
	}
	noted := *words
	noted.FailOnViolation = false
	if got := noted.Holds(); !strings.HasPrefix(got, "nothing") {
		t.Error(got)
	}
	if got := blocking(t, "regex", params{"pattern": "x"}).Holds(); got != "the whole text" {
		t.Error(got)
	}
}

// visible counts characters.
func visible(text string) (n int) {
	for _, c := range text {
		if !unicode.IsSpace(c) && c != '\u200B' {
			n++
		}
	}
	return n
}

// However a text is cut, its verdict is that of the whole text; what is shown is its beginning; and no more is held back than is stated.
func TestAStreamComesToTheSameAsTheWholeText(t *testing.T) {
	guards := []*guard.Guard{
		blocking(t, "banned_words", params{"words": list("ab", "bab", "a b", "äb", "b.")}), blocking(t, "banned_words", params{"words": list("aab"), "match_mode": "substring"}),
		blocking(t, "max_length", params{"max_characters": 30}), blocking(t, "max_sentences", params{"max_sentences": 3}), blocking(t, "pii_leakage", nil), blocking(t, "regex", params{"pattern": "a$"}),
	}
	most := []int{4, 4, 0, 0, 640, 1 << 30}
	piece := rapid.SampledFrom([]string{"a", "b", "ä", "A", " ", "\n", ".", "! ", "ss", "\u200B", "1", "555-123-4567", "x@y.de", "4111 1111 1111 1111", "日", "\xff", "\xe6\x97"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "text"), "")
		for i, g := range guards {
			whole := g.Judge(t.Context(), text)
			f := guard.NewFilter(g)
			shown, given := "", 0
			var err error
			for rest := text; rest != "" && err == nil; {
				n := min(len(rest), rapid.IntRange(1, 20).Draw(t, "cut"))
				var show string
				show, err = f.Write(rest[:n])
				rest = rest[n:]
				shown += show
				if given += n; err == nil && visible(text[len(shown):given]) > most[i]+2 { // two bytes of a character are held back in any case
					t.Fatalf("%s holds %q back", g.Type, text[len(shown):given])
				}
			}
			if err == nil {
				var show string
				show, err = f.End(t.Context())
				shown += show
			}
			if (err != nil) != (whole != nil) {
				t.Fatalf("%s on %q: whole %v, stream %v", g.Type, text, whole, err)
			}
			valid := string([]rune(text))
			if seen := string([]rune(shown)); err == nil && seen != valid || !strings.HasPrefix(valid, seen) {
				t.Fatalf("%s shows %q of %q", g.Type, shown, text)
			}
		}
	})
}

// hostile are texts that keep a guard busy: never a word's end, never a number's, always nearly a word.
var hostile = []string{"7", "no refun", "a.b@c", "It is so. ", "+1 555 "}

// The work for a text is in its length, however many pieces it comes in: eight times the pieces take eight times the memory and the time, not 64 times.
func TestTheWorkDoesNotGrowWithWhatCameBefore(t *testing.T) {
	for name, p := range map[string]params{
		"banned_words": {"words": list("guarantee", "no refund", "zzz")}, "max_length": {"max_characters": 1 << 30}, "max_sentences": {"max_sentences": 1 << 30},
		"pii_leakage": {"types": list("ssn", "credit_card", "iban")}, "regex": {"pattern": "x$", "expect_match": false}, "required_fields": {"fields": list("7", "n", "a", "i", "5"), "direction": "both"},
	} {
		t.Run(name, func(t *testing.T) {
			g := blocking(t, name, p)
			written := func(text string, pieces int) (bytes float64, took time.Duration) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				begin := time.Now()
				f := guard.NewFilter(g)
				for i := range pieces {
					if _, err := f.Write(text[i%len(text) : i%len(text)+1]); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := f.End(t.Context()); err != nil && name != "required_fields" {
					t.Fatal(err)
				}
				took = time.Since(begin)
				runtime.ReadMemStats(&after)
				return float64(after.TotalAlloc - before.TotalAlloc), took
			}
			for _, text := range hostile {
				var memory, work float64
				for range 5 { // a busy machine may slow one measurement down, not each
					small, short := written(text, 10_000)
					large, long := written(text, 80_000)
					if memory, work = large/(small+1<<13), float64(long)/float64(short); memory < 20 && work < 20 {
						break
					}
				}
				if memory >= 20 || work >= 20 {
					t.Errorf("%q: eight times the pieces take %.0f times the memory and %.0f times the time", text, memory, work)
				}
			}
		})
	}
}

// A piece costs the string that is shown, and nothing else.
func TestAPieceCostsWhatIsShown(t *testing.T) {
	f := guard.NewFilter(blocking(t, "banned_words", params{"words": list("guarantee", "straße")}), blocking(t, "max_length", params{"max_characters": 1 << 30}), blocking(t, "max_sentences", params{"max_sentences": 1 << 30}))
	for _, piece := range []string{"an ordinary piece ", "ein größeres Stück "} {
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := f.Write(piece); err != nil {
				t.Fatal(err)
			}
		}); n > 1 {
			t.Errorf("%q: %v allocations", piece, n)
		}
	}
}

func ExampleGuard_Holds() {
	g, _ := guard.New(guard.Config{Type: "pii_leakage", FailOnViolation: true}, nil)
	fmt.Println(g.Holds())
	// Output: the last words, at most 640 bytes
}

package choice_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/choice"
)

// An answer that is understood is one of the choices, and each choice is understood by its own text.
func FuzzAnswer(f *testing.F) {
	for _, s := range [][2]string{{"red,blue", "2."}, {"2,1", "1"}, {" a ,b", "A"}, {"İ,i", "i̇"}, {"ſ,s", "S"}, {"a", "a"}, {"x,", "\n"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, list, said string) {
		among := strings.Split(list, ",")
		if err := choice.Check(among); err != nil {
			if !errdefs.Validation.Is(err) {
				t.Fatal(err)
			}
			return
		}
		if got, ok := choice.Of(among, said); ok != slices.Contains(among, got) {
			t.Fatalf("%q of %q: %q, %v", said, among, got, ok)
		}
		for i, c := range among {
			if got, ok := choice.Of(among, c); !ok || got != c {
				t.Fatalf("%q of %q is taken for %q", c, among, got)
			}
			if got, _ := choice.Of(among, strconv.Itoa(i+1)); got != c && strings.TrimSpace(got) != strconv.Itoa(i+1) {
				t.Fatalf("number %d of %q is taken for %q", i+1, among, got)
			}
		}
	})
}

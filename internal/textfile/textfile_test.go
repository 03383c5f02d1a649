package textfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

func TestAFileIsReadToItsLimitAndNothingElseIs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(file, []byte("a: text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{100: "a: text", 7: "a: text", 3: "a: t"} {
		if got, err := Read(file, "script", most); string(got) != want || err != nil {
			t.Errorf("%d: %q, %v", most, got, err)
		}
	}
	if _, err := Read(file+"x", "script", 9); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	for _, other := range []string{dir, os.DevNull} {
		if _, err := Read(other, "script", 9); !errdefs.Validation.Is(err) || !strings.HasSuffix(err.Error(), "is no ordinary file: name one that holds the script") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestDepthIsNoLessThanTheNesting(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a: b": 0, "[[[]]]": 3, "{a: [1, {b: 2}]}": 3, "]][": 1, "- - - a\n- b": 3, "? - a": 2, "a - b - c": 0, "[]\r- -": 2,
	} {
		if got := Depth([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

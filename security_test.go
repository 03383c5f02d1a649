package pawl_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What SECURITY.md promises is held by the tests that it names: each of them is there.
func TestThePageOnSecurityNamesTestsThatAreThere(t *testing.T) {
	page, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 30 {
		t.Fatalf("it names %d tests", len(named))
	}
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, f := range function.FindAllSubmatch(b, -1) {
			there[string(f[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range named {
		if !there[n[1]] {
			t.Errorf("SECURITY.md names %s, which no test is", n[1])
		}
	}
	promises, _, _ := strings.Cut(string(page), "## What is not promised")
	_, promises, _ = strings.Cut(promises, "## What is promised")
	for line := range strings.Lines(promises) {
		if strings.HasPrefix(line, "- ") && !strings.Contains(line, "`Test") {
			t.Errorf("a promise without a test: %s", line)
		}
	}
}

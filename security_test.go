package pawl_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What pages promise is held by the tests that they name: each of them is there.
func TestThePagesNameTestsThatAreThere(t *testing.T) {
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Za-z0-9_]+)\((?:t|b) \*testing\.[TB]\)`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
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
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md", "SECURITY.md", "CONTRIBUTING.md", "bench/README.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`((?:Test|Benchmark)[A-Z][A-Za-z0-9_]*)`").FindAllStringSubmatch(string(b), -1)
		if least := map[string]int{"SECURITY.md": 30, "docs/sessions.md": 10}[page]; len(named) < least {
			t.Errorf("%s names %d tests, it was %d", page, len(named), least)
		}
		for _, n := range named {
			if !there[n[1]] {
				t.Errorf("%s names %s, which no test is", page, n[1])
			}
		}
	}
}

func TestEveryPromiseOfThePageOnSecurityNamesATest(t *testing.T) {
	page, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	promises, _, _ := strings.Cut(string(page), "## What is not promised")
	_, promises, _ = strings.Cut(promises, "## What is promised")
	lines := 0
	for line := range strings.Lines(promises) {
		if strings.HasPrefix(line, "- ") {
			if lines++; !strings.Contains(line, "`Test") {
				t.Errorf("a promise without a test: %s", line)
			}
		}
	}
	if lines < 15 {
		t.Errorf("only %d promises were found: the page has another form now", lines)
	}
}

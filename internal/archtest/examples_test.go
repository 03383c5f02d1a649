package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exampleBlock is code of a page that is an example's: "```go FILE FUNCTION".
var exampleBlock = regexp.MustCompile("(?ms)^```go (\\S+_test\\.go) (Example\\w*)\n(.*?)^```$")

// What a page shows of an example is its body, and the example runs as a test.
func TestTheCodeOfPagesIsThatOfExamples(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range exampleBlock.FindAllStringSubmatch(string(b), -1) {
			found++
			body := bodyOf(t, m[1], m[2])
			if diff := cmp.Diff(body, m[3]); diff != "" {
				t.Errorf("%s shows another %s (+) than %s has (-):\n%s", filepath.Base(page), m[2], m[1], diff)
			}
			if !strings.Contains(body, "// Output:") {
				t.Errorf("%s: %s has no Output, so it does not run", m[1], m[2])
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d examples were found: the pattern no longer fits the pages", found)
	}
}

// bodyOf is the text in a function's braces, as it would stand at the left margin.
func bodyOf(t *testing.T, file, name string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
			body := string(src[fset.Position(fn.Body.Lbrace).Offset+1 : fset.Position(fn.Body.Rbrace).Offset])
			return strings.TrimPrefix(strings.ReplaceAll(body, "\n\t", "\n"), "\n")
		}
	}
	t.Errorf("%s has no %s", file, name)
	return ""
}

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exampleBlock is code of a page that is an example's, or a test's: "```go FILE FUNCTION".
var exampleBlock = regexp.MustCompile("(?ms)^```go (\\S+_test\\.go) ((?:Example|Test)\\w*)\n(.*?)^```$")

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
			if strings.HasPrefix(m[2], "Example") && !strings.Contains(body, "// Output:") {
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

// named are the names of Go that stand in a text: pkg.Name, pkg.Type.Member, Type.Member.
var named = regexp.MustCompile(`\b(?:([a-z]+)\.)?([A-Z][A-Za-z0-9]*)(?:\.([A-Z][A-Za-z0-9]*))?\b`)

// codeBlock is what other tests compile.
var codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")

// What a page says in Go's names is there.
func TestTheNamesInThePagesAreThere(t *testing.T) {
	known, members, typed := symbols(t), map[string]bool{}, map[string]bool{}
	for name := range known {
		if i := strings.LastIndex(name, "."); i >= 0 && known[name[:i]] {
			typed[name[:i]] = true // it has members
		}
		if _, member, ok := strings.Cut(name, "."); ok {
			members[member] = true // Type.Member, of whatever package
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md"} {
		pages = append(pages, filepath.Join(root, name))
	}
	for _, pattern := range []string{"examples/README.md", "examples/*/README.md", "temporal/examples/*/README.md"} {
		of, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(of) == 0 {
			t.Fatal(pattern, of, err)
		}
		pages = append(pages, of...)
	}
	names := 0
	for _, page := range pages {
		if filepath.Base(page) == "seeds.md" { // it names what is planned, and has a test of its own
			continue
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range quoted.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(b), ""), -1) {
			for _, m := range named.FindAllStringSubmatch(code[1], -1) {
				pkg, first, second := m[1], m[2], m[3]
				switch {
				case pkg != "" && !known[pkg], pkg == "" && second == "":
					continue // no name of ours
				case pkg != "" && !known[pkg+"."+first],
					pkg != "" && second != "" && typed[pkg+"."+first] && !known[m[0]],
					pkg == "" && !members[m[0]]:
					t.Errorf("%s names %s, which is not there", filepath.Base(page), m[0])
				}
				names++
			}
		}
	}
	if names < 100 {
		t.Errorf("only %d names were read: the pages have another form now", names)
	}
}

// What the page on operations explains is what programs say: each text of an error, and each name of a metric, stands in the code.
func TestWhatThePageOnOperationsExplainsIsSaid(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					said = append(said, text)
				}
			}
			return true
		})
	}
	_, wrong, _ := strings.Cut(string(b), "\n## When something is wrong\n")
	texts := regexp.MustCompile("`((?:gen_ai|pawl)\\.[a-z_.]+)`").FindAllStringSubmatch(string(b), -1)
	for line := range strings.Lines(wrong) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			texts = append(texts, regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1)...)
		}
	}
	if len(texts) < 18 {
		t.Errorf("only %d texts were found: the page has another form now", len(texts))
	}
	for _, m := range texts {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, m[1]) }) {
			t.Errorf("docs/operations.md explains %q, which nothing says", m[1])
		}
	}
}

func TestTheREADMENamesTheVersionOfGo(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if m == nil || !strings.Contains(string(readme), "Go ("+string(m[1])+" or later)") {
		t.Errorf("README.md does not say which Go it needs: go.mod has %q", m)
	}
}

// An option of a Runtime says what it means, and unless its zero value is plain (a switch, a list), what it is by default.
func TestEveryOptionSaysWhatItMeans(t *testing.T) {
	options := 0
	ast.Inspect(sources(t)["pawl.go"], func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Options" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			options++
			name, text := f.Names[0].Name, f.Doc.Text()
			typ, _ := f.Type.(*ast.Ident)
			_, list := f.Type.(*ast.ArrayType)
			switch plain := list || typ != nil && typ.Name == "bool" || name == "Overrides" || name == "Permissions"; {
			case !strings.HasPrefix(text, name+" "):
				t.Errorf("pawl.Options.%s: its comment does not begin with its name: %q", name, text)
			case !plain && !strings.Contains(text, "Default:"):
				t.Errorf("pawl.Options.%s does not say its default", name)
			}
		}
		return false
	})
	if options < 30 {
		t.Errorf("only %d options were found", options)
	}
}

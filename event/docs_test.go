package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told is what a page or the code says of a kind of event.
type told struct {
	Type   string
	Fields []string // sorted
}

func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// kinds are the kinds of entries, with the types that have a Kind of that name, and their fields.
func kinds(t *testing.T) map[string]told {
	t.Helper()
	fields, out := map[string][]string{}, map[string]told{}
	f := parsed(t, "../journal/entry.go")
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					fields[spec.Name.Name] = append(fields[spec.Name.Name], name.Name)
				}
			}
		}
		return true
	})
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != "Kind" {
			continue
		}
		of := fn.Recv.List[0].Type.(*ast.Ident).Name
		kind, err := strconv.Unquote(fn.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(fields[of])
		out[kind] = told{"journal." + of, fields[of]}
	}
	return out
}

// deltas are the names of the deltas, by the constants.
func deltas(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	ast.Inspect(parsed(t, "event.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Delta" {
				name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out["event."+spec.Names[0].Name] = name
			}
		}
		return true
	})
	return out
}

// The page on events has every kind of entry with its type and all its fields, every delta, and nothing else.
func TestThePageOfTheEventsHasThemAll(t *testing.T) {
	b, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## Events\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var (
		row    = regexp.MustCompile("(?m)^\\| `([a-z.]+)` \\| `(journal\\.[A-Za-z]+)` \\| [^|]+ \\| ([^|]+) \\|$")
		delta  = regexp.MustCompile("(?m)^\\| `(event\\.[A-Za-z]+)` \\(`([a-z.]+)`\\) \\|")
		field  = regexp.MustCompile("`([A-Za-z]+)`")
		within = regexp.MustCompile(`\([^)]*\)`) // what a field holds
	)
	page := map[string]told{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		var fields []string
		for _, f := range field.FindAllStringSubmatch(within.ReplaceAllString(m[3], ""), -1) {
			fields = append(fields, f[1])
		}
		slices.Sort(fields)
		page[m[1]] = told{m[2], fields}
	}
	if diff := cmp.Diff(kinds(t), page); diff != "" {
		t.Errorf("docs/observability.md (+) is not what package journal has (-):\n%s", diff)
	}
	names := map[string]string{}
	for _, m := range delta.FindAllStringSubmatch(text, -1) {
		names[m[1]] = m[2]
	}
	if diff := cmp.Diff(deltas(t), names); diff != "" {
		t.Errorf("docs/observability.md (+) is not what package event has (-):\n%s", diff)
	}
}

package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	goName = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[A-Za-z][A-Za-z0-9]*){0,3}$`)
)

// docs/seeds.md says where things are. What it says is here has to be here.
func TestWhatThePageOfTheFourDocumentsNamesIsThere(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/seeds.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := symbols(t)
	rows, names := 0, 0
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) < 3 {
			continue
		}
		state := strings.TrimSpace(cells[len(cells)-1])
		for _, m := range plannedName.FindAllStringSubmatch(line, -1) {
			if known[m[1]] {
				t.Errorf("docs/seeds.md says that %s is planned, and it is there: %s", m[1], strings.TrimSpace(line))
			}
		}
		if state != "here" && state != "changed" {
			continue
		}
		rows++
		found := 0
		for _, m := range quoted.FindAllStringSubmatch(cells[len(cells)-2], -1) {
			name := m[1]
			if strings.HasPrefix(name, "pawl ") || strings.HasPrefix(name, "planned:") || !goName.MatchString(name) {
				continue
			}
			found++
			if !known[name] {
				t.Errorf("docs/seeds.md names %s, which is not there: %s", name, strings.TrimSpace(line))
			}
		}
		if names += found; found == 0 && state == "here" && !strings.Contains(cells[len(cells)-2], "`pawl ") {
			t.Errorf("docs/seeds.md says here and names nothing: %s", strings.TrimSpace(line))
		}
	}
	if rows < 300 || names < 300 {
		t.Errorf("%d rows with %d names were read: the page has another form now", rows, names)
	}
}

// plannedName is a name that is still to be written.
var plannedName = regexp.MustCompile("`planned: ([a-z]+[.][A-Za-z.]+)`")

// symbols are the exported names of all packages as go doc knows them: package, package.Name, package.Type.Member.
func symbols(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for path, f := range sources(t) {
		pkg := f.Name.Name
		if strings.HasPrefix(path, "cmd/") {
			continue
		}
		out[pkg] = true
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := pkg + "."
				if d.Recv != nil {
					name += receiver(d.Recv.List[0].Type) + "."
				}
				out[name+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					declare(out, pkg, s)
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func declare(out map[string]bool, pkg string, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			out[pkg+"."+n.Name] = true
		}
	case *ast.TypeSpec:
		name := pkg + "." + s.Name.Name
		out[name] = true
		var fields *ast.FieldList
		switch u := s.Type.(type) {
		case *ast.StructType:
			fields = u.Fields
		case *ast.InterfaceType:
			fields = u.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				out[name+"."+n.Name] = true
			}
			if len(f.Names) == 0 { // embedded: by the last part of its name
				e := f.Type
				if star, ok := e.(*ast.StarExpr); ok {
					e = star.X
				}
				switch e := e.(type) {
				case *ast.Ident:
					out[name+"."+e.Name] = true
				case *ast.SelectorExpr:
					out[name+"."+e.Sel.Name] = true
				}
			}
		}
	}
}

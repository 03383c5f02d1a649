package shell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/hook/shell"
)

// inspect goes through the package's files without tests.
func inspect(t *testing.T, f func(ast.Node)) {
	t.Helper()
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool { f(n); return true })
	}
}

func TestThereAreSevenEvents(t *testing.T) {
	t.Parallel()
	var names []string
	inspect(t, func(n ast.Node) {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				v := s.(*ast.ValueSpec)
				if id, ok := v.Type.(*ast.Ident); ok && id.Name == "EventType" {
					names = append(names, v.Names[0].Name+"="+v.Values[0].(*ast.BasicLit).Value)
				}
			}
		}
	})
	want := []string{
		`PreToolUse="PreToolUse"`, `PostToolUse="PostToolUse"`, `SessionStart="SessionStart"`, `SessionEnd="SessionEnd"`, `Stop="Stop"`,
		`SubagentStart="SubagentStart"`, `SubagentStop="SubagentStop"`,
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestThereAreFivePayloads(t *testing.T) {
	t.Parallel()
	_ = []shell.Payload{shell.ToolUsePayload{}, shell.ToolResultPayload{}, shell.SessionPayload{}, shell.StopPayload{}, shell.SubagentPayload{}}
	n := 0
	inspect(t, func(node ast.Node) {
		if f, ok := node.(*ast.FuncDecl); ok && f.Name.Name == "of" && f.Recv != nil {
			n++
		}
	})
	if n != 5 {
		t.Error(n, "types are a Payload")
	}
}

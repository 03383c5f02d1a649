package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pawl-dev/pawl"

// root is the module's directory, seen from this package.
const root = "../.."

// floors is the plan of docs/architecture.md: a package imports only what lies on a lower floor. Behind the point: rooms of one floor that
// lie in each other.
var floors = map[string]float64{
	"internal/wire": 0, "internal/near": 0, "internal/plain": 0, "internal/traced": 0, "internal/exact": 0.01, "internal/component": 0, "internal/testkit/tier": 0, "internal/testkit/testreport": 0, "internal/testkit/parallel": 0, "internal/testkit/mutate": 0, "internal/testkit/mutate/mutant": 0, "internal/testkit/blackbox": 10, "internal/readme": 0.1, "internal/release": 0.1, "internal/pty": 0.1, "internal/stable": 0, "internal/a2apeer": 0.1, "internal/raced": 0, "internal/broken": 0, "internal/lazy": 0, "internal/schema": 0.05, "internal/secret": 0, "internal/sigv4": 0, "internal/eventstream": 0, "errdefs": 0, "message": 0.1, "internal/frontmatter": 0.1, "internal/textfile": 0.1, "internal/choice": 0.1, "internal/tokens": 0.2, "internal/boxed": 0.1, "internal/shell": 0.1, "internal/process": 0.1,
	"sandbox/internal/reach": 0.1, "sandbox": 1, "sandbox/fence": 1.1, "model": 1, "internal/httpapi": 1.1, "internal/overheard": 1.1, "model/catalog": 1.1,
	"model/anthropic": 1.2, "model/openai": 1.2, "model/gemini": 1.2, "model/scripted": 1.2, "model/cassette": 1.2, "model/resilience": 1.2, "internal/wires": 1.25, "model/cloud": 1.2, "internal/providertest": 1.3, "internal/cassettes": 1.3, "internal/steady": 1.3,
	"pack/guard": 1.9, "internal/judged": 1.95, "pack": 2,
	"a2a":  2,
	"tool": 2, "tool/builtin": 2.1, "tool/mcp": 4.5,
	"internal/pgtest": 2.05, "internal/wake": 1.95, "journal": 2, "journal/internal/layout": 2.05, "journal/internal/ages": 2.15, "journal/internal/costs": 2.05, "journal/internal/waketest": 2.05, "journal/sqlite": 2.1, "internal/pgstore": 2.02, "journal/postgres": 2.1, "journal/journaltest": 2.1, "journal/trace": 2.1,
	"internal/star": 2.2,
	"event":         3, "hook/internal/permit": 2.9, "hook": 3, "hook/permission": 3.1, "hook/shell": 3.1,
	"stream": 3.2, "stream/postgres": 3.3,
	"engine": 4, "engine/enginetest": 4.1, "engine/telemetry": 4.1,
	"engine/loop": 5, "engine/graph": 6, "engine/remote": 6, "engine/script": 6,
	"project": 7,
	"agent":   7, "agent/askuser": 7.1, "agent/agentcard": 7.1, "agent/agenttest": 7.1, "internal/crashtest": 7.5, "internal/loopfuzz": 7.5,
	"":          8,
	"serve/mcp": 9, "serve/internal/web": 8.5, "serve/internal/inspector": 8.5, "serve/internal/live": 8.5, "serve/internal/a2aserver": 8.7, "serve/internal/chat": 8.6, "serve/internal/agui": 8.6, "serve": 9, "eval": 9,
	"internal/cli/otlp": 8.9, "internal/cli/waiting": 8.9, "internal/chat": 8.95, "internal/cli": 9.5, "internal/soak": 9.5, "cmd/pawl": 10, "internal/archtest": 10,
	"examples/a2a-pair": 10, "examples/code-fixer": 10, "examples/crash-and-resume": 10, "examples/custom-model": 10, "examples/custom-store": 10, "examples/evals": 10, "examples/invoices": 10, "examples/researcher": 10, "examples/support-desk": 10, "examples/three-engines": 10, "examples/web-ui": 10,
}

func TestImportsOnlyGoDown(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	name := func(p string) string { return strings.TrimPrefix(strings.TrimPrefix(p, module), "/") }
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := name(fields[0])
		seen[from] = true
		floor, known := floors[from]
		if !known {
			t.Errorf("package %q stands on no floor: put it into floors and docs/architecture.md", from)
			continue
		}
		for _, imported := range fields[1:] {
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			to := name(imported)
			if below, ok := floors[to]; !ok || below >= floor {
				t.Errorf("%q (floor %v) imports %q (floor %v): imports only go down", from, floor, to, below)
			}
		}
	}
	for p := range floors {
		if !seen[p] {
			t.Errorf("floors has %q, which is no package", p)
		}
	}
}

// enginePaths are the files in which an engine decides. What is done stands elsewhere, behind engine.Steps.
var enginePaths = []string{"engine/loop/loop.go", "engine/loop/tools.go", "engine/loop/tally.go", "engine/loop/room.go", "engine/graph/run.go"}

// The path of an engine is deterministic between effects, so that it runs in workflow engines and in replay as it stands.
func TestAnEnginesPathHasNoClockChanceOrConcurrency(t *testing.T) {
	for _, file := range enginePaths {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range f.Imports {
			switch im.Path.Value {
			case `"time"`, `"sync"`, `"sync/atomic"`, `"math/rand"`, `"math/rand/v2"`, `"crypto/rand"`, `"os"`, `"io"`, `"net/http"`, `"maps"`:
				t.Errorf("%s imports %s", file, im.Path.Value)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			at := func(what string) { t.Errorf("%s: %s", fset.Position(n.Pos()), what) }
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType, *ast.MapType:
				at("goroutines, channels and maps have no order")
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					at("it waits on a channel")
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" && n.Sel.Name != "Context" {
					at("it derives a context: context." + n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestTheLoopIsOneFunctionThatFitsOnAScreen(t *testing.T) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(root, "engine/loop/loop.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	loops := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !mentions(fn, "engine", "Generate") {
			continue
		}
		loops++
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > 60 {
			t.Errorf("%s has %d lines: at most 60", fn.Name.Name, n)
		}
	}
	if loops != 1 {
		t.Errorf("%d functions of loop.go call the model: want one", loops)
	}
}

// There is no second loop: nothing else asks for a generation, and models are called by the loop's Perform alone.
func TestThereIsNoSecondLoopInTheTree(t *testing.T) {
	for path, f := range sources(t) {
		if strings.HasPrefix(path, "model/") || strings.HasPrefix(path, "internal/") {
			continue // providers and their wrappers
		}
		if path != "engine/loop/loop.go" && path != "engine/loop/perform.go" && path != "engine/effect.go" && mentions(f, "engine", "Generate") {
			t.Errorf("%s builds an engine.Generate: only the loop may", path)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && path != "engine/loop/perform.go" {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Complete" || sel.Sel.Name == "CompleteStream") {
					t.Errorf("%s calls %s: only the loop calls models", path, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// mentions reports whether n has pkg.name as a composite literal.
func mentions(n ast.Node, pkg, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg && sel.Sel.Name == name {
					found = true
				}
			}
		}
		return !found
	})
	return found
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for path, f := range sources(t) {
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || f.Doc != nil && len(f.Doc.Text()) > 40
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no comment that says what it is", dir)
		}
	}
}

// suites are the packages that prove others: they need a test to run in, and show how in their doc.
var suites = []string{"journal/journaltest", "engine/enginetest", "agent/agenttest"}

// A public package shows itself by a runnable example.
func TestEveryPublicPackageHasARunnableExample(t *testing.T) {
	for p := range floors {
		if strings.Contains("/"+p, "/internal/") || p == "cmd/pawl" || strings.HasPrefix(p, "examples/") || slices.Contains(suites, p) {
			continue
		}
		tests, _ := filepath.Glob(filepath.Join(root, p, "*_test.go"))
		found := false
		for _, path := range tests {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(b), "\nfunc Example") && strings.Contains(string(b), "// Output:")
		}
		if !found {
			t.Errorf("package %q has no Example with an Output", p)
		}
	}
}

// Every direct dependency has its reason, those of tests and benchmarks in modules of their own, too.
func TestEveryDependencyHasALineThatSaysWhy(t *testing.T) {
	reasons, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "temporal/go.mod", "internal/oracle/go.mod", "internal/collector/go.mod", "bench/peers/go.mod", "bench/peers/genkit/go.mod"} {
		mod, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(mod)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || strings.HasPrefix(fields[0]+"/", module+"/") || !strings.HasPrefix(fields[1], "v") || strings.Contains(line, "// indirect") {
				continue
			}
			if !strings.Contains(string(reasons), "`"+fields[0]+"`") {
				t.Errorf("docs/dependencies.md does not say why %s is there (%s)", fields[0], file)
			}
		}
	}
}

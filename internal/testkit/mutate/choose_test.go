package main

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShares(t *testing.T) {
	for _, tc := range []struct {
		name    string
		n       int
		covered []int
		want    []int
	}{
		{"in proportion", 10, []int{50, 30, 20}, []int{5, 3, 2}},
		{"the largest remainders get the rest", 10, []int{26, 27, 47}, []int{2, 3, 5}},
		{"nothing without coverage", 10, []int{0, 40}, []int{0, 10}},
		{"nothing at all", 10, []int{0, 0}, []int{0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var packages []*candidates
			for _, covered := range tc.covered {
				packages = append(packages, &candidates{coveredStatements: covered})
			}
			if got := shares(tc.n, packages); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRank(t *testing.T) {
	const function = "func f(a, b int) bool { return a < b && b > 3 || a == 5 }\n"
	order := func(text, seed string) string {
		found := findMutations(parsePackage(t, text))
		rank(found, seed)
		var list []string
		for _, m := range found {
			if m.Function == "f" {
				list = append(list, m.Mutated)
			}
		}
		return strings.Join(list, "\n")
	}
	first := order("package p\n\n"+function, "1")
	if other := order(declarations+function, "1"); other != first {
		t.Error(cmp.Diff(first, other), "code elsewhere changes the order")
	}
	if other := order("package p\n\n"+function, "2"); other == first {
		t.Error("another seed gives the same order")
	}
}

func TestDivide(t *testing.T) {
	p := parsePackage(t, `package p

func f(a bool) int {
	if a {
		return g() + 1
	}
	return 0
}

func g() int { return 1 }
`)
	findBlocks(p)
	f := p.files[0]
	reached := reach{"p": {p.ImportPath: {
		f.blockAt(f.syntax.Decls[0].(*ast.FuncDecl).Body.List[0].Pos()): true,
		f.blockAt(f.syntax.Decls[0].(*ast.FuncDecl).Body.List[1].Pos()): true,
	}}}
	c := divide(p, reached)
	if c.statements != 4 || c.coveredStatements != 2 {
		t.Errorf("%d of %d statements covered, want 2 of 4", c.coveredStatements, c.statements)
	}
	var covered []string
	for _, m := range c.covered {
		covered = append(covered, m.Kind)
	}
	if want := []string{kindEarly, kindNegate}; !slices.Equal(covered, want) || c.uncovered != 2 {
		t.Errorf("covered %v, want %v; %d not covered, want 2", covered, want, c.uncovered)
	}
}

func TestReach_Covers(t *testing.T) {
	r := reach{
		"b": {"p": {1: true}},
		"a": {"p": {1: true, 2: true}},
		"c": {"q": {1: true}},
	}
	if got := r.covers("p", 1); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("covers(p, 1) = %v", got)
	}
}

func TestModule_Selected(t *testing.T) {
	m := &module{path: "m"}
	paths := []string{"m", "m/a", "m/a/b", "m/ab"}
	for patterns, want := range map[string][]string{
		"":          paths,
		".":         {"m"},
		"a":         {"m/a"},
		"a/...":     {"m/a", "m/a/b"},
		"./ab, a/b": {"m/a/b", "m/ab"},
	} {
		if got, err := m.selected(patterns, paths); err != nil || !slices.Equal(got, want) {
			t.Errorf("selected(%q) = %v, %v", patterns, got, err)
		}
	}
	if _, err := m.selected("a,c", paths); err == nil || !strings.Contains(err.Error(), "-in c: ") {
		t.Errorf("an unknown package gives %v", err)
	}
}

func TestModule_Product(t *testing.T) {
	m := &module{path: "m", packages: map[string]*listed{}}
	for path, deps := range map[string][]string{
		"m/cmd/x":          {"m/internal/used", "fmt"},
		"m/internal/used":  nil,
		"m/internal/tests": nil,
		"m/kit/kittest":    {"m/internal/tests"},
		"m/examples/e":     {"m/internal/tests"},
	} {
		m.packages[path] = &listed{ImportPath: path, Deps: deps}
	}
	if got, want := m.product(), []string{"m/cmd/x", "m/internal/used"}; !slices.Equal(got, want) {
		t.Errorf("product %v, want %v", got, want)
	}
}

func TestModule_Testers(t *testing.T) {
	m := &module{path: "m", packages: map[string]*listed{
		"m/a": {ImportPath: "m/a", TestGoFiles: []string{"a_test.go"}},
		"m/b": {ImportPath: "m/b", XTestGoFiles: []string{"b_test.go"}, XTestImports: []string{"m/c"}},
		"m/c": {ImportPath: "m/c", Deps: []string{"m/a"}},
		"m/d": {ImportPath: "m/d", TestGoFiles: []string{"d_test.go"}},
	}}
	if got, want := m.testers([]string{"m/a"}), []string{"m/a", "m/b"}; !slices.Equal(got, want) {
		t.Errorf("testers %v, want %v", got, want)
	}
}

func TestDistinct(t *testing.T) {
	got := distinct([]string{"m/a", "m/b/a", "m/b", "m/c/a"})
	want := [][]string{{"m/a", "m/b"}, {"m/b/a"}, {"m/c/a"}}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestReport_Compare(t *testing.T) {
	old := &report{Packages: []packageReport{
		{Package: "a", Mutants: 10, Survived: 2}, {Package: "a/b", Mutants: 10, Survived: 2}, {Package: "c", Mutants: 4},
	}}
	for _, tc := range []struct {
		name string
		now  []packageReport
		want []string
	}{
		{"the same share", []packageReport{{Package: "a/x", Mutants: 5, Survived: 1}, {Package: "c", Mutants: 1}}, nil},
		{
			"a larger share",
			[]packageReport{{Package: "a", Mutants: 4, Survived: 1}, {Package: "c", Mutants: 16}},
			[]string{"a: 1 of 4 survived, in the baseline 4 of 20"},
		},
		{"a group that is new", []packageReport{{Package: "d", Mutants: 9, Survived: 1}}, nil},
		{
			"more in total",
			[]packageReport{{Package: "d", Mutants: 2, Survived: 1}},
			[]string{"all: 1 of 2 survived, in the baseline 4 of 24"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (&report{Packages: tc.now}).compare(old); !cmp.Equal(got, tc.want) {
				t.Error(cmp.Diff(tc.want, got))
			}
		})
	}
}

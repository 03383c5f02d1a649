package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// tree is what the tests look at. It is read once.
type tree struct {
	files   map[string]*ast.File // without tests, by path from the root
	fuzzing map[string][]string  // the fuzz targets, by directory from the root
}

var readTree = sync.OnceValues(func() (tree, error) {
	all := tree{files: map[string]*ast.File{}, fuzzing: map[string][]string{}}
	target := regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != "."
		switch {
		case d.IsDir() && (hidden || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !strings.HasSuffix(path, "_test.go") {
			all.files[rel], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		for _, m := range target.FindAllSubmatch(text, -1) {
			all.fuzzing[dir] = append(all.fuzzing[dir], string(m[1]))
		}
		return nil
	})
	return all, err
})

// sources returns the module's files without tests, parsed, by path from the root. Callers must
// not change them.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	all, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return all.files
}

// targets returns the tree's fuzz targets by directory.
func targets(t *testing.T) map[string][]string {
	t.Helper()
	all, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return all.fuzzing
}

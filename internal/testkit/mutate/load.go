package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// module is the Go module under test.
type module struct {
	dir      string // absolute
	path     string
	version  string // of the language, such as go1.26
	packages map[string]*listed
	export   map[string]string // files of compiled packages, by import path
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles, Imports, Deps        []string
	TestImports, XTestImports     []string
	TestGoFiles, XTestGoFiles     []string
	Standard                      bool
	Module                        *struct {
		Path, Dir, GoVersion string
		Main                 bool
	}
}

// loadModule lists all packages of the module in dir, and compiles what they import.
func loadModule(ctx context.Context, dir string) (*module, error) {
	out, err := goCommand(ctx, dir, "list", "-deps", "-export", "-json="+
		"ImportPath,Name,Dir,Export,GoFiles,Imports,Deps,TestImports,XTestImports,TestGoFiles,XTestGoFiles,Standard,Module",
		"./...", "os", "strconv", "sync/atomic")
	if err != nil {
		return nil, err
	}
	m := &module{packages: map[string]*listed{}, export: map[string]string{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("mutate: read the output of go list: %w", err)
		}
		m.export[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			m.packages[p.ImportPath] = p
			m.dir, m.path, m.version = p.Module.Dir, p.Module.Path, "go"+p.Module.GoVersion
		}
	}
	if len(m.packages) == 0 {
		return nil, fmt.Errorf("mutate: %s has no packages", dir)
	}
	return m, nil
}

// goCommand runs the go command and returns its standard output.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mutate: go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

// name returns a package's path from the module's root, "." for the root itself.
func (m *module) name(importPath string) string {
	if importPath == m.path {
		return "."
	}
	return strings.TrimPrefix(importPath, m.path+"/")
}

// product returns the import paths of the packages that users of the module get: the public
// ones and the programs, and all that these import. Examples and kits for tests, whose names
// end in "test", are no product.
func (m *module) product() []string {
	paths := map[string]bool{}
	for path, p := range m.packages {
		name := m.name(path)
		internal := strings.Contains("/"+name+"/", "/internal/")
		if internal || strings.HasPrefix(name, "examples/") || strings.HasSuffix(name, "test") {
			continue
		}
		paths[path] = true
		for _, dep := range p.Deps {
			if m.packages[dep] != nil {
				paths[dep] = true
			}
		}
	}
	list := make([]string, 0, len(paths))
	for path := range paths {
		list = append(list, path)
	}
	slices.Sort(list)
	return list
}

// testers returns the packages with tests that link one of the targets.
func (m *module) testers(targets []string) []string {
	var list []string
	for path, p := range m.packages {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && slices.ContainsFunc(targets, m.linked(p)) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// linked returns a function that reports whether a package is in the test binary of p.
func (m *module) linked(p *listed) func(string) bool {
	in := map[string]bool{p.ImportPath: true}
	for _, imported := range slices.Concat(p.Deps, p.TestImports, p.XTestImports) {
		in[imported] = true
		if dep := m.packages[imported]; dep != nil {
			for _, path := range dep.Deps {
				in[path] = true
			}
		}
	}
	return func(path string) bool { return in[path] }
}

// source is a parsed and checked package.
type source struct {
	*listed
	name  string // from the module's root
	files []*file
	info  *types.Info
	fset  *token.FileSet
}

// file is one file of a package.
type file struct {
	path   string // absolute
	text   string
	syntax *ast.File
	base   int // position of the file's first byte
	blocks []block
}

// offset returns a position's offset in the file.
func (f *file) offset(p token.Pos) int { return int(p) - f.base }

// raw returns the text of a node.
func (f *file) raw(n ast.Node) string { return f.text[f.offset(n.Pos()):f.offset(n.End())] }

// checker parses and checks packages against the compiled packages that they import.
type checker struct {
	*module
	fset     *token.FileSet
	compiled types.Importer
	runtime  *types.Package // of the package mutant
}

func newChecker(m *module) (*checker, error) {
	c := &checker{module: m, fset: token.NewFileSet()}
	c.compiled = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(m.export[path])
	})
	f, err := parser.ParseFile(c.fset, "mutant.go", runtimeSource, 0)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: c.compiled}
	c.runtime, err = config.Check(m.runtimePath(), c.fset, []*ast.File{f}, nil)
	return c, err
}

// Import is that of types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if path == c.runtimePath() {
		return c.runtime, nil
	}
	return c.compiled.Import(path)
}

// load parses and checks a package.
func (c *checker) load(importPath string) (*source, error) {
	p := &source{listed: c.packages[importPath], name: c.name(importPath), fset: c.fset}
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(path) //nolint:gosec // a file of the module
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(c.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		f := &file{path: path, text: string(text), syntax: syntax, base: c.fset.File(syntax.Pos()).Base()}
		p.files = append(p.files, f)
	}
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	return p, c.check(p, p.info, nil)
}

// check checks a package, with other texts for some of its files.
func (c *checker) check(p *source, info *types.Info, texts map[*file]string) error {
	files := make([]*ast.File, len(p.files))
	fset := c.fset
	for i, f := range p.files {
		files[i] = f.syntax
		if text, changed := texts[f]; changed {
			var err error
			if files[i], err = parser.ParseFile(fset, f.path, text, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
	}
	config := types.Config{Importer: c, GoVersion: c.version, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	_, err := config.Check(p.ImportPath, fset, files, info)
	return err
}

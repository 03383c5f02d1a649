package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// block is a run of statements of which all are reached if the first one is, unless one of
// them panics.
type block struct {
	index      int // in the package
	start      token.Pos
	statements int
	spans      []span // of its statements
}

type span struct{ start, end token.Pos }

// findBlocks divides the files of a package into blocks. It returns how many there are.
func findBlocks(p *source) int {
	count := 0
	for _, f := range p.files {
		f.blocks = nil
		if ast.IsGenerated(f.syntax) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			begin := true
			for _, s := range statements(n) {
				if _, empty := s.(*ast.EmptyStmt); empty {
					continue
				}
				if begin {
					f.blocks = append(f.blocks, block{index: count, start: s.Pos()})
					count++
				}
				b := &f.blocks[len(f.blocks)-1]
				b.statements++
				b.spans = append(b.spans, span{s.Pos(), s.End()})
				begin = !isSimple(s)
			}
			return true
		})
	}
	return count
}

// isSimple reports whether what follows a statement in its list runs whenever it runs.
func isSimple(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.AssignStmt, *ast.ExprStmt, *ast.IncDecStmt, *ast.DeclStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	}
	return false
}

// blockAt returns the innermost block of a position, or -1 outside of functions.
func (f *file) blockAt(pos token.Pos) int {
	best, size := -1, token.Pos(0)
	for _, b := range f.blocks {
		for _, s := range b.spans {
			if s.start <= pos && pos < s.end && (best < 0 || s.end-s.start < size) {
				best, size = b.index, s.end-s.start
			}
		}
	}
	return best
}

// measured returns the files of a package with a call at the start of each block.
func measured(m *module, p *source, blocks int) map[string]string {
	texts := map[string]string{}
	for _, f := range p.files {
		if len(f.blocks) == 0 {
			continue
		}
		wraps := []wrap{importRuntime(m, f)}
		for _, b := range f.blocks {
			at := f.offset(b.start)
			i := strconv.Itoa(b.index)
			call := "pawlmutant.Hit(&pawlmutantHits[" + i + "], " + strconv.Quote(p.ImportPath) + ", " + i + "); "
			wraps = append(wraps, wrap{at, at, call, "", levelEntry})
		}
		texts[f.path] = rewrite(f.text, wraps, nil)
	}
	texts[filepath.Join(p.Dir, "zz_pawlmutant.go")] = fmt.Sprintf(
		"package %s\n\nimport \"sync/atomic\"\n\nvar pawlmutantHits [%d]atomic.Bool\n", p.Name, blocks)
	return texts
}

// importRuntime adds the import of the package mutant to a file, on the line of the package
// clause, so that lines keep their numbers.
func importRuntime(m *module, f *file) wrap {
	at := f.offset(f.syntax.Name.End())
	return wrap{at, at, "; import pawlmutant " + strconv.Quote(m.runtimePath()), "", levelEntry}
}

// reach says which blocks each test binary reaches, by the import path of the blocks.
type reach map[string]map[string]map[int]bool

// covers returns the packages whose tests reach a block.
func (r reach) covers(importPath string, index int) []string {
	var list []string
	for tester, packages := range r {
		if packages[importPath][index] {
			list = append(list, tester)
		}
	}
	slices.Sort(list)
	return list
}

// measure builds the tests of the testers with counted blocks and runs them. It keeps what a
// binary reached in the cache, and does not run the same binary again.
func (r *runner) measure(ctx context.Context, testers []string, texts map[string]string) (reach, error) {
	binaries, err := r.build(ctx, "cover", testers, texts)
	if err != nil {
		return nil, err
	}
	reached := reach{}
	err = r.each(ctx, binaries, func(ctx context.Context, b *binary) error {
		hits, failed, err := r.hits(ctx, b)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		reached[b.pkg] = hits
		if failed != "" {
			r.logf("the tests of %s fail while blocks are counted: %s", r.module.name(b.pkg), failed)
		}
		return nil
	})
	return reached, err
}

// hits returns the blocks that a binary reaches, and the test that failed, if one did.
func (r *runner) hits(ctx context.Context, b *binary) (map[string]map[int]bool, string, error) {
	key, err := r.cacheKey(b)
	if err != nil {
		return nil, "", err
	}
	kept := filepath.Join(r.cache, key)
	if data, err := os.ReadFile(kept); err == nil && !r.fresh { //nolint:gosec // a file of our cache
		hits, err := readHits(data)
		return hits, "", err
	}
	path := filepath.Join(r.scratch, "hits-"+key[:16])
	res := r.execute(ctx, b, []string{"PAWL_MUTANT_HITS=" + path}, 10*time.Minute, false)
	if res.err != nil {
		return nil, "", res.err
	}
	data, err := os.ReadFile(path) //nolint:gosec // our own file
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	hits, err := readHits(data)
	if err == nil && res.isComplete() {
		err = os.WriteFile(kept, data, 0o600)
	}
	return hits, res.failedTest(), err
}

func readHits(data []byte) (map[string]map[int]bool, error) {
	hits := map[string]map[int]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		pkg, index, _ := strings.Cut(lines.Text(), " ")
		i, err := strconv.Atoi(index)
		if err != nil {
			return nil, fmt.Errorf("mutate: read the reached blocks: line %q", lines.Text())
		}
		if hits[pkg] == nil {
			hits[pkg] = map[int]bool{}
		}
		hits[pkg][i] = true
	}
	return hits, lines.Err()
}

// cacheKey is made of a binary and of the files in testdata that it may read.
func (r *runner) cacheKey(b *binary) (string, error) {
	h := sha256.New()
	h.Write([]byte(r.skip))
	f, err := os.Open(b.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	err = filepath.WalkDir(filepath.Join(b.dir, "testdata"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			_, err = fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

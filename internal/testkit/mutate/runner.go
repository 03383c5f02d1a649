package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// runtimeSource is the package that mutated code calls. It is compiled into the module under
// test, at the same path.
//
//go:embed mutant/mutant.go
var runtimeSource string

const runtimeDir = "internal/testkit/mutate/mutant"

func (m *module) runtimePath() string { return m.path + "/" + runtimeDir }

// runner builds test binaries and runs them.
type runner struct {
	module  *module
	scratch string // directory of this run
	cache   string // directory of what binaries reach, kept between runs
	fresh   bool   // the cache is not read
	atOnce  int
	skip    string // expression for tests that do not run
	env     []string
	log     io.Writer

	mu   sync.Mutex
	runs int
}

// newRunner returns a runner with directories of its own. The caller calls close.
func newRunner(ctx context.Context, m *module, o *options, log io.Writer) (*runner, error) {
	r := &runner{module: m, atOnce: o.atOnce, fresh: o.fresh, skip: o.skip, log: log}
	out, err := goCommand(ctx, m.dir, "env", "GOCACHE", "GOROOT")
	if err != nil {
		return nil, err
	}
	vars := strings.Split(string(out), "\n")
	r.cache = filepath.Join(vars[0], "pawl-mutate")
	if err := os.MkdirAll(r.cache, 0o750); err != nil {
		return nil, err
	}
	dropOld(r.cache)
	if r.scratch, err = os.MkdirTemp("", "mutate"); err != nil {
		return nil, err
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PAWL_MUTANT") && !strings.HasPrefix(v, "PATH=") && !strings.HasPrefix(v, "PAWL_TESTS=") {
			r.env = append(r.env, v)
		}
	}
	// go test puts the go command first, too.
	tools := filepath.Join(vars[1], "bin") + string(filepath.ListSeparator)
	r.env = append(r.env, "PATH="+tools+os.Getenv("PATH"))
	return r, nil
}

func (r *runner) close() error { return os.RemoveAll(r.scratch) }

func (r *runner) logf(format string, args ...any) {
	fmt.Fprintf(r.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// dropOld removes what the cache did not need for two weeks.
func dropOld(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 14*24*time.Hour {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it is tried again the next time
		}
	}
}

// binary is a compiled test.
type binary struct {
	pkg      string // import path of the tested package
	path     string
	dir      string        // where it runs
	duration time.Duration // without an active mutation
	skip     []string      // tests that do not run
	flags    []string      // of the tests' own libraries
}

// skipped returns the expression for the tests of a binary that do not run.
func (b *binary) skipped(everywhere string) string {
	if len(b.skip) == 0 {
		return everywhere
	}
	own := "^(" + strings.Join(b.skip, "|") + ")$"
	if everywhere == "" {
		return own
	}
	return everywhere + "|" + own
}

// build compiles the tests of packages, with other texts for some files of the module.
func (r *runner) build(ctx context.Context, name string, packages []string, texts map[string]string) ([]*binary, error) {
	dir := filepath.Join(r.scratch, name)
	overlay, err := r.writeOverlay(dir, texts)
	if err != nil {
		return nil, err
	}
	var binaries []*binary
	for i, group := range distinct(packages) {
		out := filepath.Join(dir, strconv.Itoa(i))
		if err := os.MkdirAll(out, 0o750); err != nil {
			return nil, err
		}
		args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", out + "/"}
		if _, err := goCommand(ctx, r.module.dir, append(args, group...)...); err != nil {
			return nil, err
		}
		for _, p := range group {
			binaries = append(binaries, &binary{
				pkg: p, path: filepath.Join(out, path.Base(p)+".test"), dir: r.module.packages[p].Dir,
				flags: libraryFlags(r.module.packages[p]),
			})
		}
	}
	return binaries, nil
}

// libraryFlags keeps a library of a package's tests from writing into the working tree:
// rapid writes a file for each failure.
func libraryFlags(p *listed) []string {
	const rapid = "pgregory.net/rapid"
	if slices.Contains(p.TestImports, rapid) || slices.Contains(p.XTestImports, rapid) {
		return []string{"-rapid.nofailfile"}
	}
	return nil
}

// writeOverlay writes the texts and the package mutant, and the file that go build takes.
func (r *runner) writeOverlay(dir string, texts map[string]string) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	write := func(target, text string) error {
		file := filepath.Join(dir, strconv.Itoa(len(overlay.Replace))+".go")
		overlay.Replace[target] = file
		return os.WriteFile(file, []byte(text), 0o600)
	}
	err := write(filepath.Join(r.module.dir, filepath.FromSlash(runtimeDir), "mutant.go"), runtimeSource)
	for target, text := range texts {
		err = errors.Join(err, write(target, text))
	}
	list, encodeErr := json.Marshal(overlay)
	file := filepath.Join(dir, "overlay.json")
	return file, errors.Join(err, encodeErr, os.WriteFile(file, list, 0o600))
}

// distinct divides packages into groups in which no two binaries have the same name.
func distinct(packages []string) [][]string {
	var groups [][]string
	count := map[string]int{}
	for _, p := range packages {
		i := count[path.Base(p)]
		count[path.Base(p)]++
		if i == len(groups) {
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// each calls a function for binaries, as many at once as the runner may. It stops at the
// first error.
func (r *runner) each(ctx context.Context, binaries []*binary, do func(context.Context, *binary) error) error {
	return inParallel(ctx, r.atOnce, binaries, do)
}

// inParallel calls a function for the elements of a list, so many at once.
func inParallel[T any](ctx context.Context, atOnce int, list []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan T)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for element := range work {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx, element); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, element := range list {
		work <- element
	}
	close(work)
	workers.Wait()
	return context.Cause(ctx)
}

// outcome is what became of one run of a test binary.
type outcome struct {
	failed   bool
	timedOut bool
	duration time.Duration
	output   string
	err      error // the run could not be made
}

// Limits of a test process, so that a mutation cannot take the whole machine.
const (
	memoryLimit = 8 << 20 // KiB of address space
	fileLimit   = 4 << 20 // blocks of 512 bytes in one file
)

// execute runs a test binary in its package's directory, with a directory of its own for
// temporary files.
func (r *runner) execute(ctx context.Context, b *binary, env []string, limit time.Duration, failFast bool) outcome {
	r.mu.Lock()
	r.runs++
	tmp := filepath.Join(r.scratch, "t"+strconv.Itoa(r.runs))
	r.mu.Unlock()
	if err := os.MkdirAll(tmp, 0o750); err != nil {
		return outcome{err: err}
	}
	defer func() { _ = os.RemoveAll(tmp) }() // the whole scratch directory goes at the end

	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := append([]string{"-test.short", "-test.paniconexit0"}, b.flags...)
	if failFast {
		args = append(args, "-test.failfast")
	}
	if skip := b.skipped(r.skip); skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	cmd := limitedCommand(limited, b.path, args)
	cmd.Dir = b.dir
	cmd.Env = slices.Concat(r.env, []string{"TMPDIR=" + tmp, "PWD=" + b.dir}, env)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	start := time.Now()
	err := cmd.Run()
	endGroup(cmd)
	res := outcome{duration: time.Since(start), output: out.String(), failed: err != nil}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		res.err = context.Cause(ctx)
	case limited.Err() != nil:
		res.timedOut = true
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		res.err = err
	}
	return res
}

// tail keeps the start and the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	head bytes.Buffer
	last []byte
}

const tailSize = 32 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if room := tailSize - t.head.Len(); room > 0 {
		t.head.Write(p[:min(room, n)])
		p = p[min(room, n):]
	}
	t.last = append(t.last, p...)
	if len(t.last) > 2*tailSize {
		t.last = append(t.last[:0], t.last[len(t.last)-tailSize:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.String() + string(t.last)
}

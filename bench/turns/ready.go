package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

var (
	fileSize = metric{"stripped size", "MB", func(r load.Result) float64 { return float64(r.Size) / 1e6 }, false}
	modules  = metric{"modules", "", func(r load.Result) float64 { return float64(r.Modules) }, false}
	ready    = metric{"spawn to ready", "ms", func(r load.Result) float64 { return us(r.Wall) / 1000 }, false}
	readyCPU = metric{"CPU to ready", "ms", func(r load.Result) float64 { return us(r.CPU) / 1000 }, false}
)

// readyRows are W5: what a program is that can run an agent, and how long it takes until it can. A spawn is short, so there are more pairs of them.
func readyRows() (all []row) {
	for _, r := range []struct {
		system                string
		size, modules, millis float64
	}{{"ready-floor", 0, 0, 0}, {"ready-agent", 7, 4, 4}, {"ready-root", 0, 0, 0}} {
		all = append(all, row{
			title: "W5", workload: "W5", system: r.system, base: "ready-hello", measure: spawn, more: 4,
			wants: []want{{fileSize, r.size}, {modules, r.modules}, {ready, r.millis}, {readyCPU, 0}},
		})
	}
	return all
}

// spawn runs a program of bench/ready, which ends once it is ready.
func spawn(ctx context.Context, b *bench, system string) (r load.Result, err error) {
	dir, err := b.build(ctx)
	if err != nil {
		return r, err
	}
	file := filepath.Join(dir, system[len("ready-"):])
	stat, err := os.Stat(file)
	if err != nil {
		return r, err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, file) //nolint:gosec // it was built here
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	r = load.Result{System: system, Workload: "W5", Wall: time.Since(begun), Size: stat.Size(), Modules: len(info.Deps)}
	if err != nil || len(out) > 0 {
		return r, fmt.Errorf("%s: %q: %w", system, out, errors.Join(errors.New("it was not ready"), err))
	}
	r.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}

// build builds the programs of bench/ready as one would for use, once, and says where they are. It takes the go command, and the sources that this program was made of.
func (b *bench) build(ctx context.Context) (string, error) {
	if b.programs != "" {
		return b.programs, nil
	}
	dir, err := os.MkdirTemp("", "pawl-ready-")
	if err != nil {
		return "", err
	}
	b.programs = dir
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, "./ready/...") //nolint:gosec // dir is ours
	cmd.Dir = filepath.Dir(filepath.Dir(file))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build bench/ready: %w: %s", err, out)
	}
	return dir, nil
}

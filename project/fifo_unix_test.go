//go:build unix

package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAPipeIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/rules/1-a.md", "a")
	pipe := func(name string) string {
		path := filepath.Join(w.root, name)
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Skipf("no pipes here: %v", err)
		}
		return path
	}
	pipe("AGENTS.md")
	pipe(".agents/rules/2-b.md")
	path := pipe(".agents/settings.json")
	if _, err := w.try(); err == nil || !strings.Contains(err.Error(), ".agents/settings.json: it is no ordinary file") {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p := w.load()
	wantProblem(t, p, "AGENTS.md: it is no ordinary file")
	wantProblem(t, p, ".agents/rules/2-b.md: it is no ordinary file")
	if p.Rules != "a" {
		t.Errorf("%q", p.Rules)
	}
}

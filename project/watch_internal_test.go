package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

func TestAChangeBeforeItsDirectoryIsWatchedIsSeen(t *testing.T) {
	dir := t.TempDir()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skipf("nothing can be watched here: %v", err)
	}
	defer func() { _ = watcher.Close() }()
	reads, trust := 0, filepath.Join(t.TempDir(), "trust.json")
	w := &watch{watcher: watcher, load: func() (*Project, *trace, error) {
		p, tr, err := load(t.Context(), dir, []Option{WithHome(""), WithTrustFile(trust)})
		if reads++; reads == 1 { // after it was read, and before it is watched
			if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("late"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return p, tr, err
	}}
	if p, _, err := w.read(); err != nil || p.Memory != "late" {
		t.Errorf("%v %v", p, err)
	}
}

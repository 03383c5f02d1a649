package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAProjectIsTheNearestDirectoryWithASignAndTheHomeDirectoryIsNoneForWhatIsBelow(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, dir := range []string{".agents", "scratch/deep", "work/.agents", "work/sub/.git", "work/other/deep", "code/deep"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "code/go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for here, want := range map[string]string{
		"": "", "scratch": "scratch", "scratch/deep": "scratch/deep", "work": "work", "work/sub": "work/sub", "work/other/deep": "work", "code/deep": "code",
	} {
		t.Chdir(filepath.Join(home, here))
		if got, err := projectRoot(""); err != nil || got != filepath.Join(home, want) {
			t.Errorf("%q: %q %v, want %q", here, got, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(home, ".git"), 0o755); err != nil { // a project of its own, in which much is
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(home, "scratch"))
	if got, err := projectRoot(""); err != nil || got != home {
		t.Errorf("%q %v", got, err)
	}
}

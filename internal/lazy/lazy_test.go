package lazy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/lazy"
)

func TestAValueIsMadeOnceByWhoeverAsksFirst(t *testing.T) {
	var v lazy.Value[map[string]int]
	made := 0
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if got := v.Of(func() map[string]int { made++; return map[string]int{"a": 1} }); got["a"] != 1 {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}

func TestAPatternIsCompiledWhenItIsAskedFor(t *testing.T) {
	p := lazy.Regexp(`^a+$`)
	if re := p.Get(); !re.MatchString("aa") || re.MatchString("b") || p.Get() != re {
		t.Error(re)
	}
	wrong := lazy.Regexp(`(`)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it gave something")
				}
			}()
			wrong.Get()
		}()
	}
}

// That is what the package is for.
func TestAProgramDoesNotHaveWhatNobodyAsksFor(t *testing.T) {
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	in, out, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "program"), filepath.Join(dir, "overlay.json")
	as, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, "program", "main.go"): in}}) // in the module, so that it may import the package
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, as, 0o600); err != nil {
		t.Fatal(err)
	}
	for asks, linked := range map[string]bool{"": false, "println(table()[`a`]())": true} {
		err := os.WriteFile(in, []byte(`package main

import "github.com/pawl-dev/pawl/internal/lazy"

var made lazy.Value[map[string]func() string]

var pattern = lazy.Regexp("a")

func table() map[string]func() string {
	return made.Of(func() map[string]func() string { return map[string]func() string{"a": seldom} })
}

//go:noinline
func seldom() string { return pattern.Get().String() }

func main() { `+asks+` }
`), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o", out, "./program")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "main.seldom") != linked {
			t.Errorf("main(%s) has it: %v", asks, !linked)
		}
	}
}

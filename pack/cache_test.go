package pack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/pack"
)

func TestTheSameContentIsParsedOnce(t *testing.T) {
	var l pack.Loader
	a, b := filepath.Join(t.TempDir(), "a.json"), filepath.Join(t.TempDir(), "b.json")
	for _, path := range []string{a, b} {
		if err := os.WriteFile(path, minimal(`"system_template": "x"`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(path string) *pack.Pack {
		p, err := l.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, again, other := load(a), load(a), load(b)
	if first.Prompts["chat"] != again.Prompts["chat"] || first.Prompts["chat"] != other.Prompts["chat"] {
		t.Error("it was parsed again")
	}
	if first.File != a || other.File != b {
		t.Errorf("%s, %s: the same content is two files", first.File, other.File)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	var l pack.Loader
	parse := func(i int) *pack.Prompt {
		p, err := l.Parse(minimal(fmt.Sprintf(`"system_template": "%d"`, i)))
		if err != nil {
			t.Fatal(err)
		}
		return p.Prompts["chat"]
	}
	old, used := parse(0), parse(1)
	for i := 2; i < 200; i++ {
		parse(i)
		if parse(1) != used {
			t.Fatal("what is used goes")
		}
	}
	if parse(0) == old {
		t.Error("what nobody uses stays")
	}
}

func TestPacksAreReadAndRenderedByMany(t *testing.T) {
	var l pack.Loader
	path := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(path, minimal(`"system_template": "{{n}} {{fixed}}", "validators": [{"type": "banned_words", "fail_on_violation": true, "params": {"words": ["bad"]}}], "variables": [{"name": "fixed", "type": "array", "required": false, "default": [1]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			for range 20 {
				p, err := l.Load(path)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := p.Render("chat", vars{"n": n}); got != fmt.Sprintf("%d [1]", n) || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				if v := p.Prompts["chat"].Guards()[0].Judge(t.Context(), "so bad"); v == nil || !strings.Contains(v.Error(), "bad") {
					t.Error(v)
				}
			}
		})
	}
	wg.Wait()
}

package pack_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/pack"
)

var update = flag.Bool("update", false, "write the golden files")

// Each pack of testdata/wrong has one fault, and testdata/wrong.txt says what is reported of it: one problem, with its path, what is wrong, what would be right, and where.
func TestEachWrongPackHasItsOneProblem(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d packs, %v", len(files), err)
	}
	var got strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		problems, _ := pack.Validate(data)
		if len(problems) != 1 {
			t.Errorf("%s has %d problems: %v", name, len(problems), problems)
			continue
		}
		p := problems[0]
		if p.Path == "" || p.Reason == "" || p.Remedy == "" || p.Line < 1 || p.Column < 1 {
			t.Errorf("%s: something is missing in %+v", name, p)
		}
		if _, err := pack.Load(name); err == nil || !strings.Contains(err.Error(), p.String()) {
			t.Errorf("%s: Load says %v", name, err)
		}
		fmt.Fprintf(&got, "%s: %s\n", strings.TrimSuffix(filepath.Base(name), ".json"), p)
	}
	golden := "testdata/wrong.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error(d)
	}
}

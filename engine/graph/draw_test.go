package graph_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/engine/graph"
)

func TestADefinitionIsDrawn(t *testing.T) {
	d, err := graph.Load("testdata/review.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d.Nodes[0].ID += "\"<\n" // drawn all the same
	for name, got := range map[string]string{"review.mmd": d.Mermaid(), "review.dot": d.Dot()} {
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, string(want), got)
	}
}

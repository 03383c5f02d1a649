package serve_test

import (
	"flag"
	"os"
	"testing"

	"github.com/pawl-dev/pawl/internal/stable"
)

var update = flag.Bool("update", false, "write the list of what clients may use")

// Clients of others are made of what the document says: what it has stays in it.
func TestNothingGoesFromTheAPIUnawares(t *testing.T) {
	document, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := stable.Schema(document)
	if err != nil {
		t.Fatal(err)
	}
	stable.Check(t, "openapi.txt", lines, *update)
}

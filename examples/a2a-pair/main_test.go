package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/readme"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheWarehouseSetsAsideWhatTheShopAsksFor(t *testing.T) {
	page := readme.Open(t, "examples/a2a-pair")
	page.Run()
	files, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/stock.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if b, err := os.ReadFile(files[0]); err != nil || string(b) != "{\"ratchet\":5}\n" {
		t.Errorf("%q %v", b, err)
	}
}

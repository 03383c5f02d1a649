package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/readme"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheReportIsWritten(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", devserver.InMemory(t).Address)
	page := readme.Open(t, "examples/nightly")
	page.Run()
	files, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/report.txt"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if b, err := os.ReadFile(files[0]); err != nil || string(b) != "3 orders\n90.00 in all\n" {
		t.Errorf("%q %v", b, err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/readme"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheTableHasWhatTheInvoicesSay(t *testing.T) {
	readme.Open(t, "examples/invoices").Run()
}

// An answer that never fits is an error, and the table that is there stays.
func TestWhatNeverFitsIsNoRow(t *testing.T) {
	dir := t.TempDir()
	script, table := filepath.Join(dir, "model.yaml"), filepath.Join(dir, "invoices.csv")
	if err := os.WriteFile(script, []byte("turns:\n"+strings.Repeat("  - text: '{\"from\": \"x\"}'\n", 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := readme.Command(t, ".", "-model", "scripted/"+script, "-table", table, "inbox/kelp.txt").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "kelp.txt: ") {
		t.Errorf("%v\n%s", err, out)
	}
	if rows, err := os.ReadFile(table); err != nil || string(rows) != "kept" {
		t.Errorf("%q %v", rows, err)
	}
}

package pack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/pack"
)

// fixtures gives $PAWL_FIXTURES/promptpack: the official schema, and packs that others wrote.
func fixtures(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PAWL_FIXTURES")
	if dir == "" {
		t.Skip("no packs of others: set PAWL_FIXTURES to a directory whose promptpack/ has promptpack.schema.json and packs/*.json of AltairaLabs/promptpack-spec and PromptKit")
	}
	return filepath.Join(dir, "promptpack")
}

// packs are the files of the fixtures.
func packs(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(fixtures(t), "packs", "*.json"))
	if err != nil || len(found) < 20 {
		t.Fatalf("%d packs, %v: unset PAWL_FIXTURES, or give the absolute path of a directory that has them", len(found), err)
	}
	return found
}

func TestThePacksOfOthersLoadAndTheOneWithAWrongTypeDoesNot(t *testing.T) {
	for _, file := range packs(t) {
		p, err := pack.Load(file)
		if strings.Contains(file, "guardrail-bad-type") {
			var wrong *pack.Error
			if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || wrong.Problems[0].String() != `prompts.chat.validators[0].type: there is no validator "pii_leakge": did you mean pii_leakage? (line 19, column 11)` {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if p.File != file || len(p.Prompts) == 0 {
			t.Errorf("%s: %+v", file, p)
		}
	}
}

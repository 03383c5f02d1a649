package project

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
)

// A file of approvals is read whole or not at all: what can't be read approves nothing, and says which file it is; what is read stays when it is written.
func FuzzApprovals(f *testing.F) {
	for _, s := range []string{
		`{"version":1,"projects":{"/p":[{"hash":"h","approved":"2026-01-02T03:04:05Z","wants":[{"file":"f","layer":"project","key":"k","hash":"x","text":"t"}]}]}}`, `{"version":1}`, `{"version":2,"projects":{"/p":[{"hash":""}]}}`, `{}`, `null`, `{"version":1,"projects":{"/p":[{"hash":"h"}`, `{"version":1,"pins":{"/p":[{"key":5}]}}`, `{"version":1,"projects":null} {}`, "",
	} {
		f.Add([]byte(s))
	}
	store := trustStore{path: filepath.Join(f.TempDir(), "trust.json"), root: "/nowhere"}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(store.path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := store.read()
		if err != nil {
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), store.path) {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		if a.Version != 1 || a.Projects == nil || a.Pins == nil || a.Guards == nil {
			t.Fatalf("%q: %+v", b, a)
		}
		again, err := json.Marshal(a)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if err := os.WriteFile(store.path, again, 0o600); err != nil {
			t.Fatal(err)
		}
		same, err := store.read()
		if err != nil {
			t.Fatalf("%q: %v", again, err)
		}
		if once, err := json.Marshal(same); err != nil || !cmp.Equal(once, again) {
			t.Fatalf("%q: %s, then %s, %v", b, again, once, err)
		}
	})
}

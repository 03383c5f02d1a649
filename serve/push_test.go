package serve_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/serve"
)

func TestPushesAreKeptInFiles(t *testing.T) {
	s := serve.PushFiles(filepath.Join(t.TempDir(), "a", "b"))
	if all, err := s.All(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
	want := serve.Push{Task: "t/../x", ID: "1", URL: "https://client.example", Token: "tok", Scheme: "Bearer", Credentials: "cred", Version: "1.0", Told: "told"}
	for _, p := range []serve.Push{{Task: want.Task, ID: "1"}, want, {Task: "u", ID: "1"}} {
		if err := s.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // twice is no error
		if err := s.Delete(t.Context(), "u", "1"); err != nil {
			t.Error(err)
		}
	}
	if all, err := s.All(t.Context()); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%+v %v", all, err)
	}
	dir := t.TempDir()
	s = serve.PushFiles(dir)
	if err := s.Put(t.Context(), serve.Push{Task: "t", ID: "1", Token: "secret"}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.All(t.Context()); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "x.json") {
		t.Error(err)
	}
}

// What a program of somebody's implements or reads is documented where it imports it: no alias of what it can't see.
func TestPublicTypesAreNoAliases(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[serve.Agent](), reflect.TypeFor[serve.PushStore](), reflect.TypeFor[serve.Push]()} {
		if of.PkgPath() != "github.com/pawl-dev/pawl/serve" {
			t.Errorf("%v is of %s", of, of.PkgPath())
		}
	}
}

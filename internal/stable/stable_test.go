package stable

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told counts what a test would have been told.
type told struct {
	testing.TB
	errors int
}

func (*told) Helper()                 {}
func (r *told) Errorf(string, ...any) { r.errors++ }

func TestWhatIsGoneAndWhatIsNewIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("testdata", "stable"), 0o700); err != nil {
		t.Fatal(err)
	}
	Check(t, "flags.txt", []string{"b", "a", "b"}, true)
	for want, lines := range map[int][][]string{0: {{"a", "b"}, {"b", "a"}}, 1: {{"a"}, {"a", "b", "c"}, {"a", "B"}}} {
		for _, have := range lines {
			r := &told{TB: t}
			if Check(r, "flags.txt", have, false); r.errors != want {
				t.Errorf("%v: %d errors", have, r.errors)
			}
		}
	}
}

func TestASchemaIsWhatItPromisesWithoutItsWords(t *testing.T) {
	got, err := Schema([]byte(`{"title": "T", "paths": {"/x": {"get": {"summary": "s", "parameters": [{"name": "q", "in": "query", "description": "d"}], "responses": {"204": {"description": "d"}}}}},
		"properties": {"title": {"type": "string", "title": "words"}, "n": {"type": ["integer", "null"], "enum": [1, null]}, "any": {}}, "required": ["n"], "anyOf": [{"type": "a"}, {"type": "b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		`anyOf[].type: "a"`, `anyOf[].type: "b"`, `paths./x.get.parameters[q].in: "query"`, `paths./x.get.parameters[q].name: "q"`, `properties.any`, `properties.n.enum: 1`, `properties.n.enum: null`, `properties.n.type: "integer"`,
		`properties.n.type: "null"`, `properties.title.type: "string"`, `required: "n"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Package stable keeps lists of what programs of others use besides the Go API: flags, fields of JSON, routes, keys of settings. A list is a file in testdata/stable, one thing a line. A test compares it with what is there, so that nobody takes
// something away, or adds it, unawares; scripts/apidiff compares it with that of the last release, of which no line may go.
package stable

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares testdata/stable/NAME with these lines, in any order, or writes it.
func Check(t testing.TB, name string, lines []string, update bool) {
	t.Helper()
	lines = slices.Compact(slices.Sorted(slices.Values(lines)))
	path := filepath.Join("testdata", "stable", name)
	if update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path) //nolint:gosec // of the package that is tested
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(strings.TrimSpace(string(b)), "\n"), lines); d != "" {
		t.Errorf("%s is not what is there. What is new is put down with go test -update; what is gone breaks programs (docs/compatibility.md): -kept +there\n%s", path, d)
	}
}

// words are members of schemas that say something to people, and nothing to programs.
var words = []string{"description", "summary", "example", "examples", "title", "$comment", "tags"}

// Schema lists what a JSON Schema or an OpenAPI document promises: each value with the way to it, such as properties.model.type: "string". Of a list each value is a line, whatever its place.
func Schema(document []byte) ([]string, error) {
	var tree any
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	var lines []string
	var walk func(at string, v any, named bool)
	walk = func(at string, v any, named bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, below := range v {
				if !named && slices.Contains(words, name) {
					continue
				}
				walk(at+"."+name, below, name == "properties" || name == "$defs" || name == "schemas" || name == "paths")
			}
			if len(v) == 0 {
				lines = append(lines, strings.TrimPrefix(at, "."))
			}
		case []any:
			for _, below := range v {
				if _, deep := below.(map[string]any); deep {
					if p, _ := below.(map[string]any)["name"].(string); p != "" { // a parameter
						walk(at+"["+p+"]", below, false)
						continue
					}
					walk(at+"[]", below, false)
					continue
				}
				walk(at, below, false)
			}
		default:
			text, _ := json.Marshal(v) // a string, a number, true, false or null, as it was read
			lines = append(lines, strings.TrimPrefix(at, ".")+": "+string(text))
		}
	}
	walk("", tree, false)
	return lines, nil
}

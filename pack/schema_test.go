package pack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-dev/pawl/pack"
)

func compile(t testing.TB, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value decodes JSON as the validator takes it.
func value(t testing.TB, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// replacements are values to put in the place of others: each type, and the edges of every limit.
var replacements = func() (out []any) {
	for _, text := range []string{
		`null`, `true`, `false`, `""`, `"x"`, `"Upper Case"`, `"1.0.0"`, `"v1.2"`, `"image"`, `"a/b"`, `"auto"`, `"text"`, `"replace"`, `"gauge"`, `"user"`, `"object"`, `"en"`, `0`, `1`, `-1`, `0.5`, `1.0`, `2`, `2.5`, `-2`, `-2.5`, `100`, `101`,
		`[]`, `[1]`, `["x"]`, `["loops"]`, `{}`, `{"type": "x"}`, `{"path": "x"}`, `{"name": "x", "description": "y", "instructions": "z"}`, `{"max_size_mb": 1}`, `{"validation_params": {}}`,
		`{"type": "object", "properties": {}}`, `{"prompt_task": "x"}`, `{"enabled": true}`,
	} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			panic(err)
		}
		out = append(out, v)
	}
	return out
}()

// copied is a value of its own.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = copied(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copied(e)
		}
		return out
	}
	return v
}

// spots are all places of a value: each can set or remove what is there in a copy.
func spots(v any, at []any, visit func(at []any)) {
	visit(at)
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			spots(v[name], append(slices.Clip(at), name), visit)
		}
	case []any:
		for i := range v {
			spots(v[i], append(slices.Clip(at), i), visit)
		}
	}
}

// changed is a copy of v with f applied to what holds the place, and its key there.
func changed(v any, at []any, f func(holder, key any)) any {
	root := map[string]any{"": copied(v)}
	var holder, key any = root, ""
	for _, step := range at {
		switch h := holder.(type) {
		case map[string]any:
			holder = h[key.(string)]
		case []any:
			holder = h[key.(int)]
		}
		key = step
	}
	f(holder, key)
	return root[""]
}

func put(new any) func(holder, key any) {
	return func(holder, key any) {
		switch h := holder.(type) {
		case map[string]any:
			h[key.(string)] = new
		case []any:
			h[key.(int)] = new
		}
	}
}

// some are n of the replacements.
func some(random *rand.Rand, n int) (out []any) {
	for _, i := range random.Perm(len(replacements))[:n] {
		out = append(out, replacements[i])
	}
	return out
}

// Our schema says the same as the official one: on every pack there is, and on each with one place of it removed, retyped, or with one field more; and on some with several.
func TestOurSchemaAndTheOfficialOneAgree(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixtures(t), "promptpack.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	official, ours := compile(t, text), compile(t, pack.Schema())
	compared, valid := 0, 0
	check := func(v any, what string) {
		compared++
		a, b := official.Validate(v), ours.Validate(v)
		if a == nil {
			valid++
		}
		if (a == nil) != (b == nil) {
			short, _ := json.Marshal(v)
			t.Errorf("%s: official %v, ours %v\n%.2000s", what, a, b, short)
		}
	}
	var names []string // of all fields, wherever they belong
	spots(value(t, file(t, "full.pack.json")), nil, func(at []any) {
		if len(at) == 0 {
			return
		}
		if name, ok := at[len(at)-1].(string); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	sources := append(packs(t), "testdata/full.pack.json")
	wrong, err := filepath.Glob("testdata/wrong/*.json")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range append(slices.Clone(sources), wrong...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			continue
		}
		doc := value(t, data)
		check(doc, name)
		if !slices.Contains(sources, name) {
			continue
		}
		var all [][]any
		spots(doc, nil, func(at []any) { all = append(all, at) })
		for _, at := range all {
			if t.Failed() {
				return
			}
			what := fmt.Sprintf("%s at %v", name, at)
			check(changed(doc, at, func(holder, key any) {
				if m, ok := holder.(map[string]any); ok && len(at) > 0 {
					delete(m, key.(string))
				}
			}), what+" removed")
			n := 2
			if name == "testdata/full.pack.json" && !testing.Short() {
				n = 5
			}
			for _, v := range some(random, n) {
				check(changed(doc, at, put(v)), fmt.Sprintf("%s = %v", what, v))
			}
			{ // a field more, known elsewhere or nowhere
				field := append(names, "extra", "compositions", "state")[random.IntN(len(names)+3)]
				v := replacements[random.IntN(len(replacements))]
				check(changed(doc, at, func(holder, key any) {
					below := holder
					switch h := holder.(type) {
					case map[string]any:
						below = h[key.(string)]
					case []any:
						below = h[key.(int)]
					}
					if m, ok := below.(map[string]any); ok {
						m[field] = v
					}
				}), fmt.Sprintf("%s with %s = %v", what, field, v))
			}
		}
	}
	t.Logf("%d packs compared, %d of them valid", compared, valid)
	if compared < 2_500 || valid < compared/20 || valid > compared*19/20 {
		t.Errorf("%d packs, %d of them valid: the mutations don't try much", compared, valid)
	}
}

// What the schema refuses Load refuses, and what it takes Load refuses only for what a schema can't say.
func TestLoadIsAsStrictAsTheSchema(t *testing.T) {
	ours := compile(t, pack.Schema())
	doc := value(t, file(t, "full.pack.json"))
	random := rand.New(rand.NewPCG(3, 4))
	spots(doc, nil, func(at []any) {
		for _, v := range some(random, 2) {
			mutant := changed(doc, at, put(v))
			data, err := json.Marshal(mutant)
			if err != nil {
				t.Fatal(err)
			}
			problems, _ := pack.Validate(data)
			if ours.Validate(mutant) != nil && len(problems) == 0 {
				t.Errorf("%v = %v is taken, and the schema refuses it", at, v)
			}
			for _, p := range problems {
				if p.Path == "" || p.Reason == "" || p.Line == 0 {
					t.Errorf("%v = %v: %+v", at, v, p)
				}
			}
		}
	})
}

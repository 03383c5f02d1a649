package pack

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/pawl-dev/pawl/internal/schema"
)

//go:embed promptpack.schema.json
var schemaText []byte

// Schema is the JSON Schema of PromptPack 1.4, for editors and checkers. What a schema can't say (that names lead somewhere, that defaults fit) is checked by [Load] alone.
func Schema() []byte { return slices.Clone(schemaText) }

// compiled is the schema, to check by and to look into.
var compiled = sync.OnceValues(func() (*schema.Schema, any) {
	s, err := schema.Compile(schemaText)
	if err != nil {
		panic(err) // a test holds it
	}
	var doc any
	if err := json.Unmarshal(schemaText, &doc); err != nil {
		panic(err)
	}
	return s, doc
})

// checkSchema reports what the schema refuses.
func (r *report) checkSchema() {
	doc, err := schema.Parse(r.source.data)
	if err != nil {
		r.problem(nil, err.Error(), "correct it")
		return
	}
	r.newer(doc)
	s, text := compiled()
	faults, err := s.Check(doc, true)
	if err != nil {
		r.problem(nil, err.Error(), "correct it")
		return
	}
	for _, f := range faults {
		r.refused(f, text)
	}
}

// newer takes out what later versions of the format have and this one knows of: it warns, and nothing else that is unknown does.
func (r *report) newer(doc any) {
	root, _ := doc.(map[string]any)
	if _, ok := root["compositions"]; ok {
		delete(root, "compositions")
		r.warn(path{"compositions"}, "it is of a later version of the format, and has no effect", "")
	}
	agents, _ := root["agents"].(map[string]any)
	members, _ := agents["members"].(map[string]any)
	for name, m := range members {
		if member, ok := m.(map[string]any); ok {
			if _, ok := member["state"]; ok {
				delete(member, "state")
				r.warn(path{"agents", "members", name, "state"}, "it is of a later version of the format, and has no effect", "")
			}
		}
	}
}

// refused says of a fault what is wrong and what would be right.
func (r *report) refused(f schema.Fault, doc any) {
	if r.full() {
		return
	}
	at := r.path(f.At)
	rule := lookup(doc, f.In)
	switch k := f.Kind.(type) {
	case *kind.AdditionalProperties:
		known, unknown := properties(rule), map[string]bool{}
		for _, name := range k.Properties {
			unknown[name] = true
		}
		for _, c := range r.find(at).children { // in the order of the file
			if unknown[c.name] && !r.full() {
				r.at(c.at, at.to(c.name).String(), "there is no such field", meant(c.name, known, "remove it"))
			}
		}
	case *kind.Required:
		for _, name := range k.Missing {
			r.problem(at.to(name), "it is missing", "add it"+example(doc, lookup(rule, []string{"properties", name})))
		}
	case *kind.Type:
		r.problem(at, fmt.Sprintf("it is %s", article(k.Got)), "write "+article(k.Want...)+example(doc, rule))
	case *kind.Enum:
		var want []string
		for _, w := range k.Want {
			want = append(want, fmt.Sprint(w))
		}
		r.problem(at, fmt.Sprintf("%q is none of %s", clip(fmt.Sprint(k.Got)), strings.Join(want, ", ")), meant(fmt.Sprint(k.Got), want, "write one of them"))
	case *kind.Pattern:
		form := "match " + k.Want
		if len(k.Want) > 60 {
			form = "have the form that is wanted"
		}
		r.problem(at, fmt.Sprintf("%q does not %s", clip(k.Got), form), "write it"+example(doc, rule))
	case *kind.MinLength:
		r.problem(at, "it is empty", "write something"+example(doc, rule))
	case *kind.MaxLength:
		r.problem(at, fmt.Sprintf("it has %d characters", k.Got), fmt.Sprintf("have at most %d", k.Want))
	case *kind.MinProperties, *kind.MinItems:
		r.problem(at, "there is nothing in it", "have at least one")
	case *kind.Minimum:
		r.problem(at, "it is "+decimal(k.Got), "write "+decimal(k.Want)+" or more")
	case *kind.Maximum:
		r.problem(at, "it is "+decimal(k.Got), "write "+decimal(k.Want)+" or less")
	case *kind.OneOf:
		r.choice(at, k)
	default:
		r.problem(at, f.Why(), "correct it")
	}
}

// choice is a value that is none of several things, or more than one.
func (r *report) choice(at path, k *kind.OneOf) {
	if len(at) > 0 && at[0] == "skills" {
		r.problem(at, "it is no skill", `write a path, {"path", "preload"} or {"name", "description", "instructions"}`)
		return
	}
	if len(k.Subschemas) > 1 {
		r.problem(at, "it could be the limits of an image as well as those of any other media", "add a member that only other media have, such as validation_params: {}")
		return
	}
	r.problem(at, "it is no limits of media", "write an object with max_size_mb, allowed_formats, require_metadata or validation_params")
}

// path turns names and indexes, which are all strings, into a path of the file.
func (r *report) path(steps []string) path {
	p := path{}
	for _, s := range steps {
		var step any = s
		if n := r.find(p); n != nil && n.kind == '[' {
			var i int
			if _, err := fmt.Sscan(s, &i); err == nil {
				step = i
			}
		}
		p = append(p, step)
	}
	return p
}

// lookup follows a pointer in the schema.
func lookup(doc any, pointer []string) any {
	for _, name := range pointer {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(d) {
				return nil
			}
			doc = d[i]
		}
	}
	return doc
}

func properties(rule any) (names []string) {
	p, _ := lookup(rule, []string{"properties"}).(map[string]any)
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// example is what a value of the schema may look like, for a remedy.
func example(doc, rule any) string {
	m, _ := rule.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		m, _ = lookup(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")).(map[string]any)
	}
	all, _ := m["examples"].([]any)
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(all[0])
	if err != nil {
		return ""
	}
	return ", such as " + string(text)
}

func article(kinds ...string) string {
	for i, k := range kinds {
		switch k {
		case "array":
			kinds[i] = "a list"
		case "object", "integer":
			kinds[i] = "an " + k
		case "boolean":
			kinds[i] = "true or false"
		case "null":
		default:
			kinds[i] = "a " + k
		}
	}
	return strings.Join(kinds, " or ")
}

func decimal(n *big.Rat) string {
	f, _ := n.Float64()
	return fmt.Sprint(f)
}

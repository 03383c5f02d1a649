package catalog

import (
	_ "embed"
	"iter"
	"slices"
	"strings"
	"sync"
)

//go:embed models.tsv
var shipped []byte

// Default gives the catalogue that ships with the package. It is parsed once, at the first call.
func Default() *Catalog { return load() }

var load = sync.OnceValue(func() *Catalog {
	c, err := Parse("models.tsv", shipped)
	if err != nil {
		panic(err) // a defect of the package: its tests parse the same bytes
	}
	return c
})

// Catalog is a set of models. It never changes, so that any number of goroutines may use it. A nil *Catalog is an empty one.
type Catalog struct {
	models []Model        // sorted by name
	index  map[string]int // lower-case provider/id, names and aliases
}

// newCatalog takes models over. Of two with one name the later counts; names come before aliases, earlier aliases before later.
func newCatalog(models []Model) *Catalog {
	slices.SortStableFunc(models, func(a, b Model) int { return strings.Compare(key(a), key(b)) })
	kept := models[:0]
	for i, m := range models {
		if i+1 < len(models) && key(models[i+1]) == key(m) {
			continue
		}
		kept = append(kept, m)
	}
	c := &Catalog{models: kept, index: make(map[string]int, 2*len(kept))}
	for i, m := range kept {
		c.index[key(m)] = i
	}
	for i, m := range kept {
		for _, alias := range m.Aliases {
			if k := aliasKey(m, alias); !c.has(k) {
				c.index[k] = i
			}
		}
	}
	return c
}

func (c *Catalog) has(key string) bool { _, ok := c.index[key]; return ok }

func key(m Model) string { return strings.ToLower(m.Name) }

func aliasKey(m Model, alias string) string {
	provider, _, _ := strings.Cut(m.Name, "/")
	return strings.ToLower(provider + "/" + alias)
}

// With gives a catalogue that has these models too, each in place of the one with the same name, if there was one: as a whole, so
// start from what [Catalog.Lookup] gives to change a part. An alias that they claim is theirs; a name is nobody's alias. Models
// without a name are left out. The models are copied; c stays as it is.
func (c *Catalog) With(models ...Model) *Catalog {
	claimed := make(map[string]bool)
	var added []Model
	for _, m := range models {
		if m.Name == "" {
			continue
		}
		for _, alias := range m.Aliases {
			claimed[aliasKey(m, alias)] = true
		}
		added = append(added, clone(m))
	}
	var all []Model
	for m := range c.All() {
		if slices.ContainsFunc(m.Aliases, func(alias string) bool { return claimed[aliasKey(m, alias)] }) {
			m.Aliases = slices.DeleteFunc(slices.Clone(m.Aliases), func(alias string) bool { return claimed[aliasKey(m, alias)] })
		}
		all = append(all, m)
	}
	return newCatalog(append(all, added...))
}

// All gives the models, sorted by name.
func (c *Catalog) All() iter.Seq[Model] {
	return func(yield func(Model) bool) {
		if c == nil {
			return
		}
		for _, m := range c.models {
			if !yield(m) {
				return
			}
		}
	}
}

// clone shares nothing with m.
func clone(m Model) Model {
	m.Aliases = slices.Clone(m.Aliases)
	if m.Price != nil {
		p := *m.Price
		p.CacheRead, p.CacheWrite = copied(p.CacheRead), copied(p.CacheWrite)
		p.Tiers = slices.Clone(p.Tiers)
		for i, t := range p.Tiers {
			p.Tiers[i] = Tier{t.Over, copied(t.Input), copied(t.Output), copied(t.CacheRead), copied(t.CacheWrite)}
		}
		m.Price = &p
	}
	return m
}

func copied(f *float64) *float64 {
	if f == nil {
		return nil
	}
	return new(*f)
}

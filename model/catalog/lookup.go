package catalog

import (
	"strings"
	"time"
)

// Lookup finds a model by its provider/id, in capitals or not: by name, by alias, or by either with one date (-20260102,
// -2026-01-02, @20260102) or "-latest" at the end, in this order. A row of its own thus comes before the undated one.
//
// A provider that is another way to the same models finds them too: openai-responses/x is openai/x, google/x is gemini/x,
// openrouter/anthropic/x is anthropic/x, bedrock/eu.anthropic.claude-x-v1:0 and vertex/claude-x are anthropic/claude-x. (What a router or a cloud itself adds to the price
// is not in there.) A deployment at Azure has a name of its owner's choice, so nothing is known of it.
//
// Nothing is guessed from the beginning of a name: of a model that isn't listed nothing is known, whatever its family.
func (c *Catalog) Lookup(name string) (Model, bool) {
	if c == nil {
		return Model{}, false
	}
	for name, more := strings.ToLower(name), true; more; name, more = upstream(name) {
		if i, ok := c.index[name]; ok {
			return c.models[i], true
		}
		if base, ok := undated(name); ok {
			if i, ok := c.index[base]; ok {
				return c.models[i], true
			}
		}
	}
	return Model{}, false
}

// upstream gives the name that the vendor of the model has for it; false when name is already that one.
func upstream(name string) (string, bool) {
	provider, id, _ := strings.Cut(name, "/")
	switch provider {
	case "openai-responses":
		return "openai/" + id, true
	case "google":
		return "gemini/" + id, true
	case "openrouter":
		return id, true
	case "bedrock":
		return inBedrock(id)
	case "vertex":
		if strings.HasPrefix(id, "claude-") {
			return "anthropic/" + strings.Replace(strings.TrimSuffix(id, "@default"), "@", "-", 1), true
		}
		return "gemini/" + id, true
	}
	return name, false
}

// inBedrock takes apart what Amazon Bedrock calls Anthropic's models: an ARN, or what stands at its end; a geography; the vendor; the vendor's name for it; and Bedrock's version.
func inBedrock(id string) (string, bool) {
	_, model, ok := strings.Cut(id[strings.LastIndexByte(id, '/')+1:], "anthropic.")
	if !ok {
		return "bedrock/" + id, false
	}
	if i := strings.LastIndex(model, "-v"); i > 0 && strings.Trim(model[i+2:], "0123456789:") == "" {
		model = model[:i]
	}
	return "anthropic/" + model, true
}

// undated takes one date, or "-latest", off the end.
func undated(name string) (base string, found bool) {
	if base, ok := strings.CutSuffix(name, "-latest"); ok {
		return base, true
	}
	for _, layout := range [...]string{"-20060102", "@20060102", "-2006-01-02"} {
		if n := len(name) - len(layout); n > 0 && name[n] == layout[0] {
			if _, err := time.Parse(layout[1:], name[n+1:]); err == nil {
				return name[:n], true
			}
		}
	}
	return name, false
}

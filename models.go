package pawl

import (
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
	"github.com/pawl-dev/pawl/model/scripted"
)

// Provider is one way to reach models by name.
type Provider struct {
	Name    string   // what stands before the slash
	Keys    []string // environment variables that may hold its key, in the order they are looked at; none: it needs no key
	Default string   // the model that is used when only the key says which provider; "": none
	open    func(name string, opts []model.Option) (model.Model, error)
}

// ollama is where an Ollama server listens by default.
const ollama = "http://127.0.0.1:11434/v1"

// Providers lists the known providers, in the order in which their keys are looked for.
func Providers() []Provider {
	return []Provider{
		{"anthropic", []string{"ANTHROPIC_API_KEY"}, "claude-sonnet-5-5", func(name string, opts []model.Option) (model.Model, error) {
			return anthropic.New(name, opts...), nil
		}},
		{"openai", []string{"OPENAI_API_KEY"}, "gpt-6.2-sol", func(name string, opts []model.Option) (model.Model, error) {
			return openai.New(name, opts...), nil
		}},
		{"openai-responses", []string{"OPENAI_API_KEY"}, "", func(name string, opts []model.Option) (model.Model, error) {
			return openai.NewResponses(name, opts...), nil
		}},
		{"gemini", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "gemini-3.8-flash", func(name string, opts []model.Option) (model.Model, error) {
			return gemini.New(name, opts...), nil
		}},
		{"ollama", nil, "", func(name string, opts []model.Option) (model.Model, error) {
			return openai.Vendor{Name: "ollama", BaseURL: ollama}.New(name, opts...), nil
		}},
		{"scripted", nil, "", func(file string, _ []model.Option) (model.Model, error) {
			s, err := scripted.Load(file)
			if err != nil {
				return nil, err
			}
			return s.Model(), nil
		}},
	}
}

// OpenModel makes a model from PROVIDER/NAME: "anthropic/claude-sonnet-5-5", "openai/…", "openai-responses/…", "gemini/…", "ollama/…", or
// "scripted/FILE" for the deterministic model that plays a file. A name without a provider is errdefs.Validation; the error lists those that are known.
// Nothing stands around it: see package resilience. Whether a provider has the model is only known when it is called. See [Key] for whether its key is there.
func OpenModel(name string, opts ...model.Option) (model.Model, error) {
	p, rest, err := findProvider(name)
	if err != nil {
		return nil, err
	}
	return p.open(rest, opts)
}

func findProvider(name string) (Provider, string, error) {
	prefix, rest, ok := strings.Cut(name, "/")
	var known []string
	for _, p := range Providers() {
		if ok && p.Name == prefix && rest != "" {
			return p, rest, nil
		}
		known = append(known, p.Name+"/…")
	}
	if !ok || rest == "" {
		return Provider{}, "", errdefs.Validation.Errorf("model %q: want PROVIDER/NAME; the providers are %s", name, strings.Join(known, ", "))
	}
	return Provider{}, "", errdefs.Validation.Errorf("model %q: there is no provider %q; there are %s", name, prefix, strings.Join(known, ", "))
}

// Key reports whether the key that the model of that name needs is in the environment; missing are the variables that were looked for, none when there is one, or none is needed. Errors are those of [OpenModel].
func Key(name string) (missing []string, err error) {
	p, _, err := findProvider(name)
	if err != nil || len(p.Keys) == 0 || slices.ContainsFunc(p.Keys, func(v string) bool { return os.Getenv(v) != "" }) {
		return nil, err
	}
	return p.Keys, nil
}

// withoutKeys takes the providers' keys out of an environment: commands that a model writes have no business with them.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(Providers(), func(p Provider) bool { return slices.Contains(p.Keys, name) })
	})
}

// DefaultModel is the name of a model of the first provider whose key is in the environment; "" when there is none.
func DefaultModel() string {
	for _, p := range Providers() {
		if p.Default != "" && slices.ContainsFunc(p.Keys, func(v string) bool { return os.Getenv(v) != "" }) {
			return p.Name + "/" + p.Default
		}
	}
	return ""
}

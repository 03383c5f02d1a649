package pawl

import (
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
	"github.com/pawl-dev/pawl/model/scripted"
)

// Provider is one way to reach models by name.
type Provider struct {
	Name    string   // what stands before the slash
	Keys    []string // environment variables that may hold its key, in the order they are looked at; none: it needs no key of its own
	Cloud   bool     // there are other credentials than Keys: those of a cloud's own tools, see package model/cloud
	Default string   // the model that is used when only the key says which provider; "": none
	open    func(name string, opts []model.Option) (model.Model, error)
}

// ollama is where an Ollama server listens by default.
const ollama = "http://127.0.0.1:11434/v1"

// Providers lists the known providers, in the order in which their keys are looked for.
func Providers() []Provider {
	return []Provider{
		{Name: "anthropic", Keys: []string{"ANTHROPIC_API_KEY"}, Default: "claude-sonnet-5-5", open: func(name string, opts []model.Option) (model.Model, error) {
			return anthropic.New(name, opts...), nil
		}},
		{Name: "openai", Keys: []string{"OPENAI_API_KEY"}, Default: "gpt-6.2-sol", open: func(name string, opts []model.Option) (model.Model, error) {
			return openai.New(name, opts...), nil
		}},
		{Name: "openai-responses", Keys: []string{"OPENAI_API_KEY"}, open: func(name string, opts []model.Option) (model.Model, error) {
			return openai.NewResponses(name, opts...), nil
		}},
		{Name: "gemini", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Default: "gemini-3.8-flash", open: func(name string, opts []model.Option) (model.Model, error) {
			return gemini.New(name, opts...), nil
		}},
		{Name: "bedrock", Keys: []string{"AWS_BEARER_TOKEN_BEDROCK"}, Cloud: true, open: func(name string, opts []model.Option) (model.Model, error) {
			return anthropic.New(name, in(cloud.Bedrock(cloud.AWS{}), opts)...), nil
		}},
		{Name: "vertex", Cloud: true, open: func(name string, opts []model.Option) (model.Model, error) {
			opts = in(cloud.Vertex(cloud.GCP{}), opts)
			if strings.HasPrefix(name, "claude-") {
				return anthropic.New(name, opts...), nil
			}
			return gemini.New(name, opts...), nil
		}},
		{Name: "azure", Keys: []string{"AZURE_OPENAI_API_KEY"}, Cloud: true, open: func(name string, opts []model.Option) (model.Model, error) {
			return openai.New(name, in(cloud.Azure(cloud.AzureOpenAI{}), opts)...), nil
		}},
		{Name: "azure-responses", Keys: []string{"AZURE_OPENAI_API_KEY"}, Cloud: true, open: func(name string, opts []model.Option) (model.Model, error) {
			as := func(e *model.Endpoint) { e.Vendor = "azure-responses" }
			return openai.NewResponses(name, in(cloud.Azure(cloud.AzureOpenAI{}), append(slices.Clone(opts), as))...), nil
		}},
		{Name: "ollama", open: func(name string, opts []model.Option) (model.Model, error) {
			return openai.Vendor{Name: "ollama", BaseURL: ollama}.New(name, opts...), nil
		}},
		{Name: "scripted", open: func(file string, _ []model.Option) (model.Model, error) {
			s, err := scripted.Load(file)
			if err != nil {
				return nil, err
			}
			return s.Model(), nil
		}},
	}
}

// in puts a cloud behind the options that it builds on.
func in(option model.Option, opts []model.Option) []model.Option {
	return append(slices.Clone(opts), option)
}

// OpenModel makes a model from PROVIDER/NAME: "anthropic/claude-sonnet-5-5", "openai/…", "openai-responses/…", "gemini/…", "ollama/…", those of clouds ("bedrock/…", "vertex/…" for Claude and
// Gemini models, "azure/…" and "azure-responses/…" for deployments, as package model/cloud finds them), or "scripted/FILE" for the deterministic model that plays a file. A name without a provider is errdefs.Validation; the error lists those that are known.
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

// Key reports whether the key that the model of that name needs is in the environment; missing are the variables that were looked for, none when there is one, or none is needed, or a cloud may have other credentials. Errors are those of [OpenModel].
func Key(name string) (missing []string, err error) {
	p, _, err := findProvider(name)
	if err != nil || len(p.Keys) == 0 || p.Cloud || slices.ContainsFunc(p.Keys, func(v string) bool { return os.Getenv(v) != "" }) {
		return nil, err
	}
	return p.Keys, nil
}

// withoutKeys takes the providers' keys out of an environment: commands that a model writes have no business with them.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == serverToken || slices.ContainsFunc(Providers(), func(p Provider) bool { return slices.Contains(p.Keys, name) })
	})
}

// serverToken is the variable with the token of pawl serve and pawl mcp serve. A command
// that had it could answer what waits for a person.
const serverToken = "PAWL_TOKEN"

// DefaultModel is the name of a model of the first provider whose key is in the environment; "" when there is none.
func DefaultModel() string {
	for _, p := range Providers() {
		if p.Default != "" && slices.ContainsFunc(p.Keys, func(v string) bool { return os.Getenv(v) != "" }) {
			return p.Name + "/" + p.Default
		}
	}
	return ""
}

package pawl

import (
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/steady"
	"github.com/pawl-dev/pawl/model"
)

// WithModelName talks to a model by its name: PROVIDER/NAME as with [OpenModel], or a name that says by itself whose it is, which is one that begins with claude, gemini, gpt, o1 or o3, or has a colon (Ollama's, such as qwen3:8b).
//
// Without it, and without WithModel, the conversation talks to the default model of the first provider whose key is in the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, then GEMINI_API_KEY or GOOGLE_API_KEY.
// The options are those of OpenModel.
func WithModelName(name string, opts ...model.Option) Option {
	return func(o *conversationOptions) { o.name, o.endpoint = name, opts }
}

// WithRetries says how often a call of a model that the conversation opens itself is tried again when it failed for a reason that may pass: see package
// resilience, whose defaults hold for the rest; 0 is never. What has been said is never begun again. Default: 3. A model of [WithModel] stays as it is.
func WithRetries(n int) Option { return func(o *conversationOptions) { o.retries = n } }

// WithAPIKey uses key with the model of [WithModelName], whatever the environment has.
func WithAPIKey(key string) Option { return func(o *conversationOptions) { o.key = key } }

// prefixes say whose a model is by how its name begins.
var prefixes = []struct{ prefix, provider string }{{"claude", "anthropic"}, {"gemini", "gemini"}, {"gpt", "openai"}, {"o1", "openai"}, {"o3", "openai"}}

// detect gives a model's name its provider.
func detect(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, p := range prefixes {
		if strings.HasPrefix(name, p.prefix) {
			return p.provider + "/" + name, nil
		}
	}
	if strings.Contains(name, ":") {
		return "ollama/" + name, nil
	}
	return "", errdefs.Validation.Errorf("pawl: model %q: its name doesn't say whose it is: write PROVIDER/%s", name, name)
}

// inEnvironment are the providers of conversations, in the order in which their keys are looked for.
var inEnvironment = []string{"openai", "anthropic", "gemini"}

// open finds the model to talk to.
func (o *conversationOptions) open() (model.Model, error) {
	switch {
	case o.retries < 0 || o.retries > steady.MaxRetries:
		return nil, errdefs.Validation.Errorf("pawl: open: WithRetries(%d): want 0 (no call is tried again) to %d", o.retries, steady.MaxRetries)
	case o.model != nil && (o.name != "" || o.key != ""):
		return nil, errdefs.Validation.Errorf("pawl: open: WithModel is given, which WithModelName and WithAPIKey would change nothing of: give one or the other")
	case o.model != nil:
		return o.model, nil
	case o.name != "":
		return o.named(o.name, o.endpoint...)
	case o.key != "":
		return nil, errdefs.Validation.Errorf("pawl: open: WithAPIKey is given, and nothing that says whose key it is: add WithModelName")
	}
	var looked []string
	for _, name := range inEnvironment {
		p, _, err := findProvider(name + "/-")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.Keys, func(v string) bool { return os.Getenv(v) != "" }) {
			return o.opened(p.open(p.Default, nil))
		}
		looked = append(looked, p.Keys...)
	}
	return nil, errdefs.NotAvailable.Errorf("pawl: open: nothing says which model to talk to: give WithModel or WithModelName, or set one of %s", strings.Join(looked, ", "))
}

// judging is the model of another name that a validator asks for. The explicit key, and where its provider is, are for that provider alone.
func (o *conversationOptions) judging(name string) (model.Model, error) {
	full, err := detect(name)
	if err != nil {
		return nil, err
	}
	if own, err := detect(o.name); err == nil {
		if p, _, _ := strings.Cut(own, "/"); strings.HasPrefix(full, p+"/") {
			return o.named(full, o.endpoint...)
		}
	}
	return o.opened(OpenModel(full))
}

func (o *conversationOptions) named(name string, opts ...model.Option) (model.Model, error) {
	full, err := detect(name)
	if err != nil {
		return nil, err
	}
	if o.key != "" {
		opts = append(slices.Clip(opts), model.WithKey(o.key))
	}
	return o.opened(OpenModel(full, opts...))
}

// opened puts retries around a model that was opened by name.
func (o *conversationOptions) opened(m model.Model, err error) (model.Model, error) {
	if err != nil {
		return nil, err
	}
	return steady.Around(m, o.retries), nil
}

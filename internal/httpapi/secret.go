package httpapi

import (
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/model"
)

// secrets are what must not stand in an error: servers quote what they were sent.
func secrets(key string, headers http.Header) []string {
	out := secret.InHeaders(headers)
	if len(key) >= secret.Least {
		out = append(out, key)
	}
	return out
}

// redact takes our secrets out of what a provider said. What is cut is cut behind it: the first half of a key would not be found.
func (a *API) redact(e *model.Error) {
	all := a.secrets
	if t, ok := a.send.through().(interface{ Secrets() []string }); ok { // it adds its own to what is sent
		all = append(t.Secrets(), all...)
	}
	for _, said := range []*string{&e.Message, &e.Code, &e.RequestID} {
		for _, s := range all {
			*said = strings.ReplaceAll(*said, s, secret.Redacted)
		}
	}
}

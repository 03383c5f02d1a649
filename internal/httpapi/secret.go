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

// redact takes our secrets out of what a provider said.
func (a *API) redact(e *model.Error) {
	all := a.secrets
	if t, ok := a.send.through().(interface{ Secrets() []string }); ok { // it adds its own to what is sent
		all = append(t.Secrets(), all...)
	}
	for _, s := range all {
		e.Message = strings.ReplaceAll(e.Message, s, secret.Redacted)
		e.Code = strings.ReplaceAll(e.Code, s, secret.Redacted)
	}
}

package httpapi

import (
	"io"
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// secrets are what must not stand in an error: servers quote what they were sent.
func secrets(key string, headers http.Header) (out []string) {
	add := func(s string) {
		if len(s) >= 8 { // shorter ones are no secrets, and are parts of words
			out = append(out, s)
		}
	}
	add(key)
	for name, values := range headers {
		name = strings.ToLower(name)
		if !strings.Contains(name, "auth") && !strings.Contains(name, "key") && !strings.Contains(name, "token") && !strings.Contains(name, "cookie") {
			continue
		}
		for _, v := range values {
			add(v)
			if _, bare, ok := strings.Cut(v, " "); ok { // "Bearer …"
				add(bare)
			}
		}
	}
	return out
}

// redact takes our secrets out of what a provider said.
func (a *API) redact(e *model.Error) {
	for _, s := range a.secrets {
		e.Message = strings.ReplaceAll(e.Message, s, "[redacted]")
		e.Code = strings.ReplaceAll(e.Code, s, "[redacted]")
	}
}

// bounded is a body that fails where it goes on for too long: a server must not fill our memory.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errdefs.NotAvailable.Errorf("the reply goes on for more than %d MiB", MaxStream>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

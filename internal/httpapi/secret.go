package httpapi

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
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

// bounded is a body that fails where it goes on for too long: a server must not fill our memory.
type bounded struct {
	body  io.ReadCloser
	left  int64
	began time.Time // when the headers were there
	// What was read of it to have a look, which comes again.
	first  [1]byte
	peeked int
	err    error
}

func (b *bounded) Close() error { return b.body.Close() }

// peek gives the first byte, for which it waits; 0 if there is none.
func (b *bounded) peek() byte {
	b.peeked, b.err = io.ReadFull(b.body, b.first[:]) // an error comes again with the next Read
	return b.first[0]
}

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.left <= 0:
		return 0, errdefs.NotAvailable.Errorf("the reply goes on for more than %d MiB", MaxStream>>20)
	case b.peeked > 0 && len(p) > 0:
		b.peeked = 0
		b.left--
		return copy(p, b.first[:]), nil
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

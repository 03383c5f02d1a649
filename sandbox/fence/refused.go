package fence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
)

// Refused collects whom a command could not reach because the policy's Network.Hosts don't allow it. The zero value is empty and ready; safe for concurrent use.
type Refused struct {
	mu  sync.Mutex
	all []string
}

// mostRefused is how many different ones are kept.
const mostRefused = 10

// All are the refusals so far, each once, as "HOST:PORT: why and what would allow it"; of more than 10 the first.
func (r *Refused) All() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// note takes up what an error refuses.
func (r *Refused) note(err error) {
	if r == nil || !errors.Is(err, errdefs.PolicyDenied) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(err.Error()) { // one for each address
		line = strings.TrimPrefix(strings.TrimSpace(line), "sandbox: dial ")
		if len(r.all) < mostRefused && !slices.Contains(r.all, line) {
			r.all = append(r.all, line)
		}
	}
}

type refusedKey struct{}

// WithRefused has the command that [Fence.Command] makes with this context note in r whom it could not reach. On Linux; elsewhere nobody knows which command it was.
func WithRefused(ctx context.Context, r *Refused) context.Context {
	return context.WithValue(ctx, refusedKey{}, r)
}

func refusedOf(ctx context.Context) *Refused {
	r, _ := ctx.Value(refusedKey{}).(*Refused)
	return r
}

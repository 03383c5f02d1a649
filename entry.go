package pawl

import (
	"context"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// EntryPoint says in what kind of place a Runtime works, and with that who is asked when a call needs approval, a tool has a question, or it is to be decided whether a call of unknown outcome runs again. Unset, it is
// Options.Host, and where that has nobody (errdefs.NotAvailable, as engine.NoopHost) the run ends interrupted and waits. A host that a call brings itself (agent.WithEngineHost) answers for itself, and what was answered on
// record counts everywhere.
type EntryPoint string

// The entry points.
const (
	EntryPointCLI      EntryPoint = "cli"      // somebody is at a terminal: Options.Host asks, and without one New fails
	EntryPointCI       EntryPoint = "ci"       // nobody is there, and nobody will be: every question is answered with no, and the run goes on
	EntryPointPlatform EntryPoint = "platform" // people answer later, elsewhere (agent.Answer): Options.Host is not asked, the run ends interrupted and waits
)

// host is the host of an entry point.
func (p EntryPoint) host(h engine.Host) (engine.Host, error) {
	none := h == nil
	if none {
		h = engine.NoopHost{}
	}
	switch p {
	case "":
	case EntryPointCLI:
		if _, noop := h.(engine.NoopHost); none || noop {
			return nil, errdefs.Validation.Errorf("pawl: Options.EntryPoint is %s, and there is no Options.Host that asks: give one, such as an engine.HostFuncs with AskUser", p)
		}
	case EntryPointCI, EntryPointPlatform:
		return entryHost{h, p}, nil
	default:
		return nil, errdefs.Validation.Errorf("pawl: Options.EntryPoint %q is not known: want %s, %s or %s", p, EntryPointCLI, EntryPointCI, EntryPointPlatform)
	}
	return h, nil
}

// entryHost is a host whose people are not asked.
type entryHost struct {
	engine.Host
	entry EntryPoint
}

func (h entryHost) Listening() bool { return engine.Listening(h.Host) }

func (h entryHost) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	if h.entry == EntryPointCI {
		return engine.Reply{Answered: journal.Answered{ID: p.ID, By: journal.ByNobody}}, ctx.Err()
	}
	return engine.NoopHost{}.AskUser(ctx, p)
}

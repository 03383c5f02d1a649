package engine

import (
	"context"

	"github.com/pawl-dev/pawl/event"
)

// Publishing is host, with a bus as a listener more: both get every event, the host first, and it listens when either does. All else is the
// host's own; nil is a [NoopHost]. Several hosts and runs may share a bus. Who subscribes while a model call is under way gets its entries, and the deltas
// from the next call on if nobody listened when it began: such a call has no stream.
func Publishing(bus *event.Bus, host Host) Host {
	if host == nil {
		host = NoopHost{}
	}
	return publishing{host, bus}
}

type publishing struct {
	Host
	bus *event.Bus
}

func (p publishing) Listening() bool { return p.bus.Listening() || Listening(p.Host) }

func (p publishing) interrupts() *latch { return above(p.Host) }

// Publish gives the bus its event though the host fails, by an error or a panic; the error is the host's.
func (p publishing) Publish(ctx context.Context, e event.Event) error {
	defer p.bus.Publish(ctx, e)
	if Listening(p.Host) {
		return p.Host.Publish(ctx, e)
	}
	return nil
}

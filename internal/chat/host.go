package chat

import (
	"context"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// host is where a run happens: its events wait in a list until the conversation takes them, and its questions are put to the person there. Each stretch of a run has its own.
type host struct {
	engine.NoopHost
	send       func(tea.Msg)
	interrupts chan engine.Interrupt

	mu     sync.Mutex
	events []event.Event
	woken  bool // the conversation knows that there are some
}

func newHost(send func(tea.Msg)) *host {
	return &host{send: send, interrupts: make(chan engine.Interrupt, 1)}
}

// eventsMsg says that a host has events.
type eventsMsg struct{ host *host }

// question waits for the person's answer.
type question struct {
	engine.Prompt
	host  *host
	reply chan answer // holds one
}

type answer struct {
	journal.Answered
	err error
}

type (
	askMsg  struct{ question *question }
	goneMsg struct{ question *question } // nobody waits for the answer any more
)

// errLater parks the run: its questions wait on record.
var errLater = errdefs.NotAvailable.Errorf("the question is left for later")

// Listening implements the part of Host that is asked for it: always.
func (h *host) Listening() bool { return true }

// Publish puts an event into the list. It wakes the conversation when that waits.
func (h *host) Publish(_ context.Context, e event.Event) error {
	h.mu.Lock()
	h.events = append(h.events, e)
	wake := !h.woken
	h.woken = true
	h.mu.Unlock()
	if wake {
		h.send(eventsMsg{h})
	}
	return nil
}

// take gives the events that wait. When there are none, the next one wakes the conversation again.
func (h *host) take() (events []event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events, h.events = h.events, nil
	h.woken = len(events) > 0
	return events
}

// Interrupts implements engine.Host.
func (h *host) Interrupts() <-chan engine.Interrupt { return h.interrupts }

// interrupt ends the run behind its step.
func (h *host) interrupt() {
	select {
	case h.interrupts <- engine.Interrupt{Cause: engine.CauseUserCancel, Detail: "interrupted at the terminal"}:
	default:
	}
}

// AskUser puts a question to the person, and waits for the answer or ctx.
func (h *host) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	q := &question{Prompt: p, host: h, reply: make(chan answer, 1)}
	h.send(askMsg{q})
	select {
	case a := <-q.reply:
		return engine.Reply{Answered: a.Answered}, a.err
	case <-ctx.Done():
		h.send(goneMsg{q})
		return engine.Reply{}, ctx.Err()
	}
}

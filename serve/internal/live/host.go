package live

import (
	"context"
	"sync"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
)

// host is where a run happens: what is said goes into the stream. Entries are in the journal. Nobody is there to be asked, so that a run which has to ask is left on record as waiting.
type host struct {
	engine.NoopHost
	runs *Runs
	run  *Run

	mu sync.Mutex
	of []said // what says something, by effect: mostly one
	at map[string]int64
}

type said struct {
	session, run string
	key          journal.Key
	to           *stream.Attempt
}

func newHost(r *Runs, run *Run) *host { return &host{runs: r, run: run, at: map[string]int64{}} }

// Listening reports that somebody may.
func (*host) Listening() bool { return true }

// Interrupts is where the run is stopped from.
func (h *host) Interrupts() <-chan engine.Interrupt { return h.run.stop }

// Publish hands a delta to the stream.
func (h *host) Publish(_ context.Context, e event.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Data == nil {
		h.to(e).Add(e)
		return nil
	}
	h.at[e.Session] = e.Seq
	switch e.Data.(type) {
	case journal.RunStarted, journal.Resumed:
		if e.Session == h.run.Session {
			h.run.once.Do(func() {
				h.runs.mu.Lock()
				h.run.ID = e.Run
				h.runs.mu.Unlock()
				close(h.run.begun)
			})
		}
	}
	h.over(e)
	return nil
}

// to is where an event belongs.
func (h *host) to(e event.Event) *stream.Attempt {
	for i := range h.of {
		if o := &h.of[i]; o.key == e.Key && o.run == e.Run && o.session == e.Session {
			return o.to
		}
	}
	a := h.runs.writer.Begin(stream.Item{Session: e.Session, Run: e.Run, Key: e.Key, Seq: e.Seq, Behind: h.at[e.Session], ParentRun: e.ParentRun, Attempt: 1})
	h.of = append(h.of, said{e.Session, e.Run, e.Key, a})
	return a
}

// over ends what an effect said, when it has its outcome.
func (h *host) over(e event.Event) {
	for i := range h.of {
		if o := h.of[i]; o.key == e.Key && o.run == e.Run && o.session == e.Session && stream.Ends(e.Entry) {
			o.to.End()
			h.of = append(h.of[:i], h.of[i+1:]...)
			return
		}
	}
}

// end ends all that the run said.
func (h *host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.of {
		o.to.End()
	}
	h.of = nil
}

package temporal

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
)

// lastWords is how long an outcome waits for what was said before it to be in the stream.
const lastWords = time.Second

// lastItems is how long a worker that stops waits for what its effects said to be in the stream.
const lastItems = 5 * time.Second

// speaking is the host of an effect in a worker with a stream: what the effect says goes there, and what runs below it say that are done within it and not by workflows. The last words of these may be there after their outcomes, where who follows leaves them out: he has the outcome. Entries are in
// the journal.
type speaking struct {
	*noting
	writer  *stream.Writer
	attempt int
	session string
	behind  int64 // where its journal was

	mu sync.Mutex
	of []said // what says something, by effect: mostly one
}

type said struct {
	session, run string
	key          journal.Key
	to           *stream.Attempt
}

// Listening reports that somebody may.
func (*speaking) Listening() bool { return true }

// Publish hands a delta to the stream.
func (s *speaking) Publish(_ context.Context, e event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Data != nil:
		s.over(e)
		return nil
	case e.Delta == event.RunLeft: // it is left to a workflow, or to the next attempt
		return nil
	}
	s.to(e).Add(e)
	return nil
}

// to is where an event belongs.
func (s *speaking) to(e event.Event) *stream.Attempt {
	for i := range s.of {
		if o := &s.of[i]; o.key == e.Key && o.run == e.Run && o.session == e.Session {
			return o.to
		}
	}
	i := stream.Item{Session: e.Session, Run: e.Run, Key: e.Key, Seq: e.Seq, ParentRun: e.ParentRun, Attempt: s.attempt}
	if e.Session == s.session {
		i.Behind = s.behind
	}
	a := s.writer.Begin(i)
	s.of = append(s.of, said{e.Session, e.Run, e.Key, a})
	return a
}

// over ends what an effect below said, when it has its outcome.
func (s *speaking) over(e event.Event) {
	for i := range s.of {
		if o := s.of[i]; o.key == e.Key && o.run == e.Run && o.session == e.Session && stream.Ends(e.Entry) {
			o.to.End()
			s.of = append(s.of[:i], s.of[i+1:]...)
			return
		}
	}
}

// end ends all that the activity says, and waits a little for it to be in the stream.
func (s *speaking) end(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	of := slices.Clone(s.of)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for _, o := range of {
		o.to.End()
	}
	for _, o := range of {
		if !o.to.Flush(ctx) {
			return
		}
	}
}

// heard is a Performer whose outcomes go on record after what was said before them is in the stream.
type heard struct {
	engine.Performer
	host *speaking
}

// Perform performs.
func (h heard) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	defer h.host.end(ctx)
	return h.Performer.Perform(ctx, run, host, e)
}

// speaking has what the effect at a part's place says heard; nil: nobody would.
func (w *Worker) speaking(ctx context.Context, p *part) *speaking {
	if w.stream == nil {
		return nil
	}
	return &speaking{noting: p.host, writer: w.stream, attempt: int(activity.GetInfo(ctx).Attempt), session: p.at.Session, behind: p.log.Seq()}
}

// to is the host of the part.
func (p *part) to() engine.Host {
	if p.heard == nil {
		return p.host
	}
	return p.heard
}

func (p *part) performer(inner engine.Performer) engine.Performer {
	if p.heard == nil {
		return inner
	}
	return heard{inner, p.heard}
}

// silence ends the stream of a worker that stops.
func (w *Worker) silence(ctx context.Context) {
	if w.stream == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastItems)
	defer cancel()
	w.stream.Close(ctx)
}

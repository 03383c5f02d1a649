package temporal

import (
	"context"
	"iter"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/temporal/stream"
)

// position is from where on a host is told of a run that goes on from an entry. Of one that is resumed it may not have heard what was said before.
func (e *Engine) position(ctx context.Context, run *engine.Run, host engine.Host, upto int64) stream.Position {
	at := stream.Position{Seq: upto}
	if e.stream != nil && run.ResumeFrom == nil && engine.Listening(host) {
		at.Offset, _ = e.stream.Last(ctx, run.Session) // else what was said before is read, and left out
	}
	return at
}

// news follows the journal, and the stream if there is one and somebody listens.
func (w *watch) news(ctx context.Context, at stream.Position) iter.Seq2[stream.News, error] {
	if s := w.engine.stream; s != nil && engine.Listening(w.host) {
		return stream.Follow(ctx, w.run.Log.Store(), s, w.run.Session, at)
	}
	return entries(journal.Follow(ctx, w.run.Log.Store(), w.run.Session, at.Seq))
}

// there is what news would give, as far as it is there now.
func (w *watch) there(ctx context.Context) iter.Seq2[stream.News, error] {
	if s := w.engine.stream; s != nil && engine.Listening(w.host) {
		return stream.There(ctx, w.run.Log.Store(), s, w.run.Session, w.at)
	}
	return entries(w.run.Log.Store().Read(ctx, w.run.Session, w.at.Seq))
}

// entries are news where there is no stream.
func entries(all iter.Seq2[journal.Entry, error]) iter.Seq2[stream.News, error] {
	return func(yield func(stream.News, error) bool) {
		for e, err := range all {
			if !yield(stream.News{Events: []event.Event{{Entry: e}}, At: stream.Position{Seq: e.Seq}}, err) {
				return
			}
		}
	}
}

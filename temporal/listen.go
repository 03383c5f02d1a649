package temporal

import (
	"context"
	"iter"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
)

// lookPatience is how long a run waits for its stream before it begins.
const lookPatience = 2 * time.Second

// offset is from where on a host is told what is said in the run's session. Of a run that is resumed it may not have heard what was said before.
func (w *watch) offset(ctx context.Context) (from int64) {
	if s := w.engine.stream; s != nil && w.run.ResumeFrom == nil {
		ctx, cancel := context.WithTimeout(ctx, lookPatience)
		defer cancel()
		from, _ = s.Last(ctx, w.run.Session) // else what was said before is read, and left out as what has its outcome
	}
	return from
}

// hears reports whether what is said would reach anybody.
func (w *watch) hears() bool { return w.engine.stream != nil && engine.Listening(w.host) }

// news follows a session's journal, and the stream if somebody listens. Where somebody begins to, it ends behind the next entry, and wants to be called again.
func (w *watch) news(ctx context.Context, session string, at stream.Position) iter.Seq2[stream.News, error] {
	store := w.run.Log.Store()
	if w.hears() {
		return stream.Follow(ctx, store, w.engine.stream, session, at)
	}
	return func(yield func(stream.News, error) bool) {
		for n, err := range entries(journal.Follow(ctx, store, session, at.Seq), at.Offset) {
			if !yield(n, err) || w.hears() {
				return
			}
		}
	}
}

// there is what news would give, as far as it is there now.
func (w *watch) there(ctx context.Context, session string, at stream.Position) iter.Seq2[stream.News, error] {
	if w.hears() {
		return stream.There(ctx, w.run.Log.Store(), w.engine.stream, session, at)
	}
	return entries(w.run.Log.Store().Read(ctx, session, at.Seq), at.Offset)
}

// entries are news of the journal alone.
func entries(all iter.Seq2[journal.Entry, error], offset int64) iter.Seq2[stream.News, error] {
	return func(yield func(stream.News, error) bool) {
		for e, err := range all {
			if !yield(stream.News{Events: []event.Event{{Entry: e}}, At: stream.Position{Seq: e.Seq, Offset: offset}}, err) {
				return
			}
		}
	}
}

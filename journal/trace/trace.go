package trace

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/pawl-dev/pawl/journal"
)

// HTML writes the page of a session: as it was when entry at was the last, or as it is now when that is 0. The journal is read twice, first for the sums at the top, then for the rest, which is
// written while it is read: what is held in memory does not grow with the session, but for one line a run. What is appended meanwhile is left out.
//
// Sessions of tasks are shown where they were given, each once; of those only what happened before entry at. Whatever is in the session is shown as text: markup, control characters and
// sequences that steer terminals do nothing. Pictures (PNG, JPEG, GIF, WebP) are shown as such. The page has all that was said and read, and so
// has to be kept as the session itself.
//
// It fails with errdefs.NotFound when there is no such session, or no such entry, with the store's error, and with that of w; then what was written is of no use.
func HTML(ctx context.Context, w io.Writer, store journal.Store, session string, at int64) error {
	all := survey{ctx: ctx, store: store, ends: map[string]int64{}, runs: map[place]*run{}}
	if err := all.cut(session, at); err != nil {
		return err
	}
	if err := all.session(session, at, 0); err != nil {
		return err
	}
	p := &page{survey: &all, w: bufio.NewWriterSize(w, 1<<16), shown: map[string]bool{}}
	p.head(session, at)
	if err := p.session(session, 0); err != nil {
		return err
	}
	p.raw("</main></body></html>\n")
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("trace: write: %w", err)
	}
	return nil
}

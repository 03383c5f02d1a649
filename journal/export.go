package journal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// maxLine is how many bytes a line of an import may have.
const maxLine = 64 << 20

// Export writes a session as JSON lines, one entry each, in order. The same entries always give the same bytes.
//
// The file stands alone. A fork is written whole: the entries that it shares are part of it and, like all lines, bear the exported
// session's name; its session.created, further down, says from whom they came. A fork that shares nothing is written as a session
// of its own.
//
// Of a session that is being driven it writes what is there by then. It is NotFound, and nothing is written, when there is no such
// session; after any other error w has a part of it.
func Export(ctx context.Context, store Store, session string, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	last := int64(0)
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return fmt.Errorf("journal: export: %w", err)
		}
		if e.Seq != last+1 {
			return errdefs.Internal.Errorf("journal: export: session %s: after entry %d its store gives entry %d", session, last, e.Seq)
		}
		last, e.Session = e.Seq, session
		if fork, ok := e.Data.(SessionCreated); ok && fork.Parent != "" && e.Seq == 1 {
			e.Data = SessionCreated{}
		}
		line, err := e.MarshalJSON()
		if err != nil {
			return fmt.Errorf("journal: export: entry %d: %w", e.Seq, err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("journal: export: %w", err)
		}
	}
	if last == 0 {
		return errdefs.NotFound.Errorf("journal: export: there is no session %q", session)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("journal: export: %w", err)
	}
	return nil
}

// Import reads what Export wrote and makes a session of it, under the name as, or under its own when as is "". It gives the name.
//
// All lines are checked before anything is written, and then written by one Append: the session is there whole or not at all. A file
// that is not one whole session is Validation, with the number of the line and what is wrong with it; a session of that name that is there already
// is Conflict. Times, runs and keys are kept: an unfinished run is unfinished there too, and can be resumed. Exported again, the session gives the
// bytes that it came from, but for its name on each line when it got another one. Of a file by a later release that has further fields, those are lost.
//
// A line has up to 64 MiB. The entries are held in memory until they are written.
func Import(ctx context.Context, store Store, r io.Reader, as string) (session string, err error) {
	var c intake
	if err := c.read(ctx, r); err != nil {
		return "", err
	}
	if session = as; as == "" {
		session = c.session
	}
	switch err := store.Append(ctx, session, 0, c.entries...); {
	case errdefs.Conflict.Is(err):
		return "", errdefs.Conflict.Errorf("journal: import: there is a session %q already: import it under another name (--as NAME)", session)
	case err != nil:
		return "", fmt.Errorf("journal: import: %w", err)
	}
	return session, nil
}

// intake takes lines in, and refuses what is not the next entry of the session.
type intake struct {
	session string
	entries []Entry
	st      State
}

func (c *intake) read(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine+len("\r\n"))
	n := 0
	refused := func(err error) error { // it is the file's fault, whatever class the entry gave it
		return errdefs.Validation.Errorf("journal: import: line %d: %s", n, strings.TrimPrefix(err.Error(), "journal: "))
	}
	for lines.Scan() {
		n++
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.line(lines.Bytes()); err != nil {
			return refused(err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		n++
		return refused(fmt.Errorf("it has more than %d bytes", maxLine))
	case err != nil:
		return fmt.Errorf("journal: import: %w", err)
	case n == 0:
		return errdefs.Validation.Errorf("journal: import: nothing to read: want the lines of an export")
	}
	return nil
}

func (c *intake) line(b []byte) error {
	if len(b) > maxLine {
		return fmt.Errorf("it has more than %d bytes", maxLine)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return errors.New("it is empty: want an entry on each line")
	}
	var e Entry
	if err := e.UnmarshalJSON(b); err != nil {
		return err
	}
	switch next := c.st.Seq + 1; {
	case e.Session == "":
		return errors.New("it does not say of which session it is")
	case c.session != "" && e.Session != c.session:
		return fmt.Errorf("it is of session %q and the lines before of %q: want one session a file", e.Session, c.session)
	case e.Seq != next:
		return fmt.Errorf("it is entry %d: want entry %d", e.Seq, next)
	case e.Time.IsZero():
		return errors.New("it has no time")
	}
	if d, ok := e.Data.(SessionCreated); ok {
		if err := d.fits(e.Seq); err != nil {
			return err
		}
	}
	if err := c.st.free([]Entry{e}); err != nil {
		return err
	}
	c.st.apply(&e)
	c.session, c.entries = e.Session, append(c.entries, e)
	return nil
}

// fits refuses a session.created that can't be an export's entry of that number.
func (d SessionCreated) fits(seq int64) error {
	switch {
	case d.Parent == "" && seq > 1:
		return errors.New("a session.created without a parent: only entry 1 opens a session")
	case d.Parent != "" && seq == 1:
		return fmt.Errorf("a fork of %q that shares no entry: a file begins with the entries that it shares", d.Parent)
	case d.Parent != "" && d.At != seq-1:
		return fmt.Errorf("a fork of %q at %d: it is entry %d, so want %d", d.Parent, d.At, seq, seq-1)
	}
	return nil
}

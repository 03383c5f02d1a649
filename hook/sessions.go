package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// Session is a transcript in a store of the caller's own.
type Session struct {
	ID        string
	User      string // whose run was the last
	Messages  message.History
	UpdatedAt time.Time
}

// SessionStore keeps a caller's transcripts. The journal needs none: it is for whoever has a store of his own already. Safe for concurrent use.
type SessionStore interface {
	// GetSession gives a session, errdefs.NotFound when there is none of that id.
	GetSession(ctx context.Context, id string) (*Session, error)
	// PutSession keeps s in place of what there was under its ID, whole or not at all.
	PutSession(ctx context.Context, s *Session) error
}

// Sessions loads the session's transcript from a store of the caller's before a run, and saves it with all that the run added each time the model stops. What the journal
// has of the session's earlier runs gives way to the store's, so that nothing is there twice; of the transcript that the run was given only the last message, the user's
// new one, is put behind the store's. Put it before the hooks that look at the transcript. A store that can't be read ends the run before its first model call; one that
// can't be written leaves the reply as it is, and its error is journaled.
func Sessions(store SessionStore) Middleware {
	return Middleware{
		Name: "sessions",
		PreGeneration: func(ctx context.Context, g *Generation) error {
			s, err := store.GetSession(ctx, g.Session)
			if errdefs.NotFound.Is(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("load the session %q: %w", g.Session, err)
			}
			if last := g.Messages.Last(); !last.IsZero() {
				g.Messages = s.Messages.Append(last)
			}
			return nil
		},
		PostGeneration: func(ctx context.Context, g *Generation) error {
			err := store.PutSession(ctx, &Session{ID: g.Session, User: g.User, Messages: g.Messages, UpdatedAt: time.Now().UTC()})
			if err != nil {
				return fmt.Errorf("save the session %q: %w", g.Session, err)
			}
			return nil
		},
	}
}

// FileSessions is a SessionStore of one JSON file a session in dir, which is made when it is first written to; the file is named after the session's id, escaped as in an URL.
// A file is replaced whole, and synced before it takes the place of the old one; only its owner can read it. Processes that write the same session at once lose nothing
// but the earlier of the two writes.
func FileSessions(dir string) SessionStore { return &fileSessions{dir: dir} }

type fileSessions struct {
	dir string
	mu  sync.Mutex
}

type sessionFile struct {
	ID        string            `json:"id"`
	User      string            `json:"user,omitempty"`
	UpdatedAt time.Time         `json:"updated_at"`
	Messages  []message.Message `json:"messages"`
}

func (f *fileSessions) path(id string) (string, error) {
	name := url.PathEscape(id) + ".json"
	if id == "" || len(name) > 255 {
		return "", errdefs.Validation.Errorf("hook: sessions: the id %q can't be the name of a file: give one of 1 to 250 characters", id)
	}
	return filepath.Join(f.dir, name), nil // escaped, it has no slash; "." and ".." have a suffix
}

func (f *fileSessions) GetSession(ctx context.Context, id string) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := f.path(id)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path) //nolint:gosec // in the caller's directory
	if os.IsNotExist(err) {
		return nil, errdefs.NotFound.Errorf("hook: sessions: there is no %s", path)
	}
	if err != nil {
		return nil, errdefs.NotAvailable.Errorf("hook: sessions: read: %w", err)
	}
	var in sessionFile
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, errdefs.Internal.Errorf("hook: sessions: %s is no session, move it away to begin anew: %w", path, err)
	}
	if in.ID != id { // a file system that does not tell upper from lower case
		return nil, errdefs.Conflict.Errorf("hook: sessions: %s is of the session %q, not of %q", path, in.ID, id)
	}
	return &Session{ID: in.ID, User: in.User, Messages: message.NewHistory(in.Messages...), UpdatedAt: in.UpdatedAt}, nil
}

func (f *fileSessions) PutSession(ctx context.Context, s *Session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := f.path(s.ID)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the bytes of calls stay
	if err := enc.Encode(sessionFile{ID: s.ID, User: s.User, UpdatedAt: s.UpdatedAt, Messages: s.Messages.Messages()}); err != nil {
		return errdefs.Validation.Errorf("hook: sessions: encode %q: %w", s.ID, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := replace(path, b.Bytes()); err != nil {
		return errdefs.NotAvailable.Errorf("hook: sessions: write %s: %w", path, err)
	}
	return nil
}

// replace writes a file whole, or leaves the old one.
func replace(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".session-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(b); err == nil {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

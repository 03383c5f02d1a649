package a2aserver

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"strings"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
)

// A task is a run, and its id leads to the session that the run is in: it is the run's own id where that begins with the session's name, as it does for runs that were begun by a message; else the two, with a slash between them.
func taskID(session, run string) string {
	if rest, ok := strings.CutPrefix(run, session); ok && (rest == "" || rest[0] == '.' && !strings.Contains(rest[1:], ".")) {
		return run
	}
	return session + "/" + strings.ReplaceAll(url.PathEscape(run), ".", "%2E")
}

// place is where a task is.
type place struct{ session, run string }

func (p place) id() string { return taskID(p.session, p.run) }

// places are where a task of that id may be.
func places(id string) []place {
	out := []place{{id, id}}
	if i := strings.LastIndexByte(id, '.'); i > 0 {
		out = append(out, place{id[:i], id})
	}
	if i := strings.LastIndexByte(id, '/'); i > 0 {
		if run, err := url.PathUnescape(id[i+1:]); err == nil {
			out = append(out, place{id[:i], run})
		}
	}
	return out
}

// errNoTask is of a task that is not there.
func errNoTask(id string) error {
	return a2a.Errorf(a2a.CodeTaskNotFound, "there is no task %.200q", id)
}

// find reads the task of an id, as far as it is on record.
func (s *Server) find(ctx context.Context, id string) (*reading, error) {
	if len(id) > 2048 {
		return nil, errNoTask(id)
	}
	for _, p := range places(id) {
		if p.id() != id { // each task has one id
			continue
		}
		r, err := s.read(ctx, p)
		if err == nil && r != nil {
			return r, nil
		}
		if err != nil && !errdefs.NotFound.Is(err) {
			return nil, err
		}
	}
	return nil, errNoTask(id)
}

// read reads a task; nil when it is not there.
func (s *Server) read(ctx context.Context, p place) (*reading, error) {
	for _, after := range []int64{s.lists.before(p), 0} {
		r := newReading(p, s.opts.Artifacts)
		for e, err := range s.runs.Journal().Read(ctx, p.session, after) {
			if err != nil {
				return nil, err
			}
			r.entry(e)
		}
		if r.found {
			s.lists.note(p, r.first)
			return r, nil
		}
		if after == 0 {
			break
		}
		s.lists.forget(p) // the session was deleted, and is another one by now
	}
	return nil, nil
}

// runOf names the run that a message begins. The same message begins the same run, so that one which is sent again, because nobody knows whether it came, begins no second one.
func runOf(m a2a.Message) (string, error) {
	b, err := a2a.V1.Marshal(m)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	name := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
	if m.ContextID != "" {
		return m.ContextID + "." + name, nil
	}
	return "task-" + name, nil
}

// saidAs names a message to a task, in the record: so that it is said once.
func saidAs(m a2a.Message) string {
	sum := sha256.Sum256([]byte(m.ID))
	return "a2a-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// checkName refuses what can't name a session.
func checkName(name string) error {
	if len(name) > 512 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return a2a.Errorf(a2a.CodeInvalidParams, "contextId %.80q: at most 512 bytes and no control characters, please", name)
	}
	return nil
}

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// effect is something that a tool did, outside of every journal.
type effect struct {
	What string `json:"what"`
	Tool string `json:"tool"`
	Key  string `json:"key"` // the call's idempotency key
}

// effects are the world that tools act upon: each request is one more effect, whatever its key.
type effects struct {
	project string // where commands append to files

	mu   sync.Mutex
	file *os.File                       // all of them, as JSON
	done map[string]map[string][]effect // by session, then by name
}

func newEffects(dir, project string) (*effects, error) {
	f, err := os.OpenFile(filepath.Join(dir, "effects.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // a path of ours
	return &effects{project: project, file: f, done: map[string]map[string][]effect{}}, err
}

func (e *effects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var x effect
	if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := e.add(x); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// sessionOf is the session that an effect is of, or of a task of which it is.
func sessionOf(what string) string {
	session, _, _ := strings.Cut(what, ".")
	return session
}

func (e *effects) add(x effect) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	session := sessionOf(x.What)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done[session] == nil {
		e.done[session] = map[string][]effect{}
	}
	e.done[session][x.What] = append(e.done[session][x.What], x)
	_, err = e.file.Write(append(line, '\n'))
	return err
}

// of gives a session's effects, by their names.
func (e *effects) of(session string) (all map[string][]effect, err error) {
	all = map[string][]effect{}
	e.mu.Lock()
	for what, xs := range e.done[session] {
		all[what] = slices.Clone(xs)
	}
	e.mu.Unlock()
	lines, err := os.ReadFile(filepath.Join(e.project, linesOf(session)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for what := range strings.FieldsSeq(string(lines)) {
		all[what] = append(all[what], effect{What: what, Tool: "bash"})
	}
	return all, err
}

// linesOf is the file that a session's commands append to, in the project.
func linesOf(session string) string { return "lines-" + session }

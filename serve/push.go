package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/serve/internal/a2aserver"
)

// Push says where a client of A2A wants to be told of a task, and how far it was told. It has secrets of the client's in it.
type Push struct {
	Task        string `json:"task"`
	ID          string `json:"id"` // unique in its task
	URL         string `json:"url"`
	Token       string `json:"token,omitempty"`       // sent along
	Scheme      string `json:"scheme,omitempty"`      // of the Authorization header
	Credentials string `json:"credentials,omitempty"` // likewise
	Version     string `json:"version"`               // of the protocol that the client speaks
	Told        string `json:"told,omitempty"`        // names the last status that it was told of
}

// PushStore keeps where clients of A2A want to be told of tasks, with the secrets that they gave for it. Safe for concurrent use.
type PushStore interface {
	// Put keeps p, in the place of what there is of the same task and id.
	Put(ctx context.Context, p Push) error
	// Delete forgets one; one that is not there is no error.
	Delete(ctx context.Context, task, id string) error
	// All gives what there is, in any order.
	All(ctx context.Context) ([]Push, error)
}

// pushes is a PushStore as the server of A2A knows it; nil for none.
func pushes(s PushStore) a2aserver.PushStore {
	if s == nil {
		return nil
	}
	return pushStore{s}
}

type pushStore struct{ PushStore }

func (s pushStore) Put(ctx context.Context, p a2aserver.Push) error {
	return s.PushStore.Put(ctx, Push(p))
}

func (s pushStore) All(ctx context.Context) ([]a2aserver.Push, error) {
	all, err := s.PushStore.All(ctx)
	out := make([]a2aserver.Push, len(all))
	for i, p := range all {
		out[i] = a2aserver.Push(p)
	}
	return out, err
}

// PushFiles is a PushStore in a directory, which is made when it is needed: a server that is started again goes on telling. Files can be read by their owner only. One server at a time: two would each tell.
func PushFiles(dir string) PushStore { return pushFiles(dir) }

type pushFiles string

func (d pushFiles) file(task, id string) string {
	sum := sha256.Sum256([]byte(task + "\x00" + id))
	return filepath.Join(string(d), hex.EncodeToString(sum[:16])+".json")
}

// Put replaces a file at once: who reads it, or dies, finds the old one or the new one whole.
func (d pushFiles) Put(_ context.Context, p Push) error {
	b, err := json.Marshal(p)
	if err != nil {
		return errdefs.Internal.Errorf("serve: write a push notification config: %w", err)
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return unkept(err)
	}
	f, err := os.CreateTemp(string(d), ".new-*") // only its owner can read it
	if err != nil {
		return unkept(err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.file(p.Task, p.ID))
	}
	if err != nil {
		return unkept(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func unkept(err error) error {
	return errdefs.NotAvailable.Errorf("serve: keep a push notification config: %w", err)
}

func (d pushFiles) Delete(_ context.Context, task, id string) error {
	if err := os.Remove(d.file(task, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unkept(err)
	}
	return nil
}

func (d pushFiles) All(context.Context) (all []Push, err error) {
	files, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unkept(err)
	}
	for _, f := range files {
		if name := f.Name(); strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".json") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(string(d), f.Name()))
		if errors.Is(err, fs.ErrNotExist) { // it was deleted just now
			continue
		}
		var p Push
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if err != nil {
			return nil, errdefs.Validation.Errorf("serve: the push notification config %s can't be read: delete it: %w", f.Name(), err)
		}
		all = append(all, p)
	}
	return all, nil
}

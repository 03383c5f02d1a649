package a2aserver

import (
	"context"
	"sync"
)

// Push is serve.Push.
type Push struct {
	Task, ID, URL, Token, Scheme, Credentials, Version, Told string
}

// PushStore is serve.PushStore.
type PushStore interface {
	Put(ctx context.Context, p Push) error
	Delete(ctx context.Context, task, id string) error
	All(ctx context.Context) ([]Push, error)
}

// MemoryPushes keeps them as long as the process lives.
func MemoryPushes() PushStore { return &pushMemory{all: map[pushKey]Push{}} }

type pushKey struct{ task, id string }

type pushMemory struct {
	mu  sync.Mutex
	all map[pushKey]Push
}

func (m *pushMemory) Put(_ context.Context, p Push) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[pushKey{p.Task, p.ID}] = p
	return nil
}

func (m *pushMemory) Delete(_ context.Context, task, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, pushKey{task, id})
	return nil
}

func (m *pushMemory) All(context.Context) (all []Push, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.all {
		all = append(all, p)
	}
	return all, nil
}

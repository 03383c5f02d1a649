package engine

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Checkpoint is a run that can go on. With a journal it is only a position; a Host that keeps its own gets what the engine had.
type Checkpoint struct {
	ExecID            string            `json:"exec_id"` // the run's id; "": the unfinished run of Session, whichever it is
	Step              string            `json:"step"`
	Iteration         int               `json:"iteration"`       // model calls so far
	Board             *Snapshot         `json:"board,omitempty"` // of an engine that has more than the journal; nil: the journal has all
	Payload           json.RawMessage   `json:"payload,omitempty"`
	Attributes        map[string]string `json:"attributes,omitempty"`
	Timestamp         time.Time         `json:"timestamp"`
	OriginalStartedAt time.Time         `json:"original_started_at"`    // of the run's first attempt, whoever resumed it since
	SpecVersion       string            `json:"spec_version,omitempty"` // of the engine that began the run: Capabilities.Version
	Session           string            `json:"session,omitempty"`
	Seq               int64             `json:"seq,omitempty"` // the position in the journal
}

// CheckpointStore keeps the last checkpoint of each run, for a host whose engines keep what no journal has: Save is its Checkpoint. A run with a journal needs none: it
// is resumed by its session. Safe for concurrent use; enginetest.CheckpointStore proves that a store is one.
type CheckpointStore interface {
	// Save keeps c in place of what there was under its ExecID, whole or not at all. What the caller does with c afterwards, and with what it refers to, changes
	// nothing in the store. Without an ExecID it is errdefs.Validation.
	Save(ctx context.Context, c Checkpoint) error
	// Load gives a checkpoint of the caller's own, errdefs.NotFound when there is none: a nil one would be resumed as a new run.
	Load(ctx context.Context, execID string) (*Checkpoint, error)
}

// MemoryCheckpoints is a CheckpointStore that ends with the process.
func MemoryCheckpoints() CheckpointStore { return &memoryCheckpoints{} }

type memoryCheckpoints struct {
	mu  sync.Mutex
	all map[string][]byte // as JSON: nothing is shared with anybody
}

func (m *memoryCheckpoints) Save(ctx context.Context, c Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.ExecID == "" {
		return errdefs.Validation.Errorf("engine: save a checkpoint: it has no ExecID: give it the run's id")
	}
	b, err := json.Marshal(c)
	if err != nil {
		return errdefs.Validation.Errorf("engine: save the checkpoint of %s: %w", c.ExecID, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string][]byte{}
	}
	m.all[c.ExecID] = b
	return nil
}

func (m *memoryCheckpoints) Load(ctx context.Context, execID string) (*Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	b, ok := m.all[execID]
	m.mu.Unlock()
	if !ok {
		return nil, errdefs.NotFound.Errorf("engine: load a checkpoint: there is none of run %q", execID)
	}
	c := new(Checkpoint)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, errdefs.Internal.Errorf("engine: load the checkpoint of %s: %w", execID, err)
	}
	return c, nil
}

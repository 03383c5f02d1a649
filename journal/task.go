package journal

import (
	"context"
	"fmt"
	"strings"
)

// taskOp is the Op of the keys of tasks.
const taskOp = "task"

// TaskKey is the key under which a call's TaskStarted is on record.
func TaskKey(call Key) Key { return Key{Scope: call.Scope, Op: taskOp, ID: call.ID} }

// TaskSession names the session of the run that a call of another session starts.
func TaskSession(session string, call Key) string {
	if call.Scope != "" {
		return session + "/" + call.Scope + "/" + call.ID
	}
	return session + "/" + call.ID
}

// Tasks names the sessions of the tasks that a session gave, and of those below them, the deepest first. A fork's are its parent's.
func Tasks(ctx context.Context, store Store, session string) (below []string, err error) {
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return nil, fmt.Errorf("journal: tasks: %w", err)
		}
		d, ok := e.Data.(TaskStarted)
		if !ok || e.Session != session || !strings.HasPrefix(d.Session, session+"/") { // names grow longer downward: it comes to an end
			continue
		}
		if of, err := taskOf(ctx, store, d.Session); err != nil || of != session {
			if err != nil {
				return nil, err
			}
			continue // it is gone, or another one has its name
		}
		deeper, err := Tasks(ctx, store, d.Session)
		if err != nil {
			return nil, err
		}
		below = append(append(below, deeper...), d.Session)
	}
	return below, nil
}

// taskOf names the session whose task a session is; "" when it is none, or not there.
func taskOf(ctx context.Context, store Store, session string) (string, error) {
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return "", fmt.Errorf("journal: tasks: %w", err)
		}
		d, _ := e.Data.(SessionCreated)
		return d.TaskOf, nil
	}
	return "", nil
}

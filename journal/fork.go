package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Fork makes a session that shares the entries of another one up to number at; 0 is the last. From there the two go their own ways, and
// deleting one leaves the other as it is. The entries are shared by reference, so that it costs one entry, however long the session is.
//
// Any entry will do: the fork's transcript is valid wherever it is cut. A run that is unfinished there is not the fork's; calls without a result
// get one that says so. Files on disk are not rewound: see WrittenAfter.
//
// The fork is named as, or, when that is "", after the session with "-fork", "-fork-2" … at the end. No such session, or no such
// entry, is NotFound, a negative at is Validation, a name that is taken Conflict.
func Fork(ctx context.Context, store Store, session string, at int64, as string) (name string, err error) {
	parent, err := find(ctx, store, session)
	last := parent.Seq
	switch {
	case err != nil:
		return "", fmt.Errorf("journal: fork: %w", err)
	case last == 0:
		return "", errdefs.NotFound.Errorf("journal: fork: there is no session %q", session)
	case at < 0:
		return "", errdefs.Validation.Errorf("journal: fork: at %d: want the number of an entry, from 1 to %d", at, last)
	case at > last:
		return "", errdefs.NotFound.Errorf("journal: fork: session %q has no entry %d: its last is %d", session, at, last)
	case at == 0:
		at = last
	}
	first := Entry{Data: SessionCreated{Parent: session, At: at}}
	if as != "" {
		err := store.Append(ctx, as, at, first)
		if errdefs.Conflict.Is(err) {
			return "", errdefs.Conflict.Errorf("journal: fork: there is a session %q already: give the fork another name", as)
		}
		if err != nil {
			return "", fmt.Errorf("journal: fork: %w", err)
		}
		return as, nil
	}
	name = session + "-fork"
	for n, unseen := 2, 0; ; n++ {
		err := store.Append(ctx, name, at, first)
		if err == nil {
			return name, nil
		}
		if errdefs.Conflict.Is(err) && !exists(ctx, store, name) { // another project's may have the name: see Within
			unseen++
		}
		if !errdefs.Conflict.Is(err) || unseen > mostUnseen {
			return "", fmt.Errorf("journal: fork: %w", err)
		}
		name = fmt.Sprintf("%s-fork-%d", session, n)
	}
}

// mostUnseen is how many names Fork tries that are taken although there seems to be no such session.
const mostUnseen = 100

// StateAt is a session as it was when its entry number at was the last: its transcript, what it had spent, what was pending. To go on from there, [Fork] it. No
// such session or entry is NotFound.
func StateAt(ctx context.Context, store Store, session string, at int64) (State, error) {
	var st State
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return State{}, fmt.Errorf("journal: state at entry %d: %w", at, err)
		}
		if st.apply(&e); e.Seq == at {
			st.show()
			return st, nil
		}
	}
	if st.Seq == 0 {
		return State{}, errdefs.NotFound.Errorf("journal: state at entry %d: there is no session %q", at, session)
	}
	return State{}, errdefs.NotFound.Errorf("journal: session %q has no entry %d: its last is %d", session, at, st.Seq)
}

// find gives what the store keeps beside a session's entries; the zero Info when there is no session.
func find(ctx context.Context, store Store, session string) (Info, error) {
	for i, err := range store.Sessions(ctx, Query{Session: session}) {
		if err != nil || i.Session == session {
			return i, err
		}
	}
	return Info{}, nil
}

func exists(ctx context.Context, store Store, session string) bool {
	i, err := find(ctx, store, session)
	return err == nil && i.Seq > 0
}

// Written is what tool calls did to files, as far as the journal knows.
type Written struct {
	Files    []string // that write and edit were called for, as their calls named them, each once, in order
	Commands int      // calls of bash: which files those wrote is not on record
}

// WrittenAfter tells what a session's calls wrote after an entry: what a fork made there finds on disk although its transcript does not
// know of it. Calls that were under way at the entry count; a write or edit that failed has changed nothing and does not.
func WrittenAfter(ctx context.Context, store Store, session string, at int64) (w Written, err error) {
	var calls []Called
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return Written{}, fmt.Errorf("journal: written after entry %d: %w", at, err)
		}
		switch d := e.Data.(type) {
		case RunStarted, SessionCreated:
			if e.Seq <= at { // what was open then has ended, if nobody knows how
				calls = nil
			}
		case ToolStarted:
			calls = append(calls, d.Call)
		case ToolFinished:
			if e.Seq <= at || d.Outcome == OutcomeError && !strings.EqualFold(d.Name, "bash") {
				for i := len(calls) - 1; i >= 0; i-- { // the last one: of a call that was run again, the first may have written
					if calls[i].ID == d.Call {
						calls = slices.Delete(calls, i, i+1)
						break
					}
				}
			}
		}
	}
	for _, c := range calls {
		switch strings.ToLower(c.Name) {
		case "bash":
			w.Commands++
		case "write", "edit":
			var in struct {
				Path string `json:"file_path"`
			}
			if json.Unmarshal([]byte(c.Input), &in) != nil || in.Path == "" {
				continue // it is another tool of that name
			}
			if file := path.Clean(in.Path); !slices.Contains(w.Files, file) {
				w.Files = append(w.Files, file)
			}
		}
	}
	return w, nil
}

package a2aserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/journal"
)

// line is a task in a list.
type line struct {
	place
	at    time.Time
	over  a2a.TaskState // "" while it is not over
	below bool
}

// listed is what a session has of tasks, up to an entry.
type listed struct {
	created time.Time
	seq     int64
	tasks   []line
}

// lists keeps where tasks are, so that a list reads only what is new. It is no record: what was left out, or is wrong, is read again.
type lists struct {
	mu       sync.Mutex
	sessions map[string]listed
	first    map[place]int64
}

// most of each are kept.
const most = 10_000

// before is the number of an entry behind which a task begins.
func (l *lists) before(p place) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.first[p]-1)
}

func (l *lists) note(p place, first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil || len(l.first) >= most {
		l.first = map[place]int64{}
	}
	l.first[p] = first
}

func (l *lists) forget(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.first, p)
}

// of gives the tasks of a session.
func (l *lists) of(ctx context.Context, store journal.Store, i journal.Info) ([]line, error) {
	l.mu.Lock()
	at, ok := l.sessions[i.Session]
	l.mu.Unlock()
	if !ok || !at.created.Equal(i.Created) || at.seq > i.Seq {
		at = listed{created: i.Created}
	}
	if at.seq == i.Seq {
		return at.tasks, nil
	}
	at.tasks = slices.Clone(at.tasks)
	for e, err := range store.Read(ctx, i.Session, at.seq) {
		if err != nil {
			return nil, err
		}
		if at.seq = e.Seq; e.Session == i.Session { // else it is a fork's, and another session's
			at.tasks = listing(at.tasks, e)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions == nil || len(l.sessions) >= most {
		l.sessions = map[string]listed{}
	}
	l.sessions[i.Session] = at
	return at.tasks, nil
}

// listing reads an entry.
func listing(tasks []line, e journal.Entry) []line {
	at := slices.IndexFunc(tasks, func(t line) bool { return t.run == e.Run })
	switch d := e.Data.(type) {
	case journal.RunStarted:
		if at < 0 {
			if n := len(tasks) - 1; n >= 0 && tasks[n].over == "" {
				tasks[n].over, tasks[n].at = a2a.StateCanceled, e.Time
			}
			tasks, at = append(tasks, line{place: place{e.Session, e.Run}, below: d.ParentRun != ""}), len(tasks)
		}
		tasks[at].at = e.Time
	case journal.Resumed, journal.Parked:
		if at >= 0 {
			tasks[at].at = e.Time
		}
	case journal.RunFinished:
		if at >= 0 {
			tasks[at].at, tasks[at].over = e.Time, endOf(d)
		}
	}
	return tasks
}

// order is the newest first, and among tasks of one time by their ids.
func order(a, b line) int {
	return cmp.Or(b.at.Compare(a.at), strings.Compare(b.id(), a.id()))
}

// page is where a page of a list ends.
type page struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

func (p page) token() string {
	b, _ := json.Marshal(p) //nolint:errchkjson // a time and a string
	return base64.RawURLEncoding.EncodeToString(b)
}

func pageOf(token string) (p page, err error) {
	if token == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || p.ID == "" {
		return p, a2a.Errorf(a2a.CodeInvalidParams, "pageToken: it is none that a list gave")
	}
	return p, nil
}

// list lists tasks, those that changed last first.
func (c *call) list() (any, error) {
	var in a2a.ListTasksRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	from, err := pageOf(in.PageToken)
	if err != nil {
		return nil, err
	}
	all, err := c.s.all(c.context(), &in)
	if err != nil {
		return nil, err
	}
	out := a2a.ListTasksResponse{TotalSize: len(all), PageSize: 50}
	if in.PageSize != nil {
		out.PageSize = *in.PageSize
	}
	if in.PageToken != "" {
		after := func(l line) bool { return cmp.Or(from.At.Compare(l.at), strings.Compare(from.ID, l.id())) > 0 }
		if at := slices.IndexFunc(all, after); at >= 0 {
			all = all[at:]
		} else {
			all = nil
		}
	}
	history := 0 // none, unless it is asked for
	if in.HistoryLength != nil {
		history = *in.HistoryLength
	}
	for n, l := range all {
		if n == out.PageSize {
			last := all[n-1]
			out.NextPageToken = page{last.at, last.id()}.token()
			break
		}
		r, err := c.s.read(c.context(), l.place)
		if err != nil {
			return nil, err
		}
		if r == nil { // it was deleted meanwhile
			continue
		}
		t, err := c.s.task(c.context(), r, &history)
		if err != nil {
			return nil, err
		}
		if !in.IncludeArtifacts {
			t.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, *t)
	}
	return out, nil
}

// all are the tasks that a list is of, in its order.
func (s *Server) all(ctx context.Context, in *a2a.ListTasksRequest) (all []line, err error) {
	for i, err := range s.runs.Journal().Sessions(ctx, journal.Query{Session: in.ContextID}) {
		if err != nil {
			return nil, err
		}
		if i.Updated.Before(in.StatusTimestampAfter) {
			continue
		}
		tasks, err := s.lists.of(ctx, s.runs.Journal(), i)
		if err != nil {
			return nil, err
		}
		for _, l := range tasks {
			if l.below || l.at.Before(in.StatusTimestampAfter) {
				continue
			}
			if is, err := s.is(ctx, l, in.Status); err != nil || !is {
				if err != nil {
					return nil, err
				}
				continue
			}
			all = append(all, l)
		}
	}
	slices.SortFunc(all, order)
	return all, nil
}

// is reports whether a task is in a state; "" is any.
func (s *Server) is(ctx context.Context, l line, state a2a.TaskState) (bool, error) {
	if state == "" || l.over != "" || state.Terminal() {
		return state == "" || l.over == state, nil
	}
	r, err := s.read(ctx, l.place)
	if err != nil || r == nil {
		return false, err
	}
	_, st, _, err := s.look(ctx, r)
	return st.State == state, err
}

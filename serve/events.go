package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/serve/internal/web"
	"github.com/pawl-dev/pawl/stream"
)

// cursor is how far a client is: what it sends back as Last-Event-ID. A piece of news may be several events, of which the client may have some.
type cursor struct {
	At   stream.Position `json:"at"`
	Have int             `json:"have,omitempty"` // so many events of the news behind At
	Next stream.Position `json:"next,omitzero"`  // where that news leads; only Seq and Offset
}

// String is a cursor as an event's id: the number of an entry where that says it all.
func (c cursor) String() string {
	if c.Have == 0 && c.At.Offset == 0 && len(c.At.Under) == 0 {
		return strconv.FormatInt(c.At.Seq, 10)
	}
	b, err := json.Marshal(c)
	if err != nil { // it has numbers and names
		return strconv.FormatInt(c.At.Seq, 10)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// cursorOf reads an event's id.
func cursorOf(id string) (c cursor, err error) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n >= 0 {
		return cursor{At: stream.Position{Seq: n}}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.At.Seq < 0 || c.At.Offset < 0 || c.Have < 0 || len(c.At.Under) > 10000 {
		return cursor{}, errdefs.Validation.Errorf("serve: Last-Event-ID %.80q: want the id of an event as it was sent, or the number of an entry", id)
	}
	return c, nil
}

// events streams what happens in a session: from its beginning, or from where the client was, on.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	session, err := s.there(r)
	if err != nil {
		return err
	}
	q, c := r.URL.Query(), cursor{}
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = q.Get("after")
	}
	if id != "" {
		if c, err = cursorOf(id); err != nil {
			return err
		}
	}
	run := q.Get("run")
	if run != "" {
		over, err := s.over(r.Context(), session, run, c.At.Seq)
		if err != nil {
			return err
		}
		if over { // the client has it all, and is not to ask again
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return s.follow(w, r, session, c, run, q.Get("deltas") != "false")
}

// over reports whether a run was over, or left to be resumed, by an entry, and is still. A run that isn't there is NotFound.
func (s *Server) over(ctx context.Context, session, run string, by int64) (over bool, err error) {
	known := false
	for e, err := range s.runs.Journal().Read(ctx, session, 0) {
		if err != nil {
			return false, err
		}
		if e.Run != run {
			continue
		}
		known = true
		switch e.Data.(type) {
		case journal.RunFinished, journal.Parked:
			over = e.Seq <= by
		case journal.RunStarted, journal.Resumed:
			over = false
		}
	}
	if !known {
		return false, errdefs.NotFound.Errorf("serve: session %s has no run %q", session, run)
	}
	return over, nil
}

// follow sends events from a cursor on: until the run is over here, if there is one, else until the client leaves.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, session string, c cursor, run string, deltas bool) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events := web.Stream(w)
	defer events.Close()
	for news, err := range s.runs.Follow(ctx, session, c.At) {
		if err != nil {
			b, _ := json.Marshal(web.ProblemOf(err)) //nolint:errchkjson // two strings
			_ = events.Send("", "error", b)
			return nil
		}
		have := 0
		if c.Have > 0 && news.At.Seq == c.Next.Seq && news.At.Offset == c.Next.Offset {
			have = c.Have
		}
		before := c.At
		c = cursor{At: news.At}
		for i, e := range news.Events {
			if i < have || e.Delta != "" && !deltas {
				continue
			}
			at := c
			if i < len(news.Events)-1 {
				at = cursor{before, i + 1, stream.Position{Seq: news.At.Seq, Offset: news.At.Offset}}
			}
			if _, over := e.Data.(journal.RunFinished); over {
				s.runs.Settle(ctx, session, e.Run)
			}
			b, err := told(e)
			if err != nil {
				return nil //nolint:nilerr // what is on record can be written
			}
			if events.Send(at.String(), "", b) != nil {
				return nil
			}
			if run != "" && e.Run == run && s.last(ctx, e) {
				return nil
			}
		}
	}
	return nil
}

// last reports whether nothing more of the event's run is to be expected: it has ended, or was left and nobody has taken it up again.
func (s *Server) last(ctx context.Context, e event.Event) bool {
	switch e.Data.(type) {
	case journal.RunFinished:
		return true
	case journal.Parked:
		for later, err := range s.runs.Journal().Read(ctx, e.Session, e.Seq) {
			if err != nil {
				break // the reader asks again
			}
			if _, on := later.Data.(journal.Resumed); on && later.Run == e.Run {
				return false
			}
		}
		return true
	}
	return e.Delta == event.RunLeft
}

// told is an event as it is sent: an entry as it is on record, or a delta.
func told(e event.Event) ([]byte, error) {
	if e.Data != nil {
		return json.Marshal(e.Entry)
	}
	var key *journal.Key
	if e.Key != (journal.Key{}) {
		key = &e.Key
	}
	return json.Marshal(struct {
		Kind      event.Delta  `json:"kind"`
		Session   string       `json:"session"`
		Run       string       `json:"run,omitempty"`
		Seq       int64        `json:"seq,omitempty"` // of the entry that it belongs to
		Key       *journal.Key `json:"key,omitempty"`
		Attempt   int          `json:"attempt"`
		Stream    string       `json:"stream,omitempty"`
		Text      string       `json:"text"`
		WaitMS    int64        `json:"wait_ms,omitempty"` // of a retry and of waiting
		ParentRun string       `json:"parent_run,omitempty"`
	}{e.Delta, e.Session, e.Run, e.Seq, key, e.Attempt, e.Stream, e.Text, e.Wait.Milliseconds(), e.ParentRun})
}

func escaped(name string) string { return url.PathEscape(name) }

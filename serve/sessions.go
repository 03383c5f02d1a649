package serve

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// there is the session that a request names. One that isn't there is NotFound.
func (s *Server) there(r *http.Request) (string, error) {
	session := r.PathValue("session")
	if err := names(session); err != nil {
		return "", err
	}
	for _, err := range s.runs.Journal().Sessions(r.Context(), journal.Query{Session: session, Limit: 1}) {
		return session, err
	}
	return "", errdefs.NotFound.Errorf("serve: there is no session %q: see /v1/sessions", session)
}

// info is a session in a list.
type info struct {
	Session string    `json:"session"`
	Agent   string    `json:"agent,omitempty"`
	User    string    `json:"user,omitempty"`
	Status  string    `json:"status,omitempty"`
	Title   string    `json:"title,omitempty"` // what was said first
	Parent  string    `json:"parent,omitempty"`
	Seq     int64     `json:"seq"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Here    bool      `json:"here,omitempty"`   // a run is under way in this process
	Driven  bool      `json:"driven,omitempty"` // … or in another one
	Waits   bool      `json:"waits,omitempty"`  // for a person
}

func (s *Server) info(ctx context.Context, i journal.Info) (info, error) {
	here := s.runs.Of(i.Session) != nil
	seen, err := s.glance(ctx, i)
	return info{i.Session, i.Agent, i.User, i.Status, seen.title, i.Parent, i.Seq, i.Created, i.Updated, here, here || i.Status == "running" && !seen.left, seen.waits && !here}, err
}

// statuses are those of a session's last run, in a list.
var statuses = []string{"running", string(agent.StatusInterrupted), "waiting", string(agent.StatusCompleted), string(agent.StatusCanceled), string(agent.StatusFailed), string(agent.StatusAborted)}

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := number(q.Get("limit"), "limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	more, status := false, q.Get("status")
	if status != "" && !slices.Contains(statuses, status) {
		return errdefs.Validation.Errorf("serve: status=%.80q: want one of %s", status, strings.Join(statuses, ", "))
	}
	after, all := q.Get("after"), []info{}
	waits := status == "waiting"
	if waits { // stores have no such status
		status = "interrupted"
	}
	ctx := r.Context()
	for i, err := range s.runs.Journal().Sessions(ctx, journal.Query{Agent: q.Get("agent"), User: q.Get("user"), Status: status}) {
		if err != nil {
			return err
		}
		if after != "" {
			if i.Session == after {
				after = ""
			}
			continue
		}
		if !mentions(i, q.Get("q")) {
			continue
		}
		one, err := s.info(ctx, i)
		if errdefs.NotFound.Is(err) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		if waits && !one.Waits {
			continue
		}
		if more = len(all) == int(limit); more {
			break
		}
		all = append(all, one)
	}
	if after != "" {
		return errdefs.NotFound.Errorf("serve: after=%.200q: there is no such session in this list, or no more: begin it anew", after)
	}
	web.Write(w, http.StatusOK, struct {
		Sessions []info `json:"sessions"`
		More     bool   `json:"more"`
	}{all, more})
	return nil
}

// mentions reports whether a text is in what a list tells of a session, in any case.
func mentions(i journal.Info, text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(strings.ToLower(i.Session), text) || strings.Contains(strings.ToLower(i.Agent), text) || strings.Contains(strings.ToLower(i.User), text)
}

// number reads a number of a query.
func number(text, name string, unset, least, most int64) (int64, error) {
	if text == "" {
		return unset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, errdefs.Validation.Errorf("serve: %s=%q: want a number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// state is where a session stands.
type state struct {
	info
	Run      string            `json:"run,omitempty"` // the unfinished one
	Text     string            `json:"text,omitempty"`
	Usage    model.Usage       `json:"usage"`
	Cost     *float64          `json:"cost_usd"`
	Steps    int               `json:"steps"`
	Pending  []pending         `json:"pending"`
	Error    *web.Problem      `json:"error,omitempty"`
	Messages []message.Message `json:"messages,omitempty"`
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) error {
	whole, err := flag(r.URL.Query().Get("messages"), "messages")
	if err != nil {
		return err
	}
	session, err := s.there(r)
	if err != nil {
		return err
	}
	st, err := s.state(r.Context(), session)
	if err != nil {
		return err
	}
	if !whole {
		st.Messages = nil
	}
	web.Write(w, http.StatusOK, st)
	return nil
}

// withoutWaiting is a transcript without the results of calls that wait for a person. Such a call has none yet; that it was not run, as a model would be told now, would be taken for a refusal.
func withoutWaiting(all []message.Message, waits []journal.Pending) []message.Message {
	last := len(all) - 1
	if last < 0 || len(waits) == 0 || all[last].Role() != message.RoleTool {
		return all
	}
	var results []message.Part
	for p := range all[last].Parts() {
		if r, ok := p.(message.ToolResult); ok && slices.ContainsFunc(waits, func(w journal.Pending) bool {
			call, _, _ := strings.Cut(w.ID, "/") // a question within the call, or a task of it, has a longer one
			return call == r.Call
		}) {
			continue
		}
		results = append(results, p)
	}
	all = all[:last]
	if len(results) > 0 {
		all = append(all, message.New(message.RoleTool, results...))
	}
	return all
}

func (s *Server) state(ctx context.Context, session string) (st state, err error) {
	for i, err := range s.runs.Journal().Sessions(ctx, journal.Query{Session: session, Limit: 1}) {
		if err != nil {
			return st, err
		}
		if st.info, err = s.info(ctx, i); err != nil {
			return st, err
		}
	}
	log, err := journal.Open(ctx, s.runs.Journal(), session)
	if err != nil {
		return st, err
	}
	folded := log.State()
	waits, err := agent.Pending(ctx, s.runs.Journal(), session)
	if err != nil {
		return st, err
	}
	if st.Pending, err = s.pendings(ctx, session, waits); err != nil {
		return st, err
	}
	now := time.Now()
	st.Waits = !st.Driven && slices.ContainsFunc(waits, func(p journal.Pending) bool { return !p.Expired(now) })
	st.Session, st.Run = session, folded.Run
	st.Usage, st.Steps = folded.Spent.Usage, folded.Spent.Steps
	if micros := folded.Spent.Cost(); micros != nil {
		usd := float64(*micros) / 1e6
		st.Cost = &usd
	}
	if folded.Class != "" || folded.Error != "" {
		st.Error = &web.Problem{Class: folded.Class, Message: folded.Error}
	}
	all := folded.Messages.Messages()
	st.Text, st.Messages = engine.Answer(all), withoutWaiting(all, waits)
	return st, nil
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	session, err := s.there(r)
	if err != nil {
		return err
	}
	if s.runs.Drives(session) {
		return errdefs.Conflict.Errorf("serve: a run is under way in session %s: cancel it first", session)
	}
	if err := s.deleteAlone(r.Context(), session); err != nil {
		return err
	}
	s.glances.forget(session)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteAlone deletes a session and its tasks as who drives it: another process that does is not to lose what it is at.
func (s *Server) deleteAlone(ctx context.Context, session string) (err error) {
	store, me := s.runs.Journal(), "delete-"+rand.Text()
	err = store.Lease(ctx, session, me, time.Now().Add(10*time.Second))
	switch {
	case errdefs.Conflict.Is(err):
		return errdefs.Conflict.Errorf("serve: a run of another process is under way in session %s: cancel it there first: %w", session, err)
	case err != nil:
		return err
	}
	defer func() {
		if err != nil {
			_ = store.Lease(context.WithoutCancel(ctx), session, me, time.Time{}) // else it runs out by itself
		}
	}()
	below, err := journal.Tasks(ctx, store, session)
	if err != nil {
		return err
	}
	for _, b := range below {
		if err := store.Delete(ctx, b); err != nil && !errdefs.NotFound.Is(err) {
			return err
		}
	}
	return store.Delete(ctx, session)
}

// entries gives what is on record, a page at a time.
func (s *Server) entries(w http.ResponseWriter, r *http.Request) error {
	session, err := s.there(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	after, err := number(q.Get("after"), "after", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	limit, err := number(q.Get("limit"), "limit", 1000, 1, 5000)
	if err != nil {
		return err
	}
	all, more := []journal.Entry{}, false
	next, stop := iter.Pull2(s.runs.Journal().Read(r.Context(), session, after))
	defer stop()
	for {
		e, err, ok := next()
		if !ok {
			break
		}
		if err != nil {
			return err
		}
		if more = len(all) == int(limit); more {
			break
		}
		all = append(all, e)
	}
	web.Write(w, http.StatusOK, struct {
		Entries []journal.Entry `json:"entries"`
		More    bool            `json:"more"`
	}{all, more})
	return nil
}

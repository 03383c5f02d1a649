package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/serve/internal/live"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// api is the run API: sessions and what runs in them.
func (s *Server) api(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		web.Bytes(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	})
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, errdefs.NotFound.Errorf("serve: there is no %s %s here: see /openapi.json", r.Method, r.URL.Path))
	})
	route := func(pattern string, h func(w http.ResponseWriter, r *http.Request) error, query ...string) {
		mux.HandleFunc(pattern, s.handled(func(w http.ResponseWriter, r *http.Request) error {
			if err := asks(r, query); err != nil {
				return err
			}
			return h(w, r)
		}))
	}
	route("POST /v1/runs", s.start)
	route("GET /v1/sessions", s.list, "limit", "after", "agent", "user", "status", "q")
	route("GET /v1/sessions/{session}", s.show, "messages")
	route("DELETE /v1/sessions/{session}", s.remove)
	route("GET /v1/sessions/{session}/entries", s.entries, "after", "limit")
	route("GET /v1/sessions/{session}/events", s.events, "after", "run", "deltas")
	route("POST /v1/sessions/{session}/resume", s.resume)
	route("POST /v1/sessions/{session}/cancel", s.cancel)
	route("POST /v1/sessions/{session}/interrupt", s.interrupt)
	route("POST /v1/sessions/{session}/steer", s.steer)
	route("POST /v1/sessions/{session}/answers", s.answer)
	route("POST /v1/sessions/{session}/fork", s.fork)
}

// asks refuses a query that has what nobody reads, as members of a body are refused.
func asks(r *http.Request, known []string) error {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errdefs.Validation.Errorf("serve: the query can't be read: %w", err)
	}
	for name, values := range all {
		switch {
		case len(known) == 0:
			return errdefs.Validation.Errorf("serve: there is no parameter %.80q: this takes none", name)
		case !slices.Contains(known, name):
			return errdefs.Validation.Errorf("serve: there is no parameter %.80q: want %s", name, strings.Join(known, ", "))
		case len(values) > 1:
			return errdefs.Validation.Errorf("serve: the parameter %s is there %d times", name, len(values))
		}
	}
	return nil
}

// flag reads true or false of a query.
func flag(text, name string) (bool, error) {
	switch text {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errdefs.Validation.Errorf("serve: %s=%.80q: want true or false", name, text)
}

// prompt is what a person says, in a request.
type prompt struct {
	Prompt  string           `json:"prompt,omitempty"`
	Files   []file           `json:"files,omitempty"`
	Message *message.Message `json:"message,omitempty"`
}

type file struct {
	MIME string `json:"mime"`
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// message is what the prompt says; ok is false when it says nothing.
func (p prompt) message() (m message.Message, ok bool, err error) {
	switch {
	case p.Message != nil && (p.Prompt != "" || len(p.Files) > 0):
		return m, false, errdefs.Validation.Errorf("serve: give a message, or a prompt with files: not both")
	case p.Message != nil && p.Message.Role() != message.RoleUser:
		return m, false, errdefs.Validation.Errorf("serve: the message is of role %q: what is said to an agent is a user's", p.Message.Role())
	case p.Message != nil:
		return *p.Message, true, p.Message.CheckFiles()
	case strings.TrimSpace(p.Prompt) == "" && len(p.Files) == 0:
		return m, false, nil
	}
	var parts []message.Part
	for _, f := range p.Files {
		parts = append(parts, message.File{MIME: f.MIME, Name: f.Name, Data: string(f.Data), URL: f.URL})
	}
	if p.Prompt != "" {
		parts = append(parts, message.Text{Text: p.Prompt})
	}
	m = message.New(message.RoleUser, parts...)
	return m, true, m.CheckFiles()
}

// said is message where something has to be said.
func (p prompt) said() (message.Message, error) {
	m, ok, err := p.message()
	if err == nil && !ok {
		err = errdefs.Validation.Errorf("serve: nothing is said: give a prompt, or a message")
	}
	return m, err
}

type started struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Known   bool   `json:"known,omitempty"`
	Events  string `json:"events"`
}

func of(run *live.Run) started {
	return started{run.Session, run.ID, run.Known, eventsOf(run)}
}

func eventsOf(run *live.Run) string {
	return "/v1/sessions/" + escaped(run.Session) + "/events?run=" + escaped(run.ID)
}

// start begins a run.
func (s *Server) start(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		prompt
		Session string         `json:"session,omitempty"`
		Run     string         `json:"run,omitempty"`
		Task    string         `json:"task,omitempty"`
		Inputs  map[string]any `json:"inputs,omitempty"`
		Wait    bool           `json:"wait,omitempty"`
	}
	if err := web.Read(w, r, s.opts.MaxBody, &in); err != nil {
		return err
	}
	m, err := in.said()
	if err != nil {
		return err
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		if in.Run != "" && in.Run != key {
			return errdefs.Validation.Errorf("serve: the run is named %q, and %q by its Idempotency-Key: give one of them", in.Run, key)
		}
		in.Run = key
	}
	if err := names(in.Session, in.Run, in.Task); err != nil {
		return err
	}
	req := pawl.Request{SessionID: in.Session}
	req.Message, req.RunID, req.TaskID, req.Inputs = m, in.Run, in.Task, in.Inputs
	run, err := s.runs.Start(r.Context(), req)
	if err != nil {
		return err
	}
	return s.begun(w, r, run, in.Wait)
}

// names refuses names that nobody can mean.
func names(all ...string) error {
	for _, n := range all {
		if len(n) > 512 || strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return errdefs.Validation.Errorf("serve: the name %.80q: at most 512 bytes and no control characters, please", n)
		}
	}
	return nil
}

// begun answers with a run that was begun: as its events, as what came of it, or as where to look.
func (s *Server) begun(w http.ResponseWriter, r *http.Request, run *live.Run, wait bool) error {
	w.Header().Set("Location", eventsOf(run))
	switch {
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		return s.follow(w, r, run.Session, cursor{At: run.From()}, run.ID, true)
	case wait:
		return s.waited(w, r, run)
	}
	status := http.StatusAccepted
	if run.Known {
		status = http.StatusOK
	}
	web.Write(w, status, of(run))
	return nil
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Wait bool `json:"wait,omitempty"`
	}
	if err := web.Read(w, r, s.opts.MaxBody, &in); err != nil {
		return err
	}
	session, err := s.there(r)
	if err != nil {
		return err
	}
	run, err := s.runs.Resume(r.Context(), session)
	if err != nil {
		return err
	}
	return s.begun(w, r, run, in.Wait)
}

// cancel ends the unfinished run, as canceled: what it is at is broken off, and what it waits for is given up.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Wait bool `json:"wait,omitempty"`
	}
	return s.ends(w, r, &in, &in.Wait, func(ctx context.Context, session string) (*live.Run, error) { return s.runs.End(ctx, session, "") })
}

// interrupt stops what runs at its next step: it can be resumed.
func (s *Server) interrupt(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Reason string `json:"reason,omitempty"`
		Wait   bool   `json:"wait,omitempty"`
	}
	return s.ends(w, r, &in, &in.Wait, func(ctx context.Context, session string) (*live.Run, error) {
		run, err := s.runs.Begun(ctx, session)
		if err != nil {
			return nil, err
		}
		if run == nil {
			return nil, errdefs.Conflict.Errorf("serve: no run is under way here in session %s: it is over or waits, or another process drives it", session)
		}
		run.Interrupt(engine.Interrupt{Cause: engine.CauseUserCancel, Detail: in.Reason})
		return run, nil
	})
}

// ends reads a request, has its session's run end or stop, and answers with the run, or, when that is to be waited for, with where the session stands then.
func (s *Server) ends(w http.ResponseWriter, r *http.Request, in any, wait *bool, end func(ctx context.Context, session string) (*live.Run, error)) error {
	if r.ContentLength != 0 {
		if err := web.Read(w, r, s.opts.MaxBody, in); err != nil {
			return err
		}
	}
	session, err := s.there(r)
	if err != nil {
		return err
	}
	run, err := end(r.Context(), session)
	if err != nil {
		return err
	}
	if *wait {
		return s.waited(w, r, run)
	}
	web.Write(w, http.StatusAccepted, of(run))
	return nil
}

// waited answers with where the session stands when the run is over.
func (s *Server) waited(w http.ResponseWriter, r *http.Request, run *live.Run) error {
	select {
	case <-run.Done():
	case <-r.Context().Done():
	}
	select {
	case <-run.Done():
	default:
		return context.Cause(r.Context())
	}
	state, err := s.state(context.WithoutCancel(r.Context()), run.Session) // also when the server is to stop, which has ended the run
	if err != nil {
		return err
	}
	web.Write(w, http.StatusOK, state)
	return nil
}

func (s *Server) steer(w http.ResponseWriter, r *http.Request) error {
	var in prompt
	if err := web.Read(w, r, s.opts.MaxBody, &in); err != nil {
		return err
	}
	m, err := in.said()
	if err != nil {
		return err
	}
	session, err := s.there(r)
	if err != nil {
		return err
	}
	if err := agent.Steer(r.Context(), s.runs.Journal(), session, m); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		ID       string          `json:"id"`
		Approved bool            `json:"approved"`
		Text     string          `json:"text,omitempty"`
		Input    json.RawMessage `json:"input,omitempty"`
		By       string          `json:"by,omitempty"`
		Session  bool            `json:"session,omitempty"`
		Rule     string          `json:"rule,omitempty"`
	}
	if err := web.Read(w, r, s.opts.MaxBody, &in); err != nil {
		return err
	}
	session, err := s.there(r)
	if err != nil {
		return err
	}
	if in.ID == "" {
		return errdefs.Validation.Errorf("serve: an answer needs the id of what it answers: see pending of the session")
	}
	a := journal.Answered{ID: in.ID, Approved: in.Approved, Text: in.Text, Input: edited(in.Input), By: in.By, Session: in.Session, Rule: in.Rule}
	if err := s.runs.Answer(r.Context(), session, a); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// edited is what a call is to run with instead: an object, or the text of one, as pending shows it; "" when nothing is.
func edited(raw json.RawMessage) string {
	var text string
	switch {
	case string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil && text != "":
		return text
	}
	return string(raw)
}

// fork makes a session of another one's beginning, and begins a run in it when something is said.
func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		prompt
		At   int64  `json:"at,omitempty"`
		As   string `json:"as,omitempty"`
		Wait bool   `json:"wait,omitempty"`
	}
	if err := web.Read(w, r, s.opts.MaxBody, &in); err != nil {
		return err
	}
	m, says, err := in.message()
	if err != nil {
		return err
	}
	session, err := s.there(r)
	if err != nil {
		return err
	}
	if err := names(in.As); err != nil {
		return err
	}
	name, err := journal.Fork(r.Context(), s.runs.Journal(), session, in.At, in.As)
	if err != nil {
		return err
	}
	if !says {
		web.Write(w, http.StatusCreated, struct {
			Session string `json:"session"`
		}{name})
		return nil
	}
	req := pawl.Request{SessionID: name}
	req.Message = m
	run, err := s.runs.Start(r.Context(), req)
	if err != nil {
		return err
	}
	return s.begun(w, r, run, in.Wait)
}

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

package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
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

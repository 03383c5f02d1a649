package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/serve/internal/chat"
	"github.com/pawl-dev/pawl/serve/internal/live"
	"github.com/pawl-dev/pawl/serve/internal/web"
	"github.com/pawl-dev/pawl/stream"
)

// sessionHeader names the session that a chat goes on in, and in an answer the one that it was in.
const sessionHeader = "X-Pawl-Session"

// chat is OpenAI's chat completions, for front ends that know these.
func (s *Server) chat(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/chat/completions", s.handled(s.complete))
	mux.HandleFunc("GET /v1/models", s.handled(func(w http.ResponseWriter, _ *http.Request) error {
		web.Write(w, http.StatusOK, struct {
			Object string       `json:"object"`
			Data   []chat.Model `json:"data"`
		}{"list", []chat.Model{s.model()}})
		return nil
	}))
	mux.HandleFunc("GET /v1/models/{model}", s.handled(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.isModel(r.PathValue("model")); err != nil {
			return err
		}
		web.Write(w, http.StatusOK, s.model())
		return nil
	}))
}

// handled answers with what a handler fails with.
func (s *Server) handled(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// inChat reports whether a request is of a client that reads errors as OpenAI tells them.
func inChat(r *http.Request) bool {
	p := r.URL.Path
	return p == "/v1/chat/completions" || p == "/v1/models" || strings.HasPrefix(p, "/v1/models/")
}

// model is the agent, in the words of this door.
func (s *Server) model() chat.Model {
	return chat.Model{ID: s.opts.Card.Name, Object: "model", Created: s.began.Unix(), Owner: "pawl"}
}

func (s *Server) isModel(id string) error {
	if id == s.opts.Card.Name {
		return nil
	}
	return &chat.ParamError{Param: "model", Code: "model_not_found", Err: errdefs.NotFound.Errorf("serve: model: there is no %.80q: this server has %q", id, s.opts.Card.Name)}
}

// talk is a run that a chat listens to.
type talk struct {
	session, run string
	from         stream.Position
	named        bool // by the client: its next message goes on here
	chat.Teller
}

// complete answers a chat. A client that goes away wants it no more: its run is cancelled.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) error {
	b, err := web.Body(w, r, s.opts.MaxBody)
	if err != nil {
		return err
	}
	req, err := chat.Parse(b)
	if err != nil {
		return err
	}
	if err := s.isModel(req.Model); err != nil {
		return err
	}
	if h := r.Header.Get(sessionHeader); h != "" {
		if req.Session != "" && req.Session != h {
			return errdefs.Validation.Errorf("serve: the session is %q by the header %s, and %q by metadata: give one of them", h, sessionHeader, req.Session)
		}
		req.Session = h
	}
	if err := names(req.Session, req.User); err != nil {
		return err
	}
	t, err := s.talk(r.Context(), req)
	if err != nil {
		return err
	}
	w.Header().Set(sessionHeader, t.session)
	w.Header().Set("X-Should-Retry", "false") // OpenAI's SDKs ask again by themselves when something failed: all that the run did would be done twice
	answer := chat.Answer{ID: "chatcmpl-" + t.run, Object: "chat.completion", Created: time.Now().Unix(), Model: req.Model}
	if req.Stream {
		s.tell(w, r, t, answer, req.IncludeUsage)
		return nil
	}
	m := chat.Message{Role: "assistant"}
	last, finish, err := s.listen(r.Context(), t, func(e event.Event) error {
		if e.Data == nil && e.Delta != event.RunLeft {
			return nil // what is void later never gets here
		}
		if d, ok := e.Data.(journal.RunStarted); ok && d.Attempt > 1 {
			m.Content, m.Reasoning, t.Teller = "", "", chat.Teller{Run: t.Run, Usage: t.Usage}
			return nil
		}
		p := t.Tell(e)
		m.Content, m.Reasoning = m.Content+p.Text, m.Reasoning+p.Reasoning
		return nil
	})
	if err != nil {
		return err
	}
	m.Content += last
	answer.Choices, answer.Usage = []chat.Choice{{Message: &m, Finish: &finish}}, chat.UsageOf(t.Usage)
	web.Write(w, http.StatusOK, answer)
	return nil
}

// tell streams an answer in chunks.
func (s *Server) tell(w http.ResponseWriter, r *http.Request, t *talk, chunk chat.Answer, usage bool) {
	events := web.Stream(w)
	defer events.Close()
	chunk.Object = "chat.completion.chunk"
	send := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return events.Send("", "", b)
	}
	part := func(d chat.Delta, finish *string) error {
		chunk.Choices = []chat.Choice{{Delta: &d, Finish: finish}}
		return send(chunk)
	}
	none := ""
	_ = part(chat.Delta{Role: "assistant", Content: &none}, nil)
	last, finish, err := s.listen(r.Context(), t, func(e event.Event) error {
		p := t.Tell(e)
		if p.Reasoning != "" {
			if err := part(chat.Delta{Reasoning: p.Reasoning}, nil); err != nil {
				return err
			}
		}
		if p.Text != "" {
			return part(chat.Delta{Content: &p.Text}, nil)
		}
		return nil
	})
	if err != nil {
		_ = send(map[string]chat.Problem{"error": chat.ProblemOf(err)})
		return
	}
	if last != "" {
		_ = part(chat.Delta{Content: &last}, nil)
	}
	_ = part(chat.Delta{}, &finish)
	if usage {
		chunk.Choices, chunk.Usage = []chat.Choice{}, chat.UsageOf(t.Usage)
		_ = send(chunk)
	}
	_ = events.Send("", "", []byte("[DONE]"))
}

// talk begins what a request asks for: a run, or in a session that waits for a person the answer to that.
func (s *Server) talk(ctx context.Context, req chat.Request) (*talk, error) {
	if req.Session != "" {
		t, err := s.answered(ctx, req)
		if t != nil || err != nil {
			return t, err
		}
	}
	ask := pawl.Request{SessionID: req.Session}
	ask.Message = req.Message
	var opts []agent.RunOption
	if req.System != "" {
		opts = append(opts, instructed("chat", req.System))
	}
	if req.User != "" {
		opts = append(opts, agent.WithAttributes(map[string]string{"user.id": req.User}))
	}
	if req.Session == "" {
		opts = append(opts, agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, ask *agent.Request) (*engine.Board, error) {
			return agent.BoardWith(req.History, ask), nil
		}))
	}
	run, err := s.runs.Start(ctx, ask, opts...)
	if err != nil {
		return nil, err
	}
	return talkOf(run, req.Session != ""), nil
}

func talkOf(run *live.Run, named bool) *talk {
	return &talk{session: run.Session, run: run.ID, from: run.From(), named: named, Teller: chat.Teller{Run: run.ID}}
}

// instructed puts what a client says as the system behind the agent's own instructions, in this run.
func instructed(who, text string) agent.RunOption {
	return agent.WithHooks(hook.Middleware{Name: who, PreGeneration: func(_ context.Context, g *hook.Generation) error {
		g.System = strings.TrimSpace(g.System + "\n\n" + text)
		return nil
	}})
}

// answered takes a message for the answer to what waits in a session; nil when nothing does.
func (s *Server) answered(ctx context.Context, req chat.Request) (*talk, error) {
	waits, err := agent.Pending(ctx, s.runs.Journal(), req.Session)
	if err != nil || len(waits) == 0 {
		return nil, err
	}
	if req.Message.HasFiles() {
		return nil, errdefs.Validation.Errorf("serve: session %s waits for an answer, which is text: send the files with a later message", req.Session)
	}
	log, err := journal.Open(ctx, s.runs.Journal(), req.Session)
	if err != nil {
		return nil, err
	}
	st := log.State()
	if err := s.runs.Answer(ctx, req.Session, answerOf(waits[0], req.Message.Text(), cmp.Or(req.User, "chat"))); err != nil {
		return nil, err
	}
	return &talk{session: req.Session, run: st.Run, from: stream.Position{Seq: st.Seq}, named: true, Teller: chat.Teller{Run: st.Run}}, nil
}

// answerOf is what a person's words say of a question. Only a plain yes approves.
func answerOf(p journal.Pending, text, by string) journal.Answered {
	a := journal.Answered{ID: p.ID, By: by}
	word := strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!"))
	switch {
	case p.Call == nil && !p.Confirm:
		a.Approved, a.Text = true, text
	case word == "yes" || word == "y":
		a.Approved = true
	case word == "no" || word == "n":
	default:
		a.Text = text // why not
	}
	return a
}

// question is what a person is asked, and how he answers.
func (t *talk) question(p journal.Pending) string {
	var b strings.Builder
	switch {
	case p.Call != nil:
		fmt.Fprintf(&b, "May this run?\n\n%s %s", p.Call.Name, p.Call.Input)
		if p.Prompt != "" {
			fmt.Fprintf(&b, "\n\n%s", p.Prompt)
		}
	default:
		b.WriteString(p.Prompt)
	}
	switch {
	case !t.named:
		fmt.Fprintf(&b, "\n\nThis waits for an answer: POST /v1/sessions/%s/answers, with the id %q. A chat that names its session by %s is answered by its next message.", url.PathEscape(t.session), p.ID, sessionHeader)
	case p.Call != nil || p.Confirm:
		b.WriteString("\n\nAnswer yes or no. Whatever else is said is a no, and is told to the agent.")
	}
	return b.String()
}

// listen hands a run's events on until it is over. It gives what is to be said last, and why the answer ends. When the client has gone away the run is cancelled.
func (s *Server) listen(ctx context.Context, t *talk, on func(event.Event) error) (last, finish string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for news, err := range s.runs.Follow(ctx, t.session, t.from) {
		if err != nil {
			return "", "", err
		}
		for _, e := range news.Events {
			if err := on(e); err != nil {
				s.drop(t)
				return "", "", err
			}
			if t.End == nil && t.Left == "" {
				continue
			}
			if d, ok := t.End.(journal.Parked); ok && d.Cause == string(engine.CauseAwaitingPerson) {
				waits, err := agent.Pending(ctx, s.runs.Journal(), t.session)
				if err != nil {
					return "", "", err
				}
				if len(waits) == 0 { // it was answered meanwhile, and goes on
					t.End = nil
					continue
				}
				return t.apart() + t.question(waits[0]), "stop", nil
			}
			s.runs.Settle(ctx, t.session, t.run)
			finish, err := t.over()
			return "", finish, err
		}
	}
	if err = context.Cause(ctx); !errors.Is(err, errStopping) {
		s.drop(t)
	}
	return "", "", err
}

// drop cancels a run that nobody waits for any more.
func (s *Server) drop(t *talk) {
	if run := s.runs.Under(t.session, t.run); run != nil {
		run.Cancel()
	}
}

// apart separates what the server says from what the agent said.
func (t *talk) apart() string {
	if t.Said() {
		return "\n\n"
	}
	return ""
}

// over says why the answer ended.
func (t *talk) over() (finish string, err error) {
	switch d := t.End.(type) {
	case journal.RunFinished:
		class := errdefs.Named(d.Class)
		switch {
		case d.Status == string(agent.StatusCompleted) && t.Stop == model.StopLength, class == errdefs.Truncated:
			return "length", nil
		case d.Status == string(agent.StatusCompleted):
			return "stop", nil
		case class == errdefs.Refused:
			return "content_filter", nil
		case d.Status == string(agent.StatusCanceled):
			return "", errdefs.Aborted.Errorf("serve: run %s was canceled", t.run)
		case class == nil:
			class = errdefs.Internal
		}
		return "", &chat.RunError{Err: class.Errorf("%w", errors.New(cmp.Or(d.Error, d.Reason, "the run "+d.Status)))}
	case journal.Parked:
		return "", errdefs.NotAvailable.Errorf("serve: run %s was interrupted (%s) and can be resumed: POST /v1/sessions/%s/resume", t.run, cmp.Or(d.Detail, d.Cause), url.PathEscape(t.session))
	}
	return "", errdefs.NotAvailable.Errorf("serve: run %s was left: %s", t.run, t.Left)
}

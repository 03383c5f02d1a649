package a2aserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/journal"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

func validJSON(b []byte) bool { return json.Valid(b) }

// stands is where a task stands now. One that was left, with nobody to go on with it, waits like one that asks something: a message to it has it go on.
func (s *Server) stands(ctx context.Context, r *reading) (st a2a.TaskStatus, pending []journal.Pending, err error) {
	if r.over != "" {
		return r.ended(), nil, nil
	}
	st = a2a.TaskStatus{State: a2a.StateWorking, Timestamp: r.at}
	if r.parked == nil && s.driven(ctx, r.session) {
		return st, nil, nil
	}
	if pending, err = agent.Pending(ctx, s.runs.Journal(), r.session); err != nil {
		return st, nil, err
	}
	switch {
	case len(pending) > 0:
		st.State, st.Message = a2a.StateInputRequired, r.asks(pending)
	case r.parked != nil && r.parked.Cause == string(engine.CauseAwaitingPerson) && s.driven(ctx, r.session): // it was answered, and is about to go on
	default:
		why := "the process that worked on it is gone"
		if r.parked != nil {
			why = strings.ReplaceAll(r.parked.Cause, "_", " ")
			if r.parked.Detail != "" {
				why += ": " + r.parked.Detail
			}
		}
		st.State, st.Message = a2a.StateInputRequired, r.speech("left-"+number(r.seq), a2a.Text("The task was left unfinished ("+why+"). Any message to it has it go on."))
	}
	return st, pending, nil
}

// driven reports whether somebody works on a session's run: here, or in another process that is alive.
func (s *Server) driven(ctx context.Context, session string) bool {
	if s.runs.Drives(session) {
		return true
	}
	err := s.runs.Journal().Lease(ctx, session, "a2a-looks", time.Time{}) // refused while somebody has it, else it changes nothing
	return errdefs.Conflict.Is(err)
}

// asks is what a task wants to know: in words, and as data, one part a question.
func (r *reading) asks(pending []journal.Pending) *a2a.Message {
	var words []string
	var data []a2a.Part
	for _, p := range pending {
		words = append(words, question(p.Asked))
		data = append(data, a2a.Data(r.asked(p)))
	}
	text := words[0]
	if len(words) > 1 {
		text = "Several questions wait; a plain text answers the first one.\n\n" + strings.Join(words, "\n\n")
	}
	return r.speech("asks-"+pending[0].ID, append([]a2a.Part{a2a.Text(text)}, data...)...)
}

// asked is a question as data.
func (r *reading) asked(p journal.Pending) json.RawMessage {
	out := struct {
		Type     string          `json:"type"` // "approval" or "question"
		ID       string          `json:"id"`
		Prompt   string          `json:"prompt,omitempty"`
		Call     string          `json:"call,omitempty"` // the tool that wants to run
		Input    json.RawMessage `json:"input,omitempty"`
		Unknown  bool            `json:"unknown,omitempty"` // the call had begun, and nobody knows what came of it
		Choices  []string        `json:"choices,omitempty"`
		Deadline *time.Time      `json:"deadline,omitempty"`
	}{Type: "question", ID: p.ID, Prompt: p.Prompt, Unknown: p.Unknown}
	switch {
	case p.Call != nil:
		out.Type, out.Call, out.Input = "approval", p.Call.Name, raw(p.Call.Input)
	case p.Confirm:
		out.Type = "approval"
	default:
		id, _, _ := strings.Cut(p.ID, "/question-")
		out.Choices = choices(r.calls[id].Input)
	}
	if d := p.Deadline(); !d.IsZero() {
		out.Deadline = &d
	}
	b, err := json.Marshal(out)
	if err != nil { // it has what was JSON before
		b = []byte(`{}`)
	}
	return b
}

// raw is a call's input as JSON: what isn't is a string.
func raw(input string) json.RawMessage {
	if json.Valid([]byte(input)) {
		return json.RawMessage(input)
	}
	b, _ := json.Marshal(input) //nolint:errchkjson // a string
	return b
}

// choices are those that a call which asks a person gives him, as ask_user does.
func choices(input string) (all []string) {
	var in struct {
		Options []struct {
			Label string `json:"label"`
		} `json:"options"`
	}
	if exact.Unmarshal([]byte(input), &in) != nil {
		return nil
	}
	for _, o := range in.Options {
		all = append(all, o.Label)
	}
	return all
}

// question is what is asked, in words.
func question(q journal.Asked) string {
	switch {
	case q.Call == nil:
		return q.Prompt
	case q.Unknown:
		return fmt.Sprintf("%s had begun when its process died, and nobody knows what came of it. Run it again? Answer yes or no.\n%s", q.Call.Name, q.Call.Input)
	case q.Prompt != "":
		return fmt.Sprintf("May %s run? Answer yes or no.\n%s\n%s", q.Call.Name, q.Prompt, q.Call.Input)
	}
	return fmt.Sprintf("May %s run? Answer yes or no.\n%s", q.Call.Name, q.Call.Input)
}

// answered is what was answered, in words.
func answered(a journal.Answered) string {
	word := "no"
	if a.Approved {
		word = "yes"
	}
	if a.Text == "" {
		return word
	}
	if a.Approved {
		return a.Text
	}
	return word + ": " + a.Text
}

// edited is an answer that gave a call another input, as data: as a client gives it.
func edited(a journal.Answered) json.RawMessage {
	b, err := json.Marshal(struct {
		ID       string          `json:"id"`
		Approved bool            `json:"approved"`
		Input    json.RawMessage `json:"input"`
	}{a.ID, a.Approved, raw(a.Input)})
	if err != nil { // it has what was JSON before
		b = []byte(`{}`)
	}
	return b
}

// look says where a task stands, and reads on where that turns out to be older than what it is seen by.
func (s *Server) look(ctx context.Context, r *reading) (*reading, a2a.TaskStatus, []journal.Pending, error) {
	for {
		st, pending, err := s.stands(ctx, r)
		if err != nil || !st.State.Waits() {
			return r, st, pending, err
		}
		more, err := s.more(ctx, r)
		if err != nil || !more {
			return r, st, pending, err
		}
		now, err := s.read(ctx, r.place)
		if err != nil || now == nil {
			return r, st, pending, err
		}
		r = now
	}
}

// more reports whether there is more on record than was read.
func (s *Server) more(ctx context.Context, r *reading) (bool, error) {
	for i, err := range s.runs.Journal().Sessions(ctx, journal.Query{Session: r.session, Limit: 1}) {
		return i.Seq > r.seq, err
	}
	return false, nil
}

// task is the task as it stands.
func (s *Server) task(ctx context.Context, r *reading, history *int) (*a2a.Task, error) {
	r, st, _, err := s.look(ctx, r)
	if err != nil {
		return nil, err
	}
	return r.task(st, history), nil
}

func (r *reading) task(st a2a.TaskStatus, history *int) *a2a.Task {
	t := &a2a.Task{ID: r.id(), ContextID: r.session, Status: st, Artifacts: r.artifacts(), History: r.history}
	if history != nil {
		t.History = slices.Clone(t.History[max(0, len(t.History)-*history):])
	}
	return t
}

// rests reports whether nothing comes of a task by itself.
func rests(st a2a.TaskState) bool { return st.Terminal() || st.Waits() }

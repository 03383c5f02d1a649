package a2aserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// lastWords is how long it may take to say where a task stands.
const lastWords = 10 * time.Second

func (c *call) send() (any, error) {
	var in a2a.SendRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	r, err := c.said(&in)
	if err != nil {
		return nil, err
	}
	ctx := c.context()
	if !in.Configuration.ReturnImmediately {
		settled, err := c.s.settle(ctx, r)
		stops := errdefs.NotAvailable.Is(context.Cause(ctx))
		if err != nil && !stops {
			return nil, err
		}
		if r = settled; stops {
			r.early = true
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWords) // also when the server stops: the answer says how it leaves the task
		defer cancel()
	}
	if r.early {
		if r, err = c.s.read(ctx, r.place); err != nil {
			return nil, err
		}
	}
	task, err := c.s.task(ctx, r, in.Configuration.HistoryLength)
	return a2a.Event{Task: task}, err
}

func (c *call) stream() (any, error) {
	var in a2a.SendRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	r, err := c.said(&in)
	if err != nil {
		return nil, err
	}
	return nil, c.streams(r, false, in.Configuration.HistoryLength)
}

// said puts a message on record, and has what it is said to go on. It gives the task.
func (c *call) said(in *a2a.SendRequest) (*reading, error) {
	m := in.Message
	if err := checkName(m.ContextID); err != nil {
		return nil, err
	}
	if len(m.ID) > 512 {
		return nil, a2a.Errorf(a2a.CodeInvalidParams, "message.messageId: %d bytes: at most 512, please", len(m.ID))
	}
	if !c.s.out.meet(in.Configuration.AcceptedOutputModes) {
		return nil, a2a.Errorf(a2a.CodeContentTypeNotSupported, "configuration.acceptedOutputModes: %s: this agent answers in %s", strings.Join(in.Configuration.AcceptedOutputModes, ", "), strings.Join(c.s.out, ", "))
	}
	what, err := c.s.message(m)
	if err != nil {
		return nil, err
	}
	if in.Configuration.Push != nil {
		if err := c.s.push.check(in.Configuration.Push); err != nil {
			return nil, err
		}
	}
	var r *reading
	if m.TaskID == "" {
		r, err = c.s.begin(c.context(), in, what)
	} else {
		r, err = c.s.tell(c.context(), m, what)
	}
	if err != nil {
		return nil, err
	}
	if p := in.Configuration.Push; p != nil {
		p.TaskID = r.id()
		if _, err := c.s.push.set(c.context(), c.version, *p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// begin begins a task, or finds that which the same message began.
func (s *Server) begin(ctx context.Context, in *a2a.SendRequest, m message.Message) (*reading, error) {
	run, err := runOf(in.Message)
	if err != nil {
		return nil, err
	}
	session := in.Message.ContextID
	if session == "" {
		session = run
	}
	p := place{session, run}
	if r, err := s.read(ctx, p); err != nil || r != nil && r.over != "" {
		return r, err
	}
	log, err := journal.Open(ctx, s.runs.Journal(), session)
	if err != nil {
		return nil, err
	}
	if under := log.Run(); under != "" && under != run {
		return nil, s.busy(place{session, under})
	}
	var req pawl.Request
	req.SessionID, req.ContextID, req.RunID, req.TaskID, req.Message = session, session, run, p.id(), m
	if modes := in.Configuration.AcceptedOutputModes; len(modes) > 0 {
		req.Config = &agent.RequestConfig{AcceptedOutputModes: modes}
	}
	began, err := s.runs.Start(ctx, req)
	if err != nil {
		if !errdefs.Conflict.Is(err) {
			return nil, err
		}
		if log, e := journal.Open(ctx, s.runs.Journal(), session); e == nil && log.Run() != "" && log.Run() != run {
			return nil, s.busy(place{session, log.Run()})
		}
		return nil, err
	}
	if began.Known {
		return s.read(ctx, p)
	}
	r := newReading(p, s.opts.Artifacts) // as it was when it began, so that who follows it has all that is said
	for e, err := range s.runs.Journal().Read(ctx, session, began.From().Seq) {
		if err != nil {
			return nil, err
		}
		r.entry(e)
		if _, first := e.Data.(journal.Said); first && e.Run == run {
			break
		}
	}
	r.early = true
	s.lists.note(p, r.first)
	return r, nil
}

// busy is of a context whose task is not over: nothing that waits there is to be given up because somebody says something else.
func (s *Server) busy(p place) error {
	return a2a.Errorf(a2a.CodeUnsupportedOperation, "context %.200q works on one task at a time, and task %s is not over: send the message to it (taskId), wait for it, or cancel it", p.session, p.id())
}

// tell says something to a task: to one that asks it is the answer, to one under way something more, and one that was left goes on.
func (s *Server) tell(ctx context.Context, m a2a.Message, what message.Message) (*reading, error) {
	r, err := s.find(ctx, m.TaskID)
	switch {
	case err != nil:
		return nil, err
	case m.ContextID != "" && m.ContextID != r.session:
		return nil, a2a.Errorf(a2a.CodeInvalidParams, "message.contextId: task %s is of context %.200q", r.id(), r.session)
	}
	r, st, pending, err := s.look(ctx, r)
	if err != nil {
		return nil, err
	}
	known, err := s.knows(ctx, r, saidAs(m)) // behind the look: what waits no more may have been answered by this very message
	if err != nil || known && r.over != "" {
		return r, err
	}
	if r.over != "" {
		return nil, a2a.Errorf(a2a.CodeUnsupportedOperation, "task %s is over (%s) and takes no message: begin a new one in its context, %s", r.id(), r.over, r.session)
	}
	switch {
	case known: // whoever put it on record may have died before the task went on
	case len(pending) > 0:
		err = s.answer(ctx, r, m, pending)
	default:
		err = agent.SteerOnce(ctx, s.runs.Journal(), r.session, saidAs(m), what)
	}
	if err == nil && len(pending) == 0 && st.State.Waits() {
		err = s.runs.Wake(ctx, r.session)
	}
	if errdefs.Conflict.Is(err) { // it came to an end meanwhile, or somebody else answered: with this very message, perhaps
		if known, e := s.knows(ctx, r, saidAs(m)); e == nil && known {
			err = nil
		} else {
			err = a2a.Errorf(a2a.CodeUnsupportedOperation, "%v", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.read(ctx, r.place)
}

// knows reports whether a message was said to a task before.
func (s *Server) knows(ctx context.Context, r *reading, name string) (bool, error) {
	if r.heard[name] {
		return true, nil
	}
	return s.said(ctx, r.session, r.run, name)
}

// said reports whether a message was said to a run, or answered what one below it asked. A session below has one run: "" stands for it.
func (s *Server) said(ctx context.Context, session, run, name string) (bool, error) {
	var below []string
	for e, err := range s.runs.Journal().Read(ctx, session, 0) {
		if err != nil {
			return false, err
		}
		if run != "" && e.Run != run {
			continue
		}
		switch d := e.Data.(type) {
		case journal.Answered:
			if d.By == name {
				return true, nil
			}
		case journal.Said:
			if run != "" && e.Key.ID == name {
				return true, nil
			}
		case journal.TaskStarted:
			if strings.HasPrefix(d.Session, session+"/") { // names grow longer downward: it comes to an end
				below = append(below, d.Session)
			}
		}
	}
	for _, session := range below {
		if is, err := s.said(ctx, session, "", name); is || err != nil && !errdefs.NotFound.Is(err) { // one that is not there has heard nothing
			return is, err
		}
	}
	return false, nil
}

// answers to what a task asks, as data.
type answerData struct {
	ID       string          `json:"id"`
	Approved *bool           `json:"approved"`
	Text     string          `json:"text"`
	Input    json.RawMessage `json:"input"`
}

// answer answers what waits: each part of data the question that it names, and text the first one.
func (s *Server) answer(ctx context.Context, r *reading, m a2a.Message, pending []journal.Pending) error {
	var all []journal.Answered
	var words []string
	for i, p := range m.Parts {
		switch p.Kind {
		case a2a.PartText:
			words = append(words, p.Text)
		case a2a.PartData:
			var d answerData
			if err := exact.Unmarshal(p.Data, &d); err != nil {
				return a2a.Errorf(a2a.CodeInvalidParams, "message.parts[%d].data: %v: want {id, approved, text, input}", i, err)
			}
			if d.ID == "" {
				d.ID = pending[0].ID
			}
			at := slices.IndexFunc(pending, func(q journal.Pending) bool { return q.ID == d.ID })
			if at < 0 {
				return a2a.Errorf(a2a.CodeInvalidParams, "message.parts[%d].data: %.200q is no question that waits: see the data of the task's status", i, d.ID)
			}
			a := journal.Answered{ID: d.ID, Text: d.Text, Input: string(d.Input), By: saidAs(m)}
			if string(d.Input) == "null" {
				a.Input = ""
			}
			switch q := pending[at]; {
			case d.Approved != nil:
				a.Approved = *d.Approved
			case q.Call == nil && !q.Confirm:
				a.Approved = true
			default:
				return a2a.Errorf(a2a.CodeInvalidParams, "message.parts[%d].data: say approved: true or false", i)
			}
			all = append(all, a)
		default:
			return a2a.Errorf(a2a.CodeInvalidParams, "message.parts[%d]: the task asks something: answer by text, or by data {id, approved, text, input}", i)
		}
	}
	if len(all) == 0 {
		all = append(all, inWords(pending[0], strings.TrimSpace(strings.Join(words, "\n")), saidAs(m)))
	} else if len(words) > 0 && all[0].Text == "" {
		all[0].Text = strings.TrimSpace(strings.Join(words, "\n"))
	}
	for _, a := range all {
		if err := s.runs.Answer(ctx, r.session, a); err != nil {
			return err
		}
	}
	if len(all) < len(pending) || s.driven(ctx, r.session) {
		return nil
	}
	return s.runs.Wake(ctx, r.session) // its process died while it asked
}

// inWords is an answer in a person's words. To what wants a yes or no, anything else is a no, and why.
func inWords(q journal.Pending, text, by string) journal.Answered {
	a := journal.Answered{ID: q.ID, Text: text, By: by}
	if q.Call == nil && !q.Confirm {
		a.Approved = true
		return a
	}
	switch strings.ToLower(strings.TrimRight(text, ".! ")) {
	case "yes", "y", "ok", "okay", "approve", "approved", "allow":
		a.Approved, a.Text = true, ""
	case "no", "n", "deny", "denied", "reject", "rejected":
		a.Text = ""
	}
	return a
}

func (c *call) get() (any, error) {
	var in a2a.GetTaskRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	r, err := c.s.find(c.context(), in.ID)
	if err != nil {
		return nil, err
	}
	task, err := c.s.task(c.context(), r, in.HistoryLength)
	return task, err
}

// cancel ends a task that is under way here, or that waits.
func (c *call) cancel() (any, error) {
	var in a2a.CancelTaskRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	r, err := c.s.find(c.context(), in.ID)
	switch {
	case err != nil:
		return nil, err
	case r.over != "":
		return nil, a2a.Errorf(a2a.CodeTaskNotCancelable, "task %s is over (%s)", r.id(), r.over)
	}
	run, err := c.s.runs.End(c.context(), r.session, r.run)
	switch {
	case errdefs.Conflict.Is(err):
		return nil, a2a.Errorf(a2a.CodeTaskNotCancelable, "another process works on task %s: ask that one", r.id())
	case err != nil && !errdefs.NotFound.Is(err): // it has just ended
		return nil, err
	case err == nil:
		select {
		case <-run.Done():
		case <-c.context().Done():
			return nil, context.Cause(c.context())
		}
	}
	now, err := c.s.read(c.context(), r.place)
	if err != nil || now == nil {
		return nil, err
	}
	if now.over != a2a.StateCanceled && now.over != "" {
		return nil, a2a.Errorf(a2a.CodeTaskNotCancelable, "task %s ended before it could be canceled (%s)", now.id(), now.over)
	}
	return c.s.task(c.context(), now, nil)
}

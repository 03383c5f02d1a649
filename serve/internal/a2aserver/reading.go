package a2aserver

import (
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// answerID is the artifact that has the agent's answer. Those of channels have the channel's name behind channelID.
const answerID, channelID = "answer", "board/"

// reading is a task as its session's entries tell it, read one after the other. What it comes to is the same whoever reads.
type reading struct {
	place
	channels []string        // of the board, that are artifacts
	tell     func(a2a.Event) // nil: nobody follows
	found    bool
	early    bool              // there is more on record than was read
	below    bool              // it is a run below another one
	first    int64             // the number of its first entry
	seq      int64             // the newest one's
	at       time.Time         // since when it stands as it does
	over     a2a.TaskState     // how it ended; "" while it is not over
	parked   *journal.Parked   // it was left, and nobody has gone on with it
	words    string            // of its end
	class    string            // of what it failed with
	json     bool              // its answer is JSON
	said     []message.Message // of the transcript, by this attempt: what the answer is read from
	stop     model.StopReason  // of the last reply
	try      int               // of the model call under way: deltas of an earlier one are void
	base     string            // what the reply under way goes on from
	shown    strings.Builder   // the answer, as far as it was told
	fresh    bool              // what is told next takes the place of what was told
	closed   bool              // the answer was told to its end
	board    journal.Snapshot
	history  []a2a.Message
	heard    map[string]bool           // names of messages that were said to it
	calls    map[string]journal.Called // that began, by id
}

func newReading(p place, channels []string) *reading {
	return &reading{place: p, channels: channels, fresh: true, heard: map[string]bool{}, calls: map[string]journal.Called{}}
}

// entry reads one further entry.
func (r *reading) entry(e journal.Entry) {
	r.seq = e.Seq
	if e.Run != r.run {
		if d, ok := e.Data.(journal.RunStarted); ok && r.found && r.over == "" && d.ParentRun == "" { // a session has one unfinished run
			r.end(e.Time, a2a.StateCanceled, "", "another task of this context took its place")
		}
		return
	}
	if !r.found {
		if _, ok := e.Data.(journal.RunStarted); !ok {
			return
		}
	}
	switch d := e.Data.(type) {
	case journal.RunStarted:
		if !r.found {
			r.first = e.Seq
		}
		r.found, r.below, r.at, r.parked = true, d.ParentRun != "", e.Time, nil
		r.said, r.base, r.stop, r.fresh, r.closed, r.board, r.json = nil, "", "", true, false, journal.Snapshot{}, false
	case journal.Resumed:
		r.parked, r.at = nil, e.Time
		r.status(a2a.TaskStatus{State: a2a.StateWorking, Timestamp: e.Time})
	case journal.Parked:
		r.parked, r.at = &d, e.Time
	case journal.RunFinished:
		r.finished(e.Time, d)
	case journal.Said:
		r.hears(e, d)
	case journal.Asked:
		r.note(e, a2a.RoleAgent, "", a2a.Text(question(d)))
	case journal.Answered:
		r.heard[d.By] = true
		said := []a2a.Part{a2a.Text(answered(d))}
		if d.Input != "" {
			said = append(said, a2a.Data(edited(d)))
		}
		r.note(e, a2a.RoleUser, "", said...)
	case journal.ToolStarted:
		r.calls[d.Call.ID] = d.Call
	default:
		if e.Key.Scope == "" {
			r.speaks(e)
		}
	}
}

// speaks reads what the run's own conversation comes to.
func (r *reading) speaks(e journal.Entry) {
	switch d := e.Data.(type) {
	case journal.Prepared:
		r.json = len(d.Output) > 0
	case journal.ModelStarted:
		r.try, r.base = 0, ""
		if r.stop == model.StopLength {
			r.base = engine.Answer(r.said)
		}
		r.fresh = r.fresh || r.shown.String() != r.base || r.base == ""
	case journal.ModelFinished:
		r.said = append(append(r.said, d.Heard...), d.Message)
		r.stop = d.Stop
		calls := len(d.Message.ToolCalls()) > 0
		if text := d.Message.Text(); calls && strings.TrimSpace(text) != "" {
			r.note(e, a2a.RoleAgent, "", a2a.Text(text))
		}
		r.show(!calls && d.Stop != model.StopLength && d.Stop != model.StopPause)
	case journal.Stopped:
		if d.Again != "" {
			r.said = append(r.said, message.User(d.Again))
		}
	case journal.Seeded:
		r.board = r.board.With(d.Board)
		r.changed(d.Board)
	case journal.Board:
		r.board = r.board.With(d)
		if all := d.Append[engine.MainChannel]; len(all) > 0 {
			r.said = append(r.said, all...)
			r.show(false)
		}
		r.changed(d)
	}
}

// hears reads what somebody said.
func (r *reading) hears(e journal.Entry, d journal.Said) {
	parts, id := partsOf(d.Message)
	switch {
	case e.Key == (journal.Key{}), e.Key.Op == "steer" && d.By == "":
		r.heard[e.Key.ID] = true
		r.note(e, a2a.RoleUser, id, parts...)
	case e.Key.Op == "steer":
	case e.Key.Scope == "":
		if r.said = append(r.said, d.Message); d.Message.Role() == message.RoleAssistant {
			r.show(false)
		}
	}
}

// finished reads the run's end.
func (r *reading) finished(at time.Time, d journal.RunFinished) {
	if d.Discarded {
		r.said, r.board = nil, journal.Snapshot{}
	} else if text := engine.Answer(r.said); text != "" && (!r.closed || r.shown.String() != text) {
		r.show(true)
	}
	why := d.Reason
	if d.Error != "" {
		if why = d.Error; d.Class != "" {
			why = d.Class + ": " + why
		}
	}
	how := endOf(d)
	if how == a2a.StateCompleted {
		why = ""
	}
	r.end(at, how, d.Class, why)
}

// endOf is the state of a task whose run has ended.
func endOf(d journal.RunFinished) a2a.TaskState {
	switch agent.Status(d.Status) {
	case agent.StatusCompleted:
		return a2a.StateCompleted
	case agent.StatusCanceled, agent.StatusInterrupted:
		return a2a.StateCanceled
	case agent.StatusAborted:
		return a2a.StateRejected
	}
	return a2a.StateFailed
}

func (r *reading) end(at time.Time, how a2a.TaskState, class, why string) {
	r.over, r.at, r.parked, r.class = how, at, nil, class
	for _, p := range secret.Patterns() {
		why = p.ReplaceAllString(why, secret.Redacted)
	}
	r.words = why
	r.status(r.ended())
}

// ended is the status of a task that is over.
func (r *reading) ended() a2a.TaskStatus {
	st := a2a.TaskStatus{State: r.over, Timestamp: r.at}
	if r.words != "" {
		if st.Message = r.speech("end", a2a.Text(r.words)); r.class != "" {
			st.Message.Metadata = map[string]any{a2a.ClassKey: r.class}
		}
	}
	return st
}

// speech is a message of the agent's. Whoever reads the same record gives it the same id.
func (r *reading) speech(what string, parts ...a2a.Part) *a2a.Message {
	return &a2a.Message{ID: r.id() + "/" + what, Role: a2a.RoleAgent, TaskID: r.id(), ContextID: r.session, Parts: parts}
}

// note adds a message to the task's history.
func (r *reading) note(e journal.Entry, who a2a.Role, id string, parts ...a2a.Part) {
	m := r.speech(number(e.Seq), parts...)
	if m.Role = who; id != "" {
		m.ID = id
	}
	if len(parts) > 0 {
		r.history = append(r.history, *m)
	}
}

// delta reads a piece of what is being said.
func (r *reading) delta(e event.Event) {
	if e.Run != r.run || e.Key.Scope != "" || e.Key.Op != "model" || r.json || r.over != "" {
		return
	}
	switch {
	case e.Delta == event.Retry: // what came of the tries before is void
		r.try, r.fresh = e.Attempt, r.shown.String() != r.base
	case e.Delta != event.TextDelta || e.Attempt < r.try || e.Text == "":
	case r.fresh:
		r.fresh, r.closed, r.try = false, false, e.Attempt
		r.shows(r.base + e.Text)
		r.artifact(false, false, answerID, a2a.Text(r.base+e.Text))
	default:
		r.shown.WriteString(e.Text)
		r.artifact(true, false, answerID, a2a.Text(e.Text))
	}
}

// show tells what is new of the answer.
func (r *reading) show(last bool) {
	text := engine.Answer(r.said)
	rest, goesOn := strings.CutPrefix(text, r.shown.String())
	parts := r.answer()
	switch {
	case len(parts) == 0:
		return
	case r.fresh, !goesOn, len(parts) > 1, parts[0].Kind != a2a.PartText:
		if r.fresh && r.shown.String() == text && r.closed { // it is there
			return
		}
		r.artifact(false, last, answerID, parts...)
	case rest != "" || last:
		r.artifact(true, last, answerID, a2a.Text(rest))
	}
	if r.fresh, r.closed = last, last; !goesOn || rest != "" {
		r.shows(text)
	}
}

// shows notes what was told in the place of what was told before.
func (r *reading) shows(text string) {
	r.shown.Reset()
	r.shown.WriteString(text)
}

// answer is what the agent has to say, so far.
func (r *reading) answer() (parts []a2a.Part) {
	text := engine.Answer(r.said)
	switch data := []byte(strings.TrimSpace(text)); {
	case text == "":
	case r.json && validJSON(data):
		parts = append(parts, a2a.Data(data))
	default:
		parts = append(parts, a2a.Text(text))
	}
	for _, m := range slices.Backward(r.said) {
		if m.Role() != message.RoleAssistant {
			continue
		}
		for f := range message.Of[message.File](m) {
			parts = append(parts, fileOf(f)...)
		}
		break
	}
	return parts
}

// changed tells of the channels that a board's difference is about.
func (r *reading) changed(d journal.Board) {
	if r.tell == nil {
		return
	}
	for _, name := range r.channels {
		_, edited := d.Edit[name]
		switch added := d.Append[name]; {
		case edited:
			if parts := r.channel(name); len(parts) > 0 {
				r.artifact(false, false, channelID+name, parts...)
			}
		case len(added) > 0:
			var parts []a2a.Part
			for _, m := range added {
				more, _ := partsOf(m)
				parts = append(parts, more...)
			}
			if len(parts) > 0 {
				r.artifact(len(parts) < len(r.channel(name)), false, channelID+name, parts...)
			}
		}
	}
}

// channel is what stands on a channel.
func (r *reading) channel(name string) (parts []a2a.Part) {
	for _, m := range r.board.Channels[name].All() {
		more, _ := partsOf(m)
		parts = append(parts, more...)
	}
	return parts
}

func (r *reading) artifact(behind, last bool, id string, parts ...a2a.Part) {
	if r.tell != nil {
		r.tell(a2a.Event{Artifact: &a2a.ArtifactUpdate{
			TaskID: r.id(), ContextID: r.session, Artifact: a2a.Artifact{ID: id, Name: strings.TrimPrefix(id, channelID), Parts: parts}, Append: behind, LastChunk: last,
		}})
	}
}

func (r *reading) status(st a2a.TaskStatus) {
	if r.tell != nil {
		r.tell(a2a.Event{Status: &a2a.StatusUpdate{TaskID: r.id(), ContextID: r.session, Status: st}})
	}
}

// artifacts are what the task has come to so far.
func (r *reading) artifacts() (all []a2a.Artifact) {
	if parts := r.answer(); len(parts) > 0 {
		all = append(all, a2a.Artifact{ID: answerID, Name: answerID, Parts: parts})
	}
	for _, name := range r.channels {
		if parts := r.channel(name); len(parts) > 0 {
			all = append(all, a2a.Artifact{ID: channelID + name, Name: name, Parts: parts})
		}
	}
	return all
}

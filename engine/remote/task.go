package remote

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// maxTask bounds what one task may make here, in bytes.
const maxTask = 64 << 20

// tracker puts together what is told of a task.
type tracker struct {
	engine        *Engine
	task, context string
	deltas        engine.Deltas
	status        a2a.TaskStatus
	artifacts     []a2a.Artifact
	places        map[string]int // where an artifact stands among them, by its id
	shown         map[string]int // bytes of text of an artifact that listeners have seen
	size          int
	gaps          bool // something may have been missed: at the end the task is read as a whole
}

// stops reports whether the task has ended or waits.
func (t *tracker) stops() bool { return t.status.State.Terminal() || t.status.State.Waits() }

// follow reads events until the task stops: of the stream that there is, then of others, or by asking again and again.
func (t *tracker) follow(ctx context.Context, l *line) error {
	if l.first != nil {
		if err := t.take(ctx, *l.first); err != nil {
			return err
		}
	} else {
		t.gaps = true // send was in another process
	}
	if l.next != nil {
		cut := l.cancel
		defer context.AfterFunc(ctx, func() { cut(context.Cause(ctx)) })()
		if _, err := t.read(ctx, l.next); err != nil {
			return err
		}
		if l.close(); !t.stops() {
			t.gaps = true
		}
	}
	for tries, asked := 0, 0; !t.stops(); asked++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		came, err := t.again(ctx)
		if err != nil {
			return err
		}
		if came {
			tries = 0
		} else if tries++; tries == patience {
			return errdefs.NotAvailable.Errorf("remote: the agent %s can't be reached any more, its task %s may go on there", t.engine.name, t.task)
		}
		if t.stops() {
			break
		}
		if err := pause(ctx, min(time.Duration(asked+1)*glance, 2*time.Second)); err != nil {
			return err
		}
	}
	if t.gaps && t.status.State != a2a.StateInputRequired {
		if task, err := t.engine.client.Get(ctx, t.query()); err == nil && task.ID == t.task {
			return t.take(ctx, a2a.Event{Task: &task})
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (t *tracker) query() a2a.GetTaskRequest {
	none := 0
	return a2a.GetTaskRequest{ID: t.task, HistoryLength: &none}
}

// read takes the events of a stream; came when there was one. A connection that breaks is no error.
func (t *tracker) read(ctx context.Context, next func() (a2a.Event, error, bool)) (came bool, err error) {
	for !t.stops() {
		e, err, more := next()
		if err != nil || !more {
			return came, t.fatal(ctx, err)
		}
		if err := t.take(ctx, e); err != nil {
			return came, err
		}
		came = true
	}
	return came, nil
}

// fatal is err, when to try again is of no use; else nil.
func (t *tracker) fatal(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	switch errdefs.Of(err) {
	case errdefs.NotAvailable, errdefs.Timeout, errdefs.RateLimit:
		return nil
	}
	return err
}

// again asks how the task stands, and follows it by a new stream if the agent has one.
func (t *tracker) again(ctx context.Context) (came bool, err error) {
	task, err := t.engine.client.Get(ctx, t.query())
	if err != nil {
		return false, t.fatal(ctx, err)
	}
	if err := t.take(ctx, a2a.Event{Task: &task}); err != nil || t.stops() || !t.engine.client.Card().Capabilities.Streaming {
		return true, err
	}
	next, stop := iter.Pull2(t.engine.client.Subscribe(ctx, t.task))
	defer stop()
	_, err = t.read(ctx, next)
	var peer *a2a.Error
	if errors.As(err, &peer) && peer.Code == a2a.CodeUnsupportedOperation {
		err = nil // it has ended meanwhile, or can't be subscribed to
	}
	return true, err
}

// take puts an event to what is known.
func (t *tracker) take(ctx context.Context, e a2a.Event) error {
	if id := e.TaskID(); id != "" && id != t.task {
		return errdefs.Internal.Errorf("remote: the agent %s tells of the task %.60q in a stream of %.60q", t.engine.name, id, t.task)
	}
	if id := e.ContextID(); id != "" {
		t.context = id
	}
	switch {
	case e.Task != nil:
		t.status = e.Task.Status
		if len(e.Task.Artifacts) > 0 {
			t.artifacts, t.places, t.size = nil, nil, 0
		}
		for _, a := range e.Task.Artifacts {
			if err := t.artifact(ctx, a, false); err != nil {
				return err
			}
		}
	case e.Status != nil:
		t.status = e.Status.Status
	case e.Artifact != nil:
		return t.artifact(ctx, e.Artifact.Artifact, e.Artifact.Append)
	case e.Message != nil: // in the middle of a task, it is a word about it
		t.deltas.Emit(ctx, event.ReasoningDelta, "", sentence(text(e.Message.Parts)))
	}
	if m := t.status.Message; m != nil && !t.stops() && (e.Status != nil) {
		t.deltas.Emit(ctx, event.ReasoningDelta, "", sentence(text(m.Parts)))
	}
	return nil
}

func sentence(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n"
}

// artifact puts an artifact in its place, or its parts behind those that are there, and shows the text that is new.
func (t *tracker) artifact(ctx context.Context, a a2a.Artifact, more bool) error {
	i, there := t.places[a.ID]
	if there && !more { // it takes the place of what was there
		t.size -= size(t.artifacts[i])
	}
	if t.size += size(a); t.size > maxTask {
		return errdefs.Internal.Errorf("remote: the agent %s made more than %d bytes in one task: the limit", t.engine.name, maxTask)
	}
	switch {
	case !there:
		a.Parts = slices.Clip(a.Parts)
		if t.places == nil {
			t.places = map[string]int{}
		}
		i = len(t.artifacts)
		t.artifacts, t.places[a.ID] = append(t.artifacts, a), i
	case more:
		t.artifacts[i].Parts = append(t.artifacts[i].Parts, a.Parts...)
	default:
		t.artifacts[i] = a
	}
	if !t.deltas.On() {
		return nil
	}
	if t.shown == nil {
		t.shown = map[string]int{}
	}
	if more {
		s := text(a.Parts)
		t.shown[a.ID] += len(s)
		t.deltas.Emit(ctx, event.TextDelta, "", s)
	} else if s := text(t.artifacts[i].Parts); len(s) > t.shown[a.ID] {
		t.deltas.Emit(ctx, event.TextDelta, "", s[t.shown[a.ID]:])
		t.shown[a.ID] = len(s)
	}
	return nil
}

// size is what an artifact counts, in bytes.
func size(a a2a.Artifact) int {
	n := 64 + len(a.ID) + len(a.Name)
	for _, p := range a.Parts {
		n += 64 + len(p.Text) + len(p.Raw) + len(p.Data) + len(p.URL)
	}
	return n
}

// outcome is what the task did to the board.
func (t *tracker) outcome() journal.Board {
	out := journal.Board{Set: journal.Vars{VarTask: t.task, VarContext: t.context, VarState: string(t.status.State)}}
	var last []a2a.Part
	if t.status.Message != nil {
		last = t.status.Message.Parts
	}
	words := text(last)
	if words != "" {
		out.Set[varWords] = words
	}
	if m := t.status.Message; m != nil {
		if class, _ := m.Metadata[a2a.ClassKey].(string); class != "" && t.status.State == a2a.StateFailed {
			out.Set[varClass] = class
		}
	}
	var answer []message.Part
	var made strings.Builder
	if t.status.State.Terminal() { // what a task made before it waits is told when it ends
		out.Append = map[string][]message.Message{}
		for _, a := range t.artifacts {
			made.WriteString(text(a.Parts))
			if ms := said(a.Parts); len(ms) > 0 {
				answer = append(answer, ms...)
				out.Append[channel(a)] = append(out.Append[channel(a)], message.New(message.RoleAssistant, ms...))
			}
		}
	}
	if !t.status.State.Terminal() && words != "" { // the question is in words: what programs are told beside it is nobody's answer
		last = slices.DeleteFunc(slices.Clone(last), func(p a2a.Part) bool { return p.Kind == a2a.PartData })
	}
	if words == "" || made.String() != words { // some agents say it twice
		answer = append(answer, said(last)...)
	}
	return answered(out, memory{t.engine.client.URL(), t.context, t.task}, answer)
}

// channel is where an artifact stands: a channel of its name.
func channel(a a2a.Artifact) string {
	name := strings.ToValidUTF8(a.Name, "\uFFFD")
	if name == "" {
		name = a.ID
	}
	if name = name[:min(len(name), 200)]; name == engine.MainChannel || name == "" {
		name = "artifact:" + name
	}
	return strings.ToValidUTF8(name, "")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

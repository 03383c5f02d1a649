package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// Steering is a message that came while a run was under way, and waits for the next model call.
type Steering struct {
	Seq     int64
	Message message.Message
	result  bool // of a call in the background
}

// steerOp is the Op of the keys of steering.
const steerOp = "steer"

// Steer says something to a run under way, from any process: it is on record when Steer returns, and stands in the transcript before the next model call's
// reply, behind all results of the step before. It is heard once, whatever dies. When the run ends before it was heard, the next run of the session hears it.
// Conflict when no run is unfinished: then it is a prompt. Validation for a message that is not a user's, or is empty.
func (l *Log) Steer(ctx context.Context, m message.Message) error {
	return l.SteerOnce(ctx, strings.ToLower(rand.Text()), m)
}

// SteerOnce is Steer under a name of the caller's: what was said to the run's attempt under that name is not said again, so that who does not know whether it got on record can say it once more.
func (l *Log) SteerOnce(ctx context.Context, name string, m message.Message) error {
	if m.Role() != message.RoleUser || m.Blank() {
		return errdefs.Validation.Errorf("journal: steer: want a user's message with something in it")
	}
	for p := range m.Parts() {
		switch p.(type) {
		case message.Text, message.File:
		default:
			return errdefs.Validation.Errorf("journal: steer: a user's message has text and files, not a %T", p)
		}
	}
	if name == "" || strings.HasPrefix(name, resultID) {
		return errdefs.Validation.Errorf("journal: steer: the name %q: want one that doesn't begin with %q", name, resultID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.catchUp(ctx); err != nil { // the run may have begun, or ended, since
		return err
	}
	entry := []Entry{{Key: Key{Op: steerOp, ID: name}, Data: Said{Message: m}}}
	err := l.append(ctx, func(st *State) error {
		switch {
		case st.Run == "":
			return errdefs.Conflict.Errorf("journal: steer: session %s has no run under way: give the message to the next one", l.session)
		case st.effects.of(entry[0].Key).outcome != nil:
			return errSaid
		}
		entry[0].Run = st.Run
		return nil
	}, nil, entry)
	if errors.Is(err, errSaid) {
		return nil
	}
	return err
}

var errSaid = errors.New("it was said before")

// resultKey is the key of the result of a call that went on in the background.
func resultKey(call string) Key { return Key{Op: steerOp, ID: resultID + call} }

const resultID = "result/"

// Report puts the result of a call that went on in the background on record, as steering, and whether it has what strangers wrote. The first counts: Conflict when there is one, or when another
// driver has taken over.
func (l *Log) Report(ctx context.Context, run, call string, untrusted bool, m message.Message) error {
	return l.Append(ctx, Entry{Run: run, Key: resultKey(call), Data: Said{Message: m, By: "pawl", Untrusted: untrusted}})
}

// Background is the calls that go on in the background, and whose result has not come.
func (l *Log) Background() []Called {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.st.Background)
}

// Steering is what was said to the run and no model call has heard yet.
func (l *Log) Steering() []Steering {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.st.Steering)
}

// people is what people said: results in the background are of the attempt that asked for them.
func people(all []Steering) []Steering {
	return slices.DeleteFunc(all, func(s Steering) bool { return s.result })
}

// hear puts steering where a model call heard it.
func (s *State) hear(main bool, d *ModelFinished) {
	if d.HeardTo == 0 {
		return
	}
	n := 0
	for n < len(s.Steering) && s.Steering[n].Seq <= d.HeardTo {
		n++
	}
	s.heard, s.Steering = slices.Concat(s.heard, s.Steering[:n]), s.Steering[n:]
	if main {
		s.say(d.Heard...)
	} else {
		s.aside = append(slices.Clip(s.aside), s.heard[len(s.heard)-n:]...)
	}
}

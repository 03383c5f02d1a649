package chat

import (
	"bytes"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Again stands in an answer that was shown while it was written, where the model began it anew: what was shown can't be taken back.
const Again = "[The reply broke off. Once more, from its beginning:]"

// Piece is a bit of an answer.
type Piece struct{ Text, Reasoning string }

// Teller makes an answer of a run's events: of what the model says on the engine's own path, reply after reply, and of the calls that it makes, as reasoning. Not safe for concurrent use.
type Teller struct {
	Run   string
	Usage model.Usage
	Stop  model.StopReason // of the last reply
	End   journal.Data     // RunFinished, or Parked; nil: it goes on
	Left  string           // why it is over without that

	key       journal.Key // the reply that is being shown
	attempt   int
	text      voice
	reasoning voice
	goesOn    bool                    // the last reply was cut off: the next one goes on from it
	later     []journal.ModelFinished // that wait for the one that is being shown
}

// voice is one kind of text, of which what was shown stays shown.
type voice struct {
	again string
	shown []byte // of this reply
	fresh []byte // of the attempt at it, unless that is what was shown
	anew  bool   // it is not
	said  bool   // by a reply before
	sep   bool   // this one is to stand apart from that
}

func (v *voice) begin(apart bool) { v.shown, v.fresh, v.anew, v.sep = v.shown[:0], nil, false, apart }

// void says that the reply begins once more.
func (v *voice) void() {
	if len(v.shown) > 0 {
		v.fresh, v.anew = nil, true
	}
}

// add shows what comes. After void that is nothing as long as it is what was shown.
func (v *voice) add(s string) string {
	if !v.anew {
		v.shown = append(v.shown, s...)
		return v.apart(s)
	}
	v.fresh = append(v.fresh, s...)
	if bytes.HasPrefix(v.shown, v.fresh) {
		return ""
	}
	return v.whole(string(v.fresh))
}

// whole shows what is missing of a text that is whole, or has departed from what was shown.
func (v *voice) whole(s string) string {
	rest, ok := strings.CutPrefix(s, string(v.shown))
	if !ok {
		rest = "\n\n" + v.again + "\n\n" + s
	}
	v.shown, v.fresh, v.anew = append(v.shown[:0], s...), nil, false
	return v.apart(rest)
}

func (v *voice) apart(s string) string {
	if s == "" {
		return ""
	}
	if v.sep && v.said {
		s = "\n\n" + s
	}
	v.said, v.sep = true, false
	return s
}

// Tell gives what an event adds to the answer.
func (t *Teller) Tell(e event.Event) (p Piece) {
	if e.Run != t.Run {
		return p
	}
	t.text.again, t.reasoning.again = Again, Again
	switch d := e.Data.(type) {
	case nil:
		return t.delta(e)
	case journal.RunStarted:
		if d.Attempt > 1 { // a decider had it done again
			t.key = journal.Key{}
			p.Text = t.note(Again)
		}
	case journal.ModelStarted:
		if e.Key.Scope == "" && t.key == (journal.Key{}) {
			t.begin(e.Key)
		}
	case journal.ModelFinished:
		t.Usage = t.Usage.Add(d.Usage)
		if e.Key.Scope != "" {
			return p
		}
		if t.key != (journal.Key{}) && e.Key != t.key {
			t.later = append(t.later, d)
			return p
		}
		if t.key == (journal.Key{}) {
			t.begin(e.Key)
		}
		p = t.finish(d)
		for _, d := range t.later {
			t.begin(journal.Key{})
			q := t.finish(d)
			p.Text, p.Reasoning = p.Text+q.Text, p.Reasoning+q.Reasoning
		}
		t.later = nil
	case journal.Compacted:
		t.Usage = t.Usage.Add(d.Usage)
	case journal.ToolStarted:
		input := d.Call.Input
		if len(input) > 200 {
			input = strings.ToValidUTF8(input[:200], "") + " …"
		}
		t.reasoning.begin(true)
		p.Reasoning = t.reasoning.add("[" + d.Call.Name + " " + input + "]")
		t.reasoning.begin(true)
	case journal.Board:
		if e.Key.Scope == "" {
			for _, m := range d.Append[engine.MainChannel] {
				if m.Role() == message.RoleAssistant {
					p.Text += t.note(m.Text())
				}
			}
		}
	case journal.Said: // by an engine in the agent's place
		if d.Message.Role() == message.RoleAssistant {
			p.Text = t.note(d.Message.Text())
		}
	case journal.RunFinished, journal.Parked:
		t.End = d
	}
	return p
}

// note shows a text that stands for itself.
func (t *Teller) note(s string) string {
	t.text.begin(true)
	s = t.text.add(s)
	t.text.begin(true)
	return s
}

func (t *Teller) delta(e event.Event) (p Piece) {
	switch {
	case e.Delta == event.RunLeft:
		t.Left = e.Text
	case e.Key != t.key || e.Key == (journal.Key{}) || e.Attempt < t.attempt:
	default:
		if e.Attempt > t.attempt {
			t.attempt = e.Attempt
			t.text.void()
			t.reasoning.void()
		}
		switch e.Delta {
		case event.TextDelta:
			p.Text = t.text.add(e.Text)
		case event.ReasoningDelta:
			p.Reasoning = t.reasoning.add(e.Text)
		default:
		}
	}
	return p
}

func (t *Teller) begin(key journal.Key) {
	t.key, t.attempt = key, 0
	t.text.begin(!t.goesOn)
	t.reasoning.begin(true)
}

func (t *Teller) finish(d journal.ModelFinished) (p Piece) {
	var thought strings.Builder
	for r := range message.Of[message.Reasoning](d.Message) {
		thought.WriteString(r.Text)
	}
	if thought.Len() > 0 {
		p.Reasoning = t.reasoning.whole(thought.String())
	}
	p.Text = t.text.whole(d.Message.Text())
	t.Stop, t.goesOn, t.key = d.Stop, d.Cut(), journal.Key{}
	return p
}

// Said reports whether text was shown.
func (t *Teller) Said() bool { return t.text.said }

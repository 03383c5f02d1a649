// Package waiting tells for what somebody waits who watches a run, and since when. It is made of the run's events and of times that it is given, has no clock and shows nothing: the program's own lines, and a screen, make of it what they like.
package waiting

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// Kind says what is waited for.
type Kind string

// The kinds.
const (
	Model  Kind = "model"  // the first words of a model
	Retry  Kind = "retry"  // the next attempt at a call
	Tool   Kind = "tool"   // a tool, What is its name
	Start  Kind = "start"  // an MCP server that starts, What is its name
	Worker Kind = "worker" // somebody who does the run elsewhere
	Other  Kind = "other"  // what What says, such as the session that another process drives, a summary of the transcript, or a rate limit of our own
)

// Wait is one thing that is waited for.
type Wait struct {
	Kind  Kind
	What  string    // of a Retry: why
	Since time.Time // of a model: when the request was sent
	Until time.Time // when it is over, at the latest; zero: nobody knows
	Last  string    // of a tool: the last line that it wrote
	Run   string    // "": no run has begun
	Below bool      // it is a subagent's

	key key
}

// key is what a Wait ends by.
type key struct {
	run, name string
	of        journal.Key
}

// Waits are what is waited for. The zero Waits is ready. Not safe for concurrent use.
type Waits struct {
	Elsewhere string // who does the work of runs, if it is not this process: a run that began or goes on waits for him. "": this one does

	all []Wait
}

// All are what is waited for, the longest first. What comes back is the caller's.
func (w *Waits) All() []Wait { return slices.Clone(w.all) }

// Begin tells of what no event tells of; End ends it.
func (w *Waits) Begin(kind Kind, what string, now time.Time) {
	w.begin(Wait{Kind: kind, What: what, Since: now, key: key{name: string(kind) + " " + what}})
}

// End ends what Begin told of.
func (w *Waits) End(kind Kind, what string) { w.end(key{name: string(kind) + " " + what}) }

// Event takes in what happened. What was over when it was told of, since another process did it, is waited for by nobody.
func (w *Waits) Event(e event.Event, now time.Time) {
	of := func(kind Kind, what string) Wait {
		return Wait{Kind: kind, What: what, Since: now, Run: e.Run, Below: e.ParentRun != "", key: key{run: e.Run, of: e.Key}}
	}
	if e.Delta != event.Warning && e.Delta != event.Waiting { // whoever had the session has left it
		w.end(key{run: e.Run, name: "session"})
	}
	if e.Key != (journal.Key{}) { // an effect: somebody does it
		w.end(key{run: e.Run, name: "worker"})
	}
	switch d := e.Data.(type) {
	case nil:
		w.delta(e, of, now)
	case journal.RunStarted, journal.Resumed:
		if w.Elsewhere != "" {
			one := of(Worker, w.Elsewhere)
			one.key = key{run: e.Run, name: "worker"}
			w.begin(one)
		}
	case journal.ModelStarted:
		w.begin(of(Model, d.Model))
	case journal.ToolStarted:
		w.begin(of(Tool, d.Call.Name))
	case journal.ModelFinished, journal.ModelFailed, journal.ToolFinished, journal.Compacted:
		w.end(key{run: e.Run, of: e.Key})
	case journal.RunFinished, journal.Parked:
		w.over(e.Run)
	}
}

func (w *Waits) delta(e event.Event, of func(Kind, string) Wait, now time.Time) {
	at := key{run: e.Run, of: e.Key}
	switch e.Delta {
	case event.TextDelta, event.ReasoningDelta: // it can be seen
		w.end(at)
	case event.ToolOutput:
		if i := w.find(at); i >= 0 {
			if line := lastLine(e.Text); line != "" {
				w.all[i].Last = line
			}
		}
	case event.Retry:
		one := of(Retry, e.Text)
		one.Until = now.Add(e.Wait)
		w.begin(one)
	case event.Waiting:
		one := of(Other, e.Text)
		if e.Wait > 0 {
			one.Until = now.Add(e.Wait)
		}
		if e.Key == (journal.Key{}) {
			one.key = key{run: e.Run, name: "session"}
		}
		w.begin(one)
	case event.RunLeft:
		w.over(e.Run)
	}
}

// lastLine is the last line of a text that says something.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return strings.TrimSpace(text[strings.LastIndexAny(text, "\r\n")+1:])
}

func (w *Waits) begin(one Wait) {
	w.end(one.key)
	w.all = append(w.all, one)
}

func (w *Waits) find(k key) int {
	return slices.IndexFunc(w.all, func(one Wait) bool { return one.key == k })
}

func (w *Waits) end(k key) {
	if i := w.find(k); i >= 0 {
		w.all = slices.Delete(w.all, i, i+1)
	}
}

// over ends all of a run.
func (w *Waits) over(run string) {
	w.all = slices.DeleteFunc(w.all, func(one Wait) bool { return one.key.run == run && run != "" })
}

// Text says it in a few words, as it is at a moment.
func (w *Wait) Text(now time.Time) string {
	took := Span(now.Sub(w.Since))
	left := w.Until.Sub(now)
	switch {
	case w.Kind == Retry && left > 0:
		return "trying again in " + Span(left)
	case w.Kind == Retry:
		return "waiting for the model, again: " + Span(-left)
	case w.Kind == Model:
		return "waiting for the model: " + took
	case w.Kind == Tool && w.Last != "":
		return w.What + ": " + took + ": " + w.Last
	case w.Kind == Tool:
		return w.What + ": " + took
	case w.Kind == Start:
		return "the MCP server " + w.What + " starts: " + took
	case !w.Until.IsZero() && left > 0:
		return "waiting for " + w.What + ": " + took + ", at most " + Span(left) + " more"
	}
	return "waiting for " + w.What + ": " + took
}

// Span is a time in the words of a person: "3 s", "2 min 5 s", "1 h 2 min".
func Span(d time.Duration) string {
	s := int(max(d, 0).Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return strconv.Itoa(s) + " s"
	case s < 3600:
		return strconv.Itoa(s/60) + " min " + strconv.Itoa(s%60) + " s"
	}
	return strconv.Itoa(s/3600) + " h " + strconv.Itoa(s/60%60) + " min"
}

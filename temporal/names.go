package temporal

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
)

// What stands in histories of workflows. None of it is ever renamed: what was begun by one version goes on with the next. Fields are only ever added.
const (
	runWorkflow  = "pawl.run"  // a run as a whole
	pathWorkflow = "pawl.path" // the path of an engine, for one attempt of a run

	driveActivity  = "pawl.drive"  // begins a run, and closes it
	answerActivity = "pawl.answer" // puts an answer on record

	// Activities: one effect each. They do the same, and have names of their own for those who look at them and limit their rates.
	modelActivity = "pawl.model"
	toolActivity  = "pawl.tool"
	stepActivity  = "pawl.step"

	interruptSignal = "pawl.interrupt" // stops the path at its next step: an interruption
	answeredSignal  = "pawl.answered"  // a question has an answer in the journal

	answerUpdate = "pawl.answer" // of a run as a whole: a journal.Answered
)

// path is what a workflow is begun with, and begun anew with when its history gets long.
type path struct {
	place
	Attempt int       `json:"attempt"`
	Upto    int64     `json:"upto,omitempty"` // the journal's position up to which outcomes are taken from there
	System  string    `json:"system,omitempty"`
	Modes   []string  `json:"modes,omitempty"`
	Parent  string    `json:"parent,omitempty"`
	Resumes bool      `json:"resumes,omitempty"`
	Began   time.Time `json:"began,omitzero"` // the workflow, or the first one of those that it goes on from
	Until   time.Time `json:"until,omitzero"` // when the time of the run is up
	Inside  []place   `json:"inside,omitempty"`
}

// place is a run as a worker finds it, and within it, for what is below, a call.
type place struct {
	Session string            `json:"session"`
	Run     string            `json:"run"`
	Driver  string            `json:"driver"` // of the session, for whom effects are done
	Member  string            `json:"member"` // the agent's id, by which workers have it and its engine
	Attrs   map[string]string `json:"attrs,omitempty"`
	Unknown string            `json:"unknown,omitempty"`
	AskTTL  time.Duration     `json:"ask_ttl,omitempty"`
	Tools   *[]string         `json:"tools,omitempty"` // the caller's gate, besides that of the agent that workers have; nil: none
	Bound   *bound            `json:"bound,omitempty"`
	Key     journal.Key       `json:"key,omitzero"`     // of an effect, and in a path's Inside of the call that the run is below
	Behind  bool              `json:"behind,omitempty"` // the call's part in the background is meant
}

// bound is what binds a run where it was begun: workers must have as much.
type bound struct {
	Hooks   int  `json:"hooks,omitempty"`
	Budget  bool `json:"budget,omitempty"`
	Sandbox bool `json:"sandbox,omitempty"`
}

// id names the workflow of an attempt: in a namespace there is one of it at a time.
func (p path) id() string { return pathID(p.Session, p.Run, p.Attempt) }

func pathID(session, run string, attempt int) string {
	return "pawl/" + named(session, run) + "/" + strconv.Itoa(attempt)
}

// runID names the workflow of a run as a whole.
func runID(session, run string) string { return "pawl-run/" + named(session, run) }

// named names a run within its session. The service takes no ID of more than 1,000 bytes, nor one that is no UTF-8, and sessions of tasks have as a part what models name their calls: such a name is the sum of it.
func named(session, run string) string {
	name := session + "/" + run
	if len(name) > mostName || !utf8.ValidString(name) {
		sum := sha256.Sum256([]byte(name))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return name
}

// mostName leaves room for what is around it.
const mostName = 900

// step is what an activity is asked for.
type step struct {
	place
	System string  `json:"system,omitempty"` // with an effect that is made of it
	Inside []place `json:"inside,omitempty"` // the calls that the run is below, the outermost first
	Closes *closed `json:"closes,omitempty"` // what the effect left to a workflow, and has ended
}

// closed is a path that ended.
type closed struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	ended
}

// did is what an activity gives.
type did struct {
	Seq    int64    `json:"seq,omitempty"`    // the entry of the journal that has the outcome; 0: there is none
	Error  *failure `json:"error,omitempty"`  // what went wrong besides
	Below  *path    `json:"below,omitempty"`  // a run below that a workflow is to do first
	Behind []string `json:"behind,omitempty"` // the calls that go on in the background
}

// interruption is an engine.Interrupt.
type interruption struct {
	Cause  string `json:"cause"`
	Detail string `json:"detail,omitempty"`
}

func (i interruption) interrupt() engine.Interrupt {
	return engine.Interrupt{Cause: engine.Cause(i.Cause), Detail: i.Detail}
}

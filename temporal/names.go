package temporal

import (
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
)

// What stands in histories of workflows. None of it is ever renamed: what was begun by one version goes on with the next. Fields are only ever added.
const (
	runWorkflow  = "pawl.run"  // a run as a whole
	pathWorkflow = "pawl.path" // the path of an engine, for one attempt of a run

	driveActivity = "pawl.drive" // begins a run, and closes it

	// Activities: one effect each. They do the same, and have names of their own for those who look at them and limit their rates.
	modelActivity = "pawl.model"
	toolActivity  = "pawl.tool"
	stepActivity  = "pawl.step"

	interruptSignal = "pawl.interrupt" // stops the path at its next step: an interruption
	answeredSignal  = "pawl.answered"  // a question has an answer in the journal
	driverSignal    = "pawl.driver"    // somebody else drives the run, and goes on with this workflow
)

// path is what a workflow is begun with, and begun anew with when its history gets long.
type path struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Driver  string `json:"driver"`         // of the session, for whom effects are done
	Member  string `json:"member"`         // the agent's id, by which workers have it and its engine
	Upto    int64  `json:"upto,omitempty"` // the journal's position up to which outcomes are taken from there
	System  string `json:"system,omitempty"`
	// How the run was asked for.
	Modes   []string          `json:"modes,omitempty"`
	Attrs   map[string]string `json:"attrs,omitempty"`
	Parent  string            `json:"parent,omitempty"`
	Unknown string            `json:"unknown,omitempty"`
	AskTTL  time.Duration     `json:"ask_ttl,omitempty"`
	Resumes bool              `json:"resumes,omitempty"`
	Tools   *[]string         `json:"tools,omitempty"` // the caller's gate, besides that of the agent that workers have; nil: none
}

// id names the workflow of an attempt: in a namespace there is one of it at a time.
func (p path) id() string { return "pawl/" + p.Session + "/" + p.Run + "/" + strconv.Itoa(p.Attempt) }

// step is what an activity is asked for.
type step struct {
	Session string            `json:"session"`
	Run     string            `json:"run"`
	Driver  string            `json:"driver"`
	Member  string            `json:"member"`
	Key     journal.Key       `json:"key"`
	System  string            `json:"system,omitempty"` // with an effect that is made of it
	Attrs   map[string]string `json:"attrs,omitempty"`
	Unknown string            `json:"unknown,omitempty"`
	AskTTL  time.Duration     `json:"ask_ttl,omitempty"`
	Tools   *[]string         `json:"tools,omitempty"`
}

// did is what an activity gives.
type did struct {
	Seq   int64    `json:"seq,omitempty"`   // the entry of the journal that has the outcome; 0: there is none
	Error *failure `json:"error,omitempty"` // what went wrong besides
}

// interruption is an engine.Interrupt.
type interruption struct {
	Cause  string `json:"cause"`
	Detail string `json:"detail,omitempty"`
}

func (i interruption) interrupt() engine.Interrupt {
	return engine.Interrupt{Cause: engine.Cause(i.Cause), Detail: i.Detail}
}

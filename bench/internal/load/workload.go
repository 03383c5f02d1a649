// Package load puts systems that run agents under load: the same sessions for each of them, whose answers are checked, in a process of its own that says what it took.
//
// A system is a program that is called "run -system NAME -workload NAME -upstream URL" and prints a [Result] as JSON: [Main] makes one of a table of systems.
package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// Workload is what a system is asked to do.
type Workload struct {
	Name     string
	Sessions int                // that are measured
	Warm     int                // sessions before, which are not
	Asks     upstream.Directive // of each session's prompt
	Together bool               // all sessions at once, each in a goroutine
	Latency  time.Duration      // of the upstream, before each answer
	Image    int                // bytes of an image that the prompt begins with
}

// What each system tells the model, so that all of them send the same.
const (
	Instructions = "You are a helpful assistant who uses tools."
	Tool         = "echo" // its name
	About        = "Gives back what it is given."
	Schema       = `{"type":"object","properties":{"value":{"type":"string"}},"required":["value"],"additionalProperties":false}`
)

// Workloads are those that have a name. Growing workloads of a size have theirs from [Named].
func Workloads() []Workload {
	turns := func(n int) upstream.Directive { return upstream.Directive{Turns: n, Tool: Tool, Par: 1, Deltas: 2} }
	answer := func(deltas int, flush bool) upstream.Directive {
		return upstream.Directive{Turns: 1, Tool: Tool, Par: 1, Deltas: deltas, Flush: flush}
	}
	eight, stamped := turns(20), answer(100, true)
	eight.Par = 8
	stamped.Stamp, stamped.Gap = true, 10
	large := turns(10)
	large.Result = 1 << 20
	return []Workload{
		{Name: "W1", Warm: 3, Sessions: 50, Asks: turns(20)},
		{Name: "W2-200", Warm: 1, Sessions: 5, Asks: turns(200)},
		{Name: "W2-400", Warm: 1, Sessions: 5, Asks: turns(400)},
		{Name: "W3", Warm: 1, Sessions: 70, Asks: answer(2000, false)},
		{Name: "W3-flushed", Warm: 1, Sessions: 20, Asks: answer(2000, true)},
		{Name: "W4", Sessions: 200, Asks: turns(10), Together: true, Latency: 50 * time.Millisecond},
		{Name: "W4-big", Sessions: 10_000, Asks: turns(10), Together: true, Latency: 50 * time.Millisecond},
		{Name: "W8-parallel", Warm: 3, Sessions: 20, Asks: eight},
		{Name: "W8-results", Warm: 1, Sessions: 2, Asks: large},
		{Name: "W8-image", Warm: 1, Sessions: 2, Asks: turns(10), Image: 5 << 20},
		{Name: "W10", Sessions: 200, Asks: stamped, Together: true},
	}
}

// Named gives the workload of a name. times has it be that much longer: more sessions of those at once, more turns of those in a row, more pieces of an answer. 0 is 1.
func Named(name string, times float64) (Workload, error) {
	all := Workloads()
	i := slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		return Workload{}, fmt.Errorf("there is no workload %q", name)
	}
	w := all[i]
	if times > 0 && times != 1 {
		grown := func(n int) int { return max(1, int(float64(n)*times)) }
		switch {
		case w.Together:
			w.Sessions = grown(w.Sessions)
		case w.Asks.Turns == 1:
			w.Asks.Deltas = grown(w.Asks.Deltas)
		default:
			w.Asks.Turns = grown(w.Asks.Turns)
		}
	}
	return w, nil
}

// long reports whether the first and the last turns of a session are told apart.
func (w Workload) long() bool { return !w.Together && w.Asks.Par == 1 && w.Asks.Turns > 41 }

// Turns is how many model calls the measured sessions make.
func (w Workload) Turns() int { return w.Sessions * w.Asks.Turns }

// Pieces is how many pieces of answers they get.
func (w Workload) Pieces() int { return w.Sessions * w.Asks.Deltas }

// prompt is what a session is asked.
func (w Workload) prompt() string { return "Please do it: " + w.Asks.String() }

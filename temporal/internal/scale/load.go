package main

import (
	"math"
	"time"
)

// Load is what is asked of a number of workers.
type Load struct {
	Workers   int
	Sessions  int           // on record
	Active    float64       // the share of them with a run under way that waits for nobody
	Runs      int           // of each session that are on record
	Steps     int           // of a run, each with one call of a tool that gives 1 KiB
	Model     time.Duration // what the model takes for a reply
	Tool      time.Duration // what a tool takes
	Approvals float64       // questions to people, for each run
	Answer    time.Duration // what people take to answer
}

// usual is the load that the page reckons with, but for the workers and the sessions.
var usual = Load{Active: 0.01, Runs: 5, Steps: 10, Model: 5 * time.Second, Tool: 2 * time.Second, Approvals: 0.1, Answer: 10 * time.Minute}

// heartbeatTimeout is temporal.Timing's default.
const heartbeatTimeout = 30 * time.Second

// How often a worker that is at an effect says so, to Temporal and to the journal: beat in temporal/worker.go, leaseEvery in temporal/leases.go.
const (
	beatEvery  = 5 * time.Second
	leaseEvery = 10 * time.Second
)

// beats is how often Temporal hears of an effect: see Costs.Heartbeats, which a test holds it to.
func beats(took, timeout time.Duration) int { return int(took / min(timeout/6, beatEvery)) }

// leases is how often a run's session is leased while effects are done. A worker that comes to one does it, unless it did a moment ago, and again while the effect goes on.
func (l Load) leases(effects float64) float64 {
	each := effects / l.works().Seconds() / float64(l.Workers) // a second, at a worker
	workers := float64(l.Workers) * (1 - math.Pow(1-1/float64(l.Workers), effects))
	again := (l.Steps+1)*int(l.Model/leaseEvery) + l.Steps*int(l.Tool/leaseEvery)
	return max(effects/(1+each*leaseEvery.Seconds()), workers) + float64(again)
}

// plus adds so many of something.
func (u Total) plus(o Unit, n float64) Total {
	return Total{
		u.Activities + n*float64(o.Activities), u.Events + n*float64(o.Events), u.Actions + n*float64(o.Actions), u.Entries + n*float64(o.Entries),
		u.Commits + n*(float64(o.Appends)+o.Leases), u.Reads + n*o.Reads, u.Received + n*o.Received, u.Requests + n*o.Requests,
		u.History + n*o.History, u.Disk + n*(o.Tables+o.Indexes), u.WAL + n*o.WAL,
	}
}

// Total is a sum of Units, or so much of them a second.
type Total struct {
	Activities, Events, Actions, Entries, Commits, Reads, Received, Requests, History, Disk, WAL float64
}

func (u Total) times(n float64) Total {
	return Total{u.Activities * n, u.Events * n, u.Actions * n, u.Entries * n, u.Commits * n, u.Reads * n, u.Received * n, u.Requests * n, u.History * n, u.Disk * n, u.WAL * n}
}

// run is what one run costs.
func (l Load) run(c Costs) Total {
	t := Total{}.plus(c.Answer, 1).plus(c.Step, float64(l.Steps)).plus(c.Approval, l.Approvals)
	t.Commits += max(l.leases(t.Activities)-1, 0) // one is in the costs: those were runs of no length at one worker
	heard := float64((l.Steps+1)*beats(l.Model, heartbeatTimeout) + l.Steps*beats(l.Tool, heartbeatTimeout))
	t.Actions, t.Requests = t.Actions+heard, t.Requests+heard
	return t
}

// works is how long a run takes without the time in which it waits for people, or in any queue.
func (l Load) works() time.Duration {
	return time.Duration(l.Steps+1)*l.Model + time.Duration(l.Steps)*l.Tool
}

// Demand is what a load takes.
type Demand struct {
	Run     Total   // of one run
	Second  Total   // of all, each second, with what cold workers read besides
	Runs    float64 // begun each second
	Active  float64 // runs under way that wait for nobody
	Waiting float64 // runs that wait for people
	Cold    float64 // the share of effects that are done by a worker that does not have the session
	Rows    float64 // of the journal
	Disk    float64 // bytes of the journal
	Memory  float64 // bytes of each worker
}

// kept is how many sessions a worker keeps in memory: mostLogs in temporal/worker.go.
const kept = 256

// demand reckons what a load takes.
func (l Load) demand(c Costs) (d Demand) {
	d.Run = l.run(c)
	d.Active = float64(l.Sessions) * l.Active
	d.Runs = d.Active / l.works().Seconds()
	d.Waiting = d.Runs * l.Approvals * l.Answer.Seconds()
	d.Cold = l.cold(d.Run.Activities, d.Active)
	d.Second = d.Run.times(d.Runs)
	session := d.Run.Entries * (float64(l.Runs-1) + 0.5) // entries of a session that is in use
	cold := d.Second.Activities * d.Cold
	d.Second.Reads += cold * (c.OpenReads - 1) // in place of what is new
	d.Second.Received += cold * session * c.OpenBytesPerEntry
	d.Rows = float64(l.Sessions*l.Runs) * d.Run.Entries
	d.Disk = float64(l.Sessions*l.Runs) * d.Run.Disk
	each := (d.Active + d.Waiting) / float64(l.Workers)
	d.Memory = c.Idle + min(each, stickyWorkflows)*(c.Open+float64(l.Steps)/2*c.OpenPerStep) + kept*(c.Kept+float64(l.Steps*l.Runs)*c.KeptPerStep)
	return d
}

// cold is the share of effects of a run that come to a worker which does not have the session: it never did, for each effect comes to any worker, or it has had 256 others since.
func (l Load) cold(effects, active float64) float64 {
	never := 0.0 // on the mean over the run's effects
	for i := range int(effects) {
		never += math.Pow(1-1/float64(l.Workers), float64(i)) / effects
	}
	stays := min(1, kept/active)
	return 1 - (1-never)*stays
}

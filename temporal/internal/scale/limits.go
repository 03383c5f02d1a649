package main

import (
	"fmt"
	"slices"
)

// What others publish, and what they are set to by default.
const (
	maxConnections   = 100 - 3 // PostgreSQL: max_connections, less superuser_reserved_connections
	cloudActions     = 500     // Temporal Cloud: actions a second of a namespace, at least
	cloudRequests    = 1500    // the requests that go with them, of a Temporal Resource Unit
	cloudUnits       = 12      // the most of them that a namespace is given without asking
	cloudPollers     = 20_000  // of either kind, in a namespace
	historyEvents    = 51_200  // at which Temporal ends a workflow
	historyBytes     = 50 << 20
	activitySlots    = 1000   // Go SDK: MaxConcurrentActivityExecutionSize
	pollersEach      = 8      // of either kind: temporal/polling.go
	stickyWorkflows  = 10_000 // Go SDK: SetStickyWorkflowCacheSize
	defaultRetention = 30     // days that Temporal Cloud keeps a history
)

// What we reckon with where nobody publishes anything, and a reader has figures of his own.
const (
	postgresCores = 2          // of the server that was measured
	commitSeconds = 2.0 / 5900 // of a core, for a transaction: docs/postgres.md, 64 sessions append at once
	readSeconds   = 30.0 / 1e6 // of a core, for another statement: TestThePredictionHolds says what it is on the machine that it runs on
	flushSeconds  = 1.5 / 1000 // that a commit waits besides, which those at the same time share
	networkBytes  = 1.25e9     // 10 Gbit/s, of the database
	workerMemory  = 4 << 30    // that a worker may have
	pollSeconds   = 5.0 / 1000 // until a poll that finds a task has brought it
)

// Resource is something that can run out.
type Resource struct {
	Name        string
	Used, Limit float64
	Unit        string
	Then        string // what to do
}

// Share is how much of it is used.
func (r Resource) Share() float64 { return r.Used / r.Limit }

// resources are what a load takes of everything there is so much of.
func (l Load) resources(c Costs) []Resource {
	d, w := l.demand(c), float64(l.Workers)
	return []Resource{
		{"connections to PostgreSQL", w * float64(c.Pool), maxConnections, "", "PgBouncer in transaction mode"},
		{"processors of PostgreSQL", d.Second.Commits*commitSeconds + d.Second.Reads*readSeconds, postgresCores, "", "more cells"},
		{"bytes read from PostgreSQL", d.Second.Received, networkBytes, "B/s", "more cells"},
		{"actions of a Temporal namespace", d.Second.Actions, cloudActions * cloudUnits, "/s", "more cells"},
		{"requests to a Temporal namespace", d.Second.Requests, cloudRequests * cloudUnits, "/s", "more cells"},
		{"pollers of a Temporal namespace", w * pollersEach, cloudPollers, "", "more cells"},
		{"polls of the workers", d.Second.Activities, w * pollersEach / pollSeconds, "/s", "more pollers, or workers"},
		{"effects at a time in the workers", d.Active, w * activitySlots, "", "more workers, or more slots"},
		{"workflows in the workers' caches", d.Active + d.Waiting, w * stickyWorkflows, "", "more workers; until then replays"},
		{"memory of a worker", d.Memory, workerMemory, "B", "more workers, or a smaller cache"},
	}
}

// first is the resource that there is least left of.
func first(all []Resource) (r Resource) {
	for i, one := range all {
		if i == 0 || one.Share() > r.Share() {
			r = one
		}
	}
	return r
}

// breaks is the number of runs under way at which the first thing is used up, but for what was taken care of. Not everything grows in proportion, so it is looked for.
func (l Load) breaks(c Costs, but ...string) (active float64, r Resource) {
	low, high := 0.0, 1e8
	for range 60 {
		mid := (low + high) / 2
		at := l
		at.Sessions, at.Active = 1_000_000_000, mid/1e9
		all := slices.DeleteFunc(at.resources(c), func(r Resource) bool { return slices.Contains(but, r.Name) })
		if one := first(all); one.Share() > 1 {
			high, r = mid, one
		} else {
			low = mid
		}
	}
	return low, r
}

// room is how much of anything is used in a cell: the rest is for hours that are busier than others.
const room = 0.7

// cells is into how many cells, each with a database, a namespace and workers of its own, a load goes.
func (l Load) cells(c Costs) (cells, workers int) {
	for cells = 1; ; cells++ {
		for workers = 1; float64(workers*c.Pool) <= room*maxConnections; workers++ {
			cell := l
			cell.Workers, cell.Sessions = workers, l.Sessions/cells
			if first(cell.resources(c)).Share() <= room {
				return cells, workers
			}
		}
	}
}

// short writes a number that a person can take in: three digits, and what thousand they are of.
func short(n float64) string {
	for _, s := range []struct {
		of   float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}} {
		if n >= s.of {
			of := s.of
			if s.of == 1e4 {
				of = 1e3
			}
			return fmt.Sprintf("%.3g%s", n/of, s.name)
		}
	}
	if n >= 100 || n == float64(int(n)) {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.2g", n)
}

package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// Machine is what the simulation needs to know of times: they are the reader's, none of them is a promise.
type Machine struct {
	Dispatch  time.Duration // from when a task is there until a worker has it, with nothing in the way
	Poll      time.Duration // that a poller is taken up by a task
	Pollers   int           // of either kind, of a worker
	Rate      float64       // actions a second that Temporal takes; 0: any number
	Cores     int           // of the database
	Commit    time.Duration // of a core of the database, for a transaction
	Read      time.Duration // of a core, for any other statement
	Flush     time.Duration // that a commit waits besides; commits at the same time share it
	Processor int           // cores that workers, Temporal and the database share; 0: each has its own
	Even      bool          // models and tools always take as long: a run's time is spread over its activities. Else they take so long on the mean
	Effect    time.Duration // of them, for an activity with its workflow task
}

// cluster is the machine that the page reckons with: a database on two cores, as it was measured, and Temporal Cloud.
var cluster = Machine{
	Dispatch: 10 * time.Millisecond, Poll: seconds(pollSeconds), Pollers: pollersEach, Rate: cloudActions * cloudUnits,
	Cores: postgresCores, Commit: seconds(commitSeconds), Read: seconds(readSeconds), Flush: seconds(flushSeconds),
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Times are what a simulation gives.
type Times struct {
	Done       float64       // activities a second
	Mean, P99  time.Duration // of an activity with its workflow task, but for what the model or the tool takes
	Finished   time.Duration // when the last run was over, if they were to end
	Activities int
}

// place is where only so many can be at a time; the others wait in order.
type place struct {
	free  int
	queue []*walker
}

// op is one thing that a run does: take a place, leave one, or let time pass.
type op struct {
	take, leave *place
	passes      time.Duration
}

// walker is a run on its way.
type walker struct {
	at    time.Duration
	ops   []op
	home  *station // the worker that has its workflow
	began time.Duration
	spent time.Duration // on the model or the tool, in this activity
	left  int           // activities
	goes  bool          // it is at an activity
}

// station is one worker.
type station struct{ tasks, activities, slots, pool *place }

type clock []*walker

func (c clock) Len() int           { return len(c) }
func (c clock) Less(i, j int) bool { return c[i].at < c[j].at }
func (c clock) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *clock) Push(x any)        { *c = append(*c, x.(*walker)) }
func (c *clock) Pop() any {
	old := *c
	w := old[len(old)-1]
	*c = old[:len(old)-1]
	return w
}

// simulation is a load on a machine, walked through event by event.
type simulation struct {
	load     Load
	costs    Costs
	machine  Machine
	random   *rand.Rand
	workers  []*station
	database *place
	temporal *place
	shared   *place
	clock    clock
	per      Total // of an activity, on the mean of a run
	cold     float64
}

// simulate walks through a load. until is how long; 0 is until so many runs are over as are active at the beginning, each begun anew. The same seed gives the same times.
func simulate(l Load, c Costs, m Machine, until time.Duration, seed uint64) (t Times) {
	run := l.run(c)
	s := &simulation{load: l, costs: c, machine: m, random: rand.New(rand.NewPCG(seed, 1)), per: run.times(1 / run.Activities)} //nolint:gosec // chance, no secret
	s.cold = l.demand(c).Cold
	for range l.Workers {
		s.workers = append(s.workers, &station{&place{free: m.Pollers}, &place{free: m.Pollers}, &place{free: activitySlots}, &place{free: c.Pool}})
	}
	s.database, s.temporal, s.shared = &place{free: m.Cores}, &place{free: 1}, &place{free: max(m.Processor, 1)}
	activities := int(run.Activities + 0.5)
	for range int(float64(l.Sessions)*l.Active + 0.5) {
		w := &walker{home: s.workers[s.random.IntN(l.Workers)], left: activities}
		if until > 0 { // they are anywhere on their way
			w.left = 1 + s.random.IntN(activities)
			w.at = time.Duration(s.random.Float64() * float64(l.works()) / float64(activities))
		}
		heap.Push(&s.clock, w)
	}
	var took []time.Duration
	for len(s.clock) > 0 {
		w := heap.Pop(&s.clock).(*walker)
		now := w.at
		if until > 0 && now > until {
			break
		}
		if len(w.ops) == 0 {
			if w.goes && now >= until/3 { // queues are as long as they get, if they do
				took = append(took, now-w.began-w.spent)
			}
			if w.left == 0 {
				if until == 0 {
					t.Finished = now
					continue
				}
				w.left = activities // another run, of another session
			}
			w.left--
			w.began, w.goes = now, true
			s.next(w)
		}
		s.walk(w, now)
	}
	for _, d := range took {
		t.Mean += d
	}
	if t.Activities = len(took); t.Activities == 0 {
		return t
	}
	t.Mean /= time.Duration(len(took))
	slices.Sort(took)
	t.P99 = took[len(took)*99/100]
	t.Done = float64(len(took)) / (until - until/3).Seconds()
	if until == 0 {
		t.Done = float64(len(took)) / t.Finished.Seconds()
	}
	return t
}

// walk does the ops of a run until time has to pass, or until it has to wait for a place.
func (s *simulation) walk(w *walker, now time.Duration) {
	for len(w.ops) > 0 {
		o := w.ops[0]
		switch {
		case o.leave != nil:
			if len(o.leave.queue) > 0 {
				next := o.leave.queue[0]
				o.leave.queue = o.leave.queue[1:]
				next.at = now
				heap.Push(&s.clock, next)
			} else {
				o.leave.free++
			}
		case o.take != nil && o.take.free > 0:
			o.take.free--
		case o.take != nil:
			w.ops = w.ops[1:]
			o.take.queue = append(o.take.queue, w)
			return
		default:
			w.ops = w.ops[1:]
			w.at = now + o.passes
			heap.Push(&s.clock, w)
			return
		}
		w.ops = w.ops[1:]
	}
	w.at = now
	heap.Push(&s.clock, w)
}

// next is a run's next activity: its workflow task where its workflow is, then the effect at any worker.
func (s *simulation) next(w *walker) {
	m, at := s.machine, s.workers[s.random.IntN(len(s.workers))]
	reads := s.per.Reads
	w.spent = s.effect()
	in := func(p *place, d time.Duration) { w.ops = append(w.ops, op{take: p}, op{passes: d}, op{leave: p}) }
	pass := func(d time.Duration) { w.ops = append(w.ops, op{passes: d}) }
	statements := func(at *station, n float64, each, flush time.Duration) {
		w.ops = append(w.ops, op{take: at.pool})
		in(s.database, time.Duration(n*float64(each)))
		w.ops = append(w.ops, op{passes: flush}, op{leave: at.pool})
	}
	processor := func(part time.Duration) {
		if m.Processor > 0 {
			in(s.shared, part)
		}
	}
	pass(m.Dispatch)
	in(w.home.tasks, m.Poll)
	processor(m.Effect / 2)
	statements(w.home, 1, m.Read, 0)
	if m.Rate > 0 {
		in(s.temporal, seconds(s.per.Actions/m.Rate))
	}
	pass(m.Dispatch)
	in(at.activities, m.Poll)
	w.ops = append(w.ops, op{take: at.slots})
	processor(m.Effect - m.Effect/2)
	statements(at, reads-1, m.Read, 0)
	if s.random.Float64() < s.cold {
		statements(at, s.costs.OpenReads-1, m.Read, 0)
	}
	pass(w.spent)
	for n := s.per.Commits; n > 0; n-- {
		if n >= 1 || s.random.Float64() < n {
			statements(at, 1, m.Commit, m.Flush)
		}
	}
	w.ops = append(w.ops, op{leave: at.slots})
}

// effect is what a model or a tool takes: of a run's activities so many are of either, and the others take no time.
func (s *simulation) effect() time.Duration {
	run := s.load.run(s.costs)
	if s.machine.Even {
		return time.Duration(float64(s.load.works()) / run.Activities)
	}
	x := s.random.Float64() * run.Activities
	switch models, tools := float64(s.load.Steps+1), float64(s.load.Steps); {
	case x < models:
		return time.Duration(s.random.ExpFloat64() * float64(s.load.Model))
	case x < models+tools:
		return time.Duration(s.random.ExpFloat64() * float64(s.load.Tool))
	}
	return 0
}

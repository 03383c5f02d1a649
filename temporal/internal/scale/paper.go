package main

import (
	"fmt"
	"strings"
	"time"
)

// sizes are the loads of the page: a million sessions on record, of which ever more have a run under way.
func sizes() (all []Load) {
	for _, s := range []struct {
		workers int
		active  float64
	}{{1, 0.000_2}, {10, 0.005}, {1000, 0.1}} {
		l := usual
		l.Workers, l.Sessions, l.Active = s.workers, 1_000_000, s.active
		all = append(all, l)
	}
	return all
}

// table is one of the page, by the name that stands before it.
type table struct{ name, text string }

// tables are those of the page.
func tables(c Costs) []table {
	var workers []int
	for _, l := range sizes() {
		workers = append(workers, l.Workers)
	}
	return []table{
		{"costs", units(c)},
		{"loads", loads(c, sizes()...)},
		{"shares", shares(c, sizes()...)},
		{"breaks", ends(c, workers...)},
		{"cells", cellular(c)},
		{"queues", queues(c)},
	}
}

// rows writes a table of Markdown.
func rows(head []string, body ...[]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString("|---" + strings.Repeat("|--:", len(head)-1) + "|\n")
	for _, r := range body {
		line(r)
	}
	return b.String()
}

// units is what one of each costs.
func units(c Costs) string {
	head := []string{"", "rows", "transactions", "other statements", "disk", "WAL", "activities", "events", "history", "actions", "requests"}
	one := func(name string, u Unit) []string {
		return []string{
			name, fmt.Sprint(u.Entries), short(float64(u.Appends) + u.Leases), short(u.Reads), bytes(u.Tables + u.Indexes), bytes(u.WAL),
			fmt.Sprint(u.Activities), fmt.Sprint(u.Events), bytes(u.History), fmt.Sprint(u.Actions), short(u.Requests),
		}
	}
	return rows(head, one("a run without a tool", c.Answer), one("each step, with one call", c.Step), one("each call beside others", c.Call), one("each question to a person", c.Approval), one("a caller who waits, in place of a run that is left", c.Waited))
}

// crowd is the head of a column.
func crowd(workers int) string {
	if workers == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", workers)
}

// bytes writes a number of them.
func bytes(n float64) string {
	switch {
	case n < 0:
		return "−" + bytes(-n)
	case n >= 1e12:
		return fmt.Sprintf("%.3g TB", n/1e12)
	case n >= 1e9:
		return fmt.Sprintf("%.3g GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.3g MB", n/1e6)
	case n >= 1000:
		return strings.Replace(fmt.Sprintf("%.1f KB", n/1e3), ".0 ", " ", 1)
	}
	return fmt.Sprintf("%.0f B", n)
}

// loads is what loads take.
func loads(c Costs, all ...Load) string {
	head := []string{""}
	body := make([][]string, 16)
	for _, l := range all {
		d := l.demand(c)
		head = append(head, crowd(l.Workers))
		for i, row := range [][2]string{
			{"sessions on record", short(float64(l.Sessions))},
			{"of them with a run under way", short(d.Active)},
			{"that wait for somebody besides", short(d.Waiting)},
			{"runs begun", short(d.Runs) + "/s"},
			{"rows of the journal", short(d.Rows)},
			{"disk of the journal", bytes(d.Disk)},
			{"WAL", bytes(d.Second.WAL) + "/s"},
			{"transactions", short(d.Second.Commits) + "/s"},
			{"other statements", short(d.Second.Reads) + "/s"},
			{"effects done by a worker that has to read the session first", fmt.Sprintf("%.0f%%", 100*d.Cold)},
			{"read from the database", bytes(d.Second.Received) + "/s"},
			{"connections to the database", short(float64(l.Workers * c.Pool))},
			{"Temporal actions", short(d.Second.Actions) + "/s"},
			{"of a day", short(d.Second.Actions * 86400)},
			{"Temporal histories, of " + fmt.Sprint(defaultRetention) + " days", bytes(d.Second.History * 86400 * defaultRetention)},
			{"memory of each worker", bytes(d.Memory)},
		} {
			if len(body[i]) == 0 {
				body[i] = append(body[i], row[0])
			}
			body[i] = append(body[i], row[1])
		}
	}
	return rows(head, body...)
}

// shares is how much of everything loads take.
func shares(c Costs, all ...Load) string {
	head, body := []string{"", "there is"}, [][]string{}
	for n, l := range all {
		head = append(head, crowd(l.Workers))
		for i, r := range l.resources(c) {
			if n == 0 {
				body = append(body, []string{r.Name, r.limit(l.Workers)})
			}
			share := fmt.Sprintf("%.3g%%", 100*r.Share())
			if r.Share() >= 10 {
				share = fmt.Sprintf("%.0f times", r.Share())
			}
			if r.Share() > 1 {
				share = "**" + share + "**"
			}
			body[i] = append(body[i], share)
		}
	}
	return rows(head, body...)
}

// limit is how much of it there is: where that comes with each worker, of one.
func (r Resource) limit(workers int) string {
	write := func(n float64) string {
		if r.Unit == "B" || r.Unit == "B/s" {
			return bytes(n) + strings.TrimPrefix(r.Unit, "B")
		}
		return short(n) + r.Unit
	}
	if strings.Contains(r.Name, "the workers") {
		return write(r.Limit/float64(workers)) + " a worker"
	}
	return write(r.Limit)
}

// ends is what is used up first, with numbers of workers, and what is once that was taken care of.
func ends(c Costs, workers ...int) string {
	body := [][]string{}
	for _, w := range workers {
		l := usual
		l.Workers = w
		row, but := []string{short(float64(w))}, []string{}
		for range 3 {
			active, r := l.breaks(c, but...)
			at := fmt.Sprintf("%s, at %s", r.Name, short(active))
			if active < 1 {
				at = r.Name + ", at once"
			}
			row, but = append(row, at+": "+r.Then), append(but, r.Name)
		}
		body = append(body, row)
	}
	return rows([]string{"workers", "first", "second", "third"}, body...)
}

// cellular is into what a million sessions go, however many of them are active.
func cellular(c Costs) string {
	body := [][]string{}
	for _, active := range []float64{0.001, 0.01, 0.1, 1} {
		l := usual
		l.Sessions, l.Active = 1_000_000, active
		cells, workers := l.cells(c)
		l.Workers = workers * cells
		d := l.demand(c)
		body = append(body, []string{
			short(d.Active), short(d.Runs * 86400), fmt.Sprint(cells), fmt.Sprint(workers), short(d.Runs * 86400 * d.Run.Entries), bytes(d.Runs * 86400 * d.Run.Disk), short(d.Second.Actions * 86400),
		})
	}
	return rows([]string{"runs under way", "runs a day", "cells", "workers in each", "rows a day", "disk a day", "actions a day"}, body...)
}

// queues is how long effects wait, as the simulation has it: below where it breaks, near it and beyond.
func queues(c Costs) string {
	body := [][]string{}
	for _, w := range []int{1, 10} {
		l := usual
		l.Workers, l.Approvals = w, 0
		active, _ := l.breaks(c)
		for _, part := range []float64{0.5, 0.9, 1.1} {
			l.Sessions, l.Active = int(active*part*100), 0.01
			t := simulate(l, c, cluster, simulated(l.Sessions), 1)
			want := l.demand(c).Second.Activities
			body = append(body, []string{
				short(float64(w)), fmt.Sprintf("%.0f%%", 100*part), short(active * part), fmt.Sprintf("%.0f%%", min(100, 100*t.Done/want)), t.Mean.Round(time.Millisecond).String(), t.P99.Round(time.Millisecond).String(),
			})
		}
	}
	return rows([]string{"workers", "of what they can do", "runs under way", "effects done of those asked for", "an effect takes besides", "99 of 100 at most"}, body...)
}

// simulated is how long a time is walked through: about as many effects, however large the load.
func simulated(sessions int) time.Duration {
	return max(20*time.Second, min(time.Minute, time.Minute*time.Duration(200_000)/time.Duration(sessions)))
}

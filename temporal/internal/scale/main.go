// Scale says what runs on Temporal cost in the database, in Temporal and in memory, for a number of workers and of sessions, and where it breaks first: the tables of docs/scale.md, or one for a load of your own.
//
//	go run ./internal/scale -workers 10 -sessions 1000000 -active 0.005 -steps 20 -model 8s
//
// What it reckons with was measured (costs.json, see TestTheCostsAreWhatTheyAre), or is published (limits.go).
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	l := usual
	page := flag.Bool("page", false, "print the tables of docs/scale.md")
	flag.IntVar(&l.Workers, "workers", 10, "worker processes")
	flag.IntVar(&l.Sessions, "sessions", 1_000_000, "sessions on record")
	flag.Float64Var(&l.Active, "active", l.Active, "the share of sessions with a run under way that waits for nobody")
	flag.IntVar(&l.Runs, "runs", l.Runs, "runs of each session that are on record")
	flag.IntVar(&l.Steps, "steps", l.Steps, "steps of a run, each with one call of a tool")
	flag.DurationVar(&l.Model, "model", l.Model, "what the model takes for a reply")
	flag.DurationVar(&l.Tool, "tool", l.Tool, "what a tool takes")
	flag.Float64Var(&l.Approvals, "approvals", l.Approvals, "questions to people, for each run")
	flag.DurationVar(&l.Answer, "answer", l.Answer, "what people take to answer")
	seconds := flag.Duration("simulate", 30*time.Second, "how long a time is walked through")
	seed := flag.Uint64("seed", 1, "of chance")
	flag.Parse()
	if err := l.check(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
	c, err := measured()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale: costs.json:", err)
		os.Exit(1)
	}
	if *page {
		for _, t := range tables(c) {
			fmt.Println(t.text)
		}
		return
	}
	fmt.Println(loads(c, l))
	fmt.Println(shares(c, l))
	fmt.Println(ends(c, l.Workers))
	t := simulate(l, c, cluster, *seconds, *seed)
	fmt.Printf("Walked through %v: %s effects a second; one takes %v on the mean, and 99 of 100 at most %v, besides what the model or the tool takes.\n", *seconds, short(t.Done), t.Mean.Round(time.Millisecond), t.P99.Round(time.Millisecond))
}

// check refuses what nothing can be reckoned from.
func (l Load) check() error {
	switch {
	case l.Workers < 1, l.Sessions < 1, l.Runs < 1, l.Steps < 0:
		return fmt.Errorf("give at least one worker, one session and one run")
	case l.Active <= 0 || l.Active > 1:
		return fmt.Errorf("-active is a share: give more than 0, up to 1")
	case l.works() <= 0 || l.Model < 0 || l.Tool < 0 || l.Answer < 0 || l.Approvals < 0:
		return fmt.Errorf("give times that are not negative, and a model that takes some")
	}
	return nil
}

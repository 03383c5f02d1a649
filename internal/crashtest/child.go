package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
)

// variable says to the test binary that it is a child, and with which plan.
const variable = "PAWL_CRASHTEST"

// plan is one life of a case.
type plan struct {
	Scenario string `json:"scenario"`
	Dir      string `json:"dir"`
	Life     int    `json:"life"`
	Die      string `json:"die,omitempty"` // the point to die at
}

// How a child ends. Go's own exits are 1 and 2.
const (
	exitKilled = -1
	exitDone   = 40 // all prompts were played
	exitParked = 41 // the run was interrupted: it waits for a person
)

// serve is the child's whole life; in the parent it does nothing.
func serve(scenarios []Scenario) {
	raw, child := os.LookupEnv(variable)
	if !child {
		return
	}
	code, err := live(context.Background(), raw, scenarios)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func live(ctx context.Context, raw string, scenarios []Scenario) (code int, err error) {
	var pl plan
	if err := json.Unmarshal([]byte(raw), &pl); err != nil {
		return 0, err
	}
	for i := range scenarios {
		if scenarios[i].Name == pl.Scenario {
			return pl.play(ctx, &scenarios[i])
		}
	}
	return 0, errdefs.NotFound.Errorf("crashtest: the child has no scenario %q", pl.Scenario)
}

// play begins the session, or goes on with it, until all prompts are played or a run is interrupted.
func (pl plan) play(ctx context.Context, s *Scenario) (int, error) {
	rec, err := openRecord(pl.Dir)
	if err != nil {
		return 0, err
	}
	store, err := s.open(ctx, pl.Dir)
	if err != nil {
		return 0, err
	}
	p := &Process{dir: pl.Dir, life: pl.Life, die: pl.Die, record: rec, seen: map[string]int{}}
	for first := true; ; first = false {
		f, err := look(ctx, s, store)
		if err != nil {
			return 0, err
		}
		if first {
			must(rec.add(line{Life: pl.Life, Found: f}, false))
		}
		resume := f.state.Run != ""
		if !resume && f.begun == len(s.prompts()) {
			return exitDone, store.Close()
		}
		res, err := p.run(ctx, s, store, f.begun, resume)
		if err != nil {
			return 0, err
		}
		must(rec.add(line{Life: pl.Life, Result: &result{res.RunID, string(res.Status), res.Text(), len(res.Messages)}}, false))
		if res.Status == agent.StatusInterrupted {
			return exitParked, store.Close()
		}
	}
}

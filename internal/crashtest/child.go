package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

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
	Die      string `json:"die,omitempty"`   // the point to die at
	Fault    bool   `json:"fault,omitempty"` // by the matrix's fault, not by SIGKILL
}

// How a child ends. Go's own exits are 1 and 2.
const (
	exitKilled = -1
	exitDone   = 40 // all prompts were played
	exitParked = 41 // the run was interrupted: it waits for a person
	exitFailed = 42 // its store failed, as planned, and it said so
)

// recordFD is the number that the pipe to the parent has in a child.
const recordFD = 3

// serve is the child's whole life; in the parent it does nothing.
func serve(fault *Fault, scenarios []Scenario) {
	raw, child := os.LookupEnv(variable)
	if !child {
		return
	}
	code, err := live(context.Background(), raw, fault, scenarios)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func live(ctx context.Context, raw string, fault *Fault, scenarios []Scenario) (code int, err error) {
	var pl plan
	if err := json.Unmarshal([]byte(raw), &pl); err != nil {
		return 0, err
	}
	for i := range scenarios {
		if scenarios[i].Name == pl.Scenario {
			return pl.play(ctx, fault, &scenarios[i])
		}
	}
	return 0, errdefs.NotFound.Errorf("crashtest: the child has no scenario %q", pl.Scenario)
}

// play opens the store and lives. Once the store fails, any error is what has to come of it: the parent will look whether it says enough.
func (pl plan) play(ctx context.Context, fault *Fault, s *Scenario) (int, error) {
	store, err := fault.opener(s)(ctx, pl.Dir)
	if err != nil {
		return 0, err
	}
	p := &Process{
		dir: pl.Dir, die: pl.Die, record: &record{life: pl.Life, pipe: recordPipe()},
		seen: map[string]int{}, appends: map[string]int{}, moved: make(chan struct{}), subs: map[string]agent.Subagent{},
	}
	if pl.Fault {
		p.fault = fault
	}
	code, err := p.live(ctx, s, store)
	if closing := store.Close(); err == nil {
		err = closing
	}
	if err != nil && p.fails() {
		p.record.add(line{Failed: &failure{classOf(err), err.Error()}})
		return exitFailed, nil
	}
	return code, err
}

// live begins the session, or goes on with it, until all prompts are played or a run is interrupted. What is done is replayed.
func (p *Process) live(ctx context.Context, s *Scenario, store Store) (code int, err error) {
	for first := true; ; first = false {
		f, err := look(ctx, s, store)
		if err != nil {
			return 0, err
		}
		if first {
			p.record.add(line{Found: f})
		}
		res, err := p.run(ctx, s, store, f.begun)
		if err != nil {
			return 0, err
		}
		if res == nil {
			return exitDone, p.replay(ctx, s, store)
		}
		p.record.add(line{Result: &result{res.RunID, string(res.Status), res.Text(), len(res.Messages)}})
		if res.Status == agent.StatusInterrupted {
			return exitParked, nil
		}
	}
}

// classOf names the class of an error.
func classOf(err error) string {
	if c := errdefs.Of(err); c != nil {
		return c.Error()
	}
	return "no class"
}

// Shared gives the children what only the parent can make, such as the address of a server: make is called in the parent, and what it gave
// comes to the children by the environment variable name.
func Shared(t *testing.T, name string, make func() string) string {
	if _, child := os.LookupEnv(variable); !child {
		t.Setenv(name, make())
	}
	return os.Getenv(name)
}

package crashtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
)

// variable says to the test binary that it is a child.
const variable = "PAWL_CRASHTEST"

// plan is one life of a case. A child reads its plans from standard input, a line each.
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

// serve is the child's whole existence; in the parent it does nothing.
func serve(fault *Fault, scenarios []Scenario) {
	if _, child := os.LookupEnv(variable); !child {
		return
	}
	code, err := playLives(context.Background(), fault, scenarios)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// playLives plays one life after the other, until one of them does not end in order, or the
// parent has no more plans. A process whose store was made to fail plays no other life.
func playLives(ctx context.Context, fault *Fault, scenarios []Scenario) (code int, err error) {
	plans, pipe := bufio.NewReader(os.Stdin), recordPipe()
	for {
		text, err := plans.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		var pl plan
		if err := json.Unmarshal(text, &pl); err != nil {
			return 0, err
		}
		i := slices.IndexFunc(scenarios, func(s Scenario) bool { return s.Name == pl.Scenario })
		if i < 0 {
			return 0, errdefs.NotFound.Errorf("crashtest: the child has no scenario %q", pl.Scenario)
		}
		rec := &record{life: pl.Life, pipe: pipe}
		code, err := pl.play(ctx, fault, &scenarios[i], rec)
		if err != nil || pl.Fault {
			return code, err
		}
		rec.add(line{Ended: code})
	}
}

// play opens the store and lives. Once the store fails, any error is what has to come of it: the parent will look whether it says enough.
func (pl plan) play(ctx context.Context, fault *Fault, s *Scenario, rec *record) (int, error) {
	store, err := fault.opener(s)(ctx, pl.Dir)
	if err != nil {
		return 0, err
	}
	p := &Process{
		dir: pl.Dir, die: pl.Die, record: rec,
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

// Shared gives the children what only the parent can make, such as the address of a server:
// make is called in the parent, and what it gave comes to the children of the test by the
// environment variable name. The test may run beside others.
func Shared(t *testing.T, name string, make func() string) string {
	if _, child := os.LookupEnv(variable); child {
		return os.Getenv(name)
	}
	value := make()
	shared.Store(t.Name(), append(slices.Clip(sharedBy(t)), name+"="+value))
	t.Cleanup(func() { shared.Delete(t.Name()) })
	return value
}

// shared has what the children of a test get into their environment, by its name.
var shared sync.Map

func sharedBy(t *testing.T) []string {
	env, _ := shared.Load(t.Name())
	known, _ := env.([]string)
	return known
}

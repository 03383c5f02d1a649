package agent_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// look is an effect of an engine's own. Its outcome is what it changes on the board: it is on record before the engine goes on.
type look struct{ Place string }

func (l look) Key() journal.Key   { return journal.Key{Op: "look", ID: l.Place} }
func (look) Intent() journal.Data { return nil } // nothing happens that could happen twice: when it was cut short it is done again
func (look) Lost() journal.Data   { return nil }
func (look) Concurrent() bool     { return true }

// patrol is an engine without a model: it looks at places, one after the other.
type patrol []string

func (patrol) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "patrol", Resume: true}
}

func (p patrol) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	do := engine.StepsOf(run, host, p)
	for _, place := range p {
		change, err := engine.Do[journal.Board](ctx, do, look{place})
		if err != nil {
			return board, err
		}
		board.Apply(change)
	}
	return board, nil
}

// Perform does one effect, and is the only part that touches the world.
func (patrol) Perform(_ context.Context, _ engine.Run, _ engine.Host, e engine.Effect) (journal.Data, error) {
	place := e.(look).Place
	fmt.Println("looking at the", place)
	return journal.Board{Set: journal.Vars{place: len(place)}}, nil
}

// An engine of one's own keeps what it has done as the loop does: by effects, with differences of its board as their outcomes. The run is interrupted
// after the first of them; the one that goes on does not look there again.
func Example_engine() {
	ctx, store := context.Background(), journal.Memory()
	interrupts := make(chan engine.Interrupt, 1)
	host := engine.HostFuncs{
		InterruptsFunc: func() <-chan engine.Interrupt { return interrupts },
		CheckpointFunc: func(context.Context, engine.Checkpoint) error {
			interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown}
			return nil
		},
	}
	guard := agent.Agent{ID: "guard"}
	req := agent.Request{ContextID: "night", Message: message.User("go round")}

	res, err := agent.Run(ctx, guard, patrol{"gate", "cellar"}, req, agent.WithJournal(store), agent.WithEngineHost(host))
	fmt.Println(res.Status, err)
	res, err = agent.Resume(ctx, guard, patrol{"gate", "cellar"}, "night", agent.WithJournal(store))
	fmt.Println(res.Status, err, res.LastBoard.Snapshot().Vars)
	// Output:
	// looking at the gate
	// interrupted <nil>
	// looking at the cellar
	// completed <nil> map[cellar:6 gate:4]
}

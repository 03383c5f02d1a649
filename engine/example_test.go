package engine_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/message"
)

// An engine that has no model: it answers by itself.
func Example() {
	echo := engine.Func(func(_ context.Context, run engine.Run, _ engine.Host, board *engine.Board) (*engine.Board, error) {
		said := board.Channel(engine.MainChannel).Last().Text()
		board.Append(engine.MainChannel, message.Assistant(run.System+": "+said))
		return board, nil
	})
	board := engine.NewBoard(engine.Snapshot{})
	board.Append(engine.MainChannel, message.User("hello"))
	board, err := echo.Execute(context.Background(), engine.Run{ID: "r", System: "echo"}, engine.NoopHost{}, board)
	fmt.Println(board.Channel(engine.MainChannel).Last().Text(), err)
	// Output: echo: hello <nil>
}

// A host of functions that keeps the checkpoints of its runs, with the types of their vars.
func ExampleHostFuncs() {
	store := engine.MemoryCheckpoints()
	host := engine.HostFuncs{CheckpointFunc: store.Save}

	ctx := context.Background()
	board := engine.NewBoard(engine.Snapshot{})
	board.SetVar("tries", 3)
	now := board.Snapshot()
	if err := host.Checkpoint(ctx, engine.Checkpoint{ExecID: "run-1", Step: "draft", Board: &now}); err != nil {
		fmt.Println(err)
	}
	c, err := store.Load(ctx, "run-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %T\n", c.Step, c.Board.Vars["tries"])
	// Output: draft int
}

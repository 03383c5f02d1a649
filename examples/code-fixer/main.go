// Code-fixer has an agent find out why the tests of a project fail, and fix it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

func main() {
	name := flag.String("model", "scripted/examples/code-fixer/model.yaml", "PROVIDER/NAME")
	dir := flag.String("dir", ".", "the project")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := fix(ctx, *name, *dir); err != nil {
		log.Fatal(err)
	}
}

func fix(ctx context.Context, name, dir string) error {
	m, err := pawl.OpenModel(name)
	if err != nil {
		return err
	}
	// Commands run in a sandbox that writes the project and caches of tools. One place for the caches of all projects: else Go's library is compiled for each.
	fence := pawl.DefaultSandbox()
	if cache, err := os.UserCacheDir(); err == nil {
		fence.Cache = filepath.Join(cache, "pawl", "code-fixer")
	}
	rt, err := pawl.New(ctx, pawl.Options{Model: m, ProjectRoot: dir, Sandbox: &fence})
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()

	for e, err := range rt.RunStream(ctx, pawl.Request{Prompt: "The tests of this project fail. Find out why, and fix the code, not the tests."}) {
		if err != nil {
			return err
		}
		switch d := e.Data.(type) {
		case journal.ToolStarted:
			fmt.Printf("\n> %s %s\n", d.Call.Name, d.Call.Input)
		case journal.RunFinished:
			fmt.Println()
		}
		if e.Delta == event.TextDelta {
			fmt.Print(e.Text)
		}
	}
	return nil
}

// Custom-store keeps sessions in a directory of files: a journal.Store of one's own, which passes the suite that every store has to pass.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func main() {
	name := flag.String("model", "scripted/examples/custom-store/model.yaml", "PROVIDER/NAME")
	dir := flag.String("dir", ".", "where sessions are kept, and the list")
	flag.Parse()
	if err := run(context.Background(), *name, *dir, strings.Join(flag.Args(), " ")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name, dir, prompt string) error {
	m, err := pawl.OpenModel(name)
	if err != nil {
		return err
	}
	store, err := Open(filepath.Join(dir, "sessions"))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	list := tool.Func("list", "Write the shopping list anew.", func(_ context.Context, in struct{ Items []string }) (string, error) {
		return "written", os.WriteFile(filepath.Join(dir, "list.txt"), []byte(strings.Join(in.Items, "\n")+"\n"), 0o600)
	}, tool.Idempotent)
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{list}})
	if err != nil {
		return err
	}
	shopper := agent.Agent{ID: "shopper", Instructions: "You keep a shopping list."}
	res, err := agent.Run(ctx, shopper, eng, agent.Request{ContextID: "shopping", Message: message.User(prompt)}, agent.WithJournal(store))
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return res.Err
}

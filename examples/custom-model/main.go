// Custom-model has an agent look after a greenhouse, with a model of one's own: any program that reads a conversation and writes what comes next.
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
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func main() {
	name := flag.String("model", "", "PROVIDER/NAME, in the place of a command")
	dir := flag.String("dir", ".", "where the files thermometer and heating are")
	flag.Parse()
	if err := run(context.Background(), *name, *dir, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name, dir string, command []string) (err error) {
	var m model.Model = Command(command)
	if name != "" {
		m, err = pawl.OpenModel(name)
	} else if len(command) == 0 {
		err = fmt.Errorf("name the command of the model, or -model")
	}
	if err != nil {
		return err
	}
	thermometer := tool.Func("thermometer", "Read how many degrees there are.", func(context.Context, struct{}) (string, error) {
		b, err := os.ReadFile(filepath.Join(dir, "thermometer")) //nolint:gosec // whoever runs it names the directory
		return strings.TrimSpace(string(b)), err
	}, tool.ReadOnly)
	heating := tool.Func("heating", "Switch the heating.", func(_ context.Context, in struct {
		On bool `json:"on"`
	},
	) (string, error) {
		state := map[bool]string{true: "on", false: "off"}[in.On]
		return state, os.WriteFile(filepath.Join(dir, "heating"), []byte(state+"\n"), 0o600)
	}, tool.Idempotent)
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{thermometer, heating}})
	if err != nil {
		return err
	}
	gardener := agent.Agent{ID: "gardener", Instructions: "Heat when there are fewer than 20 degrees, and not otherwise."}
	res, err := agent.Run(ctx, gardener, eng, agent.Request{Message: message.User("Look after the greenhouse.")})
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return res.Err
}

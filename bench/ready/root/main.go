// Command root is the same agent by the front door: a Runtime, which has what a project's directory may ask for. Without a prompt it ends as soon as it is ready to be asked.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/tool"
)

type input struct {
	Value string `json:"value"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "root:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	echo := tool.Func("echo", "Gives back what it is given.", func(_ context.Context, in input) (string, error) { return in.Value, nil })
	rt, err := pawl.New(ctx, pawl.Options{
		Model: anthropic.New("bench", model.WithBaseURL(os.Getenv("UPSTREAM")), model.WithKey("none")),
		Tools: []tool.Tool{echo}, NoProject: true, NoBuiltins: true, Journal: journal.Memory(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if len(os.Args) < 2 {
		return nil
	}
	res, err := rt.Run(ctx, pawl.Request{Prompt: os.Args[1]})
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return res.Err
}

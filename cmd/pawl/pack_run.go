package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/model"
)

// packRun is what pack run is told.
type packRun struct {
	model, baseURL     string
	vars, tools, allow []string
}

func packRunCommand(s streams) *cobra.Command {
	var r packRun
	cmd := &cobra.Command{
		Use:   "run [flags] FILE PROMPT TEXT",
		Short: "Say something by a prompt of a pack",
		Long: `Says TEXT, or standard input when it is -, to a model by a prompt of a pack, and prints the answer as it comes and as the prompt's validators let it
through. Nothing is kept. Without --model it is the default model of the first of OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and GOOGLE_API_KEY that is set.
Each tool of the prompt needs a --tool: an address that its calls are posted to, with arguments as {name} in it. The exit code is 1 when the turn failed or a
validator blocked the answer, whose message is printed then, and 2 when nothing could begin.`,
		Example: `  pawl pack run --var name=Ada --tool lookup_order=https://shop.example/orders/{order_id} support.pack.json chat "Where is order 7?"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 3 {
				return usage("want a file, a prompt of it and a text, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), s, args[0], args[1], args[2])
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.model, "model", "", "`NAME` of the model: PROVIDER/NAME, or a name that says whose it is (claude…, gemini…, gpt…)")
	f.StringVar(&r.baseURL, "base-url", "", "`URL` of the model's API, with --model")
	f.StringArrayVar(&r.vars, "var", nil, "set a variable: `NAME=TEXT` (repeat)")
	f.StringArrayVar(&r.tools, "tool", nil, "answer a tool by HTTP: `NAME=URL` (repeat)")
	f.StringArrayVar(&r.allow, "allow", nil, "`HOST` or address that tools may reach besides their own, such as localhost (repeat)")
	return cmd
}

func (r packRun) run(ctx context.Context, s streams, file, prompt, text string) error {
	conv, err := r.open(file, prompt)
	if err != nil {
		return wrongUse(err)
	}
	defer func() { _ = conv.Close() }() // nothing runs any more
	if text == "-" {
		b, err := io.ReadAll(s.in)
		if err != nil {
			return err
		}
		text = string(b)
	}
	began, shown := false, ""
	for e, err := range conv.Stream(ctx, text) {
		switch {
		case err != nil && !began && errdefs.Validation.Is(err):
			return wrongUse(err)
		case err != nil:
			if shown != "" && !strings.HasSuffix(shown, "\n") {
				fmt.Fprintln(s.out)
			}
			return &exitError{exitFailed, err}
		}
		began = true
		if e.Delta != event.TextDelta {
			continue
		}
		shown = printable(e.Text)
		if _, err := io.WriteString(s.out, shown); err != nil {
			return err
		}
	}
	if !strings.HasSuffix(shown, "\n") {
		_, err = fmt.Fprintln(s.out)
	}
	return err
}

// open opens the conversation.
func (r packRun) open(file, prompt string) (*pawl.Conversation, error) {
	vars := map[string]any{}
	for _, v := range r.vars {
		name, text, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usage("--var %q: want NAME=TEXT", v)
		}
		vars[name] = text
	}
	opts := []pawl.Option{pawl.WithVars(vars)}
	if r.model != "" {
		var at []model.Option
		if r.baseURL != "" {
			at = append(at, model.WithBaseURL(r.baseURL))
		}
		opts = append(opts, pawl.WithModelName(r.model, at...))
	} else if r.baseURL != "" {
		return nil, usage("--base-url goes with --model")
	}
	conv, err := pawl.Open(file, prompt, opts...)
	if err != nil {
		return nil, err
	}
	for _, t := range r.tools {
		name, url, ok := strings.Cut(t, "=")
		if !ok || name == "" {
			return nil, usage("--tool %q: want NAME=URL", t)
		}
		if err := conv.OnToolHTTP(name, pawl.HTTPTool{URL: url, Allow: r.allow}); err != nil {
			return nil, err
		}
	}
	return conv, nil
}

// Command genkit is one more of the peers. It is a module of its own, because the releases of Genkit and of the vendor's SDK that bench/peers measures don't build in one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/anthropic"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

var peers = load.Peers{"genkit": {Wire: "anthropic", New: newSystem}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := peers.Main(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "genkit:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to do
	}
}

// system is Generate over the plugin for Anthropic, without the server for developers.
type system struct {
	t    *load.Task
	g    *genkit.Genkit
	echo ai.Tool
	end  context.CancelFunc
}

// callsKey is of the counter in a context.
type callsKey struct{}

type input struct {
	Value string `json:"value"`
}

func newSystem(t *load.Task) (load.System, error) {
	ctx, end := context.WithCancel(context.Background())
	s := &system{t: t, g: genkit.Init(ctx, genkit.WithPlugins(&anthropic.Anthropic{APIKey: "none", BaseURL: t.Upstream})), end: end}
	s.echo = genkit.DefineTool(s.g, load.Tool, load.About, func(ctx *ai.ToolContext, in input) (string, error) {
		ctx.Value(callsKey{}).(*atomic.Int64).Add(1)
		return t.Call(in.Value), nil
	})
	return s, nil
}

// Open implements [load.System].
func (s *system) Open(int) load.Session { return &session{s: s} }

// Close implements [load.System].
func (s *system) Close() error {
	s.end()
	return nil
}

type session struct {
	s    *system
	last *ai.ModelResponse // has the transcript
}

// Ask implements [load.Session].
func (s *session) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	var calls atomic.Int64
	s.last, err = genkit.Generate(context.WithValue(ctx, callsKey{}, &calls), s.s.g,
		ai.WithModelName("anthropic/bench"), ai.WithConfig(&sdk.MessageNewParams{MaxTokens: 4096}),
		ai.WithSystem(load.Instructions), ai.WithPrompt("%s", prompt), ai.WithTools(s.s.echo), ai.WithMaxTurns(s.s.t.Workload.Asks.Turns),
		ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
			if c.Role == ai.RoleModel {
				if text := c.Text(); text != "" {
					said(text)
				}
			}
			return nil
		}))
	if err != nil {
		return a, err
	}
	return load.Answer{Text: s.last.Text(), Calls: int(calls.Load())}, nil
}

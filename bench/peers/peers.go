// Command peers puts what others have made under the same load as Pawl: agent frameworks in Go, and the vendors' SDKs with a loop around them. It is run by bench/turns; see bench/README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// peers are written as their documentation shows, without anything that makes them slower: no callbacks, no logs, no tracing that can be left out.
var peers = load.Peers{
	"eino":        {Wire: "chat", New: newEino},
	"langchaingo": {Wire: "chat", New: newLangchain},
	"claude-sdk":  {Wire: "anthropic", New: newClaude(byHand)},
	"claude-acc":  {Wire: "anthropic", New: newClaude(accumulated)},
	"openai-sdk":  {Wire: "chat", New: newOpenAI(openaiByHand)},
	"openai-acc":  {Wire: "chat", New: newOpenAI(openaiAccumulated)},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := peers.Main(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to do
	}
}

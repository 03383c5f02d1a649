// Three-engines does one task three times, with one agent: research, then write, then review, with one tool and one approval. A loop with hooks drives it, then a graph, then a
// script, and all three leave the same transcript. README.md shows them side by side.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "three-engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet("three-engines", flag.ContinueOnError)
	only := flags.String("engine", "", "loop, graph or script; unless given all three, one after the other")
	dir := flags.String("out", "", "the `directory` of the journal and the reports; unless given a new temporary one. With one that was used before, runs go on")
	yes := flags.Bool("yes", false, "approve")
	no := flags.Bool("no", false, "reject; without both you are asked, and where nobody is there the runs wait")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := slices.Clone(ways)
	if *only != "" {
		chosen = slices.DeleteFunc(chosen, func(w way) bool { return w.name != *only })
	}
	if len(chosen) == 0 || flags.NArg() > 0 || *yes && *no {
		return fmt.Errorf("wrong use: see -help")
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "three-engines-"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(*dir, "journal.db")) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	var left []string // the transcripts of runs that are over
	host := person{bufio.NewReader(in), out, *yes, *no}
	for _, w := range chosen {
		st, err := w.drive(ctx, store, *dir, engine.HostFuncs{AskUserFunc: host.ask})
		if err != nil {
			return err
		}
		report := filepath.Join(*dir, w.name, "report.md")
		if _, err := os.Stat(report); err != nil {
			report = "nothing is published"
		}
		fmt.Fprintf(out, "%-6s  %s  %d messages  %s\n", w.name, st.Status, st.Messages.Len(), strings.TrimSpace(report+" "+st.Error))
		if len(st.Pending) == 0 {
			left = append(left, transcript(st.Messages))
		}
	}
	if len(left) < len(chosen) {
		fmt.Fprintf(out, "\nWhat waits for an answer goes on with: -out %s -yes (or -no)\n", *dir)
	}
	for _, one := range slices.Compact(left) { // one, when they are the same
		fmt.Fprintf(out, "\n%s", one)
	}
	return nil
}

// drive begins the run, or goes on with it, or finds it finished. It gives the session as it is on record then.
func (w way) drive(ctx context.Context, store journal.Store, dir string, host engine.Host) (st journal.State, err error) {
	m, err := openModel()
	if err != nil {
		return st, err
	}
	eng, err := w.make(loop.Config{Model: m, Tools: []tool.Tool{library(filepath.Join(dir, w.name))}})
	if err != nil {
		return st, err
	}
	log, err := journal.Open(ctx, store, w.name)
	if err != nil {
		return st, err
	}
	opts := []agent.RunOption{agent.WithJournal(store), agent.WithEngineHost(host)}
	switch st := log.State(); {
	case st.Run != "":
		_, err = agent.Resume(ctx, reporter, eng, w.name, opts...)
	case st.Status == "":
		_, err = agent.Run(ctx, reporter, eng, agent.Request{ContextID: w.name, Message: message.User(task)}, opts...)
	}
	if err == nil {
		err = log.Refresh(ctx)
	}
	return log.State(), err
}

// person answers by a flag, or else at the terminal.
type person struct {
	in      *bufio.Reader
	out     io.Writer
	yes, no bool
}

func (p person) ask(ctx context.Context, q engine.Prompt) (engine.Reply, error) {
	if !p.yes && !p.no {
		fmt.Fprintf(p.out, "%s (y/n) ", q.Prompt)
		line, err := p.in.ReadString('\n')
		if err != nil {
			fmt.Fprintln(p.out)
			return engine.NoopHost{}.AskUser(ctx, q) // nobody is there
		}
		p.yes = strings.EqualFold(strings.TrimSpace(line), "y")
	}
	return engine.Reply{Answered: journal.Answered{Approved: p.yes, By: "you"}}, nil
}

// transcript is what was said, for people.
func transcript(h message.History) string {
	var b strings.Builder
	for _, m := range h.All() {
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.Text:
				fmt.Fprintf(&b, "%s: %s\n", m.Role(), p.Text)
			case message.ToolCall:
				fmt.Fprintf(&b, "%s: %s %s\n", m.Role(), p.Name, p.Input)
			case message.ToolResult:
				fmt.Fprintf(&b, "%s: %s\n", m.Role(), strings.ReplaceAll(strings.TrimSpace(p.Content), "\n", "\n      "))
			}
		}
	}
	return b.String()
}

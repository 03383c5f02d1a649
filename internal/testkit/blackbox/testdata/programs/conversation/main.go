// Program conversation takes one turn of a pack's conversation that is kept in a journal.
//
// With a text it says the text. Without one it approves what waits and continues. The tool
// refund adds a line to the file effects, and each call of it waits for a person.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

func main() {
	where := flag.String("journal", "journal.db", "the journal's `file`")
	name := flag.String("model", "scripted/pack.yaml", "`PROVIDER/NAME`")
	file := flag.String("pack", "support.pack.json", "the pack's `file`")
	session := flag.String("session", "pack", "the conversation's `name`")
	flag.Parse()
	if err := turn(context.Background(), *where, *name, *file, *session, strings.Join(flag.Args(), " ")); err != nil {
		log.Fatal(err)
	}
}

func turn(ctx context.Context, where, name, file, session, text string) error {
	m, err := pawl.OpenModel(name)
	if err != nil {
		return err
	}
	store, err := sqlite.Open(where) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	conv, err := pawl.Open(file, "desk", pawl.WithModel(m), pawl.WithJournal(store), pawl.WithSession(session))
	if err != nil {
		return err
	}
	defer func() { _ = conv.Close() }()
	conv.SetVar("shop", "Ratchet & Sons")
	conv.OnToolAsync("refund", func(map[string]any) pawl.Pending { return pawl.Pending{Reason: "money"} }, refund)

	var resp *pawl.Response
	if text != "" {
		resp, err = conv.Send(ctx, text)
	} else {
		resp, err = approve(ctx, conv)
	}
	if err != nil {
		return err
	}
	for _, call := range resp.Pending {
		fmt.Println("waits:", call.Call.Name, call.Call.Input)
	}
	fmt.Println(resp.Text())
	return nil
}

// approve lets everything run that waits, and goes on.
func approve(ctx context.Context, conv *pawl.Conversation) (*pawl.Response, error) {
	waiting, err := conv.PendingTools(ctx)
	if err != nil {
		return nil, err
	}
	for _, call := range waiting {
		if err := conv.ResolveTool(ctx, call.ID); err != nil {
			return nil, err
		}
	}
	return conv.Continue(ctx)
}

// refund adds a line to the file effects.
func refund(args map[string]any) (any, error) {
	f, err := os.OpenFile("effects", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(f, args["order"])
	if e := f.Close(); err == nil {
		err = e
	}
	return "paid back", err
}

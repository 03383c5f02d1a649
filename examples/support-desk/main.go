// Support-desk answers customers by a PromptPack. Refunds of more than 20.00 wait for a person, who approves them from another process, whenever that is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

var (
	name    = flag.String("model", "scripted/examples/support-desk/model.yaml", "PROVIDER/NAME")
	dir     = flag.String("dir", ".", "where the journal is kept")
	shop    = flag.String("shop", "127.0.0.1:7292", "the address of the shop's service")
	chat    = flag.String("chat", "ada", "the conversation, one for each customer")
	approve = flag.Bool("approve", false, "let what waits in the conversation happen")
	reject  = flag.String("reject", "", "refuse what waits, and say why")
	be      = flag.Bool("serve", false, "be the shop's service")
)

func main() {
	flag.Parse()
	run := desk
	if *be {
		run = serve
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func desk(ctx context.Context) error {
	m, err := pawl.OpenModel(*name)
	if err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(*dir, "journal.db")) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	conv, err := pawl.Open("examples/support-desk/support.pack.json", "desk", pawl.WithModel(m), pawl.WithJournal(store), pawl.WithSession(*chat))
	if err != nil {
		return err
	}
	defer func() { _ = conv.Close() }()
	conv.SetVar("shop", "Ratchet & Sons")
	if err := answerTools(conv); err != nil {
		return err
	}

	waiting, err := conv.PendingTools(ctx)
	if err != nil {
		return err
	}
	for _, call := range waiting { // of an earlier process
		switch {
		case *approve:
			err = conv.ResolveTool(ctx, call.ID)
		case *reject != "":
			err = conv.RejectTool(ctx, call.ID, *reject)
		}
		if err != nil {
			return err
		}
	}
	var resp *pawl.Response
	if text := strings.Join(flag.Args(), " "); text != "" {
		resp, err = conv.Send(ctx, text)
	} else {
		resp, err = conv.Continue(ctx)
	}
	if err != nil {
		return err
	}
	for _, call := range resp.Pending {
		fmt.Printf("waits for -approve or -reject: %s %s\n", call.Prompt, call.Call.Input)
	}
	if text := resp.Text(); text != "" {
		fmt.Println(text)
	}
	return nil
}

// answerTools has the shop's service answer the pack's tools.
func answerTools(conv *pawl.Conversation) error {
	local := []string{"127.0.0.1"} // addresses of this machine are refused, unless they are named
	if err := conv.OnToolHTTP("lookup_order", pawl.HTTPTool{URL: "http://" + *shop + "/orders/{order}", Method: "GET", Allow: local}); err != nil {
		return err
	}
	if err := conv.OnToolHTTP("refund", pawl.HTTPTool{URL: "http://" + *shop + "/refunds", Idempotent: true, Allow: local}); err != nil {
		return err
	}
	conv.AskBefore("refund", func(_ context.Context, args map[string]any) pawl.Pending {
		if cents, ok := args["cents"].(float64); ok && cents <= 2000 {
			return pawl.Pending{} // nobody is asked
		}
		return pawl.Pending{Reason: "refund", Message: "Pay this back?"}
	})
	return nil
}

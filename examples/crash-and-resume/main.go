// Crash-and-resume has an agent sell something: it reserves the goods and charges a card. Its process is killed when the card is charged and nobody here knows it yet; the next process goes on, and the card is charged once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

var (
	name = flag.String("model", "scripted/examples/crash-and-resume/model.yaml", "PROVIDER/NAME")
	dir  = flag.String("dir", ".", "where the journal is kept")
	shop = flag.String("shop", "127.0.0.1:7291", "the address of the shop's service")
	die  = flag.Bool("die", false, "have the process killed when the card is charged")
	be   = flag.Bool("serve", false, "be the shop's service")
)

func main() {
	flag.Parse()
	run := sell
	if *be {
		run = serve
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

var seller = agent.Agent{ID: "seller", Instructions: "You sell what people order: reserve it, charge the card, and say that it is done."}

type order struct {
	Order string `json:"order"`
	Cents int    `json:"cents,omitempty"`
}

func sell(ctx context.Context) error {
	store, err := sqlite.Open(filepath.Join(*dir, "journal.db")) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	m, err := pawl.OpenModel(*name)
	if err != nil {
		return err
	}
	// A call that had begun when its process died may have taken effect. These may be made again, since the service is told by a key that it is the same call; of tools that aren't Idempotent the model would be told that the outcome is unknown.
	reserve := tool.Func("reserve", "Reserve the goods of an order.", func(ctx context.Context, in order) (string, error) { return post(ctx, "reserve", in) }, tool.Idempotent)
	charge := tool.Func("charge", "Charge the customer's card.", func(ctx context.Context, in order) (string, error) {
		answer, err := post(ctx, "charge", in)
		if *die {
			kill()
		}
		return answer, err
	}, tool.Idempotent)
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{reserve, charge}})
	if err != nil {
		return err
	}

	// What an earlier process left unfinished comes first.
	res, err := agent.Resume(ctx, seller, eng, "order-7", agent.WithJournal(store))
	if errdefs.NotFound.Is(err) {
		req := agent.Request{ContextID: "order-7", Message: message.User("I take order 7, for 49.90.")}
		res, err = agent.Run(ctx, seller, eng, req, agent.WithJournal(store))
	}
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return res.Err
}

// post asks the shop's service. The key is the same however often, and in whichever process, the call is made.
func post(ctx context.Context, what string, in order) (string, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+*shop+"/"+what, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", tool.FromContext(ctx).Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errdefs.NotAvailable.Errorf("%s: %s", res.Status, answer)
	}
	return string(answer), err
}

// kill is what kill -9 does.
func kill() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	log.Fatal(err) // it was not killed
}

package cassette_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cassette"
	"github.com/pawl-dev/pawl/model/scripted"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "capital.cassette")

	ask := func(m model.Model, question string) {
		reply, err := m.Complete(context.Background(), model.Request{System: "One word.", Messages: message.NewHistory(message.User(question))})
		if err != nil {
			fmt.Println("refused:", filepath.Base(err.Error()))
			return
		}
		fmt.Println(reply.Message.Text())
	}

	// Once, with the real model. In a test: cassette.New(t, file, live), which records with PAWL_RECORD=1.
	live := scripted.New(scripted.Text("Paris"))
	r, err := cassette.Record(live, file)
	if err != nil {
		log.Fatal(err)
	}
	ask(r, "What is the capital of France?")
	if err := r.Close(); err != nil {
		log.Fatal(err)
	}

	// From then on, without it.
	p, err := cassette.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	ask(p, "What is the capital of Spain?")
	ask(p, "What is the capital of France?")
	fmt.Println(p.Done() != nil) // the other question was none of the recorded ones
	// Output:
	// Paris
	// refused: capital.cassette: the request differs from that of exchange 1 at messages[0].parts[0].text:
	// 	recorded: "What is the capital of France?"
	// 	asked:    "What is the capital of Spain?"
	// Paris
	// true
}

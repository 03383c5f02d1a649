package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
	"github.com/pawl-dev/pawl/stream/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "^Example$")) }

// What is said in one process is read in another one.
func Example() {
	dsn, err := pgtest.Database() // your own: "postgres://user@host/database"
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	here, err := postgres.Open(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = here.Close() }()
	there, err := postgres.Open(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = there.Close() }()

	w := stream.NewWriter(here, stream.Batching{}, nil)
	a := w.Begin(stream.Item{Session: "chat", Run: "r", Key: journal.Key{Op: "model", ID: "1"}})
	a.Add(event.Event{Delta: event.TextDelta, Text: "Good evening."})
	a.End()
	w.Close(ctx) // waits until it is there

	items, err := there.Read(ctx, "chat", 0)
	for _, i := range items {
		fmt.Println(i.Session, i.Text, i.End)
	}
	fmt.Println(err)
	// Output:
	// chat Good evening. true
	// <nil>
}

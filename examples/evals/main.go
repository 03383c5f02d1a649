// Evals sorts the mail of a shop into a table of tickets. How well it does that is measured by its tests.
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// The tests have the same flag, so that any model can be measured.
var modelName = flag.String("model", "scripted/examples/evals/model.yaml", "PROVIDER/NAME")

// sorter is who is measured: a change of these words is as much of a change as one of the code.
var sorter = agent.Agent{ID: "sorter", Instructions: `You sort the mail of a shop. For a mail that somebody has to act on, file one ticket: in the queue "shipping" what is about a parcel on its way, in "billing" what is about money.
A ticket's summary is one sentence that says what is wanted, and nothing of the one who wants it. For a mail that asks for nothing file none, and take "none" as its queue.
In the end say how you sorted the mail.`}

// Ticket is a row of the table.
type Ticket struct {
	Queue   string `json:"queue" jsonschema:"shipping or billing"`
	Order   int    `json:"order"`
	Summary string `json:"summary"`
}

// sorted is what the answer has to fit.
const sorted = `{"type": "object", "properties": {"queue": {"enum": ["shipping", "billing", "none"]}, "order": {"type": "integer"}}, "required": ["queue", "order"], "additionalProperties": false}`

// newEngine works on one table.
func newEngine(m model.Model, table string) (engine.Engine, error) {
	file := tool.Func("file_ticket", "File a ticket.", func(_ context.Context, in Ticket) (string, error) {
		return "filed", in.appendTo(table)
	})
	return loop.New(loop.Config{Model: m, Tools: []tool.Tool{file}, Output: json.RawMessage(sorted)})
}

func (t Ticket) appendTo(table string) error {
	f, err := os.OpenFile(table, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // whoever runs it names it
	if err != nil {
		return err
	}
	rows := csv.NewWriter(f)
	err = rows.Write([]string{t.Queue, fmt.Sprint(t.Order), t.Summary})
	rows.Flush()
	return errors.Join(err, rows.Error(), f.Close())
}

func main() {
	table := flag.String("table", "tickets.csv", "the table that tickets are added to")
	flag.Parse()
	if err := run(context.Background(), *modelName, *table, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name, table string, mails []string) error {
	m, err := pawl.OpenModel(name)
	if err != nil {
		return err
	}
	eng, err := newEngine(m, table)
	if err != nil {
		return err
	}
	for _, mail := range mails {
		res, err := agent.Run(ctx, sorter, eng, agent.Request{Message: message.User(mail)})
		if err != nil {
			return err
		}
		if res.Err != nil {
			return res.Err
		}
		fmt.Println(res.Text())
	}
	return nil
}

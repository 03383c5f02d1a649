// Invoices reads what suppliers wrote, each in his own way, and makes a table of it: answers of a model as values of Go.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pawl-dev/pawl"
)

// Invoice is what is asked for. Its JSON Schema is made of it, and what doesn't fit is sent back to the model.
type Invoice struct {
	From   string `json:"from" jsonschema:"the company that wants to be paid"`
	Number string `json:"number"`
	Date   string `json:"date" jsonschema:"as YYYY-MM-DD"`
	Cents  int    `json:"cents" jsonschema:"the sum, in cents"`
}

func main() {
	name := flag.String("model", "scripted/examples/invoices/model.yaml", "PROVIDER/NAME")
	table := flag.String("table", "invoices.csv", "the table to be written")
	flag.Parse()
	if err := run(context.Background(), *name, *table, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name, table string, files []string) error {
	m, err := pawl.OpenModel(name)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no invoices: name their files")
	}
	var rows [][]string // the table that is there stays until all of them are read
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // likewise
		if err != nil {
			return err
		}
		in, err := pawl.Generate[Invoice](ctx, m, "What does this invoice say?\n\n"+string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		rows = append(rows, []string{in.Date, in.From, in.Number, strconv.Itoa(in.Cents)})
	}
	out, err := os.Create(table) //nolint:gosec // whoever runs it names it
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(out).WriteAll(rows), out.Close())
}

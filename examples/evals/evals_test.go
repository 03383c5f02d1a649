package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/eval"
)

var judgeName = flag.String("judge", "scripted/examples/evals/judge.yaml", "the model that judges")

// TestMails measures the sorter: each mail ten times, each time with a table of its own.
func TestMails(t *testing.T) {
	t.Chdir("../..") // paths are as they are for whoever runs the program
	m, err := pawl.OpenModel(*modelName)
	if err != nil {
		t.Fatal(err)
	}
	judge, err := pawl.OpenModel(*judgeName)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := eval.LoadCases("examples/evals/cases.jsonl", eval.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tables := t.TempDir()
	eval.Run(t, eval.Suite{
		Name:  "mails",
		Cases: cases,
		How: func(ctx context.Context, c eval.Case) (eval.Sample, error) {
			dir, err := os.MkdirTemp(tables, "")
			if err != nil {
				return eval.Sample{}, err
			}
			table := filepath.Join(dir, "tickets.csv")
			eng, err := newEngine(m, table)
			if err != nil {
				return eval.Sample{}, err
			}
			s, err := eval.Agent(nil, sorter, eng)(ctx, c)
			s.Data = table
			return s, err
		},
		Scorers: []eval.Scorer{
			eval.JSON(),
			eval.Named("nothing around it", eval.Regexp(regexp.MustCompile(`^\{[^{}]*\}$`))),
			eval.Named("filed", eval.ScorerFunc(filed)),
			eval.Named("summary", eval.Judge(judge, "The summary of each ticket says in one sentence what is wanted, and nothing of the one who wants it. Where there is no ticket, it passes.")),
			eval.MaxSteps(2),
		},
		Repeats:  10,
		Baseline: "examples/evals/baseline.json",
	})
}

// filed looks at the table, whatever the agent says of it: the one ticket that is wanted is there, or none.
func filed(_ context.Context, s eval.Sample) (eval.Score, error) {
	var want Ticket
	if err := json.Unmarshal([]byte(s.Case.Want), &want); err != nil {
		return eval.Score{}, err
	}
	tickets := "nothing"
	if want.Queue != "none" {
		tickets = fmt.Sprintf("%s %d", want.Queue, want.Order)
	}
	f, err := os.Open(s.Data.(string))
	if errors.Is(err, fs.ErrNotExist) {
		return compare("nothing", tickets), nil
	}
	if err != nil {
		return eval.Score{}, err
	}
	rows, err := csv.NewReader(f).ReadAll()
	if err = cmp.Or(err, f.Close()); err != nil {
		return eval.Score{}, err
	}
	has := ""
	for _, row := range rows {
		has += fmt.Sprintf(", %s %s", row[0], row[1])
	}
	return compare(has[2:], tickets), nil
}

func compare(has, want string) eval.Score {
	if has != want {
		return eval.Score{Why: fmt.Sprintf("the table has %s, not %s", has, want)}
	}
	return eval.Score{Value: 1, Pass: true}
}

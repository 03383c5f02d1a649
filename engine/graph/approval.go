package graph

import (
	"context"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/internal/choice"
	"github.com/pawl-dev/pawl/journal"
)

type approvalConfig struct {
	Prompt  string   `json:"prompt"`
	Choices []string `json:"choices"`
	Output  string   `json:"output"`
	Text    string   `json:"text"`
}

func (c approvalConfig) sets() []output { return []output{{"output", c.Output}, {"text", c.Text}} }

func (c approvalConfig) compile(s *scope, path string, _ *node) work {
	if c.Prompt == "" {
		s.add(path+".prompt", "write what a person is to approve", "it is missing")
	}
	if c.Output == "" {
		s.add(path+".output", "name a var that has true or false", "nobody would know the answer")
	}
	if c.Choices != nil {
		if err := choice.Check(c.Choices); err != nil {
			s.add(path+".choices", "", "%s", strings.TrimPrefix(err.Error(), "choices: "))
		}
		if c.Text == "" {
			s.add(path+".text", "name a var that has the choice", "nobody would know it")
		}
	}
	return &approvalWork{c, s.template(path+".prompt", c.Prompt)}
}

// approvalWork asks a person.
type approvalWork struct {
	approvalConfig
	prompt template
}

func (w *approvalWork) do(ctx context.Context, v *visit) error {
	question, err := w.prompt.text(v.seen)
	if err != nil {
		return err
	}
	name, shown := v.scope, choice.Prompt(question, w.Choices)
	for try := 1; ; try++ {
		q := journal.Asked{ID: v.run.CallID(name), Prompt: shown, Confirm: w.Choices == nil, TTL: v.run.AskTTL.Milliseconds()}
		a, err := engine.Do[journal.Answered](ctx, v.do, engine.Ask{Asked: q})
		if err != nil {
			return err
		}
		said, ok := choice.Of(w.Choices, a.Text)
		switch {
		case !a.Approved:
			said = a.Text
		case !ok && try == choice.Tries:
			return choice.None(a.Text)
		case !ok:
			name, shown = v.scope+"/"+strconv.Itoa(try+1), choice.Again(question, w.Choices, a.Text)
			continue
		}
		v.set(w.Output, a.Approved)
		v.set(w.Text, said)
		return nil
	}
}

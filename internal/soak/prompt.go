package main

import (
	"fmt"
	"strings"
)

// prompt is what a client asks for, in words that the model answers by: "soak s17.2: note pay+slow sign". Each word between spaces is a step, a call of the model, and each
// between plus signs a call of the tool of that name. After the last step comes the answer, [prompt.answer].
type prompt struct {
	id    string // unique: of its session and its number
	steps [][]string
}

const begins = "soak "

func (p prompt) String() string {
	steps := make([]string, len(p.steps))
	for i, s := range p.steps {
		steps[i] = strings.Join(s, "+")
	}
	return begins + p.id + ": " + strings.Join(steps, " ")
}

// parse reads a prompt; ok is false for what else is said to a model.
func parse(text string) (p prompt, ok bool) {
	rest, ok := strings.CutPrefix(text, begins)
	if !ok {
		return p, false
	}
	id, steps, ok := strings.Cut(rest, ":")
	if !ok {
		return p, false
	}
	p.id = id
	for s := range strings.FieldsSeq(steps) {
		p.steps = append(p.steps, strings.Split(s, "+"))
	}
	return p, true
}

// answer is what the model says in the end.
func (p prompt) answer() string { return "done " + p.id }

// what names the effect of a call: nothing else has that name.
func (p prompt) what(step, call int) string { return fmt.Sprintf("%s.%d.%d", p.id, step, call) }

// below is the task that a call of the tool task gives. Some ask a person.
func (p prompt) below(step, call int) prompt {
	q := prompt{p.what(step, call), [][]string{{"note"}, {"pay"}}}
	if (step+call)%2 == 1 {
		q.steps = append(q.steps, []string{"sign"})
	}
	return q
}

// kind is what there is to know of a tool.
type kind struct {
	repeatable bool // by its own word: it may run again with the same key
	asks       bool // a person has to approve it
	lines      bool // its effect is a line of a file, and not a request
}

// kinds are the tools that leave effects. The tool task leaves those of its prompt.
var kinds = map[string]kind{
	"note": {repeatable: true},
	"slow": {repeatable: true},
	"pay":  {},
	"sign": {asks: true},
	"bash": {lines: true},
}

package askuser

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// Name is the tool's name.
const Name = "ask_user"

// Interactor reaches a person. Safe for concurrent use.
type Interactor interface {
	// Ask puts a question and waits for the answer. What the person says is taken as it is: the tool makes sense of it. It returns when ctx ends. An
	// engine.InterruptedError parks the run; any other error is told to the model.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Kind is what is asked for.
type Kind string

// The kinds.
const (
	Confirm     Kind = "confirm"     // yes or no
	Select      Kind = "select"      // one of the options
	MultiSelect Kind = "multiselect" // any of the options
	Input       Kind = "input"       // words
)

// Question is what a model asks.
type Question struct {
	Kind    Kind
	Text    string
	Options []Option // of a Select or MultiSelect: two or more
	Default string   // what an empty answer stands for
	Min     int      // how many options of a MultiSelect: at least; 0 is none
	Max     int      // and at most; 0 is all
}

// Option is one way to answer.
type Option struct {
	Label       string `json:"label" jsonschema:"a few words"`
	Description string `json:"description,omitempty" jsonschema:"what it means"`
}

// Answer is what a person said.
type Answer struct {
	Text     string // "yes", "2", "red, blue", or any words
	Declined bool   // the person does not want to answer; Text may say why
}

// New makes the tool; with nil it asks by [Journal].
//
// An answer to a Confirm is told as "yes" or "no", to a Select or MultiSelect by the labels of the options (numbers, and labels in any case, are understood); whatever
// else a person says is handed on as it is: people may always answer in their own words.
func New(by Interactor) tool.Tool {
	if by == nil {
		by = Journal()
	}
	return tool.Func(Name, "Ask the user a question, and wait for the answer. Use it when you can't go on without a decision or a fact that only the user has.",
		func(ctx context.Context, in input) (string, error) {
			q, err := in.question()
			if err != nil {
				return "", err
			}
			a, err := by.Ask(ctx, q)
			if err != nil {
				return "", err
			}
			return q.told(a), nil
		}, tool.Idempotent, tool.WithAliases(map[string]string{"kind": "type", "choices": "options"}))
}

type input struct {
	Question string   `json:"question" jsonschema:"the whole question"`
	Type     Kind     `json:"type,omitempty" jsonschema:"confirm (yes or no), select (one of the options), multiselect (any of them) or input (words, the default)"`
	Options  []Option `json:"options,omitempty" jsonschema:"of select and multiselect: two or more"`
	Default  string   `json:"default,omitempty" jsonschema:"what an empty answer stands for"`
	Min      int      `json:"min_select,omitempty" jsonschema:"of multiselect: at least so many"`
	Max      int      `json:"max_select,omitempty" jsonschema:"of multiselect: at most so many"`
}

// question checks what a model asks.
func (in input) question() (Question, error) {
	q := Question{Kind: in.Type, Text: strings.TrimSpace(in.Question), Options: in.Options, Default: in.Default, Min: in.Min, Max: in.Max}
	if q.Kind == "" {
		if q.Kind = Input; len(q.Options) > 0 {
			q.Kind = Select
		}
	}
	bad := errdefs.Validation.Errorf
	switch {
	case q.Text == "":
		return q, bad("question: it is empty")
	case !slices.Contains([]Kind{Confirm, Select, MultiSelect, Input}, q.Kind):
		return q, bad("type: %q: want confirm, select, multiselect or input", q.Kind)
	case q.chooses() && len(q.Options) < 2:
		return q, bad("options: a %s needs two or more", q.Kind)
	case !q.chooses() && len(q.Options) > 0:
		return q, bad("options: a %s has none: use select or multiselect", q.Kind)
	case q.Kind != MultiSelect && (q.Min != 0 || q.Max != 0):
		return q, bad("min_select, max_select: only a multiselect has them")
	case q.Min < 0 || q.Max < 0 || q.Max > 0 && q.Min > q.Max || q.Min > len(q.Options):
		return q, bad("min_select %d, max_select %d: want 0 or more, the first not above the second, nor above the %d options", q.Min, q.Max, len(q.Options))
	}
	seen := map[string]bool{}
	for i, o := range q.Options {
		l := strings.ToLower(strings.TrimSpace(o.Label))
		if l == "" || seen[l] || strings.ContainsAny(l, ",\n") {
			return q, bad("options: label %d, %q: want each its own, without commas and line breaks", i+1, o.Label)
		}
		seen[l] = true
	}
	if q.chooses() && q.Default != "" {
		if _, ok := q.choose(q.Default); !ok {
			return q, bad("default: %q is none of the options", q.Default)
		}
	}
	if _, ok := yes(q.Default); q.Kind == Confirm && q.Default != "" && !ok {
		return q, bad("default: %q: want yes or no", q.Default)
	}
	return q, nil
}

func (q Question) chooses() bool { return q.Kind == Select || q.Kind == MultiSelect }

// told is the answer as the model is told.
func (q Question) told(a Answer) string {
	text := strings.TrimSpace(a.Text)
	if a.Declined {
		if text == "" {
			return "The user did not answer. Go on as you think best, and say what you assumed."
		}
		return "The user did not answer: " + text
	}
	if text == "" {
		text = q.Default
	}
	switch {
	case q.Kind == Confirm:
		if y, ok := yes(text); ok {
			return map[bool]string{true: "yes", false: "no"}[y]
		}
	case q.chooses():
		if labels, ok := q.choose(text); ok {
			return strings.Join(labels, ", ")
		}
	case q.Kind == Input:
		return text
	}
	if text == "" {
		return "The user gave no answer."
	}
	return "The user says: " + text
}

// choose understands an answer that names options, by number or label; ok is false for one that doesn't, or names too few or too many.
func (q Question) choose(text string) (labels []string, ok bool) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		i := slices.IndexFunc(q.Options, func(o Option) bool { return strings.EqualFold(strings.TrimSpace(o.Label), word) })
		if n, err := strconv.Atoi(strings.TrimSuffix(word, ".")); i < 0 && err == nil && n >= 1 && n <= len(q.Options) {
			i = n - 1
		}
		if i < 0 {
			return nil, false
		}
		if l := q.Options[i].Label; !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	if q.Kind == Select {
		return labels, len(labels) == 1
	}
	return labels, len(labels) >= q.Min && (q.Max == 0 || len(labels) <= q.Max) && (len(labels) > 0 || text == "" && q.Min == 0)
}

// yes understands yes and no.
func yes(text string) (yes, ok bool) {
	switch strings.ToLower(strings.TrimRight(strings.TrimSpace(text), ".!")) {
	case "y", "yes", "true", "ok":
		return true, true
	case "n", "no", "false":
		return false, true
	}
	return false, false
}

// String is the question for a person who reads one text.
func (q Question) String() string {
	var b strings.Builder
	b.WriteString(q.Text)
	for i, o := range q.Options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, o.Label)
		if o.Description != "" {
			fmt.Fprintf(&b, " – %s", o.Description)
		}
	}
	var hints []string
	switch q.Kind {
	case Confirm:
		hints = append(hints, "yes or no")
	case MultiSelect:
		hints = append(hints, q.count())
	case Select, Input:
	}
	if q.Default != "" {
		hints = append(hints, "default: "+q.Default)
	}
	if len(hints) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(hints, "; "))
	}
	return b.String()
}

func (q Question) count() string {
	switch {
	case q.Min > 0 && q.Max == q.Min:
		return fmt.Sprintf("%d of them", q.Min)
	case q.Min > 0 && q.Max > 0:
		return fmt.Sprintf("%d to %d of them", q.Min, q.Max)
	case q.Min > 0:
		return fmt.Sprintf("%d or more of them", q.Min)
	case q.Max > 0:
		return fmt.Sprintf("up to %d of them", q.Max)
	}
	return "any of them"
}

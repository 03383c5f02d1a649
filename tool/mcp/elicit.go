package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
)

const (
	mostRounds  = 10 // of questions in one call
	mostAnswers = 3  // to one field, until the question is given up
)

type callKey struct{}

// asking is the call that a question belongs to.
type asking struct {
	*call
	end context.CancelCauseFunc // of the whole call, with its repetitions
}

// rounds calls a tool, and calls it again with what it asks for. The questions are put one after the other in the order of their names, so that a run which is resumed puts them in
// the same order and finds the answers on record.
func (l *session) rounds(ctx context.Context, p *sdk.CallToolParams, c *call) (*sdk.CallToolResult, error) {
	for range mostRounds {
		round := *p
		round.Meta = sdk.Meta{}
		round.SetProgressToken(c.token)
		res, err := l.CallTool(ctx, &round)
		if err != nil || res.InputRequests == nil {
			return res, err
		}
		answers := sdk.InputResponseMap{}
		for _, id := range sortedKeys(res.InputRequests) {
			e, ok := res.InputRequests[id].(*sdk.ElicitParams)
			if !ok {
				return nil, l.server.errorf(errdefs.NotAvailable, "it asks for what is not offered: %T", res.InputRequests[id])
			}
			if answers[id], err = l.elicited(ctx, &sdk.ElicitRequest{Session: l.ClientSession, Params: e}); err != nil {
				return nil, err
			}
		}
		p.InputResponses, p.RequestState = answers, res.RequestState
	}
	return nil, l.server.errorf(errdefs.NoProgress, "it asks again and again, more than %d times", mostRounds)
}

// elicited puts a server's question to a person. A question that came by itself belongs to the one call that is under way; with several there is no telling, and no one is asked.
func (l *session) elicited(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	cancelled := &sdk.ElicitResult{Action: "cancel"}
	a, ok := ctx.Value(callKey{}).(*asking)
	if !ok {
		l.mu.Lock()
		if len(l.calls) == 1 {
			for _, c := range l.calls {
				a, ok = c.ctx.Value(callKey{}).(*asking)
			}
		}
		n := len(l.calls)
		l.mu.Unlock()
		if !ok {
			l.server.warn(fmt.Sprintf("it asked a question while %d calls were under way, which was not put to anybody: it can't be known whose it is", n))
			return cancelled, nil
		}
	}
	in, inside := engine.InsideOf(a.ctx) //nolint:contextcheck // the question is a part of the call
	if !inside || in.Run.Log == nil {
		return cancelled, nil // no run, nobody to ask
	}
	a.question.Lock()
	defer a.question.Unlock()
	if a.limit.Stop() { // a person takes the time that it takes
		defer a.limit.Reset(a.span)
	}
	asked, cancel := context.WithCancel(a.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	out, err := l.server.ask(asked, in, req.Params) //nolint:contextcheck // ctx cancels it
	switch {
	case errors.As(err, new(engine.InterruptedError)) && !a.again:
		l.server.warn("it asked a question, and nobody was there to answer; the call can't wait, since it may not run again")
		return cancelled, nil
	case err != nil:
		a.end(err)
		return nil, err
	}
	return out, nil
}

// ask puts one question for each field, and none for a form without fields but whether it is all right.
func (s *server) ask(ctx context.Context, in engine.Inside, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	put := func(text string, schema []byte) (engine.Reply, error) {
		var q engine.Prompt
		q.Prompt, q.Schema = fmt.Sprintf("The MCP server %s asks: %s", s.conf.Name, text), schema
		return in.Ask(ctx, q)
	}
	fields, err := fieldsOf(p.RequestedSchema)
	if err != nil {
		return nil, s.errorf(errdefs.Validation, "the form of its question: %w", err)
	}
	if p.Mode == "url" || len(fields) == 0 {
		text := p.Message
		if p.Mode == "url" {
			text += "\nOpen " + p.URL + " in a browser if you trust it, and say yes here when you are done there."
		}
		r, err := put(text, nil)
		if err != nil {
			return nil, err
		}
		if said := strings.TrimSpace(r.Text); !r.Approved || said != "" && !agrees(said) {
			return &sdk.ElicitResult{Action: "decline"}, nil
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
	}
	content := map[string]any{}
	for _, f := range fields {
		wrong := ""
		for try := 1; ; try++ {
			r, err := put(p.Message+"\n"+f.String()+wrong, f.raw)
			if err != nil {
				return nil, err
			}
			if !r.Approved {
				return &sdk.ElicitResult{Action: "decline"}, nil
			}
			v, given, err := f.read(r.Text)
			if err == nil {
				if given {
					content[f.name] = v
				}
				break
			}
			if try == mostAnswers {
				return &sdk.ElicitResult{Action: "cancel"}, nil
			}
			wrong = "\n(" + err.Error() + ")"
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

// field is one thing that a form asks for.
type field struct {
	name, title, description string
	kind                     string // string, number, integer, boolean or array
	choices                  []choice
	fallback                 any
	required                 bool
	raw                      []byte
}

type choice struct{ value, title string }

// property is what a form's schema may have.
type property struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Default     any      `json:"default"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []titled `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []titled `json:"anyOf"`
	} `json:"items"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// fieldsOf reads a form: what is required first, then by name.
func fieldsOf(schema any) ([]field, error) {
	if schema == nil {
		return nil, nil
	}
	b, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(b, &form); err != nil {
		return nil, err
	}
	var out []field
	for _, name := range sortedKeys(form.Properties) {
		var p property
		if err := json.Unmarshal(form.Properties[name], &p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f := field{name: name, title: p.Title, description: p.Description, kind: p.Type, fallback: p.Default, required: slices.Contains(form.Required, name), raw: form.Properties[name]}
		for i, v := range slices.Concat(p.Enum, p.Items.Enum) {
			c := choice{value: v}
			if i < len(p.EnumNames) {
				c.title = p.EnumNames[i]
			}
			f.choices = append(f.choices, c)
		}
		for _, t := range slices.Concat(p.OneOf, p.Items.AnyOf) {
			f.choices = append(f.choices, choice{t.Const, t.Title})
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b field) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	return out, nil
}

// String is the field as a person is asked.
func (f field) String() string {
	var b strings.Builder
	b.WriteString(f.name)
	if f.title != "" && f.title != f.name {
		b.WriteString(" – " + f.title)
	}
	if f.description != "" {
		b.WriteString(": " + f.description)
	}
	for i, c := range f.choices {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, c.value)
		if c.title != "" && c.title != c.value {
			b.WriteString(" – " + c.title)
		}
	}
	hint := map[string]string{"boolean": "yes or no", "integer": "a whole number", "number": "a number", "array": "any of them, with commas between"}[f.kind]
	if f.kind == "string" && len(f.choices) > 0 {
		hint = "one of them"
	}
	var hints []string
	if hint != "" {
		hints = append(hints, hint)
	}
	if f.fallback != nil {
		if v, err := encode(f.fallback); err == nil {
			hints = append(hints, "default: "+string(v))
		}
	} else if !f.required {
		hints = append(hints, "may be left empty")
	}
	if len(hints) > 0 {
		b.WriteString(" (" + strings.Join(hints, "; ") + ")")
	}
	return b.String()
}

// read makes a value of an answer. An empty one is the default, or nothing.
func (f field) read(text string) (v any, given bool, err error) {
	text = strings.TrimSpace(text)
	if text == "" && f.kind != "boolean" {
		if f.fallback != nil {
			return f.fallback, true, nil
		}
		if f.required && f.kind != "array" {
			return nil, false, errors.New("an answer is needed")
		}
		if f.kind != "array" || !f.required {
			return nil, false, nil
		}
	}
	switch f.kind {
	case "boolean":
		switch {
		case text == "" && f.fallback != nil:
			return f.fallback, true, nil
		case text == "": // approving without a word
			return true, true, nil
		case agrees(text):
			return true, true, nil
		case slices.Contains([]string{"n", "no", "false"}, strings.ToLower(strings.TrimRight(text, ".!"))):
			return false, true, nil
		}
		return nil, false, errors.New("please answer yes or no")
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, false, errors.New("please answer with a whole number")
		}
		return n, true, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) { // which JSON has no word for
			return nil, false, errors.New("please answer with a number")
		}
		return n, true, nil
	case "array":
		list := []any{}
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			c, ok := f.choose(word)
			if !ok {
				return nil, false, fmt.Errorf("%q is none of the choices", word)
			}
			list = append(list, c)
		}
		return list, true, nil
	}
	if len(f.choices) == 0 {
		return text, true, nil
	}
	c, ok := f.choose(text)
	if !ok {
		return nil, false, fmt.Errorf("%q is none of the choices", text)
	}
	return c, true, nil
}

// choose finds a choice by its value, its title or its number.
func (f field) choose(word string) (string, bool) {
	for _, c := range f.choices {
		if strings.EqualFold(c.value, word) || c.title != "" && strings.EqualFold(c.title, word) {
			return c.value, true
		}
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(word, ".")); err == nil && n >= 1 && n <= len(f.choices) {
		return f.choices[n-1].value, true
	}
	return "", false
}

func agrees(text string) bool {
	return slices.Contains([]string{"y", "yes", "true", "ok", "done"}, strings.ToLower(strings.TrimRight(strings.TrimSpace(text), ".!")))
}

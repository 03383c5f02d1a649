package loop_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

// open is a stub that says nothing of itself, and so is taken to be able to do all.
type open struct{ s *stub }

func (o open) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	return o.s.Complete(ctx, req)
}

func (o open) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	return o.s.CompleteStream(ctx, req, cb)
}

func TestALoopAnswersInWhatItsCallerTakesOrDoesNothing(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	for name, c := range map[string]struct {
		modes  []string
		output json.RawMessage
		says   string // "": it answers
	}{
		"anything":              {nil, nil, ""},
		"text":                  {[]string{"Text/Plain; charset=utf-8"}, nil, ""},
		"any text":              {[]string{"audio/wav", "text/*"}, nil, ""},
		"everything":            {[]string{"*/*"}, nil, ""},
		"JSON, with a schema":   {[]string{"application/json"}, schema, ""},
		"text, with a schema":   {[]string{"text/plain"}, schema, ""},
		"JSON, without one":     {[]string{"application/json"}, nil, "takes application/json, and this loop answers in text/plain: "},
		"sound":                 {[]string{"audio/*", "video/mp4"}, nil, "takes audio/*, video/mp4, and"},
		"sound, and it is JSON": {[]string{"audio/wav"}, schema, "answers in text/plain or application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			m := plays(says("{}"))
			d := play{cfg: loop.Config{Model: open{m}, Output: c.output}, run: engine.Run{OutputModes: c.modes}}.do(t)
			if c.says == "" {
				wantErr(t, d.err, nil)
				if m.calls() != 1 || string(m.asked[0].Output) != string(c.output) {
					t.Error("the model was not asked for it:", m.asked)
				}
				return
			}
			wantErr(t, d.err, errdefs.NotAvailable, c.says)
			if m.calls() != 0 || len(entries[journal.Prepared](t, d)) > 0 {
				t.Error("something was done before it was refused")
			}
		})
	}
}

func TestAnOutputSchemaHasToBeOne(t *testing.T) {
	for _, schema := range []string{`{`, `{"type": "strnig"}`, `7`} {
		_, err := loop.New(loop.Config{Model: open{plays()}, Output: json.RawMessage(schema)})
		wantErr(t, err, errdefs.Validation, "the output schema")
	}
}

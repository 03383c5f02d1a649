package pawl

import (
	"context"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Generate asks a model for a T: a struct, a slice, a string, whatever encoding/json reads. The model is held to the type's JSON Schema by its provider's own mode, or else by a tool; the answer is checked, and sent back twice at most with what is wrong of it.
// The tag jsonschema describes a field. The zero T comes with any error: Validation where no answer fitted, or T has no schema; what the model failed with; what the options' budget or timeout says. Nothing is kept, unless an option says where (agent.WithJournal).
func Generate[T any](ctx context.Context, m model.Model, prompt string, opts ...agent.RunOption) (T, error) {
	var zero T
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return zero, err
	}
	eng, err := loop.New(loop.Config{Model: m, Output: schema})
	if err != nil {
		return zero, err
	}
	opts = append([]agent.RunOption{agent.WithJournal(journal.Memory())}, opts...)
	res, err := agent.Run(ctx, agent.Agent{ID: "generate"}, eng, agent.Request{Message: message.User(prompt)}, opts...)
	if err == nil {
		err = res.Err
	}
	if err != nil {
		return zero, err
	}
	var out T
	if err := exact.Unmarshal([]byte(res.Text()), &out); err != nil {
		return zero, errdefs.Validation.Errorf("pawl: generate: the answer does not fit %T: %w", out, err)
	}
	return out, nil
}

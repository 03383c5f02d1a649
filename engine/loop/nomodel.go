package loop

import (
	"context"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// NoModel is for an engine that uses a loop for its tools alone: every call of it is errdefs.NotAvailable.
func NoModel() model.Model { return noModel{} }

type noModel struct{}

func (noModel) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errNoModel
}

func (noModel) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return errNoModel
}

var errNoModel = errdefs.NotAvailable.Errorf("loop: this engine has no model: give it one")

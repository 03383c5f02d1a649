// Package overheard lets somebody beside the caller hear what a model says, while it says it.
package overheard

import (
	"context"

	"github.com/pawl-dev/pawl/model"
)

// Streams calls begin before each request, and hear with each piece of its reply, before the caller gets it, in the caller's goroutine. Complete is made
// as a stream.
func Streams(begin func(model.Request), hear func(model.StreamResult)) model.Middleware {
	return func(m model.Model) model.Model {
		o := overheard{m, begin, hear}
		if d, ok := m.(model.Describer); ok {
			return struct {
				model.Model
				model.Describer
			}{o, d}
		}
		return o
	}
}

type overheard struct {
	model.Model
	begin func(model.Request)
	hear  func(model.StreamResult)
}

// Complete implements model.Model.
func (o overheard) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	err = o.CompleteStream(ctx, req, func(s model.StreamResult) error {
		if s.Final {
			resp = s.Response
			return nil
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// CompleteStream implements model.Model.
func (o overheard) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	o.begin(req)
	return o.Model.CompleteStream(ctx, req, func(s model.StreamResult) error {
		o.hear(s)
		return cb(s)
	})
}

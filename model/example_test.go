package model_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// parrot is a model: it says what it heard. A model that can't stream calls back once.
type parrot struct{}

func (parrot) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant(req.Messages.Last().Text()), Stop: model.StopEnd}, nil
}

func (p parrot) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := p.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// loud is a middleware.
type loud struct{ model.Model }

func (l loud) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	resp, err := l.Model.Complete(ctx, req)
	if err == nil {
		resp.Message = message.Assistant(strings.ToUpper(resp.Message.Text()))
	}
	return resp, err
}

func Example() {
	m := model.Wrap(parrot{}, func(m model.Model) model.Model { return loud{m} })
	resp, err := m.Complete(context.Background(), model.Request{Messages: message.NewHistory(message.User("hello"))})
	fmt.Println(resp.Message.Text(), resp.Stop, err)
	// Output: HELLO end_turn <nil>
}

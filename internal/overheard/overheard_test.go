package overheard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/overheard"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// two is a model that streams two pieces.
type two struct{}

func (two) Capabilities() model.Capabilities { return model.Capabilities{Name: "p/two"} }

func (two) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errors.New("it only streams")
}

func (two) CompleteStream(_ context.Context, _ model.Request, cb model.StreamHandler) error {
	for _, s := range []model.StreamResult{{Text: "a"}, {Input: "b", Tool: "t"}, {Final: true, Response: &model.Response{Message: message.Assistant("a")}}} {
		if err := cb(s); err != nil {
			return err
		}
	}
	return nil
}

func TestEachPieceIsHeardFirst(t *testing.T) {
	var order []string
	piece := func(who string) func(model.StreamResult) {
		return func(s model.StreamResult) {
			if !s.Final {
				order = append(order, who+" "+s.Text+s.Input)
			}
		}
	}
	m := overheard.Streams(func(req model.Request) { order = append(order, "begin "+req.System) }, piece("heard"))(two{})
	if c, ok := model.CapabilitiesOf(m); !ok || c.Name != "p/two" {
		t.Errorf("%+v", c)
	}
	err := m.CompleteStream(t.Context(), model.Request{System: "s"}, func(s model.StreamResult) error { piece("given")(s); return nil })
	if d := cmp.Diff([]string{"begin s", "heard a", "given a", "heard b", "given b"}, order); err != nil || d != "" {
		t.Error(err, d)
	}
	order = nil
	resp, err := m.Complete(t.Context(), model.Request{})
	if err != nil || resp.Message.Text() != "a" || len(order) != 3 {
		t.Error(resp, err, order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Complete(ctx, model.Request{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

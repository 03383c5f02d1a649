package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// calling is a model without a native mode for schemas. It says something, begins anew, thinks, and answers by a call.
type calling struct{ schema bool }

func (c calling) Capabilities() model.Capabilities {
	return model.Capabilities{Name: "p/m", Tools: true, Schema: c.schema}
}

func (c calling) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant("Here:", message.ToolCall{ID: "1", Name: model.OutputTool, Input: `{"n":7}`}), Stop: model.StopTools}, nil
}

func (c calling) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, _ := c.Complete(ctx, req)
	for _, s := range []model.StreamResult{{Text: "He"}, {Void: errors.New("again")}, {Reasoning: "hm"}, {Text: "Here:"}, {Final: true, Response: resp}} {
		if err := cb(s); err != nil {
			return err
		}
	}
	return nil
}

func TestAnAnswerByAToolIsShownWhole(t *testing.T) {
	m := model.OutputByTool(calling{})
	if caps, _ := model.CapabilitiesOf(m); !caps.Schema || caps.Name != "p/m" {
		t.Errorf("%+v", caps)
	}
	var got []model.StreamResult
	err := m.CompleteStream(t.Context(), model.Request{Output: json.RawMessage(`{"type":"object"}`)}, func(s model.StreamResult) error {
		got = append(got, s)
		return nil
	})
	if err != nil || len(got) != 3 || got[0].Void == nil || got[1].Reasoning != "hm" || got[2].Text != `{"n":7}` || got[2].Response.Message.Text() != `{"n":7}` || got[2].Response.Stop != model.StopEnd {
		t.Errorf("%+v %v", got, err)
	}
	resp, err := m.Complete(t.Context(), model.Request{}) // nobody asked for a schema
	if err != nil || len(resp.Message.ToolCalls()) != 1 {
		t.Errorf("%+v %v", resp, err)
	}
	if native := (calling{schema: true}); model.OutputByTool(native) != model.Model(native) {
		t.Error("a model that has a native mode is wrapped")
	}
}

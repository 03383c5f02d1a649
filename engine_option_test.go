package pawl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// named is a loop by another name.
type named struct{ *loop.Engine }

func (n named) Capabilities() engine.Capabilities {
	can := n.Engine.Capabilities()
	can.Name = "other"
	return can
}

func TestAnEngineOfTheProgramsOwnGetsWhatTheRuntimeHasAssembled(t *testing.T) {
	store := journal.Memory()
	var got loop.Config
	rt := open(t, pawl.Options{
		Model: stub{message.Assistant("", call("c1", "add", `{}`)), message.Assistant("three")}, Journal: store, Limits: loop.Limits{Steps: 7},
		Tools: []tool.Tool{tool.Func("add", "", func(context.Context, struct{}) (string, error) { return "3", nil })},
		Engine: func(cfg loop.Config) (engine.Engine, error) {
			got = cfg
			l, err := loop.New(cfg)
			return named{l}, err
		},
	})
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "add", SessionID: "s"})
	if err != nil || res.Text() != "three" {
		t.Fatal(res, err)
	}
	if got.Model == nil || got.Limits.Steps != 7 || len(got.Tools) != 1 || !got.Compact.Enabled {
		t.Errorf("%+v", got)
	}
	all, err := journal.Attempts(t.Context(), store, "s")
	if err != nil || len(all) != 1 || all[0].Started.Engine != "other" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAnEngineThatCantBeMadeFailsNew(t *testing.T) {
	for _, c := range []struct {
		make func(loop.Config) (engine.Engine, error)
		want error
	}{
		{func(loop.Config) (engine.Engine, error) { return nil, errdefs.NotFound.Errorf("gone") }, errdefs.NotFound},
		{func(loop.Config) (engine.Engine, error) { return nil, nil }, errdefs.Validation},
	} {
		_, err := pawl.New(t.Context(), pawl.Options{Model: stub{}, NoProject: true, NoBuiltins: true, Journal: journal.Memory(), Engine: c.make})
		if !errors.Is(err, c.want) {
			t.Error(err)
		}
	}
}

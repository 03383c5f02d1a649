package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/message"
)

// writes is an engine that leaves things in channels.
func writes(err error) engine.Engine {
	return engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		b.Append("b", message.Assistant("b1", call("c", "x", `{}`)), message.Assistant("b2"))
		b.Append("a", message.New(message.RoleAssistant, message.File{MIME: "audio/wav", Data: "beep"}))
		b.Append("empty", message.New(message.RoleAssistant))
		b.Append(engine.MainChannel, message.Assistant("done"))
		return b, err
	})
}

func TestArtifactsAreTheChannelsThatWereAskedForInThatOrder(t *testing.T) {
	b := agent.Artifact{Name: "b", Parts: message.Parts{message.Text{Text: "b1"}, call("c", "x", `{}`), message.Text{Text: "b2"}}}
	a := agent.Artifact{Name: "a", Parts: message.Parts{message.File{MIME: "audio/wav", Data: "beep"}}}
	ask := agent.WithArtifactChannels
	for name, c := range map[string]struct {
		opts []agent.RunOption
		want []agent.Artifact
	}{
		"none asked for":          {nil, nil},
		"an empty list":           {[]agent.RunOption{ask()}, nil},
		"in the order of asking":  {[]agent.RunOption{ask("b", "a")}, []agent.Artifact{b, a}},
		"and not of the board":    {[]agent.RunOption{ask("a", "b")}, []agent.Artifact{a, b}},
		"options add up":          {[]agent.RunOption{ask("b"), ask("a", "b")}, []agent.Artifact{b, a}},
		"the same twice":          {[]agent.RunOption{ask("a", "a", "b", "a")}, []agent.Artifact{a, b}},
		"no name and main":        {[]agent.RunOption{ask("", engine.MainChannel)}, nil},
		"without parts, and none": {[]agent.RunOption{ask("empty", "unheard of", "a")}, []agent.Artifact{a}},
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, agent.Agent{}, writes(nil), asking("s", "go"), c.opts...)
			if diff := cmp.Diff(c.want, res.Artifacts); diff != "" || len(res.Messages) != 1 {
				t.Error(diff, lines(res.Messages...))
			}
		})
	}
}

func TestAFailedRunHasItsArtifactsAndARevisedOneTheLast(t *testing.T) {
	if res := run(t, agent.Agent{}, writes(errors.New("no")), asking("s", "go"), agent.WithArtifactChannels("a")); len(res.Artifacts) != 1 || res.Committed {
		t.Errorf("%+v", res)
	}
	twice := agent.WithDecider(decider(agent.FinalizeDecision{Revise: true}))
	if res := run(t, agent.Agent{}, writes(nil), asking("s", "go"), agent.WithArtifactChannels("b"), twice, agent.WithMaxRevise(2)); len(res.Artifacts) != 1 || len(res.Artifacts[0].Parts) != 3 {
		t.Errorf("%+v", res)
	}
	kept := run(t, agent.Agent{}, writes(nil), asking("s", "go"), agent.WithArtifactChannels("b"), twice, agent.WithMaxRevise(2), agent.WithBoardSeed(once()))
	if kept.Status != agent.StatusFailed || len(kept.Artifacts) != 1 {
		t.Errorf("%+v", kept)
	}
}

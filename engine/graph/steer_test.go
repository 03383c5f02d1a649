package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// steers is a model during whose calls something happens; it says what it was told since it last spoke.
type steers struct{ during func(n int) error }

func (s steers) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	n := 1
	var heard []string
	for _, m := range req.Messages.All() {
		switch m.Role() {
		case message.RoleAssistant:
			n, heard = n+1, nil
		case message.RoleUser:
			heard = append(heard, m.Text())
		}
	}
	if err := s.during(n); err != nil {
		return nil, err
	}
	return &model.Response{Message: message.Assistant("heard " + strings.Join(heard, ", ")), Stop: model.StopEnd}, nil
}

func (s steers) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}

const twoNodes = `
name: two
entry: a
nodes: [{id: a, type: model, config: {prompt: one}}, {id: b, type: model, config: {prompt: two}}]
edges: [{from: a, to: b}, {from: b, to: __end__}]
`

// What somebody says to a run is heard by the next model on the main channel that has it for itself, in this run or the next one, and once.
func TestWhatIsSaidToARunUnderWayIsHeard(t *testing.T) {
	steered := func(store journal.Store, at int) func(int) error {
		return func(n int) error {
			if n != at {
				return nil
			}
			return agent.Steer(context.Background(), store, "s", message.User("hurry"))
		}
	}
	for name, c := range map[string]struct {
		at   int
		want []string
	}{
		"within the run":  {1, []string{"user: go", "user: one", "assistant: heard go, one", "user: two", "user: hurry", "assistant: heard two, hurry", "user: go", "user: one", "assistant: heard go, one", "user: two", "assistant: heard two"}},
		"by the next run": {2, []string{"user: go", "user: one", "assistant: heard go, one", "user: two", "assistant: heard two", "user: go", "user: one", "user: hurry", "assistant: heard go, one, hurry", "user: two", "assistant: heard two"}},
	} {
		store := journal.Memory()
		g := compile(t, twoNodes, graph.Kinds{Loop: loop.Config{Model: steers{steered(store, c.at)}}})
		for range 2 {
			completed(t, run(t, g, store, nil))
			replayed(t, g, store)
		}
		same(t, name, c.want, transcript(t, store))

		store = journal.Memory()
		s, err := script.New(script.Config{Source: "generate(\"one\")\ngenerate(\"two\")", Loop: loop.Config{Model: steers{steered(store, c.at)}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			completed(t, run(t, s, store, nil))
			replayed(t, s, store)
		}
		same(t, name+", a script", c.want, transcript(t, store))
	}
}

// Where it would be heard by one of many, or by an attempt that is dropped when it fails, it is not heard, and waits.
func TestWhatIsSaidWaitsWhereItCouldBeLost(t *testing.T) {
	for name, def := range map[string]string{
		"side by side":    strings.Replace(strings.Replace(twoNodes, "edges: [{from: a, to: b}", "edges: [{from: x, to: a}, {from: x, to: b}, {from: a, to: __end__}", 1), "entry: a\nnodes: [", "entry: x\nnodes: [{id: x, type: template, config: {template: x, output: x}}, ", 1),
		"tried again":     strings.Replace(twoNodes, "{id: b,", "{id: b, retry: {attempts: 2},", 1),
		"another channel": strings.Replace(twoNodes, "{prompt: two}", "{prompt: two, channel: aside}", 1),
	} {
		store := journal.Memory()
		g := compile(t, def, graph.Kinds{Loop: loop.Config{Model: steers{func(n int) error {
			if n > 1 {
				return nil
			}
			err := agent.Steer(context.Background(), store, "s", message.User("hurry"))
			if errdefs.Conflict.Is(err) {
				return nil
			}
			return err
		}}}})
		completed(t, run(t, g, store, nil))
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(transcript(t, store), "\n"); strings.Contains(all, "hurry") || len(log.State().Steering) == 0 {
			t.Errorf("%s: it was heard:\n%s", name, all)
		}
	}
}

// What a node has heard whose run died, and was given up, is heard by the next run: at every point it stands in the transcript once.
func TestWhatWasHeardInARunThatWasGivenUpIsHeardAgain(t *testing.T) {
	points := 0
	for n := 1; ; n++ {
		store := journal.Memory()
		dies := &fills{Store: store, left: n}
		said := false
		play := func(store journal.Store, during func(int) error) error {
			g := compile(t, twoNodes, graph.Kinds{Loop: loop.Config{Model: steers{during}}})
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, g, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store))
			if err == nil {
				err = res.Err
			}
			return err
		}
		if err := play(dies, func(n int) error {
			if n == 1 {
				said = true
				return agent.Steer(context.Background(), store, "s", message.User("hurry"))
			}
			return nil
		}); err == nil {
			break
		}
		if !said {
			continue
		}
		points++
		if err := play(store, func(int) error { return nil }); err != nil {
			t.Fatalf("point %d: %v", n, err)
		}
		if all := strings.Join(transcript(t, store), "\n"); strings.Count(all, "hurry") == 0 || strings.Count(all, "user: hurry") != 1 {
			t.Errorf("point %d: %s", n, all)
		}
	}
	if points < 5 {
		t.Errorf("only %d points", points)
	}
}

// fills is a store that is full after so many appends.
type fills struct {
	journal.Store
	left int
}

func (d *fills) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if d.left--; d.left < 0 {
		return errors.New("the disk is full")
	}
	return d.Store.Append(ctx, session, after, entries...)
}

// A visit in which the model heard somebody is not kept: a hit would say it again.
func TestWhatIsSaidToARunIsNotSaidAgainByACache(t *testing.T) {
	store := journal.Memory()
	g := compile(t, `
entry: a
nodes: [{id: a, type: model, config: {prompt: one}}, {id: b, type: model, cache: {key: "1"}, config: {prompt: two}}]
edges: [{from: a, to: b}, {from: b, to: b, condition: 'visits["b"] < 3'}, {from: b, to: __end__}]
`, graph.Kinds{Loop: loop.Config{Model: steers{func(n int) error {
		if n != 1 {
			return nil
		}
		return agent.Steer(context.Background(), store, "s", message.User("hurry"))
	}}}})
	completed(t, run(t, g, store, nil))
	same(t, "the transcript", []string{
		"user: go", "user: one", "assistant: heard go, one", "user: two", "user: hurry", "assistant: heard two, hurry", "user: two", "assistant: heard two", "user: two", "assistant: heard two",
	}, transcript(t, store))
	replayed(t, g, store)
}

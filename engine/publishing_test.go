package engine_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func subjects(sub *event.Subscription) (out []string) {
	for e := range sub.Events() {
		out = append(out, e.Subject())
	}
	return out
}

// emits is a Performer whose effects say something before they are done.
var emits = performs(func(ctx context.Context, host engine.Host, e engine.Effect) (journal.Data, error) {
	d := engine.DeltasOf(&engine.Run{ID: "r", Session: "s"}, host, e.Key(), 0)
	d.Emit(ctx, event.ToolOutput, "stdout", "word")
	return fine(e), nil
})

func TestARunThatPublishesIsSeenOnTheBusAndByItsHost(t *testing.T) {
	for _, a := range []tool.Annotations{writes, readOnly} { // one after the other, and together
		var bus event.Bus
		sub := bus.Subscribe(t.Context(), nil, event.Policy{})
		host := &place{}
		steps := engine.Local(begun(t, journal.Memory()), engine.Publishing(&bus, host), emits)
		if _, err := engine.DoAll[journal.ToolFinished](t.Context(), steps, []engine.UseTool{use("a", a)}); err != nil {
			t.Fatal(err)
		}
		err := steps.Branch(t.Context(), engine.Branch{Scope: "review.1", Run: func(ctx context.Context, s engine.Steps) error {
			_, err := engine.DoAll[journal.ToolFinished](ctx, s, []engine.UseTool{use("b", a), use("c", a)})
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
		bus.Close()
		got := subjects(sub)
		var hosts []string
		for _, e := range host.events {
			hosts = append(hosts, e.Subject())
		}
		same(t, "the host's", hosts, got)
		if len(got) != 9 {
			t.Error(got)
		}
		same(t, "of the first", []string{"agent.run.r.step.-.tool.a.start", "agent.run.r.stream.-.tool.a.delta", "agent.run.r.step.-.tool.a.complete"}, got[:3])
		if want := "agent.run.r.step.review%2E1.tool.b.start"; got[3] != want {
			t.Errorf("%s, want %s", got[3], want)
		}
		if len(host.checkpoints) != 3 {
			t.Error("the host is used for all else", host.checkpoints)
		}
	}
}

func TestItListensWhenEitherDoes(t *testing.T) {
	var bus event.Bus
	for _, host := range []engine.Host{nil, engine.NoopHost{}} {
		h := engine.Publishing(&bus, host)
		if engine.Listening(h) {
			t.Error("nobody is there")
		}
		sub := bus.Subscribe(t.Context(), nil, event.Policy{})
		if !engine.Listening(h) {
			t.Error("the bus is")
		}
		if sub.Close(); engine.Listening(h) {
			t.Error("the bus is not any more")
		}
		if _, err := h.AskUser(t.Context(), engine.Prompt{}); !errdefs.NotAvailable.Is(err) {
			t.Error(err)
		}
	}
	if !engine.Listening(engine.Publishing(&bus, &place{})) {
		t.Error("the host is")
	}
}

// deaf is a host that must not be told anything.
type deaf struct {
	engine.NoopHost
	t *testing.T
}

func (deaf) Listening() bool { return false }

func (d deaf) Publish(context.Context, event.Event) error { d.t.Error("told"); return nil }

// broken is a host that fails as its event tells it.
type broken struct{ engine.NoopHost }

func (broken) Listening() bool                                { return true }
func (broken) ReportUsage(context.Context, model.Usage) error { return errors.New("usage") }
func (broken) Publish(_ context.Context, e event.Event) error {
	if e.Text == "1" {
		panic("host")
	}
	return errors.New(e.Text)
}

func TestAHostThatDoesNotListenOrFailsIsNoMatterToTheBus(t *testing.T) {
	var bus event.Bus
	sub := bus.Subscribe(t.Context(), nil, event.Policy{})
	publish := func(h engine.Host, n int) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("panic")
			}
		}()
		return h.Publish(t.Context(), event.Event{Delta: event.Warning, Text: strconv.Itoa(n)})
	}
	if err := publish(engine.Publishing(&bus, deaf{t: t}), 0); err != nil {
		t.Error(err)
	}
	h := engine.Publishing(&bus, broken{})
	if a, b, c := publish(h, 1), publish(h, 2), h.ReportUsage(t.Context(), model.Usage{}); a.Error() != "panic" || b.Error() != "2" || c.Error() != "usage" {
		t.Error("the host's errors are its own", a, b, c)
	}
	bus.Close()
	var got []string
	for e := range sub.Events() {
		got = append(got, e.Text)
	}
	same(t, "on the bus", []string{"0", "1", "2"}, got)
}

package steady_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/steady"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
)

// down is a model that does not answer.
type down struct {
	provider string
	calls    *int
}

func (d down) Capabilities() model.Capabilities { return model.Capabilities{Provider: d.provider} }

func (d down) Complete(context.Context, model.Request) (*model.Response, error) {
	*d.calls++
	return nil, &model.Error{Provider: d.provider, Kind: errdefs.NotAvailable, Status: 529}
}

func (d down) CompleteStream(ctx context.Context, req model.Request, _ model.StreamHandler) error {
	_, err := d.Complete(ctx, req)
	return err
}

func hi() model.Request {
	return model.Request{Messages: message.NewHistory(message.User("Hi"))}
}

func TestRetriesAreAsManyAsTheySay(t *testing.T) {
	for retries, want := range map[int]int{0: 1, 1: 2, steady.Retries: 4} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			_, err := steady.Around(down{"one", &calls}, retries).Complete(t.Context(), hi())
			if calls != want || !errdefs.NotAvailable.Is(err) {
				t.Errorf("%d calls, want %d: %v", calls, want, err)
			}
		})
	}
}

func TestAnOutageMultipliesNoCallsHoweverManyModelsAreOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, others := 0, 0
		const opened = 100
		for range opened {
			_, _ = steady.Around(down{"two", &calls}, 3).Complete(t.Context(), hi())
		}
		if calls > opened*3/2+30 { // 20, a fifth of the calls, and ten a minute
			t.Errorf("%d calls", calls)
		}
		if _, _ = steady.Around(down{"three", &others}, 3).Complete(t.Context(), hi()); others != 4 {
			t.Errorf("another provider's outage is none of this one's: %d calls", others)
		}
	})
}

func TestAScriptFailsAsItSays(t *testing.T) {
	m := scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 529}}, scripted.Text("unused"))
	if steady.Around(m, 3) != model.Model(m) {
		t.Error("it is wrapped")
	}
	var e *model.Error
	if _, err := steady.Around(m, 3).Complete(t.Context(), hi()); !errors.As(err, &e) || e.Status != 529 {
		t.Error(err)
	}
}

package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/resilience"
)

// A call that our own rate limit holds back is waited for as that, and for how long, and as the model once it is sent.
func TestWhoListensHearsThatACallIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := resilience.NewLimiter(resilience.LimiterPolicy{Requests: 6, Burst: -1}) // one each 10 s
		m := limits.Middleware()(plays(uses(look("1")), says("done")))
		host := &listener{}
		d := play{cfg: loop.Config{Model: m, Tools: small(m, looks()).Tools}, host: host}.do(t)
		wantErr(t, d.err, nil)
		type wait struct {
			What string
			Most time.Duration
			Key  journal.Key
		}
		var got []wait
		for _, e := range host.events {
			if e.Delta == event.Waiting {
				got = append(got, wait{e.Text, e.Wait.Round(100 * time.Millisecond), e.Key})
			}
		}
		second := journal.Key{Op: "model", ID: "2"}
		if diff := cmp.Diff([]wait{{"the rate limit", 9 * time.Second, second}, {"the model", 0, second}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

package pawl_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
)

// meter is a model that asks for one more call of a built-in tool until it was asked often enough, and notes at each step what was allocated since the one before.
type meter struct {
	calls  int
	before runtime.MemStats
	allocs []float64 // per step
	bytes  []float64
}

func (m *meter) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	step := len(m.allocs)
	r := &model.Response{Message: message.Assistant("done"), Usage: model.Usage{Input: req.Messages.Len()}}
	if step < m.calls {
		r.Message = message.Assistant("", call(fmt.Sprint("c", req.Messages.Len()), "glob", fmt.Sprintf(`{"pattern":"*.%d"}`, step)))
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	m.allocs = append(m.allocs, float64(now.Mallocs-m.before.Mallocs))
	m.bytes = append(m.bytes, float64(now.TotalAlloc-m.before.TotalAlloc))
	runtime.ReadMemStats(&m.before)
	return r, nil
}

func (m *meter) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// lower is the mean of the lower half of some steps: now and then a map or a slice grows, and others allocate in the background.
func lower(per []float64, at int) float64 {
	window := slices.Clone(per[at-10 : at+10])
	slices.Sort(window)
	sum := 0.0
	for _, v := range window[:10] {
		sum += v
	}
	return sum / 10
}

// A turn must not get slower as a session grows: not by copies of its history, not by a journal that is read or written again.
func TestAStepOfALongSessionCostsAsMuchAsAnEarlyOne(t *testing.T) {
	const most = 1.2
	store := journal.Memory()
	m := &meter{calls: 5000} // 10,000 messages
	rt := stepping(t, m, store)
	ask := func() {
		t.Helper()
		if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil || res.Text() != "done" {
			t.Fatal(res, err)
		}
	}
	ask()
	first := *m
	m.calls, m.allocs, m.bytes = 30, nil, nil
	ask() // a further run in a session of 10,000 messages
	again := *m

	var written []float64 // bytes on record, per step
	ran := 0
	for e, err := range store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := journal.EncodeData(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case journal.ModelStarted:
			written = append(written, 0)
		case journal.ToolFinished: // a call that never ran would be cheap
			if ran++; d.IsError {
				t.Fatal(d.Content)
			}
		}
		if n := len(written); n > 0 {
			written[n-1] += float64(len(b))
		}
	}
	if want := first.calls + again.calls; ran != want {
		t.Fatalf("%d calls ran, want %d", ran, want)
	}
	for name, c := range map[string]struct{ early, at400, at5000, again float64 }{
		"allocations":     {lower(first.allocs, 10), lower(first.allocs, 400), lower(first.allocs, 4980), lower(again.allocs, 20)},
		"bytes allocated": {lower(first.bytes, 10), lower(first.bytes, 400), lower(first.bytes, 4980), lower(again.bytes, 20)},
		"bytes journaled": {lower(written, 10), lower(written, 400), lower(written, 4980), lower(written, 5020)},
	} {
		t.Logf("%s of a step: %.0f at 10, %.0f at 400, %.0f at 5,000, %.0f in the next run", name, c.early, c.at400, c.at5000, c.again)
		if name == "bytes allocated" && raced.Enabled {
			continue
		}
		if c.at400 > most*c.early || c.at5000 > most*c.early || c.again > most*c.early {
			t.Errorf("%s of a step: %.0f at 10, %.0f at 400, %.0f at 5,000, %.0f in the next run", name, c.early, c.at400, c.at5000, c.again)
		}
	}
}

// steps is a model that asks for one more call of a built-in tool in each of n steps, and tells when a step begins.
type steps struct {
	n     int
	begin func(step int)
}

func (m *steps) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	r := &model.Response{Message: message.Assistant("done"), Usage: model.Usage{Input: req.Messages.Len()}}
	step := req.Messages.Len() / 2
	if step < m.n {
		r.Message = message.Assistant("", call(fmt.Sprint("c", step), "glob", fmt.Sprintf(`{"pattern":"*.%d"}`, step)))
	}
	if m.begin != nil {
		m.begin(step)
	}
	return r, nil
}

func (m *steps) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// stepping is a Runtime with the built-in tools, and a hook behind them, in an empty project.
func stepping(t testing.TB, m model.Model, store journal.Store) *pawl.Runtime {
	t.Helper()
	o := pawl.Options{Model: m, ProjectRoot: t.TempDir(), NoProject: true, Journal: store, Sandbox: &sandbox.Policy{Off: true}, Middleware: []hook.Middleware{{Name: "looks", PostToolUse: func(context.Context, *hook.ToolUse) error { return nil }}}}
	o.Limits.Steps, o.Limits.Repeats = -1, -1
	rt, err := pawl.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

// A run of 400 steps as a program makes it: with the built-in tools, the permissions and the journal.
func BenchmarkRunOf400Steps(b *testing.B) {
	rt := stepping(b, &steps{n: 400}, journal.Memory())
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if res, err := rt.Run(b.Context(), pawl.Request{Prompt: "go", SessionID: fmt.Sprint("s", i)}); err != nil || res.Steps != 401 {
			b.Fatal(res, err)
		}
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i)/400, "ns/step")
}

// A step, model call and tool call, of a run whose session has so many messages when it is measured first.
func BenchmarkStepOfASession(b *testing.B) {
	for _, messages := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("after %d messages", messages), func(b *testing.B) {
			m := &steps{n: messages/2 + b.N}
			m.begin = func(step int) {
				switch step {
				case messages / 2:
					b.ResetTimer()
				case m.n:
					b.StopTimer()
				}
			}
			b.ReportAllocs()
			if res, err := stepping(b, m, journal.Memory()).Run(b.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil || res.Steps != m.n+1 {
				b.Fatal(res, err)
			}
		})
	}
}

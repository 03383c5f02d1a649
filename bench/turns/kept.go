package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/journal/trace"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// W9: what it takes to come back to a session that is on record, at n, 2n, 4n and 8n entries, n being keptEntries.

const keptEntries = 10_000

func keptSizes(times float64) (all []int) {
	for _, more := range []int{1, 2, 4, 8} {
		all = append(all, max(10, int(keptEntries*times))*more)
	}
	return all
}

// keptActs are what is done with a session, by the name of its workload. What they give is what they retain.
var keptActs = map[string]func(ctx context.Context, store journal.Store, session string) (any, error){
	"W9-open": func(ctx context.Context, store journal.Store, session string) (any, error) {
		l, err := journal.Open(ctx, store, session)
		if err == nil && l.State().Seq < 2 {
			err = errors.New("it is empty")
		}
		return l, err
	},
	"W9-resume": func(ctx context.Context, store journal.Store, session string) (any, error) {
		read := tool.Func("read", "Reads a file.", func(context.Context, struct{ Path string }) (string, error) { return "", errors.New("it was called") })
		eng, err := loop.New(loop.Config{Model: done{}, Tools: []tool.Tool{read}, Limits: loop.Limits{Steps: -1, Repeats: -1}})
		if err != nil {
			return nil, err
		}
		res, err := agent.Resume(ctx, agent.Agent{ID: "coder"}, eng, session, agent.WithJournal(store))
		if err != nil {
			return nil, err
		}
		if res.Err != nil || res.Text() != "done" {
			return nil, fmt.Errorf("it came to %q: %w", res.Text(), res.Err)
		}
		return res, nil
	},
	"W9-fork": func(ctx context.Context, store journal.Store, session string) (any, error) {
		return journal.Fork(ctx, store, session, 0, "")
	},
	"W9-export": func(ctx context.Context, store journal.Store, session string) (any, error) {
		return nil, journal.Export(ctx, store, session, io.Discard)
	},
	"W9-page": func(ctx context.Context, store journal.Store, session string) (any, error) {
		return nil, trace.HTML(ctx, io.Discard, store, session, 0)
	},
}

// done is a model that has nothing more to do.
type done struct{}

func (done) answer() *model.Response {
	return &model.Response{Message: message.Assistant("done"), Stop: model.StopEnd}
}

// Complete implements [model.Model].
func (d done) Complete(context.Context, model.Request) (*model.Response, error) {
	return d.answer(), nil
}

// CompleteStream implements [model.Model].
func (d done) CompleteStream(_ context.Context, _ model.Request, cb model.StreamHandler) error {
	return cb(model.StreamResult{Final: true, Response: d.answer()})
}

// at gives a figure of the smallest size.
func at(of func(load.Sized) float64) func(load.Result) float64 {
	return func(r load.Result) float64 { return of(r.Sizes[0]) }
}

// grows gives the exponent of a figure: 0 where it stays, 1 in proportion.
func grows(of func(load.Sized) float64) func(load.Result) float64 {
	return func(r load.Result) float64 {
		var all []float64
		for _, s := range r.Sizes {
			all = append(all, max(1, of(s)))
		}
		return slope(all)
	}
}

func keptRows() (all []row) {
	wall := func(s load.Sized) float64 { return float64(s.Wall) }
	bytes := func(s load.Sized) float64 { return float64(s.Bytes) }
	retained := func(s load.Sized) float64 { return float64(s.Retained) }
	scaled := func(of func(load.Sized) float64, by float64) func(load.Sized) float64 {
		return func(s load.Sized) float64 { return of(s) / by }
	}
	for _, act := range slices.Sorted(maps.Keys(keptActs)) {
		linear := 1.15
		if act == "W9-fork" {
			linear = 0.1
		}
		wants := []want{
			{metric{"time", "ms", at(scaled(wall, 1e6)), false}, 0},
			{metric{"time, exponent", "", grows(wall), false}, 0},
			{metric{"allocated", "KB", at(scaled(bytes, 1024)), false}, 0},
			{metric{"allocated, exponent", "", grows(bytes), false}, linear},
		}
		if act == "W9-open" || act == "W9-resume" {
			wants = append(wants, want{metric{"retained", "KB", at(scaled(retained, 1024)), false}, 0}, want{metric{"retained, exponent", "", grows(retained), false}, linear})
		}
		for _, system := range []string{"pawl-memory", "pawl-sqlite"} {
			all = append(all, row{title: "W9", workload: act, system: system, wants: wants, more: .2, measure: func(ctx context.Context, b *bench, system string) (load.Result, error) {
				return b.kept(ctx, act, system)
			}})
		}
	}
	return all
}

// kept measures an act at all sizes, each in a process of its own.
func (b *bench) kept(ctx context.Context, act, system string) (load.Result, error) {
	r := load.Result{System: system, Workload: act}
	for _, n := range keptSizes(b.times) {
		var s load.Sized
		out, err := child.Run(ctx, "", asKept, "-act", act, "-store", strings.TrimPrefix(system, "pawl-"), "-entries", fmt.Sprint(n))
		if err == nil {
			err = json.Unmarshal(out, &s)
		}
		if err != nil {
			return r, fmt.Errorf("%s, %s: %w", system, act, err)
		}
		r.Sizes = append(r.Sizes, s)
	}
	return r, nil
}

// keptMain is the process: it makes sessions and does the act with each of them, once to warm up.
func keptMain(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet(asKept, flag.ContinueOnError)
	name := flags.String("act", "", "what to do")
	kind := flags.String("store", "memory", "memory or sqlite")
	entries := flags.Int("entries", keptEntries, "of a session")
	if err := flags.Parse(args); err != nil {
		return err
	}
	act := keptActs[*name]
	if act == nil {
		return fmt.Errorf("there is no act %q", *name)
	}
	dir, err := os.MkdirTemp("", "pawl-kept-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store := journal.Memory()
	switch *kind {
	case "memory":
	case "sqlite":
		file, err := sqlite.Open(filepath.Join(dir, "journal.db")) //nolint:contextcheck // it takes none
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		store = file
	default:
		return fmt.Errorf("there is no store %q", *kind)
	}
	const rounds = 3
	var times, bytes, kept []float64
	for i := range 1 + rounds {
		session := fmt.Sprint("session", i)
		if err := record(ctx, store, session, *entries); err != nil {
			return err
		}
		runtime.GC()
		runtime.GC()
		var before, after, held runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		result, err := act(ctx, store, session)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		if err != nil {
			return err
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&held)
		runtime.KeepAlive(result)
		if i > 0 {
			times, bytes, kept = append(times, float64(took)), append(bytes, float64(after.TotalAlloc-before.TotalAlloc)), append(kept, float64(held.HeapAlloc)-float64(before.HeapAlloc))
		}
		if err := store.Delete(ctx, session); err != nil && !errdefs.NotFound.Is(err) {
			return err
		}
	}
	return json.NewEncoder(out).Encode(load.Sized{
		Size: *entries, Wall: time.Duration(spreadOf(times).middle), Bytes: uint64(spreadOf(bytes).middle), Retained: int64(math.Max(0, spreadOf(kept).middle)),
	})
}

// record puts a session on record whose run is under way: an agent that reads one file after the other, 1 KB of each.
func record(ctx context.Context, store journal.Store, session string, entries int) error {
	const run = "run-1"
	all := []journal.Entry{
		{Run: run, Data: journal.RunStarted{Agent: "coder", User: "ann", Owner: "host/1", Attempt: 1, Model: "bench"}},
		{Run: run, Data: journal.Said{Message: message.User("Go through the files, one by one.")}},
	}
	cost := int64(1234)
	for n := 0; len(all) < entries; n++ {
		step, call := fmt.Sprintf("%06d", n), fmt.Sprintf("toolu_%06d", n)
		called := journal.Called{ID: call, Name: "read", Input: fmt.Sprintf(`{"path":"part%s.go"}`, step)}
		entry := func(op, id string, d journal.Data) {
			all = append(all, journal.Entry{Run: run, Key: journal.Key{Op: op, ID: id}, Data: d})
		}
		entry("model", fmt.Sprint(n+1), journal.ModelStarted{Model: "bench"})
		entry("model", fmt.Sprint(n+1), journal.ModelFinished{
			Message: message.Assistant("Now the next file, "+step+".", message.ToolCall{ID: call, Name: called.Name, Input: called.Input}),
			Usage:   model.Usage{Input: 123, Output: 45}, CostMicros: &cost, Stop: model.StopTools, Model: "bench", ID: "msg_" + step, Millis: 1234,
		})
		entry("judge", call, journal.ToolJudged{Call: call, Verdict: "allow"})
		entry("tool", call, journal.ToolStarted{Call: called})
		entry("tool", call, journal.ToolFinished{Call: call, Name: called.Name, Content: strings.Repeat(step+" a line of a file of some kind\n", 27), Outcome: journal.OutcomeOK, Millis: 12})
	}
	for n := 0; n < len(all); n += 5000 {
		if err := store.Append(ctx, session, int64(n), all[n:min(n+5000, len(all))]...); err != nil {
			return err
		}
	}
	return nil
}

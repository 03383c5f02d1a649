package temporal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/activity"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/stream"
	streams "github.com/pawl-dev/pawl/stream/postgres"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// speaking is a model that says something else in each attempt of its activity: the first fails on the way, the second never ends, the third is whole.
type speaking struct{}

// pieces are how many it says in an attempt.
var pieces = []int{0, 200, 300, 800}

func piece(attempt, n int) string { return fmt.Sprintf("%d.%d é€\n", attempt, n) }

func speech(attempt int) string {
	var b strings.Builder
	for n := range pieces[attempt] {
		b.WriteString(piece(attempt, n))
	}
	return b.String()
}

func (speaking) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errdefs.Internal.Errorf("nobody listens")
}

func (speaking) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	attempt := int(activity.GetInfo(ctx).Attempt)
	for n := range pieces[attempt] {
		if err := cb(model.StreamResult{Text: piece(attempt, n)}); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	switch attempt {
	case 1:
		return errdefs.NotAvailable.Errorf("the model is overloaded")
	case 2:
		<-ctx.Done()
		return ctx.Err()
	}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant(speech(attempt))}})
}

func speaker() (temporal.Member, error) {
	eng, err := loop.New(loop.Config{Model: speaking{}})
	return temporal.Member{Agent: agent.Agent{ID: "speaker"}, Engine: eng}, err
}

// cutter cuts connections of readers.
type cutter struct {
	t     *testing.T
	admin *pgx.Conn
}

// cut ends all connections that are named so, and gives how many there were.
func (c cutter) cut(name string) (n int) {
	c.t.Helper()
	if err := c.admin.QueryRow(c.t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1", name).Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// attempts is what a reader has, by attempt.
type attempts struct {
	order []string // their names, as they came
	of    map[string][]stream.Item
}

// A reader of the stream is cut off twenty times, and its connections with it, while the activity whose words it reads is tried three times: the model fails, and the worker is killed. It goes on from its last offset, and has every byte of each attempt, once. So has one who follows the session, and goes on from his last position.
func TestAReaderIsCutOff(t *testing.T) {
	t.Parallel()
	server := devserver.Start(t)
	dsn := pgtest.DSN(t)
	store, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	opened := func(name string) *streams.Store {
		s, err := streams.Open(t.Context(), dsn+" application_name="+name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	crew := &crew{t: t, env: []string{"PAWL_WORKER=" + server.Address, "PAWL_DSN=" + dsn, "PAWL_LEDGER=/dev/null"}}
	t.Cleanup(crew.dismiss)
	var all sync.WaitGroup
	over := make(chan struct{})

	// The reader, who is cut off.
	const cuts = 20
	cut, again := make(chan struct{}), make(chan struct{}) // it has to come back; it is back
	got := attempts{of: map[string][]stream.Item{}}
	hung := sync.OnceFunc(func() { go crew.kill() }) // the worker, when all of the second attempt is here
	third := make(chan struct{})
	begun := sync.OnceFunc(func() { close(third) })
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	all.Go(func() {
		after, bytes := int64(0), map[int]int{}
		round := func() (ended bool) {
			reads, err := streams.Open(ctx, dsn+" application_name=reader") // as a program does that comes back
			if err != nil {
				t.Error(err)
				return true
			}
			defer func() { _ = reads.Close() }()
			select {
			case again <- struct{}{}:
			case <-ctx.Done():
			}
			ctx, leave := context.WithCancel(ctx)
			defer leave()
			go func() {
				select {
				case <-cut:
					leave()
				case <-ctx.Done():
				}
			}()
			for i, err := range stream.Read(ctx, reads, "s", after) {
				if err != nil {
					return false // its connection is gone
				}
				if i.Offset <= after {
					t.Errorf("offset %d after %d", i.Offset, after)
				}
				if after = i.Offset; len(got.of[i.By]) == 0 {
					got.order = append(got.order, i.By)
				}
				got.of[i.By] = append(got.of[i.By], i)
				if bytes[i.Attempt] += len(i.Text); bytes[2] == len(speech(2)) {
					hung()
				}
				if i.Attempt == 3 {
					begun()
				}
				if i.Attempt == 3 && i.End {
					return true
				}
			}
			return false
		}
		for ctx.Err() == nil && !round() {
		}
	})

	// One who follows, on connections of his own, and keeps his position in JSON.
	follows := opened("follower")
	var followed []event.Event
	all.Go(func() {
		kept := []byte("{}")
		for ctx.Err() == nil {
			var at stream.Position
			if err := json.Unmarshal(kept, &at); err != nil {
				t.Error(err)
				return
			}
			some := 0
			for n, err := range stream.Follow(ctx, store, follows, "s", at) {
				if err != nil {
					t.Error(err)
					return
				}
				followed = append(followed, n.Events...)
				kept, _ = json.Marshal(n.At)
				if _, over := n.Events[len(n.Events)-1].Data.(journal.RunFinished); over {
					return
				}
				if some++; some == 7 { // it goes away by itself, too
					break
				}
			}
		}
	})

	// The run, with a listener.
	crew.hire()
	m, err := speaker()
	if err != nil {
		t.Fatal(err)
	}
	var told []event.Event
	host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		told = append(told, e)
		return nil
	}}
	var res *agent.Result
	all.Go(func() {
		var err error
		eng := temporal.NewEngine(server.Client(t), m.Engine, temporal.WithStream(opened("caller")))
		if res, err = agent.Run(ctx, m.Agent, eng, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host)); err != nil {
			t.Error(err)
		}
	})

	began, done := time.Now(), 0
	c := cutter{t, admin}
	go func() { all.Wait(); close(over) }()
	<-again
	for done < cuts {
		if done == cuts/2 {
			<-third // the rest comes while the last attempt speaks
		}
		select {
		case <-time.After(time.Duration(50+rand.IntN(100)) * time.Millisecond):
		case <-over:
			t.Fatalf("it was over after %d cuts", done)
		}
		c.cut("follower")
		if c.cut("reader") == 0 {
			t.Fatal("the reader has no connection")
		}
		select {
		case cut <- struct{}{}:
			<-again
		case <-again: // it came back by itself
		case <-over:
			t.Fatalf("it was over after %d cuts", done)
		}
		done++
	}
	for ended := false; !ended; {
		select {
		case <-again: // its connection was cut late
		case <-over:
			ended = true
		case <-ctx.Done():
			t.Fatal("it did not end")
		}
	}
	t.Logf("%v: %d cuts, attempts %d", time.Since(began).Round(time.Millisecond), done, len(got.order))

	if len(got.order) != 3 {
		t.Fatalf("%d attempts", len(got.order))
	}
	for n, by := range got.order {
		items := got.of[by]
		text := ""
		for k, i := range items {
			if i.Attempt != n+1 || i.Part != k+1 || i.Lost != 0 || i.Key.Op != "model" {
				t.Errorf("attempt %d, item %d: %+v", n+1, k+1, i)
			}
			text += i.Text
		}
		if text != speech(n+1) {
			t.Errorf("attempt %d: %d bytes of %d, or other ones", n+1, len(text), len(speech(n+1)))
		}
		if last := items[len(items)-1]; last.End != (n+1 != 2) { // who is killed can't say that it is the end
			t.Errorf("attempt %d ended: %v", n+1, last.End)
		}
	}
	if res.Text() != speech(3) {
		t.Errorf("the journal has another text")
	}
	listened(t, "the one who follows", followed)
	listened(t, "the host", told)
}

// listened checks what somebody was told: each attempt's words whole, those before void, none behind the outcome.
func listened(t *testing.T, who string, events []event.Event) {
	t.Helper()
	texts, attempt, over := map[int]string{}, 0, false
	var retries []string
	var order []string
	for _, e := range events {
		switch {
		case e.Data != nil:
			order = append(order, e.Type())
			if d, ok := e.Data.(journal.ModelFinished); ok {
				over = true
				if d.Message.Text() != texts[attempt] {
					t.Errorf("%s heard another text than is on record", who)
				}
			}
		case over:
			t.Errorf("%s heard %s behind the outcome", who, e.Type())
		case e.Delta == event.Retry:
			if e.Attempt != attempt+1 {
				t.Errorf("%s: retry %d after %d", who, e.Attempt, attempt)
			}
			attempt = e.Attempt
			retries = append(retries, e.Text)
		case e.Delta == event.TextDelta:
			if e.Attempt != attempt || e.Key.Op != "model" || e.Seq == 0 || e.Session != "s" || e.Run == "" {
				t.Errorf("%s in attempt %d: %+v", who, attempt, e)
			}
			texts[e.Attempt] += e.Text
		default:
			t.Errorf("%s heard %s: %s", who, e.Type(), e.Text)
		}
	}
	for n := range 3 {
		if texts[n] != speech(n+1) {
			t.Errorf("%s: attempt %d: %d bytes of %d, or other ones", who, n, len(texts[n]), len(speech(n+1)))
		}
	}
	if len(retries) != 2 || who == "the host" && !strings.Contains(retries[0], "overloaded") || !strings.Contains(retries[1], "another worker") { // whose stream can't be read when the attempt fails is not told why
		t.Errorf("%s: retries %q", who, retries)
	}
	if i := slices.Index(order, "model.started"); i < 0 || !slices.Equal(order[i:i+3], []string{"model.started", "model.failed", "model.finished"}) {
		t.Errorf("%s: entries %q", who, order)
	}
}

// talking is a model that says something, has a tool called, and then says how it was asked for it.
type talking struct{ words string }

func (talking) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	return talking{"at once"}.reply(req), nil
}

func (m talking) reply(req model.Request) *model.Response {
	if req.Messages.Last().Role() == message.RoleTool {
		return &model.Response{Message: message.Assistant(m.words)}
	}
	return &model.Response{Message: message.Assistant("", message.ToolCall{ID: "c", Name: "work", Input: "{}"})}
}

func (talking) CompleteStream(_ context.Context, req model.Request, cb model.StreamHandler) error {
	r := talking{"in pieces"}.reply(req)
	for word := range strings.FieldsSeq(r.Message.Text()) {
		if err := cb(model.StreamResult{Text: word, Reasoning: "hm"}); err != nil {
			return err
		}
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// Who listens hears what a run that is done here would say; who has no stream hears what is on record.
func TestACallerHearsWhatIsSaid(t *testing.T) {
	t.Parallel()
	server := devserver.Start(t)
	c := server.Client(t)
	eng, err := loop.New(loop.Config{Model: talking{}, Tools: []tool.Tool{tool.Func("work", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
		if out := tool.FromContext(ctx).Output; out != nil {
			_, _ = fmt.Fprint(out, "half\x00\xff")
			_, _ = fmt.Fprint(out, "way")
		}
		return "done", nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	m := temporal.Member{Agent: agent.Agent{ID: "talker"}, Engine: eng}
	hear := func(eng engine.Engine, store journal.Store) (heard []string) {
		last := ""
		host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
			switch {
			case e.Data != nil:
				heard = append(heard, e.Type())
			case last == e.Type()+e.Stream: // how it comes in pieces is not the same
				heard[len(heard)-1] += e.Text
			default:
				heard = append(heard, fmt.Sprint(e.Type(), e.Stream, e.Attempt, e.Key.Op, e.Seq, ":", e.Text))
			}
			last = e.Type() + e.Stream
			return nil
		}}
		res, err := agent.Run(t.Context(), m.Agent, eng, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
		if err != nil || res.Err != nil {
			t.Fatal(err, res)
		}
		return append(heard, res.Text())
	}
	here := hear(eng, journal.Memory())
	for _, streamed := range []bool{true, false} {
		store, said, queue := journal.Memory(), stream.Store(nil), fmt.Sprint("talk-", streamed)
		options := []temporal.EngineOption{temporal.WithQueue(queue)}
		if streamed {
			said = stream.Memory(stream.Retention{})
			options = append(options, temporal.WithStream(said))
		}
		w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Stream: said, Members: []temporal.Member{m}, Queue: queue, Timing: quick})
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, w)
		there := hear(temporal.NewEngine(c, eng, options...), store)
		stop()
		switch got, want := strings.Join(there, "\n"), strings.Join(here, "\n"); {
		case streamed && got != want:
			t.Errorf("heard\n%s\n\nof a run that is done here\n%s", got, want)
		case !streamed && (strings.Contains(got, "delta") || strings.Contains(got, "output") || there[len(there)-1] != "at once"):
			t.Errorf("without a stream\n%s", got)
		}
	}
}

// tasking is a model that gives a task, and says what came of it.
type tasking struct{ talking }

func (tasking) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if req.Messages.Last().Role() == message.RoleTool {
		return talking{}.CompleteStream(ctx, req, cb)
	}
	call := message.ToolCall{ID: "c", Name: agent.TaskName, Input: `{"agent":"helper","prompt":"help"}`}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant("", call)}})
}

// What a task says is heard by who listens to the run above, as of a run that is done here.
func TestACallerHearsWhatTasksSay(t *testing.T) {
	t.Parallel()
	server := devserver.Start(t)
	c := server.Client(t)
	helper, err := loop.New(loop.Config{Model: talking{}, Tools: []tool.Tool{tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "done", nil })}})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "helper"}, Engine: helper, Description: "helps"}})
	if err != nil {
		t.Fatal(err)
	}
	eng, err := loop.New(loop.Config{Model: tasking{}, Tools: []tool.Tool{task}})
	if err != nil {
		t.Fatal(err)
	}
	m := temporal.Member{Agent: agent.Agent{ID: "boss"}, Engine: eng}
	hear := func(eng engine.Engine, store journal.Store) string {
		said := map[string]string{}
		host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
			who := fmt.Sprintf("%s of %s %s%d", e.Type(), e.Session, e.Key.Op, e.Seq)
			if e.Data == nil && e.Delta != event.Warning {
				said[who] += e.Text
			}
			if below := e.Session != "s"; below != (e.ParentRun != "") {
				t.Errorf("%s has the parent %q", who, e.ParentRun)
			}
			return nil
		}}
		res, err := agent.Run(t.Context(), m.Agent, eng, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
		if err != nil || res.Err != nil || res.Text() != "in pieces" {
			t.Fatal(err, res)
		}
		if len(said) < 3 {
			t.Errorf("heard too little: %v", said)
		}
		return strings.ReplaceAll(fmt.Sprint(said), " text", "\ntext")
	}
	store, said := journal.Memory(), stream.Memory(stream.Retention{})
	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Stream: said, Members: []temporal.Member{m, {Agent: agent.Agent{ID: "helper"}, Engine: helper}}, Queue: "tasks", Timing: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer running(t, w)()
	here := hear(eng, journal.Memory())
	if there := hear(temporal.NewEngine(c, eng, temporal.WithQueue("tasks"), temporal.WithStream(said)), store); there != here {
		t.Errorf("heard\n%s\n\nof a run that is done here\n%s", there, here)
	}
}

// Nobody listens when a run begins. Who comes while it goes on hears what is said from the next call on.
func TestWhoBeginsToListenHearsTheNextCall(t *testing.T) {
	t.Parallel()
	server := devserver.Start(t)
	c := server.Client(t)
	works, may := make(chan struct{}), make(chan struct{})
	eng, err := loop.New(loop.Config{Model: talking{}, Tools: []tool.Tool{tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) {
		close(works)
		<-may
		return "done", nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	m := temporal.Member{Agent: agent.Agent{ID: "talker"}, Engine: eng}
	store, said := journal.Memory(), stream.Memory(stream.Retention{})
	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Stream: said, Members: []temporal.Member{m}, Queue: "late", Timing: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer running(t, w)()
	var bus event.Bus
	ended := make(chan error, 1)
	go func() {
		res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, eng, temporal.WithQueue("late"), temporal.WithStream(said)), agent.Request{ContextID: "s", Message: message.User("go")},
			agent.WithJournal(store), agent.WithEngineHost(engine.Publishing(&bus, nil)))
		if err == nil && res.Text() != "in pieces" {
			err = fmt.Errorf("%+v", res)
		}
		ended <- err
	}()
	<-works
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	sub := bus.Subscribe(ctx, func(event.Event) bool { return true }, event.Policy{})
	close(may)
	var heard strings.Builder
	for e := range sub.Events() {
		if e.Delta == event.TextDelta {
			heard.WriteString(e.Text)
		}
		if _, over := e.Data.(journal.RunFinished); over {
			break
		}
	}
	if err := <-ended; err != nil || heard.String() != "inpieces" {
		t.Errorf("heard %q, %v", &heard, err)
	}
}

// running has a worker work until it is stopped.
func running(t *testing.T, w *temporal.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// slowly is a model that says half, and the rest when it may.
type slowly struct {
	half chan struct{}
	rest chan struct{}
}

func (slowly) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errdefs.Internal.Errorf("nobody listens")
}

func (s slowly) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	if err := cb(model.StreamResult{Text: "half "}); err != nil {
		return err
	}
	s.half <- struct{}{}
	select {
	case <-s.rest:
	case <-ctx.Done():
		return ctx.Err()
	}
	return cb(model.StreamResult{Text: "whole", Final: true, Response: &model.Response{Message: message.Assistant("half whole")}})
}

// A worker is stopped while its model speaks. Another one makes the call again: half a reply is no reply, and the run was not cancelled.
func TestAWorkerThatStopsLeavesNoHalfReply(t *testing.T) {
	t.Parallel()
	server := devserver.Start(t)
	c := server.Client(t)
	s := slowly{make(chan struct{}), make(chan struct{})}
	eng, err := loop.New(loop.Config{Model: s})
	if err != nil {
		t.Fatal(err)
	}
	m := temporal.Member{Agent: agent.Agent{ID: "slow"}, Engine: eng}
	store, said := journal.Memory(), stream.Memory(stream.Retention{})
	begin := func() (stop func()) {
		w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Stream: said, Members: []temporal.Member{m}, Queue: "slow", Timing: quick})
		if err != nil {
			t.Fatal(err)
		}
		return running(t, w)
	}
	stop := begin()
	var texts []string
	host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		if e.Data == nil {
			texts = append(texts, fmt.Sprint(e.Type(), e.Attempt, e.Text))
		}
		return nil
	}}
	ended := make(chan *agent.Result, 1)
	go func() {
		res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, eng, temporal.WithQueue("slow"), temporal.WithStream(said)), agent.Request{ContextID: "s", Message: message.User("go")},
			agent.WithJournal(store), agent.WithEngineHost(host))
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-s.half
	stop()
	stop = begin()
	defer func() { stop() }()
	<-s.half
	close(s.rest)
	res := <-ended
	if res == nil || res.Status != agent.StatusCompleted || res.Text() != "half whole" || res.Steps != 1 {
		t.Errorf("%+v", res)
	}
	for e, err := range store.Read(t.Context(), "s", 0) {
		if d, ok := e.Data.(journal.ModelFinished); err != nil || ok && d.Partial {
			t.Errorf("%v, %+v", err, e)
		}
	}
	got := strings.Join(texts, "|")
	if !strings.HasPrefix(got, "text.delta0half |retry1") || !strings.HasSuffix(got, "whole") || strings.Contains(got, "delta0half whole") {
		t.Errorf("heard %s", got)
	}
}

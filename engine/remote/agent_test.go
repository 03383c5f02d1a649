package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/engine/remote"
)

// elsewhere is an agent elsewhere, in this process: it does what work says for each message.
type elsewhere struct {
	url     string
	version a2a.Version
	streams bool
	knows   bool // messages by their id
	begins  time.Duration
	work    func(ctx context.Context, t *task, turn int, text string)
	joins   func(k *task)                      // called before somebody subscribes
	cut     func(op a2a.Operation, n int) bool // whether a stream breaks off before its n-th event

	mu    sync.Mutex
	tasks map[string]*task
	byMsg map[string]*task
	sent  []a2a.Message
	ops   []a2a.Operation
	heads []http.Header
	wg    sync.WaitGroup
}

type task struct {
	a      *elsewhere
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // of its work
	turn   int
	now    a2a.Task
	news   chan struct{} // closed at each event
	log    []a2a.Event
}

func newAgent(t *testing.T, version a2a.Version, streams bool, work func(ctx context.Context, t *task, turn int, text string)) *elsewhere {
	t.Helper()
	a := &elsewhere{url: "http://agent.test", version: version, streams: streams, work: work, tasks: map[string]*task{}, byMsg: map[string]*task{}}
	t.Cleanup(func() {
		a.mu.Lock()
		for _, k := range a.tasks {
			k.cancel()
		}
		a.mu.Unlock()
		a.wg.Wait()
	})
	return a
}

func (a *elsewhere) engine(t *testing.T) *remote.Engine {
	t.Helper()
	c, err := a2a.Dial(t.Context(), a.url, a2a.WithHTTPClient(&http.Client{Transport: direct{a}}))
	if err != nil {
		t.Fatal(err)
	}
	e, err := remote.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (a *elsewhere) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == a2a.CardPath {
		b, _ := a2a.MarshalCard(a2a.AgentCard{
			Name: "elsewhere", Description: "d", Version: "1", Capabilities: a2a.Capabilities{Streaming: a.streams},
			Interfaces: []a2a.Interface{{URL: a.url + "/rpc", ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: string(a.version)}},
		})
		_, _ = w.Write(b)
		return
	}
	body, _ := io.ReadAll(r.Body)
	call, bad := a2a.ParseCall(body)
	op, ok := a.version.Operation(call.Method)
	if bad == nil && !ok {
		bad = a2a.Errorf(a2a.CodeMethodNotFound, "no %s", call.Method)
	}
	if v, err := a2a.ParseVersion(r.Header.Get(a2a.HeaderVersion)); err != nil || v != a.version {
		bad = a2a.Errorf(a2a.CodeVersionNotSupported, "version %s", v)
	}
	var out any
	if bad == nil {
		a.mu.Lock()
		a.ops, a.heads = append(a.ops, op), append(a.heads, r.Header.Clone())
		a.mu.Unlock()
		var err error
		if out, err = a.do(w, r, call, op); err != nil {
			bad = a2a.ErrorOf(err)
		}
	}
	if bad != nil {
		_, _ = w.Write(a.version.AppendError(nil, call.ID, bad))
	} else if out != nil {
		b, err := a.version.AppendResult(nil, call.ID, out)
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(b)
	}
}

func (a *elsewhere) do(w http.ResponseWriter, r *http.Request, call a2a.Call, op a2a.Operation) (any, error) {
	switch op {
	case a2a.OpSend, a2a.OpStream:
		var req a2a.SendRequest
		if err := a.version.Unmarshal(call.Params, &req); err != nil {
			return nil, err
		}
		k, err := a.hear(r.Context(), req.Message)
		if err != nil {
			return nil, err
		}
		if op == a2a.OpSend {
			return a2a.Event{Task: k.snapshot()}, nil
		}
		a.stream(w, r, call, op, k)
		return nil, nil
	case a2a.OpGet, a2a.OpCancel, a2a.OpSubscribe:
		var req a2a.GetTaskRequest
		if err := a.version.Unmarshal(call.Params, &req); err != nil {
			return nil, err
		}
		a.mu.Lock()
		k := a.tasks[req.ID]
		a.mu.Unlock()
		switch {
		case k == nil:
			return nil, a2a.Errorf(a2a.CodeTaskNotFound, "no task %s", req.ID)
		case op == a2a.OpCancel:
			k.cancel()
			k.update(a2a.StateCanceled, "")
			return k.snapshot(), nil
		case op == a2a.OpSubscribe && k.snapshot().Status.State.Terminal():
			return nil, a2a.Errorf(a2a.CodeUnsupportedOperation, "it is over")
		case op == a2a.OpSubscribe:
			if a.joins != nil {
				a.joins(k)
			}
			a.stream(w, r, call, op, k)
			return nil, nil
		}
		return k.snapshot(), nil
	}
	return nil, a2a.Errorf(a2a.CodeUnsupportedOperation, "%s", op)
}

// hear takes a message.
func (a *elsewhere) hear(ctx context.Context, m a2a.Message) (*task, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, m)
	if k := a.byMsg[m.ID]; a.knows && k != nil {
		return k, nil
	}
	k := a.tasks[m.TaskID]
	if k == nil {
		if m.TaskID != "" {
			return nil, a2a.Errorf(a2a.CodeTaskNotFound, "no task %s", m.TaskID)
		}
		if m.ContextID == "" {
			m.ContextID = fmt.Sprint("context-", len(a.tasks)+1)
		}
		k = &task{a: a, news: make(chan struct{}), now: a2a.Task{ID: fmt.Sprint("task-", len(a.tasks)+1), ContextID: m.ContextID}}
		k.ctx, k.cancel = context.WithCancel(context.Background())
		a.tasks[k.now.ID] = k
	}
	a.byMsg[m.ID] = k
	k.turn++
	turn := k.turn
	k.log = nil
	k.add(a2a.Event{Task: k.set(a2a.StateWorking, "")})
	works := make(chan struct{})
	a.wg.Go(func() {
		defer close(works)
		defer func() {
			if p := recover(); p != nil {
				k.update(a2a.StateFailed, fmt.Sprint(p))
			}
		}()
		a.work(k.ctx, k, turn, m.Parts[0].Text)
	})
	if a.begins > 0 { // it tells of its task when it works on it
		a.mu.Unlock()
		select {
		case <-works:
		case <-time.After(a.begins):
		case <-ctx.Done():
		}
		a.mu.Lock()
	}
	return k, nil
}

// set and add are for those who hold the lock.
func (k *task) set(s a2a.TaskState, words string, meta ...string) *a2a.Task {
	k.now.Status = a2a.TaskStatus{State: s}
	if words != "" {
		k.now.Status.Message = &a2a.Message{ID: "m", Role: a2a.RoleAgent, Parts: []a2a.Part{a2a.Text(words)}}
		if len(meta) > 0 {
			k.now.Status.Message.Metadata = map[string]any{a2a.ClassKey: meta[0]}
		}
	}
	now := k.now
	return &now
}

func (k *task) add(e a2a.Event) {
	k.log = append(k.log, e)
	close(k.news)
	k.news = make(chan struct{})
}

func (k *task) snapshot() *a2a.Task {
	k.a.mu.Lock()
	defer k.a.mu.Unlock()
	now := k.now
	now.Artifacts = slices.Clone(now.Artifacts)
	return &now
}

// updateParts tells a state with a message of parts.
func (k *task) updateParts(s a2a.TaskState, parts ...a2a.Part) {
	k.a.mu.Lock()
	defer k.a.mu.Unlock()
	k.now.Status = a2a.TaskStatus{State: s, Message: &a2a.Message{ID: "m", Role: a2a.RoleAgent, Parts: parts}}
	k.add(a2a.Event{Status: &a2a.StatusUpdate{TaskID: k.now.ID, ContextID: k.now.ContextID, Status: k.now.Status}})
}

// update tells a state, unless the task is over.
func (k *task) update(s a2a.TaskState, words string, meta ...string) {
	k.a.mu.Lock()
	defer k.a.mu.Unlock()
	if k.now.Status.State.Terminal() {
		return
	}
	k.set(s, words, meta...)
	k.add(a2a.Event{Status: &a2a.StatusUpdate{TaskID: k.now.ID, ContextID: k.now.ContextID, Status: k.now.Status}})
}

func (k *task) artifact(id, name, text string, more bool) {
	k.a.mu.Lock()
	defer k.a.mu.Unlock()
	art := a2a.Artifact{ID: id, Name: name, Parts: []a2a.Part{a2a.Text(text)}}
	if i := slices.IndexFunc(k.now.Artifacts, func(a a2a.Artifact) bool { return a.ID == id }); more && i >= 0 {
		k.now.Artifacts[i].Parts = append(slices.Clone(k.now.Artifacts[i].Parts), art.Parts...)
	} else {
		k.now.Artifacts = append(k.now.Artifacts, art)
	}
	k.add(a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: k.now.ID, ContextID: k.now.ContextID, Artifact: art, Append: more}})
}

func (a *elsewhere) stream(w http.ResponseWriter, r *http.Request, call a2a.Call, op a2a.Operation, k *task) {
	w.Header().Set("Content-Type", "text/event-stream")
	from := 0
	if op == a2a.OpSubscribe {
		a.mu.Lock()
		from = len(k.log)
		a.mu.Unlock()
		if a.version == a2a.V1 {
			a.event(w, call, a2a.Event{Task: k.snapshot()})
		}
	}
	w.(http.Flusher).Flush()
	for n := 1; ; {
		a.mu.Lock()
		log, news := k.log[min(from, len(k.log)):], k.news
		from = len(k.log)
		a.mu.Unlock()
		for _, e := range log {
			if a.cut != nil && a.cut(op, n) {
				panic(http.ErrAbortHandler)
			}
			n++
			a.event(w, call, e)
			if e.State().Terminal() || e.State().Waits() {
				return
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *elsewhere) event(w io.Writer, call a2a.Call, e a2a.Event) {
	line, err := a.version.AppendResult([]byte("data: "), call.ID, e)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(append(line, "\n\n"...))
}

func (a *elsewhere) did() (ops []string, sent []a2a.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.ops {
		ops = append(ops, string(o))
	}
	return ops, slices.Clone(a.sent)
}

func (a *elsewhere) count(op a2a.Operation) int {
	ops, _ := a.did()
	return strings.Count(strings.Join(ops, " ")+" ", string(op)+" ")
}

func compact(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// direct has a handler answer without a network: nothing of it is left when the answer's body is closed.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	out, in := io.Pipe()
	w := &written{header: http.Header{}, in: in, begun: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer w.WriteHeader(http.StatusOK)
		defer func() {
			if p := recover(); p != nil {
				_ = in.CloseWithError(io.ErrUnexpectedEOF)
			}
			_ = in.Close()
		}()
		d.ServeHTTP(w, r.WithContext(ctx))
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		<-over
		return nil, ctx.Err()
	}
	return &http.Response{StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, Body: body{out, func() { stop(); cancel(); <-over }}, Request: r}, nil
}

type written struct {
	header http.Header
	in     *io.PipeWriter
	once   sync.Once
	code   int
	begun  chan struct{}
}

func (w *written) Header() http.Header { return w.header }
func (w *written) Flush()              { w.WriteHeader(http.StatusOK) }

func (w *written) WriteHeader(code int) {
	w.once.Do(func() {
		w.code = code
		close(w.begun)
	})
}

func (w *written) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.in.Write(p)
}

type body struct {
	*io.PipeReader
	done func()
}

func (b body) Close() error {
	err := b.PipeReader.Close()
	b.done()
	return err
}

package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/internal/traced"
)

// numberHeader is how a request is known again behind the library; what a client sends of that name is dropped.
const numberHeader = "Pawl-Request-Number"

// requests are the calls under way. By them one that its client cancelled, which ends its run, is told from one whose client is gone, which leaves it open: the library says of both that the context is over.
type requests struct {
	mu  sync.Mutex
	all map[string]*request // by number
}

// request is one of HTTP, with the calls in it, or one call by standard input.
type request struct {
	number, session string
	ids             []string
	gone            context.Context // ends when nobody can be answered any more
	lose            func()          // ends it
	cancelled       bool
	taken           bool // it is being served, and forgotten by whoever does
}

// begin notes a request with calls of tools; "" is for one that has none.
func (r *requests) begin(session string, gone context.Context, messages ...jsonrpc.Message) (number string) {
	one := &request{session: session}
	one.gone, one.lose = context.WithCancel(gone)
	for _, m := range messages {
		m, ok := m.(*jsonrpc.Request)
		switch {
		case !ok:
		case m.Method == "tools/call" && m.IsCall():
			one.ids = append(one.ids, idOf(m.ID.Raw()))
		case m.Method == "notifications/cancelled":
			r.cancel(session, m.Params)
		}
	}
	if len(one.ids) == 0 {
		one.lose()
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]*request{}
	}
	one.number = rand.Text()
	r.all[one.number] = one
	return one.number
}

// cancel notes that a call of a session was cancelled. Who has no session can't cancel by a message.
func (r *requests) cancel(session string, params json.RawMessage) {
	var p struct {
		ID any `json:"requestId"`
	}
	if session == "" || json.Unmarshal(params, &p) != nil || p.ID == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.session == session && slices.Contains(one.ids, idOf(p.ID)) {
			one.cancelled = true
		}
	}
}

// take gives a request to who serves it, who forgets it at the end.
func (r *requests) take(number string) *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.all[number]
	if one != nil {
		one.taken = true
	}
	return one
}

func (r *requests) forget(one *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.lose()
	delete(r.all, one.number)
}

// leave has what runs for a session be left open: its client wants no answers any more.
func (r *requests) leave(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.session == session {
			one.lose()
		}
	}
}

// over is called when a request was answered, or can't be: one that nobody serves is forgotten.
func (r *requests) over(number string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.all[number]; one != nil && !one.taken {
		one.lose()
		delete(r.all, number)
	}
}

// answered is over for the call of an id.
func (r *requests) answered(session, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, one := range r.all {
		if one.session == session && !one.taken && slices.Contains(one.ids, id) {
			one.lose()
			delete(r.all, number)
		}
	}
}

func (r *requests) isCancelled(one *request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return one != nil && one.cancelled
}

// idOf is an id in a form that can be compared: 1 is not "1".
func idOf(id any) string {
	b, err := json.Marshal(id)
	if err != nil {
		return ""
	}
	return string(b)
}

// runs gives the context of what a call runs. It ends when the call is cancelled; when the server is closed, or nobody can be answered any more, it ends by engine.ErrLeft, which leaves what runs open. It has the client's trace.
func (s *Server) runs(ctx context.Context, req *sdk.CallToolRequest) (context.Context, func()) {
	var header http.Header
	if req.Extra != nil {
		header = req.Extra.Header
	}
	out, cancel := context.WithCancelCause(caller(context.WithoutCancel(ctx), header, req.Params.Meta))
	left := func() { cancel(engine.ErrLeft) }
	under := s.requests.take(header.Get(numberHeader))
	stops := []func() bool{
		context.AfterFunc(s.ctx, left),
		context.AfterFunc(ctx, func() {
			if s.requests.isCancelled(under) {
				cancel(context.Canceled)
			} else {
				left()
			}
		}),
	}
	if under != nil {
		stops = append(stops, context.AfterFunc(under.gone, left))
	}
	return out, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
		if under != nil {
			s.requests.forget(under)
		}
	}
}

// caller is a context in the trace that a client's call is part of (W3C Trace Context): that of the call itself, else of the request of HTTP that it came by.
func caller(ctx context.Context, header http.Header, meta sdk.Meta) context.Context {
	if _, ok := meta[traced.Parent].(string); !ok {
		return traced.Extract(ctx, header.Get)
	}
	return traced.Extract(ctx, func(name string) string {
		value, _ := meta[name].(string)
		return value
	})
}

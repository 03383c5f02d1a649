package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/child"
)

// profile is a timetable.
type profile struct {
	chunks int           // of the answer
	first  time.Duration // from a request of the model to the first chunk of its reply
	gap    time.Duration // between two chunks
	tool   time.Duration // from a call of the tool to its result
}

var profiles = map[string]profile{
	"default":   {20, 100 * time.Millisecond, 30 * time.Millisecond, 500 * time.Millisecond},
	"fast":      {10, 10 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
	"realistic": {30, 200 * time.Millisecond, 30 * time.Millisecond, 500 * time.Millisecond},
}

func profileNames() []string { return slices.Sorted(maps.Keys(profiles)) }

// least is the shortest time that a request can take.
func (p profile) least(tool bool) time.Duration {
	d := p.first + time.Duration(p.chunks-1)*p.gap
	if tool {
		d += p.first + p.tool
	}
	return d
}

// chunk is the text of chunk i of the answer to the request with a number, which the last one repeats: an answer that went to somebody else is found.
func (p profile) chunk(i int, number string) string {
	if i == p.chunks-1 {
		return fmt.Sprintf("chunk-%d #%s", i, number)
	}
	return fmt.Sprintf("chunk-%d ", i)
}

// text is the whole answer.
func (p profile) text(number string) string {
	var b strings.Builder
	for i := range p.chunks {
		b.WriteString(p.chunk(i, number))
	}
	return b.String()
}

// The call that the model makes, and what the tool says.
const (
	toolName   = "lookup_order"
	toolInput  = `{"order_id":"12345"}`
	toolResult = `{"order_id":"12345","status":"shipped","carrier":"post","days":2}`
)

// counts are what the upstream saw.
type counts struct {
	ModelCalls, ToolCalls             int64
	Refused                           int64 // requests that were wrong
	ModelConnections, ToolConnections int64
}

// upstream is the model, which speaks Chat Completions, and the tool.
type upstream struct {
	profile profile
	tool    bool

	modelCalls, toolCalls, refused, modelConnections, toolConnections atomic.Int64
}

// connection is noted once, by its first request.
type connection struct{ seen atomic.Bool }

type connectionKey struct{}

func upstreamMain(args []string) error {
	flags := flag.NewFlagSet(asUpstream, flag.ContinueOnError)
	name := flags.String("profile", "default", "timetable")
	tool := flags.Bool("tool", true, "call the tool")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return child.Serve((&upstream{profile: profiles[*name], tool: *tool}).server())
}

func (u *upstream) server() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", u.answer(&u.modelConnections, &u.modelCalls, u.complete))
	mux.HandleFunc("POST /tool", u.answer(&u.toolConnections, &u.toolCalls, u.lookUp))
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(counts{
			ModelCalls: u.modelCalls.Load(), ToolCalls: u.toolCalls.Load(), Refused: u.refused.Load(),
			ModelConnections: u.modelConnections.Load(), ToolConnections: u.toolConnections.Load(),
		})
	})
	return &http.Server{Handler: mux, ConnContext: func(ctx context.Context, _ net.Conn) context.Context { //nolint:gosec // child.Serve sets its timeout
		return context.WithValue(ctx, connectionKey{}, &connection{})
	}}
}

// answer counts a request, and its connection.
func (u *upstream) answer(connections, calls *atomic.Int64, h func(http.ResponseWriter, *http.Request, []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*connection); ok && c.seen.CompareAndSwap(false, true) {
			connections.Add(1)
		}
		calls.Add(1)
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = h(w, r, body)
		}
		if err != nil {
			u.refused.Add(1)
			http.Error(w, `{"error":{"message":`+strconv.Quote(err.Error())+`}}`, http.StatusBadRequest)
		}
	}
}

func (u *upstream) lookUp(w http.ResponseWriter, r *http.Request, body []byte) error {
	if string(body) != toolInput {
		return fmt.Errorf("the tool is asked %s, want %s", body, toolInput)
	}
	w.Header().Set("Content-Type", "application/json")
	if pause(r.Context(), u.profile.tool) {
		_, _ = io.WriteString(w, toolResult)
	}
	return nil
}

// message is what the model looks at of a message.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// complete calls the tool where the last message is the user's, and answers in words where it is the tool's.
func (u *upstream) complete(w http.ResponseWriter, r *http.Request, body []byte) error {
	var req struct {
		Stream   bool      `json:"stream"`
		Messages []message `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err
	}
	number, called, err := read(req.Messages)
	switch {
	case err != nil:
		return err
	case !req.Stream:
		return errors.New("a stream is not asked for")
	case called && !u.tool:
		return errors.New("there is a result of a call that was never made")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if u.tool && !called {
		u.say(w, r, 1, "tool_calls", func(int) string {
			return `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_bench_1","type":"function","function":{"name":"` + toolName + `","arguments":` + strconv.Quote(toolInput) + `}}]}`
		})
		return nil
	}
	u.say(w, r, u.profile.chunks, "stop", func(i int) string { return `{"content":` + strconv.Quote(u.profile.chunk(i, number)) + `}` })
	return nil
}

// say streams a reply by the timetable.
func (u *upstream) say(w http.ResponseWriter, r *http.Request, chunks int, finish string, delta func(i int) string) {
	const event = "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n"
	out := http.NewResponseController(w)
	wait := u.profile.first
	for i := range chunks {
		if !pause(r.Context(), wait) {
			return
		}
		wait = u.profile.gap
		fmt.Fprintf(w, event, delta(i), "null")
		_ = out.Flush() // a client that is gone ends the context
	}
	fmt.Fprintf(w, event+"data: [DONE]\n\n", "{}", strconv.Quote(finish))
}

// read finds the number of the request that is to be answered, and whether the tool was called for it.
func read(messages []message) (number string, called bool, err error) {
	if len(messages) == 0 {
		return "", false, errors.New("there are no messages")
	}
	last := messages[len(messages)-1]
	if called = last.Role == "tool"; called {
		var result string
		switch calls := messages[max(0, len(messages)-2)].ToolCalls; {
		case len(calls) != 1 || calls[0].ID != last.ToolCallID:
			return "", false, errors.New("the result is not the one of the call before it")
		case json.Unmarshal(last.Content, &result) != nil || result != toolResult:
			return "", false, fmt.Errorf("the tool's result is %s, want %s", last.Content, toolResult)
		}
		messages = messages[:len(messages)-2]
	}
	if len(messages) == 0 || messages[len(messages)-1].Role != "user" {
		return "", false, errors.New("there is nothing of a user's to answer")
	}
	_, digits, ok := bytes.Cut(messages[len(messages)-1].Content, []byte("#"))
	end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if !ok || end < 1 {
		return "", false, errors.New("the user's message has no number")
	}
	return string(digits[:end]), called, nil
}

// pause waits; false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// countsOf asks an upstream what it saw.
func countsOf(ctx context.Context, url string) (c counts, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/counts", nil)
	if err != nil {
		return c, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return c, err
	}
	return c, errors.Join(json.NewDecoder(resp.Body).Decode(&c), resp.Body.Close())
}

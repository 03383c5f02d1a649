package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// provider is a server that speaks OpenAI's protocols and plays what it is told.
type provider struct {
	url string // for --base-url

	mu      sync.Mutex
	replies []string // one a request: a text, or "CALL name input", or "STATUS code"; then the last one
	asked   []asked
}

// asked is a request that the provider got.
type asked struct {
	path, key string
	body      object
}

// newProvider starts a server for the time of the test.
func newProvider(t *testing.T, replies ...string) *provider {
	t.Helper()
	p := &provider{replies: replies}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL + "/v1"
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var body object
	_ = json.Unmarshal(b, &body)
	p.mu.Lock()
	reply := p.replies[min(len(p.asked), len(p.replies)-1)]
	p.asked = append(p.asked, asked{r.URL.Path, r.Header.Get("Authorization"), body})
	p.mu.Unlock()
	var status int
	if n, _ := fmt.Sscanf(reply, "STATUS %d", &status); n == 1 {
		http.Error(w, `{"error":{"message":"no"}}`, status)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if strings.HasSuffix(r.URL.Path, "/responses") {
		writeResponse(w, reply)
		return
	}
	writeCompletion(w, reply)
}

// writeCompletion answers as chat completions do.
func writeCompletion(w io.Writer, reply string) {
	delta, reason := object{"role": "assistant", "content": reply}, "stop"
	if rest, ok := strings.CutPrefix(reply, "CALL "); ok {
		name, input, _ := strings.Cut(rest, " ")
		call := object{"index": 0, "id": "call_1", "type": "function", "function": object{"name": name, "arguments": input}}
		delta, reason = object{"role": "assistant", "tool_calls": []any{call}}, "tool_calls"
	}
	event := func(choices []any, usage any) {
		b, _ := json.Marshal(object{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, "usage": usage})
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	event([]any{object{"index": 0, "delta": delta}}, nil)
	event([]any{object{"index": 0, "delta": object{}, "finish_reason": reason}}, nil)
	event([]any{}, object{"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// writeResponse answers as the Responses API does.
func writeResponse(w io.Writer, reply string) {
	item := object{
		"id": "m1", "type": "message", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": reply, "annotations": []any{}}},
	}
	response := object{
		"id": "r1", "object": "response", "status": "completed", "model": "m", "output": []any{item},
		"usage": object{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
	}
	events := []object{
		{"type": "response.created", "response": object{"id": "r1", "status": "in_progress", "output": []any{}}},
		{"type": "response.output_item.added", "output_index": 0, "item": object{"id": "m1", "type": "message", "role": "assistant", "content": []any{}}},
		{"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": reply},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": response},
	}
	for i, e := range events {
		e["sequence_number"] = i
		b, _ := json.Marshal(e)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], b)
	}
}

// requests gives what was asked so far.
func (p *provider) requests() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked(nil), p.asked...)
}

// asks runs the program against the provider, with a key in the environment.
func (w *world) asks(p *provider, args ...string) result {
	w.t.Helper()
	cmd := w.command(binary("pawl"), append([]string{"run", "--base-url", p.url}, args...)...)
	cmd.Env = append(cmd.Env, "OPENAI_API_KEY=sk-test-0123456789")
	return w.run(cmd)
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// provider is the model's server. It remembers nothing of a conversation: what a request's transcript has come to decides the reply.
type provider struct {
	faults *tally
	refuse func(string) // a transcript that no provider would take

	mu   sync.Mutex
	rate float64 // of requests that fail
}

// failing says how many of the requests are to fail: 0 is none, 1 is all.
func (p *provider) failing(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

func (p *provider) fails() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return share(p.rate)
}

func (p *provider) handler() http.Handler {
	mux := http.NewServeMux()
	for _, w := range wires {
		mux.HandleFunc("POST "+w.path, func(rw http.ResponseWriter, r *http.Request) { p.serve(rw, r, w) })
	}
	return mux
}

func (p *provider) serve(rw http.ResponseWriter, r *http.Request, w wire) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	all, err := w.turns(body)
	if err != nil {
		p.refuse(fmt.Sprintf("a request can't be read: %v", err))
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	if why := unanswered(all); why != "" {
		p.refuse(fmt.Sprintf("a transcript that no provider takes: %s: %s", why, body))
		http.Error(rw, why, http.StatusBadRequest)
		return
	}
	text, calls := reply(all)
	pause(r.Context(), 2*time.Millisecond, 30*time.Millisecond)
	if !p.fails() {
		p.say(rw, r, w, text, calls, -1)
		return
	}
	switch n := draw(5); n {
	case 0:
		p.faults.add("429")
		rw.Header().Set("Retry-After", "1")
		http.Error(rw, `{"error":{"type":"rate_limit_error","message":"slow down"}}`, http.StatusTooManyRequests)
	case 1:
		p.faults.add("500")
		http.Error(rw, `{"error":{"type":"api_error","message":"it broke"}}`, http.StatusInternalServerError)
	case 2:
		p.faults.add("503")
		http.Error(rw, `{"error":{"type":"overloaded_error","message":"too much"}}`, http.StatusServiceUnavailable)
	case 3:
		p.faults.add("stream cut off")
		p.say(rw, r, w, text, calls, 1)
		panic(http.ErrAbortHandler)
	case 4:
		p.faults.add("silence")
		p.say(rw, r, w, text, calls, 1)
		pause(r.Context(), time.Minute, 2*time.Minute) // until the client has had enough
	}
}

// say streams a reply, or only so many words of it.
func (p *provider) say(rw http.ResponseWriter, r *http.Request, w wire, text string, calls []asked, words int) {
	rw.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(rw)
	_, _ = io.WriteString(rw, w.begin)
	for i, word := range strings.SplitAfter(text, " ") {
		if i == words {
			_ = out.Flush()
			return
		}
		_, _ = io.WriteString(rw, w.word(word))
		if out.Flush() != nil {
			return
		}
		pause(r.Context(), 0, 4*time.Millisecond)
	}
	_, _ = io.WriteString(rw, w.end(calls))
}

// reply is what the last prompt of a transcript asks for next.
func reply(all []turn) (text string, calls []asked) {
	var p prompt
	step, found := 0, false
	for _, t := range all {
		for _, s := range t.texts {
			if q, ok := parse(s); ok && !t.assistant {
				p, step, found = q, 0, true
			}
		}
		if t.assistant && found {
			step++
		}
	}
	if !found {
		return "I was asked for nothing.", nil
	}
	if step >= len(p.steps) {
		return p.answer(), nil
	}
	for k, tool := range p.steps[step] {
		what := p.what(step, k)
		input := fmt.Sprintf(`{"what":%q}`, what)
		switch tool {
		case "bash":
			input = fmt.Sprintf(`{"command":"echo %s >> %s"}`, what, linesOf(sessionOf(what)))
		case "task":
			input = fmt.Sprintf(`{"agent":"clerk","prompt":%q}`, p.below(step, k))
		}
		calls = append(calls, asked{"call_" + strings.ReplaceAll(what, ".", "_"), tool, input})
	}
	return fmt.Sprintf("Step %d of %d it is, then.", step+1, len(p.steps)), calls
}

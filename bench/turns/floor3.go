package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// f3 is the least that an agent's loop can be over net/http: the conversation is the bytes of the next request, which each turn appends its own to, and events are scanned by hand, without looking whether
// they are JSON. It checks nothing, keeps nothing, and can do nothing else.
type f3 struct{ t *load.Task }

func newF3(t *load.Task) (load.System, error) { return f3{t}, nil }

func (f f3) Open(int) load.Session { return &f3session{t: f.t} }
func (f f3) Close() error          { return nil }

type f3session struct {
	t       *load.Task
	history []byte       // the request without its end
	before  func() error // before each turn; may be nil
}

type f3call struct{ id, name, input []byte }

type f3reply struct {
	text  []byte
	calls []f3call
	words strings.Builder
	stop  string
}

// openF3 is the beginning of a request.
func openF3(t *load.Task, prompt string) []byte {
	b := []byte(`{"model":"bench","max_tokens":4096,"stream":true,"system":"` + instructions + `","tools":[{"name":"` + load.Tool + `","description":"` + about + `","input_schema":` + schema +
		`}],"messages":[{"role":"user","content":[`)
	if t.Image != "" {
		b = append(append(append(b, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`...), base64Of(t.Image)...), `"}},`...)
	}
	b = appendQuoted(append(b, `{"type":"text","text":`...), []byte(prompt))
	return append(b, `}]}`...)
}

// body is the next request. It is good until the next append.
func (s *f3session) body() []byte { return append(s.history, `]}`...) }

// Ask implements [load.Session].
func (s *f3session) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	s.history = openF3(s.t, prompt)
	for {
		if s.before != nil {
			if err := s.before(); err != nil {
				return a, err
			}
		}
		r := new(f3reply)
		if err := s.turn(ctx, r, said); err != nil {
			return a, err
		}
		if r.stop != "tool_use" {
			a.Text = r.words.String()
			return a, nil
		}
		a.Calls += len(r.calls)
		s.take(r)
	}
}

// take appends a reply and the results of its calls to the conversation.
func (s *f3session) take(r *f3reply) {
	b := append(s.history, `,{"role":"assistant","content":[{"type":"text","text":`...)
	b = append(appendQuoted(b, r.text), '}')
	for _, c := range r.calls {
		b = append(append(append(b, `,{"type":"tool_use","id":"`...), c.id...), `","name":"`...)
		b = append(append(append(append(b, c.name...), `","input":`...), c.input...), '}')
	}
	b = append(b, `]},{"role":"user","content":[`...)
	for i, c := range r.calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"type":"tool_result","tool_use_id":"`...), c.id...), `","content":`...)
		value := unquote(nil, field(c.input, "value"))
		b = append(appendQuoted(b, []byte(s.t.Call(string(value)))), '}')
	}
	s.history = append(b, `]}`...)
}

var dataPrefix = []byte("data: ")

func (s *f3session) turn(ctx context.Context, r *f3reply, said func(string)) error {
	resp, err := post(ctx, s.t.Upstream, s.body())
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			if r.stop != "" {
				return nil
			}
			return errors.Join(errors.New("the stream broke off"), err)
		}
		if bytes.HasPrefix(line, dataPrefix) {
			r.event(line[len(dataPrefix):], said)
		}
	}
}

func (r *f3reply) event(e []byte, said func(string)) {
	switch string(plain(field(e, "type"))) {
	case "content_block_start":
		block := field(e, "content_block")
		if string(plain(field(block, "type"))) != "tool_use" {
			return
		}
		r.calls = append(r.calls, f3call{id: bytes.Clone(plain(field(block, "id"))), name: bytes.Clone(plain(field(block, "name")))})
	case "content_block_delta":
		delta := field(e, "delta")
		if part := field(delta, "partial_json"); part != nil {
			c := &r.calls[len(r.calls)-1]
			c.input = unquote(c.input, part)
			return
		}
		n := len(r.text)
		r.text = unquote(r.text, field(delta, "text"))
		from := r.words.Len()
		r.words.Write(r.text[n:])
		said(r.words.String()[from:]) // the builder only ever appends: no copy
	case "message_delta":
		if string(plain(field(field(e, "delta"), "stop_reason"))) == "tool_use" {
			r.stop = "tool_use"
		} else {
			r.stop = "end_turn"
		}
	}
}

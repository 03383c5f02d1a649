// Package upstream is the model of the benchmarks: a server that speaks the wire formats of Anthropic, OpenAI and Gemini, does what prompts say, and costs so little that it isn't what is measured.
package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// PieceSize is the size of a piece of an answer.
const PieceSize = 20

// Preface is how many bytes the model says before the calls of a turn.
const Preface = len(said1 + said2)

// Piece is piece i of an answer that so many tool calls came before. Where pieces are stamped, those behind the first are the time when they were sent, in nanoseconds, instead.
func Piece(i, calls int) string {
	if i == 0 {
		return fmt.Sprintf("done, calls: %06d ", calls)
	}
	return fmt.Sprintf("delta %06d of it. ", i)
}

// Answer is the whole answer to a prompt, whose pieces are not stamped.
func Answer(d Directive) string {
	var b strings.Builder
	for i := range d.Deltas {
		b.WriteString(Piece(i, d.Calls()))
	}
	return b.String()
}

// Counts is what a server saw.
type Counts struct {
	Requests int64 // that it answered
	Refused  int64 // that were wrong
	HTTP2    int64 // of Requests, those that came by HTTP/2
}

// Server is the model. Make it with [New].
type Server struct {
	latency           time.Duration
	requests, refused atomic.Int64
	second            atomic.Int64 // by HTTP/2
	ids               atomic.Uint32
	bodies            sync.Pool
	made              sync.Map // replies, by what they depend on
}

// New makes a server that waits so long before each answer.
func New(latency time.Duration) *Server {
	return &Server{latency: latency, bodies: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

// Handler serves the four formats, and what was counted at /counts.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	streams := []byte(`"stream":true`)
	asked := func(_ *http.Request, body []byte) bool { return bytes.Contains(body, streams) }
	mux.HandleFunc("POST /v1/messages", s.serve("anthropic", asked))
	mux.HandleFunc("POST /v1/chat/completions", s.serve("chat", asked))
	mux.HandleFunc("POST /v1/responses", s.serve("responses", asked))
	mux.HandleFunc("POST /v1beta/models/{call}", s.serve("gemini", func(r *http.Request, _ []byte) bool {
		return strings.HasSuffix(r.PathValue("call"), ":streamGenerateContent")
	}))
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Counts{s.requests.Load(), s.refused.Load(), s.second.Load()})
	})
	return mux
}

// CountsOf asks a server what it saw.
func CountsOf(ctx context.Context, url string) (c Counts, err error) {
	return CountsBy(ctx, http.DefaultClient, url)
}

// CountsBy is CountsOf with a client of one's own.
func CountsBy(ctx context.Context, client *http.Client, url string) (c Counts, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/counts", nil)
	if err != nil {
		return c, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return c, err
	}
	return c, errors.Join(json.NewDecoder(resp.Body).Decode(&c), resp.Body.Close())
}

func (s *Server) serve(name string, streams func(*http.Request, []byte) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		buf := s.bodies.Get().(*bytes.Buffer)
		defer s.bodies.Put(buf)
		buf.Reset()
		_, err := buf.ReadFrom(r.Body)
		if err == nil {
			err = s.answer(w, r, name, buf.Bytes(), streams(r, buf.Bytes()))
		}
		if err != nil {
			s.refused.Add(1)
			http.Error(w, `{"error":{"message":`+strconv.Quote(err.Error())+`}}`, http.StatusBadRequest)
			return
		}
		s.requests.Add(1)
		if r.ProtoMajor == 2 {
			s.second.Add(1)
		}
	}
}

// answer answers one request. Before that it looks, as cheaply as that can be, whether it is one: each call has its result, and there are no more of them than were asked for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string, body []byte, stream bool) error {
	d, rest, err := find(body)
	if err != nil {
		return err
	}
	wire := wires[name]
	results, err := wire.check(d, body, rest)
	if err != nil {
		return err
	}
	if s.latency > 0 {
		t := time.NewTimer(s.latency)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return nil
		}
	}
	kind := "application/json"
	if stream {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	if results == d.Calls() && stream && (d.Flush || d.Stamp) {
		wire.speak(w, r, d)
		return nil
	}
	_, _ = w.Write(s.reply(name, d, results == d.Calls(), stream))
	return nil
}

// check counts calls and results.
func (w *wire) check(d Directive, body, rest []byte) (results int, err error) {
	if body[0] != '{' || body[len(body)-1] != '}' {
		return 0, errors.New("the request is no JSON object")
	}
	results = bytes.Count(rest, []byte(w.result))
	calls := bytes.Count(rest, []byte(w.call))
	switch {
	case calls != results:
		return 0, fmt.Errorf("the request has %d calls, and %d results", calls, results)
	case results > d.Calls() || results%d.Par != 0:
		return 0, fmt.Errorf("the request has %d results, of %d calls a turn and %d in all", results, d.Par, d.Calls())
	case results == 0:
		return results, nil
	case d.Result > 0 && len(rest) < results*d.Result:
		return 0, fmt.Errorf("the request has %d results, and %d bytes in all: want %d of each", results, len(rest), d.Result)
	case d.Result == 0:
		if err := given(rest, calls+results); err != nil {
			return 0, err
		}
	}
	if w.callID == "" {
		return results, nil
	}
	last := bytes.LastIndex(rest, []byte(w.resultID))
	if last < 0 {
		return 0, errors.New("the last result does not say which call it is for")
	}
	id, _, _ := bytes.Cut(rest[last+len(w.resultID):], []byte{'"'})
	if !bytes.Contains(rest[:last], []byte(w.callID+string(id)+`"`)) {
		return 0, fmt.Errorf("the last result is for the call %q, which nobody made", id)
	}
	return results, nil
}

// given looks whether each call's argument was given back as its result, so that it stands twice in a request.
func given(rest []byte, want int) error {
	if n := bytes.Count(rest, []byte(item)); n < want {
		return fmt.Errorf("the request has %d arguments and results, want %d", n, want)
	}
	last := bytes.LastIndex(rest, []byte(item))
	value := rest[last:min(len(rest), last+len(item)+len(hole))]
	if !Argument(string(value)) || !bytes.Contains(rest[:last], value) {
		return fmt.Errorf("the last result is %q, which nobody asked for", value)
	}
	return nil
}

// Argument reports whether the tool was called with what this model calls it with.
func Argument(s string) bool {
	digits, ok := strings.CutPrefix(s, item)
	return ok && len(digits) == len(hole) && strings.Trim(digits, "0123456789") == ""
}

// key is what a reply depends on.
type key struct {
	wire          string
	tool          string
	par, deltas   int
	calls         int
	final, stream bool
}

// template is a reply, and where the holes in it are.
type template struct {
	text  []byte
	holes []int
}

// reply gives a reply's bytes, with ids that nobody else has.
func (s *Server) reply(name string, d Directive, final, stream bool) []byte {
	k := key{wire: name, final: final, stream: stream}
	if final {
		k.deltas, k.calls = d.Deltas, d.Calls()
	} else {
		k.tool, k.par = d.Tool, d.Par
	}
	made, ok := s.made.Load(k)
	if !ok {
		t := &template{text: []byte(wires[name].encode(d, final, stream))}
		for at := 0; ; at += len(hole) {
			i := bytes.Index(t.text[at:], []byte(hole))
			if i < 0 {
				break
			}
			at += i
			t.holes = append(t.holes, at)
		}
		made, _ = s.made.LoadOrStore(k, t)
	}
	t := made.(*template)
	if len(t.holes) == 0 {
		return t.text
	}
	out := bytes.Clone(t.text)
	id := fmt.Sprintf("%06d", s.ids.Add(1)%1_000_000)
	for _, at := range t.holes {
		copy(out[at:], id)
	}
	return out
}

func (w *wire) encode(d Directive, final, stream bool) string {
	switch {
	case !stream && final:
		return w.answer(Answer(d))
	case !stream:
		return w.tools(d)
	case !final:
		return strings.Join(w.calls(d), "")
	}
	var b strings.Builder
	b.WriteString(w.begin)
	for i := range d.Deltas {
		b.WriteString(strings.Replace(w.delta, "%s", Piece(i, d.Calls()), 1))
	}
	b.WriteString(w.ending(Answer(d)))
	return b.String()
}

// speak streams an answer piece by piece.
func (w *wire) speak(to http.ResponseWriter, r *http.Request, d Directive) {
	out := http.NewResponseController(to)
	_, _ = io.WriteString(to, w.begin)
	_ = out.Flush() // a client that is gone ends the context
	before, after, _ := strings.Cut(w.delta, "%s")
	var text strings.Builder
	var b []byte
	for i := range d.Deltas {
		if d.Gap > 0 && i > 0 {
			t := time.NewTimer(time.Duration(d.Gap) * time.Millisecond)
			select {
			case <-t.C:
			case <-r.Context().Done():
				t.Stop()
				return
			}
		}
		piece := Piece(i, d.Calls())
		if d.Stamp && i > 0 {
			piece = strconv.FormatInt(time.Now().UnixNano(), 10) + " "
		}
		text.WriteString(piece)
		b = append(append(append(b[:0], before...), piece...), after...)
		_, _ = to.Write(b)
		if out.Flush() != nil {
			return
		}
	}
	_, _ = io.WriteString(to, w.ending(text.String()))
}

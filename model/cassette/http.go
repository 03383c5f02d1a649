package cassette

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/internal/wire"
)

// exchangeHTTP is a request and its answer in a file.
type exchangeHTTP struct {
	Exchange int             `json:"exchange"`
	Request  json.RawMessage `json:"request"`
	Response *answerDoc      `json:"response,omitempty"`
	Error    *errorDoc       `json:"error,omitempty"`  // no answer, or its body broke off
	Closed   bool            `json:"closed,omitempty"` // the client closed the body here, before its end
}

type callDoc struct {
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Header http.Header     `json:"header,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

type answerDoc struct {
	Status int             `json:"status"`
	Header http.Header     `json:"header,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// IgnoreHeaders leaves headers of requests out, those that are another at each call: of traces, say. For HTTP cassettes alone.
func IgnoreHeaders(names ...string) Option {
	return func(o *options) {
		for _, name := range names {
			o.ignore = append(o.ignore, http.CanonicalHeaderKey(name))
		}
	}
}

// call reads a request, whose body it uses up, into the form in which it is written and compared, and gives the scrubber that knows its
// secrets: a server may quote them.
func (o options) call(req *http.Request, s *scrubber) (doc, body []byte, _ *scrubber, err error) {
	if req.Body != nil {
		body, err = io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, nil, nil, err
		}
	}
	s = s.with(secret.InHeaders(req.Header)).with(keysOfTools(wire.Get(body, "tools"))).with(keysOfTools(wire.Get(body, "mcp_servers")))
	header := s.header(req.Header)
	for _, name := range o.ignore {
		delete(header, name)
	}
	clean, ok := s.body(body, req.Header.Get("Content-Type"))
	if !ok {
		return nil, nil, nil, errSpread
	}
	return mustJSON(callDoc{req.Method, s.address(req.URL), header, bodyJSON(clean)}), body, s, nil
}

var (
	errSpread = errdefs.Validation.Errorf("cassette: a secret is spread over the events of a stream, and can't be taken out of them: record the model instead (cassette.Record)")
	errCoded  = errdefs.Validation.Errorf("cassette: a compressed body can't be searched for secrets: leave Accept-Encoding to the transport")
)

// HTTPRecorder is a transport that records what goes over another one. Make it with [RecordHTTP]. Safe for concurrent use.
type HTTPRecorder struct {
	under http.RoundTripper
	o     options
	scrub *scrubber
	tape  *tape
}

// RecordHTTP gives a transport that passes requests to under (nil: [http.DefaultTransport]) and writes each exchange to file when the body of the
// answer was read to its end or closed. A file that is there already is errdefs.Conflict. Call Close at the end.
func RecordHTTP(under http.RoundTripper, file string, opts ...Option) (*HTTPRecorder, error) {
	if under == nil {
		under = http.DefaultTransport
	}
	o := optionsOf(opts)
	t, err := create(file, head{Cassette: version, Kind: ofHTTP})
	if err != nil {
		return nil, err
	}
	return &HTTPRecorder{under, o, newScrubber(o.scrub), t}, nil
}

// RoundTrip passes a request on. The body of the answer comes through as it arrives.
func (r *HTTPRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	doc, body, scrub, err := r.o.call(req, r.scrub)
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	if req.Body != nil {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	n, err := r.tape.begin()
	if err != nil {
		return nil, err
	}
	x := &exchangeHTTP{Exchange: n, Request: doc}
	write := func() []byte { return mustJSON(x) }
	resp, err := r.under.RoundTrip(sent)
	if err != nil {
		x.Error = newErrorDoc(req.Context().Err(), err, scrub)
		if wrong := r.tape.end(n, write, nil); wrong != nil {
			return nil, errors.Join(wrong, err)
		}
		return nil, err
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		_ = resp.Body.Close()
		return nil, r.tape.end(n, nil, errCoded)
	}
	header := scrub.header(resp.Header)
	maps.DeleteFunc(header, ofTheMoment)
	x.Response = &answerDoc{Status: resp.StatusCode, Header: header}
	resp.Body = &recordedBody{ReadCloser: resp.Body, end: func(all []byte, err error) {
		clean, ok := scrub.body(all, resp.Header.Get("Content-Type"))
		if !ok {
			_ = r.tape.end(n, nil, errSpread) // Close says it
			return
		}
		x.Response.Body = bodyJSON(clean)
		switch {
		case err == nil:
			x.Closed = true
		case !errors.Is(err, io.EOF):
			x.Error = newErrorDoc(req.Context().Err(), err, scrub)
		}
		_ = r.tape.end(n, write, nil) // likewise
	}}
	return resp, nil
}

// ofTheMoment tells the headers apart that are of one transfer: its size and time, and what the key still had then, which may be a date. A replay that repeated
// them would hold back whoever heeds them, and not each time alike.
func ofTheMoment(name string, _ []string) bool {
	return name == "Content-Length" || name == "Date" || strings.Contains(name, "Ratelimit-")
}

// Close ends the recording. It says what could not be recorded, and which exchanges were not over: those whose answer was neither read to its end nor
// closed. Requests after it, and after anything that could not be recorded, fail and are not passed on.
func (r *HTTPRecorder) Close() error { return r.tape.close() }

// recordedBody keeps what is read of a body, and tells end once how it ended: with an error, io.EOF too, or nil when it was closed before.
type recordedBody struct {
	io.ReadCloser
	mu   sync.Mutex
	all  []byte
	done bool
	end  func(all []byte, err error)
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.note(p[:n], err, err != nil)
	return n, err
}

func (b *recordedBody) Close() error {
	b.note(nil, nil, true)
	return b.ReadCloser.Close()
}

func (b *recordedBody) note(more []byte, err error, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return
	}
	b.all = append(b.all, more...)
	if b.done = over; over {
		b.end(b.all, err)
	}
}

// HTTPPlayer is a transport that answers with what was recorded. Make it with [OpenHTTP]. Safe for concurrent use.
type HTTPPlayer struct {
	reel  *reel
	o     options
	scrub *scrubber
}

// OpenHTTP reads a file that [RecordHTTP] wrote, all of it. Errors are those of [Open].
func OpenHTTP(file string, opts ...Option) (*HTTPPlayer, error) {
	o := optionsOf(opts)
	_, docs, err := read(file, ofHTTP)
	if err != nil {
		return nil, err
	}
	takes, err := exchangesHTTP(docs)
	if err != nil {
		return nil, errdefs.Validation.Errorf("cassette: open: %s: %w", file, err)
	}
	return &HTTPPlayer{newReel(file, o.any, takes), o, newScrubber(o.scrub)}, nil
}

func exchangesHTTP(docs []document) (takes []take, err error) {
	for _, d := range docs {
		t := &takeHTTP{}
		if err := t.read(d); err != nil {
			return nil, inLine(d.line, err)
		}
		takes = append(takes, t)
	}
	return takes, nil
}

// RoundTrip answers with the exchange that is next. A request that was not recorded is errdefs.Validation.
func (p *HTTPPlayer) RoundTrip(req *http.Request) (*http.Response, error) {
	doc, _, _, err := p.o.call(req, p.scrub)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	next, err := p.reel.next(doc)
	if err != nil {
		return nil, err
	}
	t := next.(*takeHTTP)
	if t.x.Response == nil {
		return nil, t.err
	}
	end := t.err
	if t.x.Closed {
		end = errdefs.Validation.Errorf("cassette: replay: %s: the body of exchange %d was read up to here: record it anew if the program has to read more", p.reel.name, t.x.Exchange)
	}
	resp := &http.Response{
		Status: strconv.Itoa(t.x.Response.Status) + " " + http.StatusText(t.x.Response.Status), StatusCode: t.x.Response.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: t.x.Response.Header.Clone(), ContentLength: -1, Request: req,
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	maps.DeleteFunc(resp.Header, ofTheMoment) // of older files
	resp.Body = &playedBody{ctx: req.Context(), left: t.body, end: end, stream: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")}
	return resp, nil
}

// Done says what a program owes to the file, as [Player.Done] does.
func (p *HTTPPlayer) Done() error { return p.reel.end() }

// takeHTTP is an exchange of a file.
type takeHTTP struct {
	x    exchangeHTTP
	body []byte // of the answer
	err  error  // instead of an answer, or behind it
}

func (t *takeHTTP) read(d document) (err error) {
	if err := decode(d.raw, &t.x); err != nil {
		return err
	}
	var c callDoc
	if err := decode(t.x.Request, &c); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	t.err = io.EOF
	if t.x.Error != nil {
		if t.err, err = t.x.Error.restore(); err != nil {
			return err
		}
	}
	if t.x.Response == nil {
		if t.x.Error == nil {
			return errors.New("it needs a response or an error")
		}
		return nil
	}
	if s := t.x.Response.Status; s < 100 || s > 599 {
		return fmt.Errorf("response: %d is no HTTP status", s)
	}
	if t.body, err = bodyOf(t.x.Response.Body); err != nil {
		return fmt.Errorf("response: body: %w", err)
	}
	return nil
}

func (t *takeHTTP) number() int { return t.x.Exchange }

func (t *takeHTTP) compare(asked any) (d difference, same int) {
	doc := asked.([]byte)
	for same < min(len(doc), len(t.x.Request)) && doc[same] == t.x.Request[same] {
		same++
	}
	return compare("", t.x.Request, doc), same
}

// playedBody gives a stream event by event, as it may have come.
type playedBody struct {
	ctx    context.Context // of the request
	mu     sync.Mutex
	left   []byte
	end    error
	stream bool
	closed bool
}

func (b *playedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(b.left) == 0 {
		return 0, b.end
	}
	n := len(b.left)
	if i := bytes.Index(b.left, []byte("\n\n")); b.stream && i >= 0 {
		n = i + 2
	}
	n = copy(p, b.left[:n])
	b.left = b.left[n:]
	return n, nil
}

func (b *playedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

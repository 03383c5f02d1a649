package providertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/internal/wires"
	"github.com/pawl-dev/pawl/model"
)

// faults are the cases of a server, or of what stands before it, that doesn't do as it should.
func (p Provider) faults(t *testing.T) {
	t.Run("odd streams", p.oddStreams)
	t.Run("odd replies", p.oddReplies)
	t.Run("content types", p.contentTypes)
	t.Run("an error in place of a reply", p.errorsWithin)
	t.Run("statuses", p.statuses)
	t.Run("encodings", p.encodings)
	t.Run("headers", p.headers)
	t.Run("bytes that are not UTF-8", p.notUTF8)
	t.Run("cut off at each byte", p.cutOff)
	t.Run("each member otherwise", p.members)
	t.Run("nesting", p.nesting)
	t.Run("sizes", p.sizes)
	t.Run("silence", p.silence)
	t.Run("broken connections", p.brokenConnections)
}

// sample reports whether a part of the cases that take long will do.
func sample() bool { return raced.Enabled || testing.Short() }

// answer is a reply as an HTTP client gives it.
type answer struct {
	status int // 0: 200
	header http.Header
	body   io.Reader
}

// typed answers with a body of one content type.
func typed(contentType string, body []byte) answer {
	return answer{header: http.Header{"Content-Type": {contentType}}, body: bytes.NewReader(body)}
}

func sse(body []byte) answer { return typed("text/event-stream", body) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// over makes the model under test on an HTTP client that has a for its next call, without a server.
func (p Provider) over(a answer) model.Model {
	return p.New(model.WithKey(Key), model.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		_ = r.Body.Close()
		if a.status == 0 {
			a.status = http.StatusOK
		}
		return &http.Response{
			StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: a.header, Body: io.NopCloser(a.body), ContentLength: -1, Request: r,
		}, nil
	})}))
}

// hear streams, and lets the pieces differ from the reply, as they may where a stream is damaged.
func hear(t *testing.T, m model.Model) (text string, final *model.Response, err error) {
	t.Helper()
	err = m.CompleteStream(t.Context(), hi(), func(r model.StreamResult) error {
		if final != nil {
			t.Error("a piece after Final")
		}
		text += r.Text
		final = r.Response
		return nil
	})
	if (err == nil) == (final == nil) {
		t.Fatalf("reply %v, error %v", final, err)
	}
	return text, final, err
}

// failed wants a *model.Error of class not_available, which is the class of what may be better the next time.
func failed(t *testing.T, err error, codes ...string) {
	t.Helper()
	e := notAvailable(t, err)
	if len(codes) > 0 && !slices.Contains(codes, e.Code) {
		t.Errorf("code %q, want one of %q: %v", e.Code, codes, err)
	}
}

// sound wants of a call an error that has a class, or a reply that every wire takes back.
func (p Provider) sound(t *testing.T, resp *model.Response, err error) bool {
	t.Helper()
	if err != nil {
		if errdefs.Of(err) == nil {
			t.Errorf("an error without a class: %v", err)
			return false
		}
		return true
	}
	u := resp.Usage
	if min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.Total()) < 0 {
		t.Errorf("usage %+v", u)
		return false
	}
	if err := errors.Join(resp.Message.CheckFiles(), wires.Takes(resp.Message)); err != nil {
		t.Error(err)
		return false
	}
	return true
}

// sameMessage wants the message and the stop reason of the good reply: what else there is may have come later.
func (p Provider) sameMessage(t *testing.T, want, got *model.Response) {
	t.Helper()
	p.same(t, &model.Response{Message: want.Message, Stop: want.Stop}, &model.Response{Message: got.Message, Stop: got.Stop})
}

func (p Provider) contentTypes(t *testing.T) {
	stream, body := p.fixture(t, "calls.sse"), p.fixture(t, "calls.json")
	good := p.complete(t, "calls")
	for kind, code := range map[string]string{
		"text/event-stream": "", "text/event-stream; charset=utf-8": "", "": "", "text/plain": "", "application/octet-stream": "", "nonsense": "",
		"text/html": "not_an_api", "application/json": "malformed_reply",
	} {
		_, got, err := hear(t, p.over(typed(kind, stream)))
		if code != "" {
			failed(t, err, code)
		} else if err != nil {
			t.Errorf("a stream of type %q: %v", kind, err)
		} else {
			p.same(t, good, got)
		}
	}
	for kind, code := range map[string]string{"application/json": "", "": "", "text/plain": "", "text/event-stream": "", "text/html": "not_an_api"} {
		got, err := p.over(typed(kind, body)).Complete(t.Context(), hi())
		_, streamed, err2 := hear(t, p.over(typed(kind, body)))
		if code != "" {
			failed(t, err, code)
			failed(t, err2, code)
		} else if err = errors.Join(err, err2); err != nil {
			t.Errorf("a reply of type %q: %v", kind, err)
		} else {
			p.same(t, good, got)
			p.same(t, good, streamed)
		}
	}
}

// errorsWithin answers with status 200 and the provider's own error: its words and its class count, whatever the reply says of its type.
func (p Provider) errorsWithin(t *testing.T) {
	for name, class := range map[string]*errdefs.Class{"error_429": errdefs.RateLimit, "error_500": errdefs.NotAvailable} {
		body := p.fixture(t, name+".json")
		_, err := p.over(answer{status: 503, body: bytes.NewReader(body)}).Complete(t.Context(), hi())
		said := modelError(t, err).Message
		for _, kind := range []string{"application/json", "text/event-stream", ""} {
			_, err := p.over(typed(kind, body)).Complete(t.Context(), hi())
			_, _, err2 := hear(t, p.over(typed(kind, body)))
			for _, err := range []error{err, err2} {
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != class || e.Message != said {
					t.Errorf("%s of type %q: %#v, want class %v and %q", name, kind, err, class, said)
				}
			}
		}
	}
}

func modelError(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *model.Error", err)
	}
	return e
}

func (p Provider) statuses(t *testing.T) {
	body := p.fixture(t, "calls.json")
	for _, c := range []struct {
		name   string
		status int
		body   []byte
		class  *errdefs.Class
	}{
		{"204 without a body", 204, nil, errdefs.NotAvailable},
		{"206 with a part", 206, body[:len(body)/2], errdefs.NotAvailable},
		{"206 with nothing", 206, nil, errdefs.NotAvailable},
		{"301", 301, body, errdefs.Validation},
		{"302", 302, body, errdefs.Validation},
		{"307", 307, body, errdefs.Validation},
		{"304", 304, nil, errdefs.Validation},
	} {
		a := answer{status: c.status, header: http.Header{"Content-Type": {"application/json"}, "Location": {"https://elsewhere.example.com/"}}}
		for range 2 {
			a.body = bytes.NewReader(c.body)
			_, err := p.over(a).Complete(t.Context(), hi())
			a.body = bytes.NewReader(c.body)
			a.header = a.header.Clone()
			_, _, err2 := hear(t, p.over(a))
			for _, err := range []error{err, err2} {
				if !errors.Is(err, c.class) {
					t.Errorf("%s: got %v, want class %v", c.name, err, c.class)
				}
			}
			a.header.Set("Content-Type", "text/event-stream")
		}
	}
}

// oddReplies are bodies of a whole reply.
func (p Provider) oddReplies(t *testing.T) {
	body, good := p.fixture(t, "calls.json"), p.complete(t, "calls")
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"as it is":             {string(body), true},
		"a byte order mark":    {"\ufeff" + string(body), true},
		"spaces around":        {" \r\n\t" + string(body) + "\n\n ", true},
		"a letter behind":      {string(body) + "x", false},
		"a zero byte behind":   {string(body) + "\x00", false},
		"twice":                {string(body) + string(body), false},
		"nothing":              {"", false},
		"spaces":               {"  \n", false},
		"null":                 {"null", false},
		"a number":             {"1", false},
		"a text":               {`"Hello"`, false},
		"an empty object":      {"{}", false},
		"an empty list":        {"[]", false},
		"a list of nothing":    {"[null]", false},
		"a mark and no more":   {"\ufeff", false},
		"a stream's beginning": {"data: " + string(body), false},
	} {
		got, err := p.over(typed("application/json", []byte(c.body))).Complete(t.Context(), hi())
		_, streamed, err2 := hear(t, p.over(typed("application/json", []byte(c.body))))
		switch {
		case !c.ok:
			if !errors.Is(err, errdefs.NotAvailable) || !errors.Is(err2, errdefs.NotAvailable) {
				t.Errorf("%s: %v, %v", name, err, err2)
			}
		case err != nil || err2 != nil:
			t.Errorf("%s: %v, %v", name, err, err2)
		default:
			p.same(t, good, got)
			p.same(t, good, streamed)
		}
	}
}

package cassette_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model/cassette"
)

type answer struct {
	status int // 0: no answer
	header http.Header
	body   string
}

// server is a transport that answers by itself, in order.
type server struct {
	mu      sync.Mutex
	answers []answer
	asked   []string
	broken  error // at the end of each body
}

var errNoAnswer = errors.New("no route to host")

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.String()+" "+body)
	a := s.answers[(len(s.asked)-1)%len(s.answers)]
	if a.status == 0 {
		return nil, errNoAnswer
	}
	text := io.Reader(strings.NewReader(a.body))
	if s.broken != nil {
		text = io.MultiReader(text, iotest.ErrReader(s.broken))
	}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(text), Request: r}, nil
}

// do gives all that a client hears.
func do(t *testing.T, c *http.Client, req *http.Request) string {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		return "failed: " + err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	out := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Content-Type"), " ", resp.Header.Get("Retry-After"), " ", string(b))
	if err != nil {
		out += " broken: " + err.Error()
	}
	return out
}

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	return do(t, c, request(t, http.MethodGet, url, ""))
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func recordHTTP(t *testing.T, under http.RoundTripper, opts ...cassette.Option) (file string, c *http.Client, end func()) {
	t.Helper()
	file = tape(t)
	r, err := cassette.RecordHTTP(under, file, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return file, &http.Client{Transport: r}, func() {
		t.Helper()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func openHTTP(t *testing.T, file string, opts ...cassette.Option) (*cassette.HTTPPlayer, *http.Client) {
	t.Helper()
	p, err := cassette.OpenHTTP(file, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p, &http.Client{Transport: p}
}

func TestAReplayOfHTTPSaysWhatWasRecordedByteForByte(t *testing.T) {
	for _, broken := range []error{nil, errors.New("connection reset")} {
		s := &server{broken: broken, answers: []answer{
			{200, http.Header{"Content-Type": {"application/json"}, "Retry-After": {"7"}}, `{"a":"two\nlines","|":["x"],"n":1.50,"u":"\u003c"}`},
			{200, http.Header{"Content-Type": {"application/json"}}, "{\n  \"a\": \"pretty\"\n}\n"},
			{200, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, "event: a\r\ndata: {\"t\": \"x\"}\r\n\r\n: hm\n\ndata: [DONE]\n\n"},
			{500, http.Header{"Content-Type": {"application/octet-stream"}}, "\xff\x00\x80"},
			{204, nil, ""},
			{200, nil, `{"esc\u0061ped":1,"esc":"\n\u000a"}`},
			{},
		}}
		bodies := []string{`{"q":"a\nb"}`, "two\nlines", "", "\xff", "{ }", "a", "b"}
		file, c, end := recordHTTP(t, s)
		all := func(c *http.Client) (got []string) {
			for i, b := range bodies {
				req := request(t, http.MethodPost, fmt.Sprintf("https://example.com/%d?x=y", i), b)
				req.Header.Set("X-A", "1")
				got = append(got, do(t, c, req))
			}
			return got
		}
		want := all(c)
		end()
		p, c := openHTTP(t, file)
		if d := cmp.Diff(want, all(c)); d != "" {
			t.Errorf("(-recorded +played):\n%s\n%s", d, content(t, file))
		}
		if err := p.Done(); err != nil {
			t.Error(err)
		}
		if len(s.asked) != len(bodies) || !strings.HasSuffix(s.asked[0], bodies[0]) {
			t.Errorf("the server was asked %q", s.asked)
		}
	}
}

func TestARequestOfHTTPThatDiffersIsAnErrorWithThePlaceAndBothValues(t *testing.T) {
	file, c, end := recordHTTP(t, &server{answers: []answer{{200, nil, "x"}}}, cassette.IgnoreHeaders("x-trace"))
	base := func(method, url, body string, header ...string) *http.Request {
		req := request(t, method, url, body)
		req.Header.Set("X-Trace", fmt.Sprint(t.Name(), method, url, body, header))
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return req
	}
	const url = "https://example.com/a"
	do(t, c, base("POST", url, `{"messages":[{"a":"b"}]}`, "X-A", "1"))
	end()
	for name, k := range map[string]struct {
		req  *http.Request
		want string
	}{
		"method":         {base("PUT", url, `{"messages":[{"a":"b"}]}`, "X-A", "1"), `method:`},
		"address":        {base("POST", url+"b", `{"messages":[{"a":"b"}]}`, "X-A", "1"), `url:`},
		"header":         {base("POST", url, `{"messages":[{"a":"b"}]}`, "X-A", "2"), "header.X-A[0]:\n\trecorded: \"1\"\n\tasked:    \"2\""},
		"no header":      {base("POST", url, `{"messages":[{"a":"b"}]}`), `header:`},
		"another header": {base("POST", url, `{"messages":[{"a":"b"}]}`, "X-A", "1", "X-B", "1"), `header.X-B:`},
		"body":           {base("POST", url, `{"messages":[{"a":"c"}]}`, "X-A", "1"), "body.json.messages[0].a:\n\trecorded: \"b\"\n\tasked:    \"c\""},
		"no body":        {base("POST", url, ``, "X-A", "1"), `body:`},
		"white space":    {base("POST", url, `{"messages": [{"a":"b"}]}`, "X-A", "1"), `body`},
	} {
		p, c := openHTTP(t, file, cassette.IgnoreHeaders("X-Trace"))
		got := do(t, c, k.req)
		if !strings.Contains(got, "differs from that of exchange 1 at "+k.want) {
			t.Errorf("%s: %s", name, got)
		}
		if got := do(t, c, base("POST", url, `{"messages":[{"a":"b"}]}`, "X-A", "1")); !strings.HasPrefix(got, "200") {
			t.Errorf("%s: then %s", name, got)
		}
		if err := p.Done(); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABodyThatWasClosedEarlyEndsThere(t *testing.T) {
	file, c, end := recordHTTP(t, &server{answers: []answer{{200, nil, "abcdef"}}})
	read := func(c *http.Client, n int) (string, error) {
		resp, err := c.Do(request(t, "GET", "https://example.com", ""))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n)
		n, err = io.ReadFull(resp.Body, b)
		_ = resp.Body.Close()
		return string(b[:n]), err
	}
	if _, err := read(c, 3); err != nil {
		t.Fatal(err)
	}
	end()
	_, c = openHTTP(t, file)
	if got, err := read(c, 3); got != "abc" || err != nil {
		t.Error(got, err)
	}
	_, c = openHTTP(t, file)
	if got, err := read(c, 4); got != "abc" || !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "was read up to here") {
		t.Error(got, err)
	}
}

func TestABodyThatNobodyClosedIsMissed(t *testing.T) {
	r, err := cassette.RecordHTTP(&server{answers: []answer{{200, nil, "abc"}}}, tape(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.RoundTrip(request(t, "GET", "https://example.com", "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "exchange 1, 2 was over") {
		t.Error(err)
	}
}

func TestAReplayOfHTTPEndsWithItsContext(t *testing.T) {
	file, c, end := recordHTTP(t, &server{answers: []answer{{200, http.Header{"Content-Type": {"text/event-stream"}}, "data: 1\n\ndata: 2\n\n"}}})
	get(t, c, "https://example.com")
	end()
	p, _ := openHTTP(t, file)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := p.RoundTrip(request(t, "GET", "https://example.com", "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := resp.Body.Read(b); string(b[:n]) != "data: 1\n\n" || err != nil { // event by event
		t.Errorf("%q %v", b[:n], err)
	}
	cancel()
	if _, err := resp.Body.Read(b); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = resp.Body.Close()
	if _, err := p.RoundTrip(request(t, "GET", "https://example.com", "").WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestHTTPSideBySide(t *testing.T) {
	file, c, end := recordHTTP(t, &server{answers: []answer{{200, nil, "x"}}})
	all := func(c *http.Client) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if got := get(t, c, fmt.Sprint("https://example.com/", i%20)); !strings.HasPrefix(got, "200") {
					t.Error(got)
				}
			})
		}
		wg.Wait()
	}
	all(c)
	end()
	p, c := openHTTP(t, file, cassette.AnyOrder())
	all(c)
	if err := p.Done(); err != nil {
		t.Error(err)
	}
}

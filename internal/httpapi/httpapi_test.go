package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const own = "https://api.example.com"

func newAPI(opts ...model.Option) *httpapi.API {
	return httpapi.New("acme", own, []string{"ACME_KEY", "ACME_OTHER_KEY"}, opts, func(key string) (string, string) { return "Authorization", "Bearer " + key })
}

// serve starts a server that ends with the test, and gives an API on it.
func serve(t *testing.T, h http.HandlerFunc) *httpapi.API {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		httpapi.CloseIdle()
		s.CloseClientConnections()
		s.Close()
	})
	return newAPI(model.WithBaseURL(s.URL))
}

func TestAKeyIsLookedForInOrderAndNeededForTheProvidersOwnServer(t *testing.T) {
	for name, c := range map[string]struct {
		env  [2]string
		opts []model.Option
		want string // the header
		fail bool
	}{
		"none":                              {[2]string{"", ""}, nil, "", true},
		"the first variable":                {[2]string{"a", "b"}, nil, "Bearer a", false},
		"the second variable":               {[2]string{"", "b"}, nil, "Bearer b", false},
		"an option":                         {[2]string{"a", "b"}, []model.Option{model.WithKey("c")}, "Bearer c", false},
		"a header":                          {[2]string{"", ""}, []model.Option{model.WithHeader("authorization", "Basic d")}, "Basic d", false},
		"another server needs none":         {[2]string{"", ""}, []model.Option{model.WithBaseURL("http://localhost:1")}, "", false},
		"the own server by its name":        {[2]string{"", ""}, []model.Option{model.WithBaseURL(own + "/")}, "", true},
		"another server gets the same key":  {[2]string{"a", ""}, []model.Option{model.WithBaseURL("http://localhost:1/")}, "Bearer a", false},
		"a header wins over the key's own":  {[2]string{"a", ""}, []model.Option{model.WithHeader("Authorization", "Basic d")}, "Basic d", false},
		"an empty base URL is the own one ": {[2]string{"", ""}, []model.Option{model.WithBaseURL("")}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ACME_KEY", c.env[0])
			t.Setenv("ACME_OTHER_KEY", c.env[1])
			var got http.Header
			a := newAPI(append(c.opts, model.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) { got = r.Header })}))...)
			resp, err := a.Post(t.Context(), "/x", httpapi.Body{[]byte("{}")}, "")
			if err == nil {
				httpapi.Finish(resp)
			}
			if c.fail {
				if !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), "ACME_KEY or ACME_OTHER_KEY") || got != nil {
					t.Errorf("got %v, called: %v", err, got != nil)
				}
				return
			}
			if err != nil || got.Get("Authorization") != c.want {
				t.Errorf("got %q, %v", got.Get("Authorization"), err)
			}
		})
	}
}

// roundTrip answers with an empty object, and writes to the request as careless transports do.
type roundTrip func(*http.Request)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	r.Header.Set("X-Scribble", "1")
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestATransportThatWritesToHeadersDoesNotWriteToOurs(t *testing.T) {
	a := newAPI(model.WithKey("k"), model.WithHTTPClient(&http.Client{Transport: roundTrip(func(*http.Request) {})}))
	resp, err := a.Post(t.Context(), "/x", nil, "")
	if err != nil || a.Header.Get("X-Scribble") != "" {
		t.Error(err, a.Header)
	}
	httpapi.Finish(resp)
}

func TestABaseURLThatIsNoneIsTheCallersMistake(t *testing.T) {
	for _, url := range []string{"localhost:8080", "api.example.com", "http://", "http://a b", ":"} {
		if _, err := newAPI(model.WithBaseURL(url)).Post(t.Context(), "/x", nil, ""); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%q: got %v", url, err)
		}
	}
}

func TestABodyIsSentInOnePiece(t *testing.T) {
	body := httpapi.Body{[]byte("one "), nil, []byte("two"), {}, []byte(" three")}
	var got []byte
	var length int64
	a := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		length = r.ContentLength
	})
	resp, err := a.Post(t.Context(), "/x", body, "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	httpapi.Finish(resp)
	if string(got) != "one two three" || length != int64(len(got)) {
		t.Errorf("%q of %d bytes", got, length)
	}
	if err := iotest.TestReader(body.Reader(), []byte("one two three")); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	r := body.Reader()
	if _, err := io.CopyN(io.Discard, r, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := r.(io.WriterTo).WriteTo(&b); err != nil || b.String() != "wo three" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestFinishDoesNotWaitForAServerThatKeepsTheStreamOpen(t *testing.T) {
	gone := make(chan struct{})
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	resp, err := a.Post(t.Context(), "/x", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	httpapi.Finish(resp)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
}

func TestFinishGivesTheConnectionBack(t *testing.T) {
	var from []string
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr)
		_, _ = io.WriteString(w, "left over")
	})
	for range 3 {
		resp, err := a.Post(t.Context(), "/x", nil, "")
		if err != nil {
			t.Fatal(err)
		}
		httpapi.Finish(resp)
	}
	if from[0] != from[1] || from[1] != from[2] {
		t.Errorf("three calls over %v", from)
	}
}

func TestFailuresAreExplained(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header [2]string
		body   string
		want   model.Error
	}{
		"a type and a text":         {400, [2]string{"Request-Id", "r1"}, `{"error":{"type":"bad","message":"no"}}`, model.Error{Kind: errdefs.Validation, Code: "bad", Message: "no", RequestID: "r1"}},
		"a code before a type":      {404, [2]string{"X-Request-Id", "r2"}, `{"error":{"type":"t","code":"c","message":"no"}}`, model.Error{Kind: errdefs.NotFound, Code: "c", Message: "no", RequestID: "r2"}},
		"the text alone":            {500, [2]string{}, `{"error":"no"}`, model.Error{Kind: errdefs.NotAvailable, Message: "no"}},
		"no JSON":                   {502, [2]string{}, "<html>\xff" + strings.Repeat("x", 500), model.Error{Kind: errdefs.NotAvailable, Message: "<html>\uFFFD" + strings.Repeat("x", 293) + "…"}},
		"nothing":                   {503, [2]string{}, "", model.Error{Kind: errdefs.NotAvailable, Message: "Service Unavailable"}},
		"seconds to wait":           {429, [2]string{"Retry-After", "1.5"}, `{}`, model.Error{Kind: errdefs.RateLimit, Message: "{}", RetryAfter: 1500 * time.Millisecond}},
		"milliseconds to wait":      {429, [2]string{"Retry-After-Ms", "20"}, `{}`, model.Error{Kind: errdefs.RateLimit, Message: "{}", RetryAfter: 20 * time.Millisecond}},
		"a date that is over":       {429, [2]string{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"}, `{}`, model.Error{Kind: errdefs.RateLimit, Message: "{}"}},
		"too long for the window":   {400, [2]string{}, `{"error":{"message":"prompt is too long: 2 tokens > 1 maximum"}}`, model.Error{Kind: errdefs.Overflow, Message: "prompt is too long: 2 tokens > 1 maximum"}},
		"with the output too long":  {400, [2]string{}, `{"error":{"message":"input length and max_tokens exceed context limit: 1 + 2 > 2"}}`, model.Error{Kind: errdefs.Overflow, Message: "input length and max_tokens exceed context limit: 1 + 2 > 2"}},
		"a wrong key stays a wrong": {401, [2]string{}, `{"error":{"message":"no context window for you"}}`, model.Error{Kind: errdefs.Unauthorized, Message: "no context window for you"}},
		"a redirect is not taken":   {302, [2]string{"Location", "https://user:secret@elsewhere.example.com/?key=secret"}, `{}`, model.Error{Kind: errdefs.Validation, Message: "redirects are not followed, as they would take the key along: is the API at elsewhere.example.com? Give its own address as the base URL"}},
		"a text without end":        {400, [2]string{"Request-Id", strings.Repeat("é", 300)}, `{"error":{"type":"` + strings.Repeat("c", 300) + `","message":"` + strings.Repeat("m", 20<<10) + `"}}`, model.Error{Kind: errdefs.Validation, Code: strings.Repeat("c", 200) + "…", Message: strings.Repeat("m", 16<<10) + "…", RequestID: strings.Repeat("é", 100) + "…"}},
	} {
		a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.header[0] != "" {
				w.Header().Set(c.header[0], c.header[1])
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		_, err := a.Post(t.Context(), "/x", nil, "")
		c.want.Provider, c.want.Status = "acme", c.status
		var got *model.Error
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("%s: got %#v, want %#v", name, got, c.want)
		}
	}
}

func TestAContextThatEndedIsTheError(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	resp, err := a.Post(ctx, "/x", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("why"))
	if _, err := a.ReadAll(ctx, resp); err != context.Canceled { //nolint:errorlint // as it is
		t.Errorf("ReadAll: %v", err)
	}
	if _, err := a.Post(ctx, "/x", nil, ""); err != context.Canceled { //nolint:errorlint // as it is
		t.Errorf("Post: %v", err)
	}
	if err := a.Truncated(ctx, io.ErrUnexpectedEOF); err != context.Canceled { //nolint:errorlint // as it is
		t.Errorf("Truncated: %v", err)
	}
}

func TestARequestTimeLimitOfTheCallersClientIsATimeout(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	client := &http.Client{Timeout: 20 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := newAPI(model.WithBaseURL(s.URL+"?key=secret"), model.WithHTTPClient(client)).Post(t.Context(), "/x", httpapi.Body{[]byte("{}")}, "")
	if !errors.Is(err, errdefs.Timeout) || strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestIsJSONReadsTheMediaTypeAndTheFirstByte(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		want       bool
	}{
		{"application/json", "data: 1", true},
		{"Application/JSON; charset=utf-8", "", true},
		{"application/problem+json", "", true},
		{"text/event-stream", "", false},
		{"text/event-stream", "data: {}\n\n", false},
		{"text/event-stream", `{"error":{}}`, true},
		{"", `[{"error":{}}]`, true},
		{"application/jsonl", "", false},
	} {
		resp := &http.Response{Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body))}
		if got := httpapi.IsJSON(resp); got != c.want {
			t.Errorf("%q %q: %v", c.kind, c.body, got)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != c.body || err != nil {
			t.Errorf("%q %q: left %q, %v", c.kind, c.body, b, err)
		}
	}
}

func TestAClientOfTheCallersFollowsNoRedirectUnlessItSaysSo(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := newAPI(model.WithBaseURL(s.URL), model.WithHTTPClient(client)).Post(t.Context(), "/x", nil, "")
	if !errors.Is(err, errdefs.Validation) || elsewhere != 0 || client.CheckRedirect != nil {
		t.Errorf("%v, %d calls elsewhere", err, elsewhere)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	resp, err := newAPI(model.WithBaseURL(s.URL), model.WithHTTPClient(client)).Post(t.Context(), "/x", nil, "")
	if err != nil || elsewhere != 1 {
		t.Fatalf("%v, %d calls elsewhere", err, elsewhere)
	}
	httpapi.Finish(resp)
}

func TestCountsOfTokensAreNoneOutOfRange(t *testing.T) {
	for raw, want := range map[string]int{"12": 12, "12.0": 12, "0": 0, "-1": 0, "1e999": 0, "1e12": 1e12, "1e13": 0, "1.5": 0, `"7"`: 0, "null": 0, "": 0} {
		if got := httpapi.Tokens([]byte(raw)); got != want {
			t.Errorf("%s: %d, want %d", raw, got, want)
		}
	}
}

// Calls come in bursts: the connections of one are those of the next.
func TestABurstOfCallsNeedsNoConnectionsOfItsOwn(t *testing.T) {
	const burst = 600
	var mu sync.Mutex
	from := map[string]bool{}
	inside, all := 0, make(chan struct{})
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		if inside++; inside == burst {
			close(all)
		}
		mu.Unlock()
		<-all // the first ones are all there at once
		_, _ = io.WriteString(w, "{}")
	})
	for range 2 {
		var calls sync.WaitGroup
		for range burst {
			calls.Go(func() {
				resp, err := a.Post(t.Context(), "/x", nil, "")
				if err != nil {
					t.Error(err)
					return
				}
				httpapi.Finish(resp)
			})
		}
		calls.Wait()
	}
	if len(from) > burst {
		t.Errorf("%d calls at a time came over %d connections", burst, len(from))
	}
}

// A caller's own client may change what it sends; a call is not changed by the one before it.
func TestACallersTransportMayWriteToARequest(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path+" "+strings.Join(r.Header["X-Added"], ","))
	}))
	t.Cleanup(srv.Close)
	adds := roundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Add("X-Added", "x")
		r.URL.Path += "/y"
		return httpapi.Transport().RoundTrip(r)
	})
	a := httpapi.New("test", srv.URL, nil, []model.Option{model.WithBaseURL(srv.URL + "/v"), model.WithHTTPClient(&http.Client{Transport: adds})}, func(string) (string, string) { return "X-Key", "" })
	for range 2 {
		resp, err := a.Post(t.Context(), "/x", nil, "")
		if err != nil {
			t.Fatal(err)
		}
		httpapi.Finish(resp)
	}
	if want := []string{"/v/x/y x", "/v/x/y x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// As http.Client does it: a name and a password in the base URL are sent as basic authentication.
func TestABaseURLMayHaveAPassword(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name, word, _ := r.BasicAuth()
		got = append(got, name+":"+word)
	}))
	t.Cleanup(srv.Close)
	base := strings.Replace(srv.URL, "http://", "http://me:secret@", 1)
	for _, client := range []*http.Client{nil, {}} {
		a := httpapi.New("test", base, nil, []model.Option{model.WithBaseURL(base + "/v"), model.WithHTTPClient(client)}, func(string) (string, string) { return "X-Key", "" })
		resp, err := a.Post(t.Context(), "/x", nil, "")
		if err != nil {
			t.Fatal(err)
		}
		httpapi.Finish(resp)
	}
	if want := []string{"me:secret", "me:secret"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAServerWithoutTLSIsSaidToBeOne(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	base := strings.Replace(srv.URL, "http://", "https://", 1)
	a := httpapi.New("test", base, nil, []model.Option{model.WithBaseURL(base)}, func(string) (string, string) { return "X-Key", "" })
	if _, err := a.Post(t.Context(), "/x", nil, ""); err == nil || !strings.Contains(err.Error(), "http://?") {
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closes counts how often it is closed.
type closes struct {
	io.Reader
	times int
}

func (c *closes) Close() error {
	c.times++
	return nil
}

// answers answers with a body.
type answers struct{ body io.ReadCloser }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: a.body, Request: r}, nil
}

func TestABodyIsClosedOnce(t *testing.T) {
	body := &closes{Reader: strings.NewReader("data: 1\n\n")}
	client := &http.Client{Transport: answers{body}}
	resp, err := newAPI(model.WithHTTPClient(client), model.WithKey("k")).Post(t.Context(), "/x", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	httpapi.Finish(resp)
	if err := resp.Body.Close(); err != nil || body.times != 1 {
		t.Errorf("%v, closed %d times", err, body.times)
	}
}

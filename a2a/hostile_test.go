package a2a_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// hostile is a server whose card is in order, and whose answers are not.
func hostile(t *testing.T, answer http.HandlerFunc, opts ...a2a.Option) *a2a.Client {
	t.Helper()
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == a2a.CardPath {
			_, _ = io.WriteString(w, `{"name":"h","supportedInterfaces":[{"url":"/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"streaming":true}}`)
			return
		}
		answer(w, r)
	})
	c, err := a2a.Dial(t.Context(), s.URL, append([]a2a.Option{a2a.WithHTTPClient(s.Client()), a2a.WithTimes(30*time.Second, 30*time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// id is the id of a call, as JSON.
func id(r *http.Request) string {
	b, _ := io.ReadAll(r.Body)
	return string(wire.Get(b, "id"))
}

// times are short where that they end is the case.
func times(want *errdefs.Class) a2a.Option {
	if want == errdefs.Timeout {
		return a2a.WithTimes(300*time.Millisecond, 300*time.Millisecond)
	}
	return a2a.WithTimes(0, 0)
}

func TestAnswersThatAreWrongAreErrors(t *testing.T) {
	const task = `{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		class  *errdefs.Class
		says   string
	}{
		"another id": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":"other","result":`+task+`}`)
		}, errdefs.Internal, "another call"},
		"an id that is a number": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":`+task+`}`)
		}, errdefs.Internal, "another call"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `<html>`) }, errdefs.Internal, "no JSON-RPC"},
		"nothing": {func(http.ResponseWriter, *http.Request) {}, errdefs.Internal, "no JSON-RPC"},
		"no version": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"id":%s,"result":%s}`, id(r), task)
		}, errdefs.Internal, "jsonrpc"},
		"neither result nor error": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s}`, id(r))
		}, errdefs.Internal, "neither"},
		"a result of another type": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"task":[1]}}`, id(r))
		}, errdefs.Internal, "result"},
		"an event in place of a task": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"statusUpdate":{"taskId":"t","status":{"state":2}}}}`, id(r))
		}, errdefs.Internal, "neither a task nor a message"},
		"an error of the agent's": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"gone"}}`, id(r))
		}, errdefs.NotFound, "gone"},
		"an error with a status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":"can't"}}`)
		}, errdefs.NotAvailable, "can't"},
		"401": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) }, errdefs.Unauthorized, "who are you"},
		"429": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, errdefs.RateLimit, "429"},
		"502": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, errdefs.NotAvailable, "502"},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			for range a2a.MaxBody/(1<<20) + 2 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		}, errdefs.Internal, "larger than"},
		"half of it": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprint(w, `{"jsonrpc":`)
		}, errdefs.NotAvailable, "broke off"},
		"a byte now and then": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, errdefs.Timeout, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hostile(t, c.answer, times(c.class)).Send(t.Context(), say("x"))
			if errdefs.Of(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v is %v; want %v, and %q", err, errdefs.Of(err), c.class, c.says)
			}
		})
	}
}

func TestStreamsThatAreWrongEndWithAnError(t *testing.T) {
	const good = `data: {"jsonrpc":"2.0","id":%s,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}}` + "\n\n"
	for name, c := range map[string]struct {
		rest  func(w http.ResponseWriter, r *http.Request, id string)
		class *errdefs.Class // nil: it just ends
		says  string
	}{
		"it ends":    {func(http.ResponseWriter, *http.Request, string) {}, nil, ""},
		"bad JSON":   {func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, "data: {\n\n") }, errdefs.Internal, "no JSON-RPC"},
		"another id": {func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = fmt.Fprintf(w, good, `"x"`) }, errdefs.Internal, "another call"},
		"wrong types": {func(w http.ResponseWriter, _ *http.Request, id string) {
			_, _ = fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"statusUpdate":{"taskId":[],"status":{}}}}`+"\n\n", id)
		}, errdefs.Internal, "result"},
		"an error": {func(w http.ResponseWriter, _ *http.Request, id string) {
			_, _ = fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"oh"}}`+"\n\n", id)
		}, errdefs.Internal, "oh"},
		"it breaks off": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			_, _ = io.WriteString(w, `data: {"jsonrpc"`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, errdefs.NotAvailable, "broke off"},
		"a line without end": {func(w http.ResponseWriter, r *http.Request, _ string) {
			_, _ = io.WriteString(w, "data: ")
			for b := []byte(strings.Repeat("x", 1<<20)); r.Context().Err() == nil; {
				_, _ = w.Write(b)
			}
		}, errdefs.Internal, "larger than"},
		"comments without end": {func(w http.ResponseWriter, r *http.Request, _ string) {
			for b := []byte(strings.Repeat(": x\n", 1<<18)); r.Context().Err() == nil; {
				_, _ = w.Write(b)
			}
		}, errdefs.Internal, "larger than"},
		"a byte now and then": {func(w http.ResponseWriter, r *http.Request, _ string) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(":\n"))
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, errdefs.Timeout, "said nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				id := id(r)
				_, _ = fmt.Fprintf(w, good, id)
				w.(http.Flusher).Flush()
				c.rest(w, r, id)
			}, times(c.class))
			events, fails := 0, error(nil)
			for _, err := range client.Stream(t.Context(), say("x")) {
				if events++; err != nil {
					events--
					fails = err
				}
			}
			if events != 1 || errdefs.Of(fails) != c.class || fails != nil && !strings.Contains(fails.Error(), c.says) {
				t.Errorf("%d events, then %v (%v); want %v, and %q", events, fails, errdefs.Of(fails), c.class, c.says)
			}
		})
	}
}

func TestALeftStreamAndACanceledOneAreClosed(t *testing.T) {
	gone := make(chan struct{}, 2)
	c := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"task":{"id":"t","status":{}}}}`+"\n\n", id(r))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	}, a2a.WithTimes(time.Minute, time.Minute))
	for _, err := range c.Stream(t.Context(), say("x")) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	<-gone
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Subscribe(ctx, "t") {
		last = err
		cancel()
	}
	if <-gone; !errors.Is(last, context.Canceled) {
		t.Errorf("a cancel gives %v", last)
	}
}

func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	var leaked atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Key") != "" {
			leaked.Add(1)
		}
	}))
	defer thief.Close()
	to := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}
	c := hostile(t, to, a2a.WithBearer("secret"), a2a.WithHeader("X-Key", "secret"))
	if _, err := c.Send(t.Context(), say("x")); !errors.Is(err, errdefs.PolicyDenied) || !strings.Contains(err.Error(), thief.URL) {
		t.Errorf("a redirected call: %v", err)
	}
	redirecting := httptest.NewServer(http.HandlerFunc(to))
	defer redirecting.Close()
	if _, err := a2a.Dial(t.Context(), redirecting.URL, a2a.WithBearer("secret")); !errors.Is(err, errdefs.PolicyDenied) {
		t.Errorf("a redirected card: %v", err)
	}
	card := fmt.Sprintf(`{"name":"h","url":%q,"protocolVersion":"0.3.0","capabilities":{},"skills":[]}`, thief.URL)
	pointing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, card) }))
	defer pointing.Close()
	if _, err := a2a.Dial(t.Context(), pointing.URL, a2a.WithBearer("secret")); !errors.Is(err, errdefs.PolicyDenied) || !strings.Contains(err.Error(), "New") {
		t.Errorf("a card that points elsewhere: %v", err)
	}
	if c, err := a2a.Dial(t.Context(), pointing.URL); err != nil || c.URL() != thief.URL || c.Version() != a2a.V03 {
		t.Errorf("without a secret it may: %v", err)
	}
	parsed, err := a2a.UnmarshalCard([]byte(card))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := a2a.New(parsed, a2a.WithBearer("x")); err != nil || c.URL() != thief.URL {
		t.Errorf("who trusts the card makes the client: %v", err)
	}
	if leaked.Load() != 0 {
		t.Error("credentials went elsewhere")
	}
}

func TestCardsThatAreWrongAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		card  string
		class *errdefs.Class
	}{
		"no JSON":             {`<html>`, errdefs.Internal},
		"no name":             {`{"supportedInterfaces":[{"url":"/"}]}`, errdefs.Internal},
		"wrong types":         {`{"name":[],"url":"http://x"}`, errdefs.Internal},
		"another binding":     {`{"name":"n","supportedInterfaces":[{"url":"http://x","protocolBinding":"GRPC","protocolVersion":"1.0"}]}`, errdefs.NotAvailable},
		"another version":     {`{"name":"n","supportedInterfaces":[{"url":"http://x","protocolBinding":"JSONRPC","protocolVersion":"2.0"}]}`, errdefs.NotAvailable},
		"a file":              {`{"name":"n","supportedInterfaces":[{"url":"file:///etc/passwd","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, errdefs.Internal},
		"a name in its URL":   {`{"name":"n","supportedInterfaces":[{"url":"http://me:pw@x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, errdefs.Internal},
		"much too much of it": {strings.Repeat(" ", a2a.MaxBody+10), errdefs.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.card) }))
			defer s.Close()
			if _, err := a2a.Dial(t.Context(), s.URL, a2a.WithHTTPClient(s.Client())); errdefs.Of(err) != c.class {
				t.Errorf("%v is %v, want %v", err, errdefs.Of(err), c.class)
			}
		})
	}
	for _, address := range []string{"", "agent", "ftp://x", "://", "http://"} {
		if _, err := a2a.Dial(t.Context(), address); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := a2a.New(*card(a2a.V1), a2a.WithHeader("X", "a\r\nY: b")); !errors.Is(err, errdefs.Validation) {
		t.Errorf("a header with a line break: %v", err)
	}
}

func TestCallsThatAreWrongAreAnsweredInTheProtocolsForm(t *testing.T) {
	for body, want := range map[string]string{
		``:                         `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not JSON"}}`,
		`{`:                        `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not JSON"}}`,
		`[]`:                       `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`null`:                     `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"id":7}`:                 `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,`,
		`{"id":7,"jsonrpc":"2.0"}`: `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,`,
		`{"id":7,"jsonrpc":"1.0","method":"GetTask"}`:            `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,`,
		`{"id":{},"jsonrpc":"2.0","method":"GetTask"}`:           `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"id":1.5,"jsonrpc":"2.0","method":"GetTask"}`:          `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"id":"a","jsonrpc":"2.0","method":3}`:                  `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,`,
		`{"id":"a","jsonrpc":"2.0","method":"x","params":[1]}`:   `{"jsonrpc":"2.0","id":"a","error":{"code":-32602,`,
		`{"id":"a","ID":"b","jsonrpc":"2.0","method":"GetTask"}`: `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,`,
	} {
		call, bad := a2a.ParseCall([]byte(body))
		if bad == nil {
			t.Errorf("%s is taken for a call", body)
			continue
		}
		if got := string(a2a.V1.AppendError(nil, call.ID, bad)); !strings.HasPrefix(got, want) {
			t.Errorf("%s is answered by %s, want %s", body, got, want)
		}
	}
	call, bad := a2a.ParseCall([]byte(` {"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"id":"t"}} `))
	if op, ok := a2a.V03.Operation(call.Method); bad != nil || !ok || op != a2a.OpGet || string(call.Params) != `{"id":"t"}` {
		t.Errorf("%+v %v", call, bad)
	}
	if _, ok := a2a.V1.Operation("tasks/get"); ok {
		t.Error("1.0 has no tasks/get")
	}
	if got := string(a2a.V1.AppendError(nil, nil, a2a.Errorf(a2a.CodeTaskNotFound, "no"))); !strings.Contains(got, `"reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"`) {
		t.Errorf("1.0 has a reason: %s", got)
	}
	if got := string(a2a.V03.AppendError(nil, nil, a2a.Errorf(a2a.CodeVersionNotSupported, "no"))); !strings.Contains(got, "-32600") || strings.Contains(got, "data") {
		t.Errorf("0.3 has no such code: %s", got)
	}
	if e := a2a.ErrorOf(errors.New("the password is x")); e.Code != a2a.CodeInternal || strings.Contains(e.Message, "password") {
		t.Errorf("a defect is told: %v", e)
	}
}

func TestVersionsAreReadFromHeaders(t *testing.T) {
	for text, want := range map[string]a2a.Version{"": a2a.V03, "0.3": a2a.V03, "0.3.0": a2a.V03, "1.0": a2a.V1, " 1.0 ": a2a.V1, "1": a2a.V1, "1.0.1": a2a.V1} {
		if got, err := a2a.ParseVersion(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"0.2", "2.0", "1.1", "x", "0", "10.0"} {
		var e *a2a.Error
		if _, err := a2a.ParseVersion(text); !errors.As(err, &e) || e.Code != a2a.CodeVersionNotSupported {
			t.Errorf("%q: %v", text, err)
		}
	}
}

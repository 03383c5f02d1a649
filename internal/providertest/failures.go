package providertest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

// failure is an error reply and its class.
type failure struct {
	name, file string
	status     int
	retryAfter string
	class      *errdefs.Class
}

var failures = []failure{
	{"error_400", "", 400, "", errdefs.Validation},
	{"error_401", "", 401, "", errdefs.Unauthorized},
	{"error_404", "", 404, "", errdefs.NotFound},
	{"error_429", "", 429, "", errdefs.RateLimit},
	{"error_429 with Retry-After", "error_429", 429, "7", errdefs.RateLimit},
	{"error_500", "", 500, "", errdefs.NotAvailable},
	{"error_529", "", 529, "", errdefs.NotAvailable},
	{"error_overflow", "", 400, "", errdefs.Overflow},
}

func (p Provider) failures(t *testing.T) {
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			if f.file == "" {
				f.file = f.name
			}
			p.skip(t, f.file)
			body := p.fixture(t, f.file+".json")
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) {
				if f.retryAfter != "" {
					w.Header().Set("Retry-After", f.retryAfter)
				}
				whole(w, f.status, body)
			})
			_, err := p.model(s).Complete(t.Context(), hi())
			f.check(t, p, err)
			f.check(t, p, p.model(s).CompleteStream(t.Context(), hi(), func(model.StreamResult) error {
				t.Error("the handler was called")
				return nil
			}))
			if n := len(s.seen()); n != 2 {
				t.Errorf("%d calls: a provider doesn't retry by itself", n)
			}
		})
	}
	t.Run("truncated", func(t *testing.T) {
		e := p.broken(t, "truncated")
		if e.Code != "truncated_stream" {
			t.Errorf("code %q", e.Code)
		}
	})
	t.Run("error_midstream", func(t *testing.T) {
		if e := p.broken(t, "error_midstream"); e.Code == "truncated_stream" || e.Message == "" {
			t.Errorf("the provider's own words are lost: %v", e)
		}
	})
	t.Run("an empty stream", func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { stream(w, nil) })
		_, err := listen(t.Context(), t, p.model(s), hi())
		_ = notAvailable(t, err)
	})
	t.Run("a reply that is not JSON", func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) {
			whole(w, 200, []byte("<html>Bad gateway</html>"))
		})
		_, err := p.model(s).Complete(t.Context(), hi())
		_ = notAvailable(t, err)
		_, err = listen(t.Context(), t, p.model(s), hi())
		_ = notAvailable(t, err)
	})
	t.Run("a server that isn't there", func(t *testing.T) {
		s := serve(t, nil)
		s.Close()
		_, err := p.model(s).Complete(t.Context(), hi())
		_ = notAvailable(t, err)
	})
	t.Run("a base URL that is none", func(t *testing.T) {
		m := p.New(model.WithBaseURL("http://a b:x"), model.WithKey(Key))
		if _, err := m.Complete(t.Context(), hi()); !errors.Is(err, errdefs.Validation) {
			t.Errorf("got %v, want an error of class validation", err)
		}
	})
}

func (f failure) check(t *testing.T, p Provider, err error) {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *model.Error", err)
	}
	if e.Kind != f.class || e.Provider != p.Name || e.Status != f.status || e.Message == "" {
		t.Errorf("class %v, want %v: %#v", e.Kind, f.class, e)
	}
	want := time.Duration(0)
	if f.retryAfter != "" {
		want = 7 * time.Second
	}
	if e.RetryAfter != want {
		t.Errorf("retry after %v, want %v", e.RetryAfter, want)
	}
}

// broken plays a stream that fails after some text, in all ways that it may arrive.
func (p Provider) broken(t *testing.T, name string) (e *model.Error) {
	t.Helper()
	sse := p.fixture(t, name+".sse")
	for _, v := range variants {
		if p.lacks(v.lacks) {
			continue
		}
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { stream(w, v.cut(sse)) })
		got, err := listen(t.Context(), t, p.model(s), hi())
		if e = notAvailable(t, err); got.text.Len() == 0 {
			t.Errorf("%s: no text was passed on before the failure", v.name)
		}
	}
	return e
}

func notAvailable(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || !errors.Is(err, errdefs.NotAvailable) {
		t.Fatalf("got %v, want a *model.Error of class not_available", err)
	}
	return e
}

// endings checks the ways in which the caller ends a call.
func (p Provider) endings(t *testing.T) {
	t.Run("cancel before the reply begins", func(t *testing.T) {
		p.cancels(t, nil, func(ctx context.Context, m model.Model) error {
			_, err := m.Complete(ctx, hi())
			return err
		})
	})
	t.Run("cancel before the stream begins", func(t *testing.T) {
		p.cancels(t, nil, func(ctx context.Context, m model.Model) error {
			return m.CompleteStream(ctx, hi(), func(model.StreamResult) error { return nil })
		})
	})
	t.Run("cancel in the middle of a stream", func(t *testing.T) {
		all := events(p.fixture(t, "text.sse"))
		p.cancels(t, all[:len(all)-1], func(ctx context.Context, m model.Model) error {
			return m.CompleteStream(ctx, hi(), func(model.StreamResult) error { return nil })
		})
	})
	t.Run("a context that was over before", func(t *testing.T) {
		m, s := p.answering(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Complete(ctx, hi()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if n := len(s.seen()); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
	t.Run("an error of the handler", p.handlerFails)
}

// cancels runs a call whose server sends some events and then nothing more, cancels it once they were sent, and wants it to end at
// once, with the context's error and without a goroutine left behind.
func (p Provider) cancels(t *testing.T, sent [][]byte, run func(context.Context, model.Model) error) {
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ call) {
		if sent != nil {
			stream(w, sent)
		}
		cancel()
		<-r.Context().Done()
		close(gone)
	})
	err := within(t, func() error { return run(ctx, p.model(s)) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	await(t, gone, "the connection was not freed")
	s.Close()
	httpapi.CloseIdle()
	goleak.VerifyNone(t, before)
}

func (p Provider) handlerFails(t *testing.T) {
	before := goleak.IgnoreCurrent()
	all := events(p.fixture(t, "text.sse"))
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ call) {
		stream(w, all[:len(all)-1])
		<-r.Context().Done()
		close(gone)
	})
	stop := errors.New("enough")
	calls := 0
	err := within(t, func() error {
		return p.model(s).CompleteStream(t.Context(), hi(), func(model.StreamResult) error {
			calls++
			return stop
		})
	})
	if err != stop { //nolint:errorlint // it has to be this very error, not one around it
		t.Errorf("got %v, want the handler's own error", err)
	}
	if calls != 1 {
		t.Errorf("the handler was called %d times", calls)
	}
	await(t, gone, "the connection was not freed")
	s.Close()
	httpapi.CloseIdle()
	goleak.VerifyNone(t, before)
}

// within fails t when f takes longer than a test's patience.
func within(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("the call doesn't end")
		return nil
	}
}

func await(t *testing.T, c <-chan struct{}, or string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal(or)
	}
}

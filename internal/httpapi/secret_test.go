package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

func TestAKeyThatAServerQuotesIsNotInTheError(t *testing.T) {
	const key, other = "sk-very-secret-0123456789", "another-secret-value"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"wrong key `+key+` or `+other+`"}}`)
	}))
	defer s.Close()
	a := httpapi.New("p", "https://own", nil, []model.Option{model.WithKey(key), model.WithHeader("X-Auth", "Bearer "+other), model.WithBaseURL(s.URL)},
		func(key string) (string, string) { return "X-Key", key })
	_, err := a.Post(t.Context(), "/", httpapi.Body{[]byte("{}")}, "")
	if !errdefs.Unauthorized.Is(err) || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), "[redacted]") {
		t.Error(err)
	}
	for _, e := range []error{
		a.InStream([]byte(`{"error":"` + key + `"}`)), a.Malformed("what", []byte(key)), a.InStream([]byte(`{"error":{"message":"m"},"request_id":"` + key + `"}`)),
		a.Malformed("what", []byte(strings.Repeat("x", 290)+key)), a.InStream([]byte(`{"error":"` + strings.Repeat("x", 16<<10-10) + key + `"}`)), // the half of it that is left when the text is cut
	} {
		if strings.Contains(e.Error(), key[:8]) {
			t.Error(e)
		}
	}
}

func TestAPasswordInTheBaseURLIsNotInTheError(t *testing.T) {
	for _, base := range []string{"http://user:hunter22@%zz", "//user:hunter22@", "user:hunter22@host"} {
		a := httpapi.New("p", "https://own", nil, []model.Option{model.WithBaseURL(base)}, func(key string) (string, string) { return "X-Key", key })
		if _, err := a.Post(t.Context(), "/", httpapi.Body{[]byte("{}")}, ""); !errdefs.Validation.Is(err) && !errdefs.NotAvailable.Is(err) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestAReplyThatNeverEndsIsCutOff(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := []byte("data: " + strings.Repeat("x", 1<<20) + "\n\n")
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	defer httpapi.CloseIdle()
	a := httpapi.New("p", "https://own", nil, []model.Option{model.WithBaseURL(s.URL)}, func(key string) (string, string) { return "X-Key", key })
	resp, err := a.Post(t.Context(), "/", httpapi.Body{[]byte("{}")}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	if n != httpapi.MaxStream || !errdefs.NotAvailable.Is(err) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestAWebPageIsSaidToBeOne(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>Welcome</html>")
	}))
	defer s.Close()
	defer httpapi.CloseIdle()
	a := httpapi.New("p", "https://own", nil, []model.Option{model.WithBaseURL(s.URL)}, func(key string) (string, string) { return "X-Key", key })
	if _, err := a.Post(t.Context(), "/chat", httpapi.Body{[]byte("{}")}, ""); !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), s.URL+"/chat answered with a web page") {
		t.Error(err)
	}
}

package httpapi

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func answering(f func(*http.Request)) *API {
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		f(r)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"id":"1"}`))}, nil
	})}
	return New("test", "https://x", nil, []model.Option{model.WithHTTPClient(client), model.WithKey("k"), model.WithHeader("X-Team", "a")}, func(key string) (string, string) { return "X-Key", key })
}

func TestAFileIsSentFromWhereItLies(t *testing.T) {
	data := strings.Repeat("0123456789abcdef", 1<<20) // 16 MiB
	var read int64
	a := answering(func(r *http.Request) {
		read, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, make([]byte, 32<<10))
		if r.ContentLength != read {
			t.Errorf("it says %d bytes and has %d", r.ContentLength, read)
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := a.PostFile(t.Context(), "/files", Upload{Field: "file", Name: "a", MIME: "a/b", Data: data}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; read < int64(len(data)) || took > 1<<20 {
		t.Errorf("%d bytes were sent, and %d allocated", read, took)
	}
}

func TestAFormCanBeSentAgain(t *testing.T) {
	var bodies [2]string
	a := answering(func(r *http.Request) {
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		for i, from := range []io.Reader{r.Body, again} {
			b, _ := io.ReadAll(from)
			bodies[i] = string(b)
		}
		h := r.Header
		if h.Get("X-Key") != "k" || h.Get("X-Team") != "a" || h.Get("X-Beta") != "files" || !strings.HasPrefix(h.Get("Content-Type"), "multipart/form-data; boundary=") {
			t.Errorf("headers: %v", h)
		}
	})
	u := Upload{Fields: [][2]string{{"purpose", "x"}}, Field: "file", Name: "a", MIME: "a/b", Data: "the data"}
	got, err := a.PostFile(t.Context(), "/files", u, "X-Beta", "files")
	if err != nil || string(got) != `{"id":"1"}` {
		t.Errorf("%s, %v", got, err)
	}
	if bodies[0] != bodies[1] || !strings.Contains(bodies[0], "the data") {
		t.Errorf("%q", bodies)
	}
	if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("X-Beta") != "" {
		t.Errorf("a header of one call stayed: %v", a.Header)
	}
}

func TestATypeThatIsNoneIsNotSent(t *testing.T) {
	a := answering(func(*http.Request) { t.Error("it was sent") })
	for _, mime := range []string{"", "a/b\r\nX: 1"} {
		if _, err := a.PostFile(t.Context(), "/files", Upload{MIME: mime, Data: "x"}); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%q: %v", mime, err)
		}
	}
}

func TestADeletionHasNoBody(t *testing.T) {
	a := answering(func(r *http.Request) {
		if r.Method != http.MethodDelete || r.URL.Path != "/files/1" || r.Body != nil || r.ContentLength != 0 || r.Header.Get("X-Beta") != "files" || r.Header.Get("Content-Type") != "" {
			t.Errorf("%s %s, %d bytes: %v", r.Method, r.URL, r.ContentLength, r.Header)
		}
	})
	if _, err := a.Delete(t.Context(), "/files/1", "X-Beta", "files"); err != nil {
		t.Error(err)
	}
}

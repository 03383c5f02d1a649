package web

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/errdefs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stalled is a client that takes nothing: a write to it fails when its deadline is over.
type stalled struct {
	http.ResponseWriter
	deadline time.Time
}

func (s *stalled) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *stalled) FlushError() error                  { return nil }
func (s *stalled) Write([]byte) (int, error) {
	time.Sleep(time.Until(s.deadline))
	return 0, &net.OpError{Op: "write", Err: io.ErrShortWrite}
}

// Nobody waits for ever for a reader that does not read.
func TestAReaderThatTakesNothingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Patient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			e := Stream(w)
			defer e.Close()
			if err := e.Send("1", "", []byte("x")); err == nil {
				t.Error("it was sent")
			}
		})).ServeHTTP(&stalled{ResponseWriter: httptest.NewRecorder()}, nil)
		if took := time.Since(began); took != Patience {
			t.Errorf("it took %v, want %v", took, Patience)
		}
	})
}

// A stream without events says that it is there.
func TestAQuietStreamIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		e := Stream(w)
		time.Sleep(10*beat + 1)
		synctest.Wait()
		if n := strings.Count(w.Body.String(), ":\n\n"); n != 11 {
			t.Errorf("%d signs of life", n)
		}
		e.Close()
	})
}

// Whatever is in an event, it stays one.
func TestAnEventIsOne(t *testing.T) {
	w := httptest.NewRecorder()
	e := Stream(w)
	if err := e.Send("1\nevent: x", "n\r\ndata: y", []byte("one\ntwo\r\nthree\rfour\n\nid: 7")); err != nil {
		t.Fatal(err)
	}
	e.Close()
	if got := w.Body.String(); got != ":\n\nid: 1event: x\nevent: ndata: y\ndata: one\ndata: two\ndata: three\ndata: four\ndata: \ndata: id: 7\n\n" {
		t.Errorf("%q", got)
	}
}

func TestErrorsAreToldByClass(t *testing.T) {
	for err, want := range map[error]int{
		errdefs.Validation.Errorf("x"): 400, errdefs.Unauthorized.Errorf("x"): 401, errdefs.PolicyDenied.Errorf("x"): 403, errdefs.NotFound.Errorf("x"): 404,
		errdefs.Conflict.Errorf("x"): 409, errdefs.Overflow.Errorf("x"): 413, errdefs.RateLimit.Errorf("x"): 429, errdefs.NotAvailable.Errorf("x"): 503, io.ErrUnexpectedEOF: 500,
	} {
		w := httptest.NewRecorder()
		Fail(w, nil, err)
		var told struct{ Error Problem }
		if e := json.Unmarshal(w.Body.Bytes(), &told); e != nil || w.Code != want || told.Error.Message != err.Error() || told.Error.Class == "" {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
		if waits := w.Header().Get("Retry-After") != ""; waits != (want == 429 || want == 503) {
			t.Errorf("%v: Retry-After %q", err, w.Header().Get("Retry-After"))
		}
	}
}

type request struct {
	Prompt string         `json:"prompt"`
	Inputs map[string]any `json:"inputs"`
	List   []struct {
		Name string `json:"name"`
	} `json:"list"`
}

// What is taken is what was written: any other reader of the same bytes would find the same in it.
func FuzzARequest(f *testing.F) {
	for _, s := range []string{`{}`, `{"prompt":"x"}`, `{"Prompt":"x"}`, `{"prompt":"x","prompt":"y"}`, `{"inputs":{"a":[1,{"b":null}]}}`, `{"list":[{"name":"x"},{"NAME":"y"}]}`, `{} x`, `[]`, "{\"prompt\":\"\xff\"}", `{"prompt":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r request
		err := Decode(b, &r)
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		var tree map[string]any
		if e := json.Unmarshal(b, &tree); e != nil {
			t.Fatalf("%q was taken: %v", b, e)
		}
		for name := range tree {
			if name != "prompt" && name != "inputs" && name != "list" {
				t.Errorf("%q was taken, with %q", b, name)
			}
		}
		if said, _ := tree["prompt"].(string); said != r.Prompt {
			t.Errorf("%q: %q, another reader finds %q", b, r.Prompt, said)
		}
	})
}

// Who wrote a request is told what is wrong with it by its own members, and which there are.
func TestWhatIsWrongWithARequestIsTold(t *testing.T) {
	type prompt struct {
		Prompt string `json:"prompt"`
		Files  []struct {
			MIME string `json:"mime"`
		} `json:"files"`
	}
	for body, want := range map[string]string{
		`{"prompt":5}`:                 "prompt: want a text, got a JSON number",
		`{"files":[{"mime":[]}]}`:      "files.mime: want a text, got a JSON array",
		`{"files":{}}`:                 "files: want a list, got a JSON object",
		`{"wait":"yes"}`:               "wait: want true or false, got a JSON string",
		`{"reason":"lunch"}`:           `there is no "reason" here: want prompt, files, wait`,
		`{"Wait":true}`:                `there is no "Wait" here: want prompt, files, wait`,
		`{"wait":true,"wait":true}`:    "twice",
		`{"files":[{"kind":"image"}]}`: `unknown field "kind"`,
	} {
		var v struct {
			prompt
			Wait bool `json:"wait"`
		}
		if err := Decode([]byte(body), &v); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

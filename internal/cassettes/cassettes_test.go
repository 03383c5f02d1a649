package cassettes_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/cassettes"
)

func TestBothFormatsComeIntoOneForm(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]cassettes.Cassette{
		"vcrpy": {Name: "vcrpy", API: cassettes.Anthropic, Exchanges: []cassettes.Exchange{{
			Method: "POST", URL: "https://api.example.com/v1/messages?beta=true", Status: 400, ContentType: "application/json",
			RequestBody:  []byte(`{"messages":[{"content":"<b>Hi</b>","role":"user"}],"model":"m","stream":false,"top_p":0.5}`),
			ResponseBody: []byte(`{"content":[],"n":7}`),
		}, {
			Method: "GET", URL: "https://api.example.com/v1/files", Status: 200, ContentType: "text/event-stream; charset=utf-8",
			RequestBody: []byte{}, ResponseBody: []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n"),
		}}},
		"govcr": {Name: "govcr", API: cassettes.Responses, Exchanges: []cassettes.Exchange{{
			Method: "POST", URL: "https://api.example.com/v1/responses", Status: 200, ContentType: "text/event-stream",
			RequestBody:  []byte(`{"model":"m","input":[{"role":"user","content":"it's <b>"}]}`),
			ResponseBody: []byte("data: {\"type\": \"a\"}\n\ndata: {\"type\": \"b\"}\n\n"),
		}}},
	} {
		got, err := cassettes.Read(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no YAML":          "\t{",
		"no interactions":  "version: 1",
		"no address":       "interactions: [{request: {method: GET}, response: {code: 200}}]",
		"no status":        "interactions: [{request: {method: GET, url: 'http://a'}, response: {}}]",
		"a body of a kind": "interactions: [{request: {method: GET, url: 'http://a', body: [1]}, response: {code: 200}}]",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := cassettes.Read(path); err == nil {
			t.Errorf("%s: read as %+v", name, c)
		}
	}
	if _, err := cassettes.Read(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a file that isn't there was read")
	}
}

func TestWithoutRecordingsATestIsSkippedAndWithABadPathItFails(t *testing.T) {
	full := t.TempDir()
	if err := os.Mkdir(filepath.Join(full, "cassettes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "cassettes", "a.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PAWL_REQUIRE_REAL", "1") // recordings are no component: it has no say here
	for _, c := range []struct{ fixtures, want string }{
		{"", "skipped: no recorded exchanges: set PAWL_FIXTURES"},
		{t.TempDir(), "failed: PAWL_FIXTURES="},
		{filepath.Join(full, "gone"), "failed: PAWL_FIXTURES="},
		{full, filepath.Join(full, "cassettes")},
	} {
		t.Setenv("PAWL_FIXTURES", c.fixtures)
		f := &fakeTB{}
		var dir string
		f.run(func() { dir = cassettes.Dir(f) })
		if got := f.said + dir; !strings.HasPrefix(got, c.want) {
			t.Errorf("PAWL_FIXTURES=%q: %q, want %q", c.fixtures, got, c.want)
		}
	}
}

func TestTheServerAnswersInTheRecordedOrderAndKeepsWhatItWasAsked(t *testing.T) {
	t.Parallel()
	stream := cassettes.Exchange{Status: 200, ContentType: "text/event-stream", ResponseBody: []byte("data: 1\n\ndata: 2\n\n: left")}
	s := cassettes.Serve(t, []cassettes.Exchange{stream, {Status: 404, ContentType: "application/json", ResponseBody: []byte(`{}`)}})
	got := post(t, s.Client(), s.URL+"/v1/x?y=1", "a") + post(t, s.Anywhere(), "https://api.example.com/z", "b")
	if want := "200 text/event-stream data: 1\n\ndata: 2\n\n: left404 application/json {}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	asked := ""
	for _, r := range s.Requests() {
		asked += r.Path + " " + string(r.Body) + " " + r.Header.Get("X-Test") + "\n"
	}
	if want := "/v1/x?y=1 a yes\n/z b yes\n"; asked != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestTheServerFailsTheTestWhenItIsAskedForMoreThanWasRecorded(t *testing.T) {
	t.Parallel()
	f := &fakeTB{}
	s := cassettes.Serve(f, nil)
	defer f.end()
	if got := post(t, s.Client(), s.URL, "{}"); !strings.HasPrefix(got, "400 application/json") {
		t.Errorf("answered %q", got)
	}
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = s.Requests() // whatever the server said to the test, it has said by now
	for _, want := range []string{"more than the 0 recorded answers", "POST alone"} {
		if !strings.Contains(f.said, want) {
			t.Errorf("the test wasn't told of %q: %q", want, f.said)
		}
	}
}

func post(t *testing.T, c *http.Client, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Test", "yes")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s", resp.StatusCode, resp.Header.Get("Content-Type"), b)
}

// fakeTB is a test that fails or is skipped without the real one knowing.
type fakeTB struct {
	testing.TB
	said  string
	later []func()
}

func (f *fakeTB) Helper()                           {}
func (f *fakeTB) Cleanup(g func())                  { f.later = append(f.later, g) }
func (f *fakeTB) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.said = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Skip(args ...any) {
	f.said = "skipped: " + fmt.Sprint(args...)
	runtime.Goexit()
}

// run calls g, which may end its goroutine.
func (f *fakeTB) run(g func()) {
	done := make(chan struct{})
	go func() { defer close(done); g() }()
	<-done
}

func (f *fakeTB) end() {
	for _, g := range f.later {
		g()
	}
}

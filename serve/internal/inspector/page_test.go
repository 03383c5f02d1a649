package inspector_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/serve"
)

func files(t *testing.T) []string {
	t.Helper()
	all, err := os.ReadDir("page")
	if err != nil || len(all) < 10 {
		t.Fatal(len(all), err)
	}
	var names []string
	for _, f := range all {
		name := "/inspector/" + f.Name()
		if f.Name() == "index.html" {
			name = "/"
		}
		names = append(names, name)
	}
	return names
}

func TestThePageIsOpenAndNothingElseIs(t *testing.T) {
	s, err := serve.New(idle(t, journal.Memory()), serve.Options{Tokens: []string{"a-token-of-enough-length"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ask := func(method, path, tag string) *http.Response {
		r := httptest.NewRequest(method, path, nil)
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	for _, path := range files(t) {
		r := ask("GET", path, "")
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		policy := r.Header.Get("Content-Security-Policy")
		if r.StatusCode != http.StatusOK || len(b) == 0 || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'") || strings.Contains(policy, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %d bytes, policy %q", path, r.StatusCode, len(b), policy)
		}
		if again := ask("GET", path, r.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s, asked for again: %d", path, again.StatusCode)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions/x/entries", "/inspectors", "/x", "//", "/inspector/../v1/sessions"} {
		if r := ask("GET", path, ""); r.StatusCode == http.StatusOK {
			t.Errorf("%s is open", path)
		}
	}
	for _, path := range []string{"/inspector/none.js", "/inspector/", "/inspector/page/main.js"} {
		if r := ask("GET", path, ""); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	if r := ask("POST", "/", ""); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST /: %d", r.StatusCode)
	}
}

func TestSessionsAreFoundByATextInWhatIsToldOfThem(t *testing.T) {
	store := journal.Memory()
	for name, agent := range map[string]string{"prices/Rounding": "coder", "weather": "Clerk", "notes": "clerk"} {
		if err := store.Append(t.Context(), name, 0, journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.RunStarted{Agent: agent, User: "ann of " + name, Owner: "o", Attempt: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := serve.New(idle(t, store), serve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for q, want := range map[string]int{"": 3, "rounding": 1, "CLERK": 2, "ann of w": 1, "%": 0, "clerk&limit=1": 1} {
		r := httptest.NewRequest("GET", "http://localhost/v1/sessions?q="+strings.ReplaceAll(strings.ReplaceAll(q, "%", "%25"), " ", "+"), nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var got struct {
			Sessions []struct{ Session string }
			More     bool
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Sessions) != want || got.More != strings.Contains(q, "limit") {
			t.Errorf("%q: %d, want %d: %s (%v)", q, len(got.Sessions), want, w.Body, err)
		}
	}
}

// What is in the page comes from it alone, and nothing in it makes markup of texts.
func TestThePageIsWholeAndMakesNoMarkup(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?:https?:)?//[a-zA-Z0-9-]+\.[a-z]`)
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|DOMParser|setHTML|srcdoc|setAttribute\("style|style="|onclick="`)
	for _, path := range files(t) {
		name := strings.TrimPrefix(path, "/inspector/")
		if path == "/" {
			name = "index.html"
		}
		b, err := os.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if m := elsewhere.Find(bytes.ReplaceAll(b, []byte("http://www.w3.org/2000/svg"), nil)); m != nil { // that is a name
			t.Errorf("%s asks elsewhere: %s", name, m)
		}
		if m := markup.Find(b); m != nil {
			t.Errorf("%s makes markup or code of texts: %s", name, m)
		}
	}
}

// The browser's protocol is for tests: whoever serves does not get it.
func TestWhoServesHasNoBrowser(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-test", "github.com/pawl-dev/pawl/serve", "github.com/pawl-dev/pawl/cmd/pawl").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "chromedp") {
		t.Error("serve, its tests or the program import chromedp")
	}
}

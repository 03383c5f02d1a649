package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAModelThatFailsForAMomentIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		replies  []string
		code     int
		retries  int
	}{
		"twice, then well":         {"", []string{"error_529", "error_529", "text"}, exitCompleted, 2},
		"no more than is allowed":  {`{"retries": 1}`, []string{"error_529", "error_529"}, exitFailed, 1},
		"never":                    {`{"retries": 0}`, []string{"error_529"}, exitFailed, 0},
		"not what would fail anew": {"", []string{"error_overflow"}, exitFailed, 0},
		"not what was shown":       {"", []string{"error_midstream"}, exitFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.settings != "" {
				w.settings(c.settings)
			}
			server := fixtures(t, "anthropic/testdata", c.replies...)
			lines, r := w.run("turns: [{text: unused}]", "go", "--model", "anthropic/claude-sonnet-4-5", "--base-url", server.URL)
			var attempts []float64
			for _, l := range lines {
				if l["type"] == "retry" {
					attempts = append(attempts, l["attempt"].(float64))
					if reason, _ := l["reason"].(string); !strings.Contains(reason, "HTTP 529") {
						t.Errorf("a retry without its reason: %v", l)
					}
				}
			}
			for i, a := range attempts {
				if a != float64(i+1) {
					t.Errorf("attempts %v", attempts)
				}
			}
			if r.code != c.code || len(attempts) != c.retries || len(server.requests) != len(c.replies) {
				t.Errorf("exit %d, %d retries, %d requests\n%s\n%s", r.code, len(attempts), len(server.requests), r.out, r.err)
			}
			for _, sent := range server.requests {
				if sent != server.requests[0] {
					t.Errorf("another attempt asks for something else:\n%s\n%s", server.requests[0], sent)
				}
			}
		})
	}
}

// busy is a server that asks for patience until well is closed.
func busy(t *testing.T, well chan struct{}) *httptest.Server {
	answers := fixtures(t, "anthropic/testdata", "text")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-well:
			answers.Config.Handler.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "50")
			w.WriteHeader(529)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestARunsTimeIsOverInAWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := busy(t, nil)
	for _, limit := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 30 * time.Second} { // on a busy machine the wait begins later; it takes 50 s
		began := time.Now()
		lines, r := w.run("turns: [{text: unused}]", "go", "--model", "anthropic/claude-sonnet-4-5", "--base-url", server.URL, "--timeout", limit.String())
		if took := time.Since(began); took > limit+15*time.Second {
			t.Errorf("with a limit of %v it took %v", limit, took)
		}
		last := lines[len(lines)-1]
		e, _ := last["error"].(map[string]any)
		if r.code != exitLimit || e["class"] != "budget_exceeded" {
			t.Fatalf("exit %d: %v", r.code, last)
		}
		if find(lines, "retry") != nil {
			return
		}
	}
	t.Error("the run never waited for another attempt")
}

// Models that a graph or a script names are asked again, too.
func TestModelsThatEnginesNameAreAskedAgain(t *testing.T) {
	t.Parallel()
	if c, err := net.Dial("tcp", "127.0.0.1:11434"); err == nil {
		_ = c.Close()
		t.Skip("something listens where Ollama would: the test needs a model that is not there")
	}
	w := newWorld(t)
	w.settings(`{"retries": 1}`)
	for kind, text := range map[string]string{
		"graph":  `{name: g, entry: a, nodes: [{id: a, type: model, config: {prompt: "Hi", model: ollama/x, output: said}}], edges: [{from: a, to: __end__}]}`,
		"script": `generate("Hi", model = "ollama/x")`,
	} {
		lines, r := w.run("turns: [{text: unused}]", "go", "--engine", kind+":"+w.file(kind, text))
		n := 0
		for _, l := range lines {
			if l["type"] == "retry" {
				n++
			}
		}
		if n != 1 || r.code != exitFailed {
			t.Errorf("%s: %d retries, exit %d\n%s%s", kind, n, r.code, r.out, r.err)
		}
	}
}

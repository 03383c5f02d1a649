package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// wire is a server that answers with hand-made replies of a provider, one after the other.
type wire struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

// fixtures serves files of a provider's test data: "length", "refusal", …; "error_529" with that status.
func fixtures(t *testing.T, provider string, names ...string) *wire {
	w := &wire{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		n := len(w.requests)
		w.requests = append(w.requests, string(body))
		w.mu.Unlock()
		if n >= len(names) {
			t.Errorf("a request more than there are replies: %s", body)
			rw.WriteHeader(http.StatusTeapot)
			return
		}
		file, status := names[n]+".sse", http.StatusOK
		rw.Header().Set("Content-Type", "text/event-stream")
		if code, isError := strings.CutPrefix(names[n], "error_"); isError && code != "midstream" {
			rw.Header().Set("Content-Type", "application/json")
			file, status = names[n]+".json", map[string]int{"429": 429, "500": 500, "529": 529, "overflow": 400}[code]
		}
		reply, err := os.ReadFile(filepath.Join("../../model", provider, file))
		if err != nil {
			t.Error(err)
		}
		rw.WriteHeader(status)
		_, _ = rw.Write(reply)
	}))
	t.Cleanup(w.Close)
	return w
}

// Every way a reply can end, from the program's view: played by the scripted model, and over the wire.
func TestEveryEndingIsHandledFromScriptAndOverTheWire(t *testing.T) {
	t.Parallel()
	const anthropic, chat = "anthropic/testdata", "openai/testdata/chat"
	for name, c := range map[string]struct {
		script   string   // for the scripted model
		provider string   // whose fixtures are served
		replies  []string // the fixtures
		code     int
		class    string
		text     string // of the answer; "" on failure
		steps    float64
		sent     string // in the second request over the wire
	}{
		"cut off, then the rest": {
			`turns: [{text: "The answer is", stop: max_tokens}, {text: "Hello"}]`, anthropic,
			[]string{"length", "text"},
			exitCompleted, "", "The answer is", 2, "cut off at the output limit",
		},
		"cut off for ever": {
			`turns: [` + strings.Repeat(`{text: "and", stop: max_tokens},`, 4) + `]`, anthropic,
			[]string{"length", "length", "length", "length"},
			exitFailed, "truncated", "", 4, "cut off at the output limit",
		},
		"a half-written call": {
			`turns: [{tool_calls: [{name: bash, input: "{\"command\": \"touch ra"}], stop: max_tokens}, {text: "Hello"}]`, anthropic,
			[]string{"half_call", "text"},
			exitCompleted, "", "Hello", 2, "may be incomplete",
		},
		"cut off before it said anything": {
			`turns: [{text: "", stop: max_tokens}, {text: "Hello"}]`, anthropic,
			[]string{"empty_length", "text"},
			exitCompleted, "", "Hello", 2, "more briefly",
		},
		"paused": {
			`turns: [{text: "I search.", stop: pause_turn}, {text: "Hello"}]`, anthropic,
			[]string{"pause", "text"},
			exitCompleted, "", "Hello", 2, `"role":"assistant"`,
		},
		"refused": {
			`turns: [{text: "I can't help with that.", stop: refusal}]`, anthropic,
			[]string{"refusal"},
			exitFailed, "refused", "", 1, "",
		},
		"filtered": {
			`turns: [{text: "half", stop: content_filter}]`, chat,
			[]string{"filter"},
			exitFailed, "refused", "", 1, "",
		},
		"empty, then an answer": {
			`turns: [{text: ""}, {text: "Hello"}]`, anthropic,
			[]string{"empty", "text"},
			exitCompleted, "", "Hello", 2, "was empty",
		},
		"empty twice": {
			`turns: [{text: ""}, {text: ""}]`, anthropic,
			[]string{"empty", "empty"},
			exitFailed, "no_progress", "", 2, "was empty",
		},
		"the context is full": {
			`turns: [{error: {status: 413, message: "prompt is too long"}}]`, anthropic,
			[]string{"error_overflow"},
			exitFailed, "context_overflow", "", 0, "",
		},
		"the stream breaks off": {
			`turns: [{text: "some words that break off", error: {status: 503, mid_stream: true}}]`, anthropic,
			[]string{"truncated"},
			exitFailed, "not_available", "", 0, "",
		},
		"an error in mid-stream": {
			`turns: [{text: "some words that break off", error: {status: 529, mid_stream: true}}]`, anthropic,
			[]string{"error_midstream"},
			exitFailed, "not_available", "", 0, "",
		},
		"overloaded": {
			`turns: [{error: {status: 529}}]`, anthropic, []string{"error_529"}, exitFailed, "not_available", "", 0, "",
		},
		"too many requests": {
			`turns: [{error: {status: 429, retry_after: 7s}}]`, anthropic, []string{"error_429"}, exitFailed, "rate_limit", "", 0, "",
		},
	} {
		check := func(t *testing.T, lines []map[string]any, r ran) {
			t.Helper()
			last := lines[len(lines)-1]
			text, _ := last["text"].(string)
			if r.code != c.code || last["steps"] != c.steps || c.text != "" && !strings.HasPrefix(text, c.text) {
				t.Errorf("exit %d, %v\n%s", r.code, last, r.err)
			}
			e, _ := last["error"].(map[string]any)
			if class, _ := e["class"].(string); class != c.class {
				t.Errorf("class %q, want %q: %v", class, c.class, e)
			}
			for _, l := range lines {
				if l["type"] == "tool.started" {
					t.Errorf("a call ran: %v", l)
				}
			}
		}
		t.Run(name+", from a script", func(t *testing.T) {
			t.Parallel()
			lines, r := newWorld(t).run(c.script, "go")
			check(t, lines, r)
		})
		t.Run(name+", over the wire", func(t *testing.T) {
			t.Parallel()
			w, model := newWorld(t), "anthropic/claude-sonnet-4-5"
			w.settings(`{"retries": 0}`)
			if c.provider == chat {
				model = "openai/gpt-5"
			}
			server := fixtures(t, c.provider, c.replies...)
			lines, r := w.run("turns: [{text: unused}]", "go", "--model", model, "--base-url", server.URL)
			check(t, lines, r)
			if len(server.requests) != len(c.replies) {
				t.Fatalf("%d requests, want %d", len(server.requests), len(c.replies))
			}
			if c.sent != "" && !strings.Contains(server.requests[1], c.sent) {
				t.Errorf("the second request has no %q:\n%s", c.sent, server.requests[1])
			}
		})
	}
}

func TestAModelThatGoesInCirclesIsToldOnceAndThenStopped(t *testing.T) {
	t.Parallel()
	same := `{tool_calls: [{name: glob, input: {pattern: "*.none"}}]},`
	lines, r := newWorld(t).run(`turns: [`+strings.Repeat(same, 4)+`]`, "go")
	last := lines[len(lines)-1]
	if e, _ := last["error"].(map[string]any); r.code != exitFailed || e["class"] != "no_progress" || last["steps"] != 4.0 {
		t.Errorf("%d %v", r.code, last)
	}
	told := 0
	for _, l := range lines {
		if m, ok := l["message"].(map[string]any); ok && m["role"] == "user" {
			told++
		}
	}
	if told != 2 { // the prompt, and one word of the loop's own
		t.Errorf("%d user messages", told)
	}
}

func TestARunWhoseJournalFailedIsNoCancel(t *testing.T) {
	t.Parallel()
	full := errdefs.NotAvailable.Errorf("the disk is full")
	res := &agent.Result{Status: agent.StatusInterrupted, Cause: engine.CauseJournal, Pending: make([]journal.Pending, 1), Err: full}
	if code := codeOf(res, full); code != exitFailed {
		t.Errorf("exit %d", code)
	}
}

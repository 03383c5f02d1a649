//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is a server of its own process.
type served struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
	err bytes.Buffer
}

// serves starts pawl serve and waits until it listens.
func serves(t *testing.T, path string, env []string, args ...string) *served {
	t.Helper()
	s := &served{t: t, cmd: exec.Command(path, append([]string{"serve", "--json", "--addr", "127.0.0.1:0"}, args...)...)}
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stderr = &s.err
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Type, URL string }
	if e := json.Unmarshal(line, &ready); err != nil || e != nil || ready.Type != "serving" {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		t.Fatalf("%v %v: %s\n%s", err, e, line, s.err.String())
	}
	s.url = ready.URL
	return s
}

func (s *served) ask(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	res := s.open(method, path, body, header...)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (s *served) open(method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.err.String())
	}
	s.t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return res
}

type news struct {
	id, Kind, Text string
	Seq            int64
}

// read reads events until one is enough, or they end.
func (s *served) read(path, last string, enough func(news) bool) (all []news) {
	s.t.Helper()
	res := s.open("GET", path, "", "Last-Event-ID", last)
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	id := ""
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = v
		}
		v, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		e := news{}
		if err := json.Unmarshal([]byte(v), &e); err != nil {
			s.t.Fatalf("%v: %s", err, v)
		}
		e.id = id
		if all = append(all, e); enough(e) {
			break
		}
	}
	return all
}

// Killed in the middle of a run, a server that takes its place goes on with it when its client asks again; the client reads on from where it was.
func TestAServerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	path := binary(t)
	w := newWorld(t)
	script := w.file("s.yaml", `turns:
  - {text: "First this.", tool_calls: [{name: bash, input: {command: "echo one >> out.txt"}}]}
  - {text: "Then that.", tool_calls: [{name: bash, input: {command: "echo $$ > pid; test -e go || sleep 60; echo two >> out.txt"}}]}
  - {text: "All is done."}
`)
	args := []string{"--model", "scripted/" + script, "--dir", w.dir, "--journal", w.journal}
	first := serves(t, path, nil, args...)
	const ask = `{"prompt":"Do it.","session":"s"}`
	if code, text := first.ask("POST", "/v1/runs", ask, "Idempotency-Key", "k"); code != 202 {
		t.Fatalf("%d %s", code, text)
	}
	const events = "/v1/sessions/s/events?run=k"
	begun := 0
	seen := first.read(events, "", func(e news) bool {
		if e.Kind == "tool.started" {
			begun++
		}
		return begun == 2
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	w.file("go", "")

	second := serves(t, path, nil, args...)
	code, text := second.ask("POST", "/v1/runs", ask, "Idempotency-Key", "k")
	if code != 200 || !strings.Contains(text, `"known":true`) {
		t.Fatalf("%d %s\n%s", code, text, second.err.String())
	}
	seen = append(seen, second.read(events, seen[len(seen)-1].id, func(news) bool { return false })...)
	next := int64(1)
	for _, e := range seen {
		if strings.Contains(e.Kind, "delta") || e.Kind == "warning" || e.Kind == "tool.output" {
			continue
		}
		if e.Seq != next {
			t.Errorf("entry %d comes where %d should", e.Seq, next)
		}
		next = e.Seq + 1
	}
	if last := seen[len(seen)-1]; last.Kind != "run.finished" {
		t.Errorf("the last one is %+v", last)
	}
	b, err := os.ReadFile(filepath.Join(w.dir, "out.txt"))
	if err != nil || string(b) != "one\n" { // what was begun when it was killed is not done again: its outcome is unknown
		t.Errorf("%q, %v", b, err)
	}
	code, text = second.ask("GET", "/v1/sessions/s", "")
	if code != 200 || !strings.Contains(text, `"status":"completed"`) || !strings.Contains(text, "unknown") {
		t.Errorf("%d %s", code, text)
	}
}

// Told to stop, it leaves nothing behind that runs, and what it was at can be resumed.
func TestAServerThatIsToldToStop(t *testing.T) {
	t.Parallel()
	path := binary(t)
	w := newWorld(t)
	script := w.file("s.yaml", `turns:
  - {tool_calls: [{name: bash, input: {command: "echo $$ > pid; sleep 60"}}]}
  - {text: "All is done."}
`)
	s := serves(t, path, nil, "--model", "scripted/"+script, "--dir", w.dir, "--journal", w.journal, "--grace", "100ms")
	s.ask("POST", "/v1/runs", `{"prompt":"Do it.","session":"s"}`)
	for {
		if b, err := os.ReadFile(filepath.Join(w.dir, "pid")); err == nil && len(b) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond) // another process writes it
	}
	res := s.open("GET", "/v1/sessions/s/events", "")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil { // its clients are let go in order
		t.Errorf("its stream ends with %v", err)
	}
	_ = res.Body.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.err.String())
	}
	if said := s.err.String(); !strings.Contains(said, "stopped") || !strings.Contains(said, " at "+s.url+": a browser sees") {
		t.Errorf("it says %s", s.err.String())
	}
	r := w.pawl("resume", "s", "--model", "scripted/"+script, "--dir", w.dir, "--journal", w.journal)
	if r.code != 0 || !strings.Contains(r.out, "All is done.") {
		t.Errorf("%+v", r)
	}
}

// With --resume it goes on by itself with what the one before it was at. Any server of the journal knows whether somebody drives that.
func TestAServerTakesUpWhatWasLeft(t *testing.T) {
	t.Parallel()
	path := binary(t)
	w := newWorld(t)
	script := w.file("s.yaml", `turns:
  - {text: "First this.", delay: 60s}
`)
	args := []string{"--dir", w.dir, "--journal", w.journal, "--model"}
	first := serves(t, path, nil, append(args, "scripted/"+script)...)
	first.ask("POST", "/v1/runs", `{"prompt":"Do it.","session":"left"}`)
	first.ask("POST", "/v1/runs", `{"prompt":"Do it.","session":"canceled"}`)
	first.ask("POST", "/v1/sessions/canceled/cancel", `{"wait":true}`)
	beside := serves(t, path, nil, append(args, "scripted/"+script)...)
	const running = "/v1/sessions?status=running"
	if _, text := beside.ask("GET", running, ""); !strings.Contains(text, `"driven":true`) || strings.Contains(text, `"here"`) || !strings.Contains(text, `"title":"Do it."`) {
		t.Errorf("beside it: %s", text)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	if _, text := beside.ask("GET", running, ""); !strings.Contains(text, `"session":"left"`) || strings.Contains(text, `"driven"`) {
		t.Errorf("when it is dead: %s", text)
	}
	w.file("s.yaml", `turns: [{text: "All is done."}]`)
	second := serves(t, path, nil, append(args, "scripted/"+script, "--resume")...)
	for {
		if _, text := second.ask("GET", "/v1/sessions/left", ""); strings.Contains(text, `"status":"completed"`) {
			break
		}
		time.Sleep(10 * time.Millisecond) // another process does it
	}
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil || !strings.Contains(second.err.String(), "going on with what was left: left\n") {
		t.Errorf("%v: it says %s", err, second.err.String())
	}
}

func TestAServerWithATokenWantsIt(t *testing.T) {
	t.Parallel()
	path := binary(t)
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{text: "Hi."}]`)
	secret := w.file("token", "a-secret-of-this-server\n")
	for name, s := range map[string]*served{
		"flag": serves(t, path, nil, "--model", "scripted/"+script, "--dir", w.dir, "--journal", "memory", "--token", "@"+secret),
		"env":  serves(t, path, []string{"PAWL_TOKEN=a-secret-of-this-server"}, "--model", "scripted/"+script, "--dir", w.dir, "--journal", "memory"),
	} {
		if code, text := s.ask("GET", "/v1/sessions", ""); code != 401 {
			t.Errorf("%s: %d %s", name, code, text)
		}
		if code, text := s.ask("GET", "/v1/sessions", "", "Authorization", "Bearer a-secret-of-this-server"); code != 200 {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// childDir has the test binary serve an agent, over the journal in that directory, until it is killed.
const childDir = "PAWL_TEST_A2A_CHILD"

func TestChildOfTheKillTests(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("it is started by others")
	}
	store, err := sqlite.Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	wait := tool.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		f, err := os.OpenFile(filepath.Join(dir, "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(f, "ran")
		_ = f.Close()
		<-ctx.Done()
		return "", ctx.Err()
	})
	add := tool.Func("add", "Adds.", func(context.Context, struct{}) (string, error) { return "5", nil })
	asks := hook.Middleware{Name: "asks", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == "add" {
			return hook.Asking("It adds."), nil
		}
		return hook.Decision{}, nil
	}}
	e, err := loop.New(loop.Config{Tools: []tool.Tool{wait, add}, Model: scripted.New(
		scripted.Turn{When: scripted.When{Contains: "wait"}, Text: "Let me see.", Calls: call("wait")},
		scripted.Turn{When: scripted.When{Contains: "add"}, Calls: call("add")},
		scripted.Text("It went on."),
	)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := serve.New(serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, store), serve.Options{Push: serve.PushFiles(filepath.Join(dir, "push")), PushHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("at http://%s\n", l.Addr())
	t.Error(s.Serve(t.Context(), l))
}

// process is a server that can be killed.
type process struct {
	peer
	cmd *exec.Cmd
}

func startChild(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildOfTheKillTests$", "-test.v")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd}
	t.Cleanup(p.kill)
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if _, url, ok := strings.Cut(sc.Text(), "at http://"); ok {
			p.peer = peer{&place{t: t, http: &httptest.Server{URL: "http://" + url}, client: &http.Client{}, header: http.Header{}}, a2a.V1}
			t.Cleanup(p.client.CloseIdleConnections)
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p
		}
	}
	t.Fatal("the server did not start")
	return nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

func ran(dir string) int {
	b, _ := os.ReadFile(filepath.Join(dir, "runs"))
	return strings.Count(string(b), "ran")
}

func TestATaskOutlivesItsServer(t *testing.T) {
	dir := t.TempDir()
	var notes []a2a.Event
	noted := make(chan a2a.Event, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var e a2a.Event
		if err := a2a.V1.Unmarshal(b, &e); err != nil || r.Header.Get("X-A2A-Notification-Token") != "tok" {
			t.Errorf("%v: %s", err, b)
		}
		noted <- e
	}))
	defer receiver.Close()

	p := startChild(t, dir)
	first := atOnce(user("m1", "Please wait."))
	first.Configuration.Push = &a2a.PushConfig{ID: "mine", URL: receiver.URL, Token: "tok"}
	task := p.send(first)
	question := p.send(user("m2", "Please add."))
	asked := questions(t, question)
	eventually(t, "the tool runs", func() bool { return ran(dir) == 1 })
	eventually(t, "the receiver was told", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "push", "*.json"))
		if len(files) != 1 {
			return false
		}
		b, _ := os.ReadFile(files[0])
		return strings.Contains(string(b), `"told":"`)
	})
	p.kill()

	p = startChild(t, dir)
	now := p.get(task.ID)
	if now.Status.State != a2a.StateInputRequired || !strings.Contains(textOf(now.Status.Message.Parts), "gone") {
		t.Errorf("after a kill it is %+v", now.Status)
	}
	if again := questions(t, p.get(question.ID)); len(again) != 1 || again[0].ID != asked[0].ID {
		t.Errorf("it asks %+v, and asked %+v", again, asked)
	}
	var list a2a.ListTasksResponse
	p.must(a2a.OpList, a2a.ListTasksRequest{Status: a2a.StateInputRequired}, &list)
	if list.TotalSize != 2 {
		t.Errorf("%d tasks wait", list.TotalSize)
	}
	first.Configuration.ReturnImmediately, first.Configuration.Push = false, nil
	done := p.send(first) // as a client does that was cut off
	if done.ID != task.ID || done.Status.State != a2a.StateCompleted || textOf(done.Artifacts[0].Parts) != "It went on." {
		t.Errorf("sent again it is %+v", done)
	}
	if n := ran(dir); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	answered := p.send(to(question.ID, user("m3", "yes")))
	if answered.Status.State != a2a.StateCompleted || answered.ID != question.ID {
		t.Errorf("answered it is %+v", answered.Status)
	}
	for over := false; !over; {
		select {
		case e := <-noted:
			notes = append(notes, e)
			over = e.State() == a2a.StateCompleted
		case <-time.After(20 * time.Second):
			t.Fatalf("it was told %+v", notes)
		}
	}
	for i := 1; i < len(notes); i++ {
		if a, b := notes[i-1].Status, notes[i].Status; a != nil && b != nil && a.Status.State == b.Status.State && a.Status.Timestamp.Equal(b.Status.Timestamp) {
			t.Errorf("it was told twice of %+v", b.Status)
		}
	}
	if notes[0].State() != a2a.StateWorking || notes[len(notes)-2].Artifact == nil || textOf(notes[len(notes)-2].Artifact.Artifact.Parts) != "It went on." {
		b, _ := json.Marshal(notes)
		t.Errorf("it was told %s", b)
	}
	eventually(t, "what is over is forgotten", func() bool {
		files, _ := os.ReadDir(filepath.Join(dir, "push"))
		return len(files) == 0
	})
	if n := len(noted); n > 0 {
		t.Errorf("it was told %d times more", n)
	}
}

// Killed again and again, at any moment, a message that is sent until it is answered begins one task.
func TestAMessageThatIsSentUntilItIsAnswered(t *testing.T) {
	dir := t.TempDir()
	p := startChild(t, dir)
	in := user("m1", "Just say it.")
	line, err := a2a.V1.AppendCall(nil, "1", a2a.OpSend, in)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		req, _ := http.NewRequestWithContext(ctx, "POST", p.http.URL+"/a2a", strings.NewReader(string(line)))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("A2A-Version", "1.0")
		go func() {
			if res, err := p.client.Do(req); err == nil {
				_ = res.Body.Close()
			}
			cancel()
		}()
		time.Sleep(time.Duration(n*n) * time.Millisecond)
		p.kill()
		<-ctx.Done()
		p = startChild(t, dir)
	}
	task := p.send(in)
	if task.Status.State != a2a.StateCompleted {
		t.Errorf("%+v", task.Status)
	}
	var list a2a.ListTasksResponse
	p.must(a2a.OpList, a2a.ListTasksRequest{}, &list)
	if list.TotalSize != 1 || list.Tasks[0].ID != task.ID {
		t.Errorf("%d tasks: %+v", list.TotalSize, list.Tasks)
	}
	if len(p.get(task.ID).History) != 1 {
		t.Errorf("%+v", p.get(task.ID).History)
	}
}

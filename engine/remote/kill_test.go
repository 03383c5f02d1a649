package remote_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/remote"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/a2apeer"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

func TestMain(m *testing.M) {
	if at := os.Getenv("PAWL_TEST_REMOTE"); at != "" {
		if err := child(at, os.Getenv("PAWL_TEST_SAYS")); err != nil {
			fmt.Println("FAILED", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { httpapi.CloseIdle() }))
}

// child is a run in a process that is to be killed. It says what it puts on record, and waits after each entry for a line.
func child(at, says string) error {
	ctx := context.Background()
	store, err := sqlite.Open(filepath.Join(os.Getenv("PAWL_TEST_DIR"), "j.db"))
	if err != nil {
		return err
	}
	c, err := a2a.Dial(ctx, at)
	if err != nil {
		return err
	}
	e, err := remote.New(c)
	if err != nil {
		return err
	}
	host := &heard{tell: func(e event.Event) {
		if e.Data != nil && e.Key.Op != "" {
			fmt.Printf("%s %s\n", e.Key, e.Data.Kind())
		}
	}}
	res, err := agent.Run(ctx, who, e, ask("s", says), agent.WithJournal(store), agent.WithEngineHost(host))
	if err != nil {
		return err
	}
	return fmt.Errorf("it lived: %v %w", res.Status, res.Err)
}

// killed runs child until it says a line, and kills it when ready returns.
func killed(t *testing.T, dir, url, says, line string, ready func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PAWL_TEST_REMOTE="+url, "PAWL_TEST_SAYS="+says, "PAWL_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []string
	for in := bufio.NewScanner(out); in.Scan(); {
		if all = append(all, in.Text()); in.Text() == line {
			break
		}
	}
	ready()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(all) == 0 || all[len(all)-1] != line {
		t.Fatalf("the process never said %q: %q", line, all)
	}
}

// resumed goes on with the run in this process.
func resumed(t *testing.T, dir, url string) *agent.Result {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(dir, "j.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	c, err := a2a.Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	e, err := remote.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var res *agent.Result
	for range 100 { // until the dead one's lease has ended
		if res, err = agent.Resume(t.Context(), who, e, "s", agent.WithJournal(store)); !errors.Is(err, errdefs.Conflict) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestARunThatIsKilledGoesOnWithItsTaskAndSendsNothingAgain(t *testing.T) {
	for _, sdk := range []string{"1", "03"} {
		for _, line := range []string{"send/1 board", "watch/1 model.started"} {
			t.Run("sdk "+sdk+", killed after "+line, func(t *testing.T) {
				url, dir := a2apeer.Start(t, sdk), t.TempDir()
				killed(t, dir, url, "slow", line, func() {})
				res := resumed(t, dir, url)
				if res.Status != agent.StatusCompleted || res.Text() != "Once upon a time" {
					t.Errorf("%v %v: %q", res.Status, res.Err, res.Text())
				}
				c, err := a2a.Dial(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				log, err := c.Send(t.Context(), a2a.SendRequest{Message: a2a.Message{ID: "log", Role: a2a.RoleUser, Parts: []a2a.Part{a2a.Text("log")}}})
				if err != nil {
					t.Fatal(err)
				}
				var ids []string
				if err := json.Unmarshal([]byte(log.Message.Parts[0].Text), &ids); err != nil || len(ids) != 2 || ids[1] != "log" {
					t.Errorf("the agent heard %q: want the message once", ids)
				}
			})
		}
	}
}

func TestARunThatIsKilledBeforeTheAgentAnsweredSendsTheSameMessage(t *testing.T) {
	arrived, hold := make(chan struct{}), make(chan struct{})
	first := true
	a := newAgent(t, a2a.V1, true, nil)
	a.knows, a.begins = true, time.Minute
	a.work = func(ctx context.Context, k *task, turn int, text string) {
		if turn != 1 || !first {
			t.Errorf("the work was done again: turn %d", turn)
		}
		first = false
		close(arrived)
		<-hold // the agent says nothing of its task
		story(ctx, k, turn, text)
	}
	server := httptest.NewUnstartedServer(a)
	a.url = "http://" + server.Listener.Addr().String()
	server.Start()
	defer server.Close()
	dir := t.TempDir()
	killed(t, dir, a.url, "slow", "send/1 model.started", func() { <-arrived })
	close(hold)
	res := resumed(t, dir, a.url)
	if res.Status != agent.StatusCompleted || !strings.Contains(res.Text(), "Once upon a time.") {
		t.Errorf("%v %v: %q", res.Status, res.Err, res.Text())
	}
	_, sent := a.did()
	if len(sent) != 2 || sent[0].ID != sent[1].ID {
		t.Errorf("sent: %s; want the same message twice", compact(sent))
	}
}

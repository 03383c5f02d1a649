//go:build unix

package temporal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
)

// Workers freeze for longer than their heartbeat, and go on: another attempt at what they were at is under way by then.
func TestWorkersFreeze(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	store, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	ledger := filepath.Join(t.TempDir(), "ledger")
	k := devserver.Start(t)
	c := &crew{t: t, env: []string{"PAWL_WORKER=" + k.Address, "PAWL_DSN=" + dsn, "PAWL_LEDGER=" + ledger}}
	for range 2 {
		c.hire()
	}
	t.Cleanup(c.dismiss)
	m, err := laborer("laborer", ledger, 20)
	if err != nil {
		t.Fatal(err)
	}
	var all []*temporal.Handle
	for i := range 8 {
		all = append(all, begin(t, k.Client(t), temporal.Order{Agent: "laborer", Session: fmt.Sprint("s", i), Message: message.User("go")}))
	}
	for i := range 2 {
		time.Sleep(600 * time.Millisecond)
		_ = c.members[i%2].Process.Signal(syscall.SIGSTOP)
		time.Sleep(4500 * time.Millisecond)
		_ = c.members[i%2].Process.Signal(syscall.SIGCONT)
	}
	for _, h := range all {
		if d := wait(t, h); d.Text != "done" {
			t.Errorf("%+v: %v", d, d.Err())
		}
	}
	b, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if times[line]++; times[line] > 1 && strings.HasPrefix(line, "work ") {
			t.Errorf("repeated: %s", line)
		}
	}
	local, lost := transcripts(t, localStore(t, m), "s", "s/c10"), 0
	for _, h := range all {
		for n, got := range transcripts(t, store, h.Session, h.Session+"/c10") {
			lost += alike(t, fmt.Sprintf("session %s, transcript %d", h.Session, n), local[n], got)
		}
	}
	t.Logf("%d calls, %d outcomes unknown", len(times), lost)
}

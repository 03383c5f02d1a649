package crashtest_test

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/pawl-dev/pawl/internal/crashtest"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

func TestAFileThatMayNotGrow(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a file's size is limited on Linux only")
	}
	file := crashtest.FullFile()
	file.Every, file.Turn = 3, 0
	crashtest.Faults(t, file, crashtest.Scenarios()...)
}

// The same as above in another way, so a sample will do.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it mounts disks, and TestAFileThatMayNotGrow is much the same")
	if inOwnMounts(t) {
		return
	}
	crashtest.Shared(t, "PAWL_CRASHTEST_DISK", func() string {
		if err := crashtest.CanMount(t.TempDir()); err != nil { // also where all components are required: not every container may mount
			t.Skipf("a small disk can't be mounted here: %v", err)
		}
		return "mounted"
	})
	disk := crashtest.FullDisk()
	disk.Every, disk.Turn = 8, 1
	crashtest.Faults(t, disk, crashtest.Scenarios()...)
}

// ownMounts says that this process sees its own mounts only.
const ownMounts = "PAWL_CRASHTEST_MOUNTS"

// inOwnMounts runs the test again in a process with a mount namespace of its own. It reports
// whether it could. A sandbox that starts elsewhere fails if a disk that it can see is unmounted
// at that moment.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Getenv(ownMounts) != "" || crashtest.IsChild() || exec.Command(unshare, "--mount", "true").Run() != nil {
		return false
	}
	args := []string{"--mount", os.Args[0], "-test.v", "-test.run=^" + t.Name() + "$", "-test.timeout=15m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), unshare, args...)
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP: "+t.Name())):
		t.Skipf("%s", out)
	default:
		t.Logf("%s", out)
	}
	return true
}

const address = "PAWL_CRASHTEST_DSN" // tells the children

func TestASocketThatIsCut(t *testing.T) {
	t.Parallel()
	dsn := crashtest.Shared(t, address, func() string { return pgtest.DSN(t) })
	cut := crashtest.CutSocket(dsn)
	cut.Every, cut.Turn = 3, 2
	crashtest.Faults(t, cut, crashtest.OnPostgreSQL(dsn, crashtest.Scenarios()...)...)
}

func TestAnAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	dsn := crashtest.Shared(t, address, func() string { return pgtest.DSN(t) })
	lost := crashtest.LostAnswer(dsn)
	lost.Every, lost.Turn = 4, 3 // it says most for its time: the store goes on
	crashtest.Faults(t, lost, crashtest.OnPostgreSQL(dsn, crashtest.Scenarios()...)...)
}

// A server takes its time to come back, so a sample will do.
func TestAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	var server *pgtest.Server
	dsn := crashtest.Shared(t, address, func() string {
		server = pgtest.New(t)
		return server.DSN(t)
	})
	killed := crashtest.KilledServer(server, dsn)
	killed.Every, killed.Turn = 19, 1
	crashtest.Faults(t, killed, crashtest.OnPostgreSQL(dsn, crashtest.Scenarios()...)...)
}

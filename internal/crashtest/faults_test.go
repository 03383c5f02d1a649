package crashtest_test

import (
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

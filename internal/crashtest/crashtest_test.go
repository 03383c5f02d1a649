package crashtest_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/crashtest"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := pgtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestNothingIsRepeatedOrLostWhereverTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	crashtest.Matrix(t, crashtest.Scenarios()...)
}

func TestNothingOfAScriptIsRepeatedOrLostWhereverTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	crashtest.Matrix(t, crashtest.Scripts()...)
}

func TestNothingOfAGraphIsRepeatedOrLostWhereverTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	crashtest.Matrix(t, crashtest.Graphs()...)
}

func TestShellHooksAreNotAskedAgainWhereverTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	crashtest.Matrix(t, crashtest.ShellHooks()...)
}

func TestNothingIsRepeatedOrLostOnPostgreSQL(t *testing.T) {
	t.Parallel()
	dsn := crashtest.Shared(t, address, func() string { return pgtest.DSN(t) })
	crashtest.Matrix(t, crashtest.OnPostgreSQL(dsn, crashtest.Scenarios()...)...)
}

func TestNothingOfAScriptOrAGraphIsRepeatedOrLostOnPostgreSQL(t *testing.T) {
	t.Parallel()
	dsn := crashtest.Shared(t, address, func() string { return pgtest.DSN(t) })
	crashtest.Matrix(t, crashtest.OnPostgreSQL(dsn, slices.Concat(crashtest.Scripts(), crashtest.Graphs())...)...)
}

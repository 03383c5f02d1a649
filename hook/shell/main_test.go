package shell_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/testkit/parallel"
)

func TestMain(m *testing.M) {
	parallel.RaiseLimit()
	goleak.VerifyTestMain(m)
}

var where = hook.Where{Agent: "pawl", Session: "s1", Run: "r1"}

package shell_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/hook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var where = hook.Where{Agent: "pawl", Session: "s1", Run: "r1"}

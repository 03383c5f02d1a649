package crashtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/crashtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNothingIsRepeatedOrLostWhereverTheProcessIsKilled(t *testing.T) {
	crashtest.Matrix(t, crashtest.Scenarios()...)
}

package fence

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if what := os.Getenv("SANDBOX_TEST_ATTACK"); what != "" {
		os.Exit(attack(what))
	}
	goleak.VerifyTestMain(m)
}

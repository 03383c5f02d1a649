package fence

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if what := os.Getenv("SANDBOX_TEST_ATTACK"); what != "" {
		syscall.Exit(attack(what)) // os.Exit would run the race detector's exit hook, which sleeps a second
	}
	goleak.VerifyTestMain(m)
}

package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

// closing closes idle connections between the tests and the search for goroutines: each of them has two.
type closing struct{ *testing.M }

func (c closing) Run() int {
	defer httpapi.CloseIdle()
	return c.M.Run()
}

package gemini

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/httpapi"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	code := m.Run()
	httpapi.CloseIdle()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

//go:build unix

package scripted

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

// Nobody may ever write into it.
func TestAPipeIsNoScript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	for _, path := range []string{path, "/dev/zero"} {
		if _, err := Load(path); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), path+" is no ordinary file") {
			t.Error(err)
		}
	}
}

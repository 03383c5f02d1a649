package pawl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl"

	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// A command in the background may exchange a directory and a link as fast as it can; here this process does.
func TestAFileToolIsNotLedElsewhereByACommandInTheBackground(t *testing.T) {
	dir := world(t, map[string]string{"d/k": "plain", "secret/k": "s3cr3t", "w/x": "", ".git/config": "as it was"})
	if err := errors.Join(os.Symlink("secret", filepath.Join(dir, "e")), os.Symlink(".git", filepath.Join(dir, "v"))); err != nil {
		t.Fatal(err)
	}
	policy := pawl.DefaultSandbox()
	rt := serve(t, dir, says(), func(o *pawl.Options) {
		o.Sandbox, o.Permissions = &policy, permission.Config{Mode: permission.ModeDontAsk, Deny: []string{"Read(./secret/**)"}}
	})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		exchange := func(a, b string) {
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE)
		}
		for {
			select {
			case <-stop:
				return
			default:
				exchange("d", "e")
				exchange("w", "v")
			}
		}
	}()
	defer func() { close(stop); <-done }()
	rounds := 100
	if tier.Quick() {
		rounds = 10
	}
	for i := range rounds {
		text, _ := asks(t, rt, fmt.Sprint("r", i), `read {"file_path":"d/k"}`)
		if strings.Contains(text, "s3cr3t") {
			t.Fatal("a denied file was read by way of a link")
		}
		asks(t, rt, fmt.Sprint("w", i), `write {"file_path":"w/config","content":"changed"}`)
		if b, err := os.ReadFile(filepath.Join(dir, ".git/config")); err != nil || string(b) != "as it was" {
			t.Fatalf("settings were written by way of a link, and nobody was asked: %s %v", b, err)
		}
	}
}

//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// immediate is PostgreSQL's signal for an immediate shutdown.
const immediate = syscall.SIGQUIT

// unprivileged is the user that the server runs as when we are root; nil when we aren't.
func unprivileged() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	c := &syscall.Credential{Uid: 65534, Gid: 65534}
	if nobody, err := user.Lookup("nobody"); err == nil {
		uid, err1 := strconv.ParseUint(nobody.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(nobody.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			c.Uid, c.Gid = uint32(uid), uint32(gid)
		}
	}
	return c
}

// own gives a directory to the user that the server runs as.
func own(dir string) error {
	if c := unprivileged(); c != nil {
		return os.Chown(dir, int(c.Uid), int(c.Gid))
	}
	return nil
}

// detach keeps the terminal's signals away: the watchdog has to outlive us, and the server is stopped in order.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: unprivileged()}
}

// stopped waits until a process that was told to stop has: until then it may still have another child, which would outlive it with its pipes. Where there
// is no /proc, or no such process any more, it does not wait.
func stopped(pid int) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, ok := strings.Cut(string(stat), ") ") // its name, in brackets, has none
		if err != nil || !ok || strings.ContainsAny(state[:1], "TZX") {
			return
		}
	}
}

// killAll kills a process and its children, which it can't replace meanwhile. Where there is no /proc its children end by themselves.
func killAll(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	stopped(pid)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // it may be gone
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

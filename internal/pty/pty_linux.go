package pty

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/component"
)

// A Terminal is what a person sits at.
type Terminal struct {
	Keys  *os.File      // what is written there was typed
	Slave *os.File      // the program's end
	Shown <-chan string // what appears, in pieces; closed when nobody has the program's end open any more
}

// Open makes a terminal of 30 lines of 100 characters. Where there are none the test is skipped, or fails: see [component.Absent]. Who opens it closes Slave, takes what is left of Shown, and closes Keys.
func Open(t testing.TB) Terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		component.Absent(t, "a pseudo terminal", err.Error())
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys, shown := os.NewFile(uintptr(fd), "ptmx"), make(chan string)
	go func() { // it ends when the terminal's last user has
		defer close(shown)
		b := make([]byte, 4096)
		for {
			n, err := keys.Read(b)
			if n > 0 {
				shown <- string(b[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return Terminal{Keys: keys, Slave: slave, Shown: shown}
}

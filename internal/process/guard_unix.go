//go:build unix

package process

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// guardName is argument 0 of a guard.
const guardName = "pawl-guard"

// A process whose argument 0 is guardName becomes a guard and never gets to the program's main. It only signals what its caller could signal as well.
func init() {
	if len(os.Args) == 0 || os.Args[0] != guardName {
		return
	}
	if os.Getuid() == os.Geteuid() && os.Getgid() == os.Getegid() {
		stand(os.Stdin)
	}
	os.Exit(0)
}

// watch is this process' guard: another process, which reads from a pipe what runs here. When the pipe ends, since this process has, however it died, it stops what still runs.
var watch = guardian{token: rand.Text(), groups: map[int]bool{}}

type guardian struct {
	token  string // in the mark of all that is started here
	mu     sync.Mutex
	pipe   *os.File
	groups map[int]bool
}

// Guarded says why commands would outlive this process, if it was killed; nil: they would not.
func Guarded() error {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if watch.tell('=', 0) {
		return nil
	}
	if err := watch.start(); err != nil {
		return errdefs.NotAvailable.Errorf("start the process that stops commands when this one dies: %w", err)
	}
	return nil
}

// add tells the guard of a group. Without a guard the command runs unguarded: Guarded says so.
func (g *guardian) add(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[group] = true
	if !g.tell('+', group) {
		_ = g.start()
	}
}

// drop is for a group whose number may soon be somebody else's.
func (g *guardian) drop(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
	if !g.tell('-', group) && len(g.groups) > 0 { // somebody killed it: the others are not to go without one until the next command
		_ = g.start()
	}
}

// tell reports whether there is a guard to be told. g.mu is held.
func (g *guardian) tell(sign byte, group int) bool {
	if g.pipe == nil {
		return false
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(time.Second)) // one that was stopped holds nobody up
	if _, err := fmt.Fprintf(g.pipe, "%c%d\n", sign, group); err != nil {
		_ = g.pipe.Close()
		g.pipe = nil
	}
	return g.pipe != nil
}

// start has a new guard stand, that knows what runs. g.mu is held.
func (g *guardian) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if err := spawnGuard(r); err != nil {
		_ = w.Close()
		return err
	}
	g.pipe = w
	if _, err := io.WriteString(w, g.token+"\n"); err != nil {
		return err
	}
	for group := range g.groups {
		g.tell('+', group)
	}
	return nil
}

// spawnGuard starts it, out of reach of the terminal's signals. It is not waited for: it outlives us.
func spawnGuard(in *os.File) error {
	self := "/proc/self/exe" // even when the file has another one's name by now
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p, err := os.StartProcess(self, []string{guardName}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: []*os.File{in, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return p.Release()
}

// stand is what a guard does.
func stand(in io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return
	}
	token, groups := lines.Text(), map[int]bool{}
	for lines.Scan() {
		group, err := strconv.Atoi(strings.TrimLeft(lines.Text(), "+-="))
		if err != nil || group <= 1 {
			continue
		}
		switch lines.Text()[0] {
		case '+':
			groups[group] = true
		case '-':
			delete(groups, group)
		}
	}
	var stopping sync.WaitGroup
	for group := range groups {
		k := newKin(group, token)
		stopping.Go(func() { k.stop(func() bool { return true }) })
	}
	stopping.Wait()
	stopMarked(token)
}

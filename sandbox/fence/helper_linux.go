package fence

import (
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/sandbox"
)

// failed is the exit code of a helper that executed nothing.
const failed = 126

// A process whose argument 0 says that it is a helper becomes one, or ends: it never goes on to the program's main. Argument 0 alone makes nobody a helper: the sealed file
// has to be there too, with the same token in it. Who can give both is the parent, which could as well execute anything else.
func init() {
	if len(os.Args) == 0 {
		return
	}
	token, ok := strings.CutPrefix(os.Args[0], helperName)
	if !ok && len(os.Args) > 1 && strings.HasPrefix(os.Args[0], "/proc/self/fd/") { // from bubblewrap, which gives the path first
		token, ok = strings.CutPrefix(os.Args[1], helperName)
		if ok {
			os.Args = os.Args[1:]
		}
	}
	if !ok {
		return
	}
	token, number, _ := strings.Cut(token, ".")
	err := help(token, number, os.Args[1:])
	_, _ = fmt.Fprintf(os.Stderr, "sandbox: %v; the command was not executed\n", err)
	os.Exit(failed)
}

// help becomes the command of this number. It returns only an error, or not at all.
func help(token, number string, args []string) error {
	if privileged() {
		return errors.New("this program has more rights than who called it, so it helps nobody")
	}
	runtime.LockOSThread() // what follows binds this thread, and the process that the thread becomes
	p, err := readPlan(token)
	if err != nil {
		return err
	}
	env := os.Environ()
	if p.Hub {
		port, err := offer(number)
		if err != nil {
			return fmt.Errorf("offer the network's proxy: %w", err)
		}
		env = append(env, proxyEnv(port)...)
	}
	if err := restrict(p); err != nil {
		return err
	}
	if len(args) == 0 {
		syscall.Exit(0) // a rehearsal; os.Exit would run exit hooks, and the race detector's sleeps a second
	}
	if err := syscall.Exec(args[0], args[1:], env); err != nil { //nolint:gosec // it is what a helper is for
		return fmt.Errorf("execute %s: %w", args[0], err)
	}
	return nil
}

// privileged reports whether the program was given rights that its caller doesn't have (set-user-ID, file capabilities): then the caller is no fence of ours.
func privileged() bool {
	const atSecure = 23 // AT_SECURE
	vector, err := unix.Auxv()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(vector, func(v [2]uintptr) bool { return v[0] == atSecure && v[1] != 0 }) || os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid()
}

// readPlan reads the file that the parent gave.
func readPlan(token string) (p plan, err error) {
	got, err := unix.FcntlInt(planFD, unix.F_GET_SEALS, 0)
	if err != nil || got&seals != seals {
		return p, fmt.Errorf("there is no plan: only a fence starts a helper (%w)", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(planFD, &st); err != nil {
		return p, err
	}
	b := make([]byte, st.Size)
	if _, err := io.ReadFull(io.NewSectionReader(preader(planFD), 0, st.Size), b); err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, err
	}
	if p.Token == "" || subtle.ConstantTimeCompare([]byte(p.Token), []byte(token)) != 1 {
		return p, errors.New("the plan is another fence's")
	}
	return p, nil
}

// preader reads a file that other processes read too, at an offset.
type preader int

func (fd preader) ReadAt(b []byte, at int64) (int, error) { return unix.Pread(int(fd), b, at) }

// restrict puts the plan on this thread.
func restrict(p plan) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"close what was inherited", func() error { return unix.CloseRange(3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC) }},
		{"limit resources", func() error { return limit(p.Limits) }},
		{"give up new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"drop capabilities", dropCapabilities},
		{"restrict files with Landlock", func() error { return landlock(p) }},
		{"filter system calls", func() error { return filter(p.Families) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func limit(l sandbox.Limits) error {
	for resource, want := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_CPU: uint64(max(1, l.CPU.Seconds())), unix.RLIMIT_NOFILE: l.Files, unix.RLIMIT_FSIZE: l.FileSize, unix.RLIMIT_NPROC: l.Processes,
	} {
		if resource == unix.RLIMIT_NPROC && want == 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			return err
		}
		want = min(want, now.Max)
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: want, Max: want}); err != nil { // the package that knows what the runtime made of NOFILE
			return err
		}
	}
	return nil
}

// dropCapabilities leaves those that are kept, of those that are there.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	for i := range sets {
		var kept uint32
		for c := range keptCapabilities {
			if c/32 == i {
				kept |= 1 << (c % 32)
			}
		}
		sets[i].Permitted &= kept
		sets[i].Effective &= kept
		sets[i].Inheritable = 0
	}
	return unix.Capset(&header, &sets[0])
}

// landlock keeps writes where the plan has them, and reads away from what it hides.
func landlock(p plan) error {
	for _, path := range p.Write { // without Landlock too: bubblewrap follows a link that a command has put there
		at, err := openPath(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		_ = unix.Close(at)
	}
	if p.ABI == 0 {
		return nil
	}
	rules := ruleset{abi: p.ABI, closedNetwork: !slices.Contains(p.Families, unix.AF_INET)}
	fd, err := rules.create()
	if err != nil {
		return err
	}
	if err := rules.allow(fd, "/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil { // names are no secret
		return err
	}
	for _, path := range p.Read {
		if err := rules.allow(fd, path, readRights); err != nil && !gone(err) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, path := range p.Write {
		if err := rules.allow(fd, path, readRights|writeRights); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, path := range p.Devices {
		if err := rules.allow(fd, path, deviceRights); err != nil && !gone(err) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return rules.restrict(fd)
}

// gone reports whether there is nothing to allow: it isn't there any more, can't be reached, or has become a symbolic link.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR)
}

// offer makes a listener in this network and sends it to the fence's owner, with the command's number and a handle to this process. It gives the port.
func offer(number string) (port int, err error) {
	var own [8]byte
	n, _ := strconv.ParseUint(number, 10, 64) // 0 without one
	binary.NativeEndian.PutUint64(own[:], n)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	tcp := l.(*net.TCPListener)
	f, err := tcp.File()
	if err != nil {
		return 0, err
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Sendmsg(hubFD, own[:], unix.UnixRights(int(f.Fd()), self), nil, 0); err != nil {
		return 0, err
	}
	return tcp.Addr().(*net.TCPAddr).Port, nil
}

package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox"
)

// escapes change something in $OUT when there is no fence.
var escapes = map[string]string{
	"an absolute path":               `echo x >"$OUT/made"`,
	"..":                             `echo x >"../out/made"`,
	"an append":                      `echo x >>"$OUT/file"`,
	"a symbolic link":                `ln -sfn "$OUT" l; echo x >l/made`,
	"a symbolic link to a file":      `ln -sf "$OUT/file" l; echo x >>l`,
	"a hard link":                    `ln -f "$OUT/file" h && echo x >>h`,
	"a rename from outside":          `mv "$OUT/file" .`,
	"a rename to outside":            `echo x >n; mv n "$OUT/made"`,
	"a directory to outside":         `mkdir d; mv -T d "$OUT/made"`,
	"a directory from outside":       `mv "$OUT/dir" stolen`,
	"truncation":                     `truncate -s 0 "$OUT/file"`,
	"removal":                        `rm "$OUT/file"`,
	"removal of a tree":              `rm -rf "$OUT/dir"`,
	"a new directory":                `mkdir "$OUT/made"`,
	"a named pipe":                   `mkfifo "$OUT/made"`,
	"a new symbolic link":            `ln -s x "$OUT/made"`,
	"a read-only descriptor":         `exec 5<"$OUT/file"; echo x >/proc/self/fd/5`,
	"a descriptor of a directory":    `exec 5<"$OUT"; echo x >/proc/self/fd/5/made`,
	"its own working directory":      `cd "$OUT"; echo x >made`,
	"the working directory in /proc": `cd "$OUT"; echo x >/proc/self/cwd/made`,
	"its root in /proc":              `echo x >"/proc/self/root$OUT/made"`,
	"the root of its owner":          `echo x >"/proc/$OWNER/root$OUT/made"`,
	"the directory of its owner":     `echo x >"/proc/$OWNER/cwd/$(realpath --relative-to="$(readlink "/proc/$OWNER/cwd")" "$OUT")/made"`,
	"a file that its owner has open": `echo x >>"/proc/$OWNER/fd/$FD"`,
	"what it inherits":               `for n in 3 4 5 6 7 8 9; do eval "echo x >&$n"; done`,
	"a process that is left running": `setsid sh -c 'echo x >"$OUT/made"; : >done' & until [ -e done ] || [ -e "$OUT/made" ]; do :; done`,
	"a thread of its parent":         `echo x >"/proc/$PPID/root$OUT/made"`,
	"another user's namespace":       `unshare -Urm sh -c 'mount --bind "$OUT" "$IN" && echo x >"$IN/made"'`,
	"a file handle of dd":            `dd if=/dev/zero of="$OUT/file" bs=1 count=1 conv=notrunc`,
	"a copy that keeps":              `cp -f --preserve mine "$OUT/file"`,
}

func TestEveryWayOutThatWorksWithoutAFenceFailsInOne(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	control := newPlace(t)
	free := control.fence(Capabilities{}, sandbox.Policy{Off: true})
	for name, script := range escapes {
		if name == "another user's namespace" && exec.Command("unshare", "-Urm", "true").Run() != nil {
			t.Run(name, func(t *testing.T) { // it still has to fail inside, below
				component.Absent(t, "unshare doesn't work", "install util-linux, and allow unprivileged user namespaces")
			})
			continue
		}
		file, err := os.OpenFile(control.out+"/file", os.O_APPEND|os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		before := control.state(control.out, false)
		control.env = append(control.env, fmt.Sprintf("FD=%d", file.Fd()))
		free.environ = control.env
		out, _ := control.run(free, script, file)
		if cmp.Equal(before, control.state(control.out, false)) {
			t.Errorf("%s: it is no way out at all: %s", name, out)
		}
		_ = file.Close()
		_ = os.RemoveAll(control.out)
		_ = os.RemoveAll(control.in)
		control.lay(control.in+"/mine", "mine")
		control.lay(control.out+"/file", "untouched")
		control.lay(control.out+"/dir/file", "untouched")
	}
	each(t, allStaysAsItIs)
}

// The levels of Landlock between the oldest that will do and this kernel's, as older kernels have them.
func TestOlderLandlockKeepsWritesInsideToo(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if landlockABI() < scopesABI {
		component.Absent(t, "this Landlock is old itself", "run Linux 6.12 or later")
	}
	for abi := oldestABI; abi < scopesABI; abi++ {
		if abi > oldestABI && !tier.All() {
			break // those between forbid more than the oldest, and less than this kernel's
		}
		t.Run(fmt.Sprint(abi), func(t *testing.T) {
			caps := capabilitiesOf(abi, "", errors.New("the test doesn't want it"), Status{Holds: true}, func(string, ...any) Status { return Status{Why: "it is old"} })
			if !caps.Writes.Holds || caps.Signals.Holds {
				t.Errorf("%+v", caps)
			}
			allStaysAsItIs(t, caps)
		})
	}
}

func allStaysAsItIs(t *testing.T, caps Capabilities) {
	p := newPlace(t)
	file, err := os.OpenFile(p.out+"/file", os.O_APPEND|os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	leaked, err := unix.Dup(int(file.Fd())) // every child inherits it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(leaked) }()
	p.env = append(p.env, fmt.Sprintf("FD=%d", file.Fd()))
	f := p.fence(caps, sandbox.Policy{})
	before := p.state(p.out, true)
	for name, script := range escapes {
		out, _ := p.run(f, script, file)
		if diff := cmp.Diff(before, p.state(p.out, true)); diff != "" {
			t.Fatalf("%s got out: %s\n%s", name, out, diff)
		}
		if name == "what it inherits" {
			if _, err := p.run(f, fmt.Sprintf("echo x >&%d", leaked), file); err == nil {
				t.Error("a descriptor that every child inherits is open")
			}
		}
	}
	if out, err := p.run(f, `echo x >made && mkdir -p a/b && mv made a/b/moved && ln a/b/moved a/linked && ln -s a s && mkfifo a/p && rm -r a && : >/dev/null && echo x >"$TMPDIR/y"`); err != nil {
		t.Errorf("the project can't be used: %v %s", err, out)
	}
}

func TestModesAndTimesOutsideStayWhereMetadataHolds(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{})
		before := p.state(p.out, true)
		_, err := p.run(f, `chmod 777 "$OUT/file" "$OUT" && touch -d @0 "$OUT/file"`)
		if kept := cmp.Equal(before, p.state(p.out, true)); kept != caps.Metadata.Holds || (err != nil) != kept {
			t.Errorf("they say that it holds: %v; kept: %v, %v", caps.Metadata, kept, err)
		}
	})
}

// victim is a process that a command should leave alone.
func victim(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// secretInMemory has an address.
var secretInMemory = [8]byte{1, 2, 3, 4, 5, 6, 7, 8}

func TestProcessesOutsideAreOutOfReach(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	asks := []string{"ptrace", "memory of a process", "signal", "pidfd"}
	try := func(p *place, f *Fence, what string) (string, error, bool) {
		v := victim(t)
		f.environ = append(p.env, fmt.Sprintf("VICTIM=%d", v.Process.Pid), fmt.Sprintf("VICTIM_ADDRESS=%d", uintptr(unsafe.Pointer(&secretInMemory))))
		out, err := p.attack(f, what)
		var status unix.WaitStatus
		pid, _ := unix.Wait4(v.Process.Pid, &status, unix.WNOHANG|unix.WUNTRACED, nil)
		return out, err, pid == 0
	}
	p := newPlace(t)
	free := p.fence(Capabilities{}, sandbox.Policy{Off: true})
	for _, what := range asks {
		out, err, _ := try(p, free, what)
		if err != nil && (os.Geteuid() == 0 || strings.HasPrefix(what, "signal")) { // others may be kept from tracing by the system
			t.Errorf("%s is no attack: %s %v", what, out, err)
		}
	}
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{})
		for _, what := range asks {
			out, err, alive := try(p, f, what)
			if !alive || err == nil || !strings.HasPrefix(out, "refused") {
				t.Errorf("%s: %s %v, alive: %v", what, out, err, alive)
			}
		}
		for _, file := range []string{"environ", "mem", "maps", "root/etc/hostname"} {
			if out, err := p.run(f, "head -c 1 /proc/$OWNER/"+file); err == nil {
				t.Errorf("/proc/PID/%s can be read: %q", file, out)
			}
		}
	})
}

// What runs on the machine is no secret, unless processes are apart: docs/fence.md says so.
func TestArgumentsOfProcessesOutsideAreSeenWhereProcessesAreNotApart(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		out, err := p.run(p.fence(caps, sandbox.Policy{}), `tr '\0' ' ' <"/proc/$OWNER/cmdline"`)
		apart := caps.Backend == "bubblewrap" && caps.ABI < scopesABI
		if seen := err == nil && strings.Contains(out, os.Args[0]); seen == apart {
			t.Errorf("%q %v", out, err)
		}
	})
}

func TestNoConnectionLeavesWhenTheNetworkIsNone(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	p := newPlace(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "s") // a socket's name can't be long
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(short) }()
	socket, abstract, datagram := short+"/docker.sock", fmt.Sprintf("@pawl-test-%d", os.Getpid()), short+"/d.sock"
	s, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	a, err := net.Listen("unix", abstract)
	if err != nil {
		t.Fatal(err)
	}
	d, err := net.ListenPacket("unixgram", datagram)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(l.Close(), u.Close(), s.Close(), a.Close(), d.Close()) }()
	vars := []string{"TCP=" + l.Addr().String(), "UDP=" + u.LocalAddr().String(), "UNIX=" + socket, "ABSTRACT=" + abstract, "DATAGRAM=" + datagram}
	p.env = append(p.env, vars...)
	free := p.fence(Capabilities{}, sandbox.Policy{Off: true})
	asks := []string{"tcp", "udp", "unix", "abstract", "datagram", "datagram of a pair"}
	for _, what := range asks {
		if out, err := p.attack(free, what); err != nil {
			t.Errorf("%s is no way out: %s", what, out)
		}
	}
	if err := u.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := u.ReadFrom(make([]byte, 9)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		p.env = append(p.env, vars...)
		f := p.fence(caps, sandbox.Policy{})
		for _, what := range append(asks, "io_uring", "keys", "packet") {
			out, err := p.attack(f, what)
			if what == "udp" { // sent into a network where nobody is
				if err := u.SetReadDeadline(time.Unix(1, 0)); err != nil {
					t.Fatal(err)
				}
				if n, _, err := u.ReadFrom(make([]byte, 9)); err == nil {
					t.Errorf("%d bytes came by UDP", n)
				}
				continue
			}
			if err == nil || !strings.HasPrefix(out, "refused") {
				t.Errorf("%s: %s %v", what, out, err)
			}
		}
		if out, err := p.attack(f, "socketpair"); err != nil {
			t.Errorf("socketpair: %s", out)
		}
		if out, err := p.attack(f, "loopback"); (err == nil) != caps.Loopback.Holds {
			t.Errorf("loopback, which %v: %s", caps.Loopback, out)
		}
		open := p.fence(caps, sandbox.Policy{Network: sandbox.Network{All: true}})
		if out, err := p.attack(open, "tcp"); err != nil {
			t.Errorf("tcp with all: %s", out)
		}
		for _, what := range []string{"unix", "abstract", "datagram", "datagram of a pair"} {
			if out, err := p.attack(open, what); err == nil {
				t.Errorf("%s with all: %s", what, out)
			}
		}
	})
}

func TestDevicesAreOutOfReach(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{})
		out, err := p.run(f, `for d in null zero full random urandom; do head -c 0 /dev/$d || exit 1; done; echo x >/dev/null; head -c 3 /dev/zero | wc -c; echo in | cat /dev/stdin; echo out >/dev/stdout`)
		if err != nil || out != "3\nin\nout" {
			t.Errorf("%q %v", out, err)
		}
		for _, dev := range []string{"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/net/tun", "/dev/loop-control"} {
			if out, err := p.run(f, "{ [ -b "+dev+" ] || [ -c "+dev+" ]; } && { head -c 0 "+dev+" || exec 3<>"+dev+"; }"); err == nil {
				t.Errorf("%s: %s", dev, out)
			}
		}
		for _, what := range []string{"device", "mount", "a handle of a file"} {
			if out, err := p.attack(f, what); err == nil {
				t.Errorf("%s: %s", what, out)
			}
		}
		for _, file := range []string{"/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern"} {
			if out, err := p.run(f, "cat "+file+" >"+file); err == nil {
				t.Errorf("%s: %s", file, out)
			}
		}
	})
}

// The terminal at which a person is asked: a command must not draw on it, nor take what is typed there.
func TestThePersonsTerminalIsOutOfReach(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		component.Absent(t, "there are no terminals: "+err.Error(), "mount devpts at /dev/pts")
	}
	defer func() { _ = master.Close() }()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("{ read x; echo got $x; } </dev/pts/%d; echo drawn >/dev/pts/%[1]d && echo written", n)
	typed := func() {
		if _, err := master.WriteString("typed\n"); err != nil {
			t.Fatal(err)
		}
	}
	typed()
	p := newPlace(t)
	if out, err := p.run(p.fence(Capabilities{}, sandbox.Policy{Off: true}), script); err != nil || out != "got typed\nwritten" {
		t.Fatalf("it is no attack: %q %v", out, err)
	}
	typed()
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{Network: sandbox.Network{All: true}})
		out, err := p.run(f, script)
		if err == nil || strings.Contains(out, "typed") || strings.Contains(out, "written") {
			t.Errorf("a command uses a terminal outside: %s %v", out, err)
		}
		// One of its own it has where it has a /dev of its own.
		if out, err := p.attack(f, "terminal"); (err == nil) != (caps.Backend == "bubblewrap") {
			t.Errorf("a terminal of its own: %s %v", out, err)
		}
	})
}

func TestTheTemporaryDirectoryOfAnotherFenceIsOutside(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		one, two := p.fence(caps, sandbox.Policy{}), p.fence(caps, sandbox.Policy{})
		two.environ = append(p.env, "OTHER="+one.tmp())
		if out, err := p.run(one, `echo x >"$TMPDIR/x"`); err != nil {
			t.Fatal(out, err)
		}
		if out, err := p.run(two, `echo x >"$OTHER/y" || rm "$OTHER/x" || rmdir "$OTHER"`); err == nil {
			t.Errorf("it was changed: %s", out)
		}
		dir := one.temp
		if out, err := p.run(one, `mkdir -p "$TMPDIR/a/b" && touch "$TMPDIR/a/b/c" && ln -s "$OUT" "$TMPDIR/a/b/out" && chmod 500 "$TMPDIR/a/b" "$TMPDIR/a"`); err != nil {
			t.Fatal(out, err)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Error("it is still there")
		}
		if _, err := os.Stat(p.out + "/file"); err != nil {
			t.Error("removing it followed a link", err)
		}
		if _, err := one.Command(t.Context(), "true"); err == nil {
			t.Error("a closed fence makes commands")
		}
	})
}

// A process that outlives its command is still inside.
func TestWhatIsLeftRunningStaysInside(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{})
		script := `setsid sh -c 'until [ -e go ]; do sleep 0.01; done; echo x >"$OUT/made"; echo x >in; : >done' >/dev/null 2>&1 & echo started`
		if out, err := p.run(f, script); err != nil || out != "started" {
			t.Fatal(out, err)
		}
		if caps.ABI < scopesABI {
			return // they end with their command, with the namespace of processes
		}
		p.lay(p.in+"/go", "")
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(p.in + "/done"); err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it doesn't live")
			}
		}
		if _, err := os.Stat(p.out + "/made"); err == nil {
			t.Error("it got out")
		}
	})
}

func TestAPreloadedLibraryIsNotLoaded(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	cc := component.Command(t, "cc", "install a C compiler")
	p := newPlace(t)
	p.lay(p.in+"/evil.c", `#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
__attribute__((constructor)) static void go(void) { char b[4096]; snprintf(b, sizeof b, "%s/made", getenv("OUT")); creat(b, 0600); }`)
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", p.in+"/evil.so", p.in+"/evil.c").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	p.env = append(p.env, "LD_PRELOAD="+p.in+"/evil.so")
	made := p.out + "/made"
	if out, err := p.run(p.fence(Capabilities{}, sandbox.Policy{Off: true}), "true"); err != nil {
		t.Fatal(out, err)
	}
	if err := os.Remove(made); err != nil {
		t.Fatal("it is no attack: ", err)
	}
	each(t, func(t *testing.T, caps Capabilities) {
		f := p.fence(caps, sandbox.Policy{})
		if out, err := p.run(f, "env"); err != nil || strings.Contains(out, "LD_PRELOAD") {
			t.Error(out, err)
		}
		if _, err := p.run(f, "LD_PRELOAD=$IN/evil.so sh -c true"); err != nil { // inside it may
			t.Error(err)
		}
		if _, err := os.Stat(made); err == nil {
			t.Error("it was loaded outside")
		}
	})
	if _, err := open(sandbox.Policy{Root: p.in, Env: []string{"LD_PRELOAD"}}, nil, Probe()); err == nil {
		t.Error("a policy may name it")
	}
}

func TestLimitsAndPrivilegesAreSet(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{Limits: sandbox.Limits{CPU: time.Minute, Files: 64, FileSize: 1 << 20}})
		out, err := p.run(f, `ulimit -c; ulimit -t; ulimit -n; ulimit -H -n; grep NoNewPrivs /proc/self/status; head -c 2000000 /dev/zero >big; wc -c <big`)
		if want := "0\n60\n64\n64\nNoNewPrivs:\t1\n1048576"; err != nil || strings.ReplaceAll(out, "File size limit exceeded\n", "") != want {
			t.Errorf("%q %v", out, err)
		}
		out, err = p.run(f, `grep -E 'Cap(Eff|Prm|Inh|Amb)' /proc/self/status`)
		for line := range strings.Lines(out) {
			var name string
			var bits uint64
			if _, err := fmt.Sscanf(line, "%s %x", &name, &bits); err != nil {
				t.Fatal(line, err)
			}
			for c := range keptCapabilities {
				bits &^= 1 << c
			}
			if bits != 0 {
				t.Errorf("capabilities are left: %s", line)
			}
		}
		if err != nil || strings.Count(out, "\n") != 3 {
			t.Error(out, err)
		}
	})
}

func TestAHelperIsNobodyWithoutItsPlan(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	p := newPlace(t)
	f := p.fence(Probe(), sandbox.Policy{})
	other := p.fence(Probe(), sandbox.Policy{})
	run := func(argv0 string, files ...*os.File) (string, int) {
		var out bytes.Buffer
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{argv0, "/bin/echo", "echo", "executed"}, ExtraFiles: files, Stdout: &out, Stderr: &out}
		cmd.Env = []string{"SANDBOX_TEST_ATTACK=socketpair"} // what the program does otherwise
		_ = cmd.Run()
		return out.String(), cmd.ProcessState.ExitCode()
	}
	file, err := os.Create(p.in + "/plan")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := fmt.Fprintf(file, `{"Token":%q}`, f.sys.token); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		argv0 string
		files []*os.File
	}{
		"no file":        {helperName + f.sys.token, nil},
		"no sealed file": {helperName + f.sys.token, []*os.File{file}},
		"another plan":   {helperName + f.sys.token, []*os.File{other.sys.plan}},
		"no token":       {helperName, []*os.File{f.sys.plan}},
	} {
		if out, code := run(c.argv0, c.files...); code != failed || !strings.Contains(out, "the command was not executed") {
			t.Errorf("%s: %d %q", name, code, out)
		}
	}
	if out, code := run(helperName+f.sys.token, f.sys.plan); code != 0 && Probe().Backend == "landlock" || strings.Contains(out, "through") {
		t.Errorf("%d %q", code, out)
	}
	if out, code := run("program", f.sys.plan); code != 0 || out != "through\n" {
		t.Errorf("a program with the file and another name is itself: %d %q", code, out)
	}
}

func TestADirectoryThatBecomesALinkIsNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		for _, target := range []string{"../out", ""} {
			p := newPlace(t)
			p.lay(p.in+"/a/sub/f", "")
			p.lay(p.in+"/out/f", "")
			if target == "" {
				target = p.in + "/out"
			}
			f := p.fence(caps, sandbox.Policy{Root: p.in + "/a/sub"})
			if err := errors.Join(os.Rename(p.in+"/a/sub", p.in+"/a/old"), os.Symlink(target, p.in+"/a/sub")); err != nil {
				t.Fatal(err)
			}
			before := p.state(p.in+"/out", false)
			out, err := p.run(f, `echo x >out/made; echo x >a/sub/made`)
			if err == nil || !cmp.Equal(before, p.state(p.in+"/out", false)) {
				t.Errorf("%s: %s %v", target, out, err)
			}
			if _, err := open(sandbox.Policy{Root: p.in + "/a/sub"}, nil, caps); err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Error(err)
			}
		}
	})
}

// A program that gives its caller rights must not give them to whatever the caller wants executed.
func TestAProgramWithMoreRightsThanItsCallerHelpsNobody(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	uid, gid, mode := 65534, 65534, os.ModeSetuid
	if os.Geteuid() != 0 { // who isn't root can't make a program that runs as somebody else, but one that runs for another group that he is in
		groups, err := os.Getgroups()
		if err != nil {
			t.Fatal(err)
		}
		groups = slices.DeleteFunc(groups, func(g int) bool { return g == os.Getgid() })
		if len(groups) == 0 {
			t.Skip("this user is not root and in one group only, so nothing that he makes can have more rights than he has: no package changes that")
		}
		uid, gid, mode = -1, groups[0], os.ModeSetgid
	}
	p := newPlace(t)
	f := p.fence(Probe(), sandbox.Policy{})
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := p.out + "/program"
	run := func() string {
		var out bytes.Buffer
		cmd := &exec.Cmd{Path: path, Args: []string{helperName + f.sys.token, "/bin/sh", "sh", "-c", "echo executed"}, ExtraFiles: []*os.File{f.sys.plan}, Stdout: &out, Stderr: &out}
		_ = cmd.Run()
		return out.String()
	}
	if err := errors.Join(os.WriteFile(path, program, 0o600), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	if out := run(); strings.Contains(out, "more rights") {
		t.Fatal(out)
	}
	if err := errors.Join(os.Chown(path, uid, gid), os.Chmod(path, 0o755|mode)); err != nil {
		t.Fatal(err)
	}
	if out := run(); !strings.Contains(out, "more rights") || strings.Contains(out, "\nexecuted") {
		t.Errorf("%q", out)
	}
}

package fence

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/sandbox"
)

// attack is what this test binary does inside a fence, where a shell doesn't know how. Its exit code says whether it got through.
func attack(what string) int {
	runtime.LockOSThread() // a tracer is a thread
	err := attacks[what]()
	if err != nil {
		fmt.Println("refused:", err)
		return 1
	}
	fmt.Println("through")
	return 0
}

var attacks = map[string]func() error{
	"ptrace": func() error {
		victim := number("VICTIM")
		if err := unix.PtraceAttach(victim); err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(victim, &status, 0, nil); err != nil {
			return err
		}
		return unix.PtraceDetach(victim)
	},
	"memory of a process": func() error {
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		at, err := strconv.ParseUint(os.Getenv("VICTIM_ADDRESS"), 10, 64)
		if err != nil {
			return err
		}
		_, err = unix.ProcessVMReadv(number("OWNER"), local, []unix.RemoteIovec{{Base: uintptr(at), Len: 8}}, 0)
		return err
	},
	"shut": func() error { // a directory that the user's own commands can open again
		dir := os.Getenv("SHUT")
		for _, name := range []string{"/sub/deep", "/lone", "/edits", "/.git"} {
			if err := os.MkdirAll(dir+name, 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(dir+name+"/.env", nil, 0o600); err != nil {
				return err
			}
		}
		for _, name := range []string{"/sub", "/lone", "/edits", "/.git"} {
			if err := os.Chmod(dir+name, 0); err != nil {
				return err
			}
		}
		hits, err := found(sandbox.Policy{Root: dir, HidePatterns: []string{dir + "/sub/**/.env", dir + "/lone/.env"}, ProtectPatterns: []string{dir + "/edits/*"}})
		for _, h := range hits {
			fmt.Println(strings.TrimPrefix(h.path, dir), h.seen)
		}
		for _, path := range Settings(dir) {
			fmt.Println("kept", strings.TrimPrefix(path, dir))
		}
		return err
	},
	"signal":   func() error { return unix.Kill(number("VICTIM"), unix.SIGKILL) },
	"pidfd":    pidfd,
	"tcp":      func() error { return talk("tcp", os.Getenv("TCP")) },
	"udp":      func() error { return talk("udp", os.Getenv("UDP")) },
	"unix":     func() error { return talk("unix", os.Getenv("UNIX")) },
	"abstract": func() error { return talk("unix", os.Getenv("ABSTRACT")) },
	"datagram": func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("ping"), 0, &unix.SockaddrUnix{Name: os.Getenv("DATAGRAM")})
	},
	"datagram of a pair": func() error { // a socket of a pair needs no call of socket, and can be sent anywhere from
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(pair[0], []byte("ping"), 0, &unix.SockaddrUnix{Name: os.Getenv("DATAGRAM")})
	},
	"packet": func() error {
		_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		return err
	},
	"io_uring": func() error {
		var params [120]byte
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	},
	"keys": func() error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		return err
	},
	"mount": func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		return unix.Mount(os.Getenv("OUT"), os.Getenv("IN"), "", unix.MS_BIND, "")
	},
	"a handle of a file": func() error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, os.Getenv("OUT")+"/file", 0)
		if err != nil {
			return err
		}
		at, err := unix.Open(os.Getenv("OUT"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		_, err = unix.OpenByHandleAt(at, handle, unix.O_WRONLY)
		return err
	},
	"device": func() error { return unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))) },
	"socketpair": func() error { // no attack: it has to work
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			_, err = unix.Write(pair[0], []byte("ping"))
		}
		return err
	},
	"terminal": func() error { // no attack either
		master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
		if err == nil {
			err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
		}
		if err != nil {
			return err
		}
		_, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
		return err
	},
	"proxy": func() error { // the way that Hosts leave
		u, err := url.Parse(os.Getenv("HTTP_PROXY"))
		if err != nil || u.Host == "" {
			return fmt.Errorf("no proxy: %w", err)
		}
		resp, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u)}}).Get("http://" + os.Getenv("TCP"))
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %s: %w", resp.Status, b, err)
		}
		return nil
	},
	"loopback": func() error { // no attack either
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return talk("tcp", l.Addr().String())
	},
}

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

func pidfd() error {
	fd, err := unix.PidfdOpen(number("VICTIM"), 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

func talk(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 10*time.Second)
	if err != nil {
		return err
	}
	_, err = c.Write([]byte("ping"))
	return err
}

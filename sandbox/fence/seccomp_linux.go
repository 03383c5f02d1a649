package fence

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterArch is what the kernel calls this architecture, 0 where there is no filter.
var filterArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// x32 marks system calls of another interface on amd64, with other numbers.
const x32 = 0x40000000

// without are system calls that fail. Those of io_uring would go around the filter; keys are the user's; the rest has been the way into many kernels.
var without = map[uint32]unix.Errno{
	unix.SYS_IO_URING_SETUP: unix.ENOSYS, unix.SYS_IO_URING_ENTER: unix.ENOSYS, unix.SYS_IO_URING_REGISTER: unix.ENOSYS,
	unix.SYS_KEYCTL: unix.EPERM, unix.SYS_ADD_KEY: unix.EPERM, unix.SYS_REQUEST_KEY: unix.EPERM,
	unix.SYS_BPF: unix.EPERM, unix.SYS_PERF_EVENT_OPEN: unix.EPERM, unix.SYS_USERFAULTFD: unix.EPERM,
}

// Offsets in the kernel's struct seccomp_data.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16 // its lower half: both architectures are little-endian
	atArg1   = 24
)

// program is the filter: sockets of these families only, none of the calls above. A Unix socket would reach what listens outside; pairs of them don't, but for those of datagrams, which can be sent anywhere.
func program(families []uint16) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	ifEqual := func(k uint32, skipOthers uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skipOthers}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	refuse := func(e unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(e)) } //nolint:gosec // two bytes

	out := []unix.SockFilter{
		load(atArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: filterArch, Jt: 1}, refuse(unix.ENOSYS), // programs for 32 bits have other numbers
		load(atNumber),
	}
	if filterArch == unix.AUDIT_ARCH_X86_64 {
		out = append(out, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32, Jf: 1}, refuse(unix.ENOSYS))
	}
	for number, errno := range without {
		out = append(out, ifEqual(number, 1), refuse(errno))
	}
	const kind = 0xf // of a socket's type, without its flags
	ifSo := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: skip}
	}
	out = append(out, ifEqual(unix.SYS_SOCKETPAIR, 6), load(atArg1), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		ifSo(unix.SOCK_STREAM, 2), ifSo(unix.SOCK_SEQPACKET, 1), refuse(unix.EACCES), ret(unix.SECCOMP_RET_ALLOW))
	out = append(out, ifEqual(unix.SYS_SOCKET, uint8(2+2*len(families))), load(atArg0)) //nolint:gosec // a handful
	for _, family := range families {
		out = append(out, ifEqual(uint32(family), 1), ret(unix.SECCOMP_RET_ALLOW))
	}
	return append(out, refuse(unix.EACCES), ret(unix.SECCOMP_RET_ALLOW))
}

// filter puts the filter on this thread.
func filter(families []uint16) error {
	code := program(families)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}                                               //nolint:gosec // a few dozen
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel reads it
	runtime.KeepAlive(code)
	if errno != 0 {
		return errno
	}
	return nil
}

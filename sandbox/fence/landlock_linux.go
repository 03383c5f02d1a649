package fence

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scopesABI is the level of Landlock that knows signals and abstract sockets.
const scopesABI = 6

// The rights that matter here, by what they are given for.
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	ruleBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH
)

// landlockABI is the kernel's level, 0 for none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// ruleset restricts everything that a level of Landlock knows and that we do.
type ruleset struct {
	abi           int
	closedNetwork bool
}

// handled are all rights to files of the level: what is handled and not allowed is denied.
func (r ruleset) handled() uint64 {
	all := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1) // level 1
	for level, right := range map[int]uint64{2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV} {
		if r.abi >= level {
			all |= right
		}
	}
	return all
}

// rulesetAttr is struct landlock_ruleset_attr, as far as level 6 has it. The one of package unix grows, and its names change.
type rulesetAttr struct{ files, network, scoped uint64 }

func (r ruleset) create() (fd int, err error) {
	attr := rulesetAttr{files: r.handled()}
	size := unsafe.Sizeof(attr.files) // older kernels know the beginning of it
	if r.abi >= 4 {
		size = unsafe.Offsetof(attr.scoped)
		if r.closedNetwork {
			attr.network = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if r.abi >= scopesABI {
		size = unsafe.Sizeof(attr)
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return 0, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return int(n), nil
}

// allow gives rights to what is at a path, which has no symbolic link in it, and to all below.
func (r ruleset) allow(fd int, path string, rights uint64) error {
	at, err := openPath(path)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	// The kernel's struct is packed: 8 bytes of rights, 4 of a file descriptor.
	var rule [12]byte
	*(*uint64)(unsafe.Pointer(&rule[0])) = rights & r.handled()                                                                 //nolint:gosec // as the kernel wants it
	*(*int32)(unsafe.Pointer(&rule[8])) = int32(at)                                                                             //nolint:gosec // as the kernel wants it
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(fd), ruleBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}

// openPath gives a handle to what is at a path that has no symbolic link in it.
func openPath(path string) (int, error) {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	return at, os.NewSyscallError("openat2", err)
}

func (r ruleset) restrict(fd int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

package fence

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// hub takes the listeners that helpers make in their networks, and serves them with the proxy, which is in ours: a listener belongs to where it was made, and accepts
// anywhere. One is closed when the command has ended for which it was made.
type hub struct {
	proxy      *proxy
	give, take *os.File
	work       sync.WaitGroup

	mu   sync.Mutex // guards what follows
	over bool
	held map[*os.File]struct{} // handles to processes
	last uint64                // number of a command
	told map[uint64]*Refused   // where to note what commands are refused, by their numbers
}

// number is a command's, by which it is known who is refused something; 0 is nobody's.
func (h *hub) number(r *Refused) uint64 {
	if r == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.told[h.last] = r
	return h.last
}

func (h *hub) refused(number uint64) *Refused {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.told[number]
	delete(h.told, number)
	return r
}

func newHub(d *Dialer) (*hub, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(pair[1], true); err != nil { // so that a read of it can be ended
		return nil, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	h := &hub{
		proxy: newProxy(d), give: os.NewFile(uintptr(pair[0]), "hub"), take: os.NewFile(uintptr(pair[1]), "hub"), held: map[*os.File]struct{}{}, told: map[uint64]*Refused{},
	}
	h.work.Go(func() {
		for h.receive() == nil {
		}
	})
	return h, nil
}

// receive takes one listener with the handle to its process.
func (h *hub) receive() error {
	raw, err := h.take.SyscallConn()
	if err != nil {
		return err
	}
	buf, oob := make([]byte, 8), make([]byte, unix.CmsgSpace(2*4))
	var n, oobn int
	var got error
	if err := raw.Read(func(fd uintptr) bool {
		n, oobn, _, _, got = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(got, unix.EAGAIN)
	}); err != nil || got != nil || n == 0 {
		return errors.Join(err, got, net.ErrClosed)
	}
	var fds []int
	messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range messages {
		rights, _ := unix.ParseUnixRights(&messages[i])
		fds = append(fds, rights...)
	}
	if len(fds) != 2 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil
	}
	_ = unix.SetNonblock(fds[1], true)
	listener, process := os.NewFile(uintptr(fds[0]), "listener"), os.NewFile(uintptr(fds[1]), "process")
	l, err := net.FileListener(listener)
	_ = listener.Close()
	if err != nil {
		_ = process.Close()
		return nil
	}
	h.proxy.listen(l, h.refused(binary.NativeEndian.Uint64(buf)))
	h.closeAfter(l, process)
	return nil
}

// closeAfter closes a listener when a process has ended, or the hub is closed.
func (h *hub) closeAfter(l net.Listener, process *os.File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		_ = process.Close()
		return
	}
	h.held[process] = struct{}{}
	h.work.Go(func() {
		if raw, err := process.SyscallConn(); err == nil {
			_ = raw.Read(func(fd uintptr) bool { // a handle can be read from when the process is over
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
				return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
			})
		}
		_ = l.Close()
		h.mu.Lock()
		delete(h.held, process)
		h.mu.Unlock()
		_ = process.Close()
	})
}

func (h *hub) close() error {
	h.mu.Lock()
	h.over = true
	for process := range h.held {
		_ = process.Close()
	}
	h.mu.Unlock()
	err := errors.Join(h.take.Close(), h.give.Close(), h.proxy.close())
	h.work.Wait()
	return err
}

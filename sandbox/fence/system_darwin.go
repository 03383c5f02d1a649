package fence

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

const sandboxExec = "/usr/bin/sandbox-exec"

var probe = sync.OnceValue(func() Capabilities {
	cmd := exec.Command(sandboxExec, "-p", "(version 1)(allow default)", "/usr/bin/true")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		no := Status{Why: fmt.Sprintf("%s does not work: %v %s", sandboxExec, err, bytes.TrimSpace(said.Bytes()))}
		return Capabilities{Backend: "none", Writes: no, Metadata: no, Inside: no, Network: no, Loopback: no, Hosts: no, Signals: no, Limits: no}
	}
	yes := Status{Holds: true}
	return Capabilities{
		Backend: "seatbelt", Writes: yes, Metadata: yes, Inside: yes, Network: yes, Hosts: yes, Signals: yes, Limits: yes,
		Loopback: Status{Why: "macOS has no networks apart: what listens would be on the machine's own loopback"},
	}
})

// system is what a fence holds on macOS.
type system struct {
	proxy *proxy
	port  int
}

func (s *system) close() error {
	if s.proxy == nil {
		return nil
	}
	return s.proxy.close()
}

func (f *Fence) enforce() error {
	p, s := f.policy, &f.sys
	if !p.Network.All && len(p.Network.Hosts) > 0 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("start the proxy: %w", err)
		}
		s.proxy, s.port = newProxy(Dial(p)), l.Addr().(*net.TCPAddr).Port
		s.proxy.listen(l, nil)
		f.env = append(f.env, proxyEnv(s.port)...)
	}
	seen, err := f.look()
	if err != nil {
		return err
	}
	cmd, err := f.wrap("/usr/bin/true", []string{"true"}, seen, nil)
	if err != nil {
		return err
	}
	return rehearse(cmd)
}

// wrap makes the command that becomes args. The shell sets the limits; argument 0 is the path.
func (f *Fence) wrap(path string, args []string, v view, _ *Refused) (*exec.Cmd, error) {
	own := append([]string{"sandbox-exec", "-p", seatbelt(f.policy, v, f.writes(), f.sys.port), "/bin/sh", "-c", limitsScript(f.policy.Limits), "sh", path}, args[1:]...)
	return &exec.Cmd{Path: sandboxExec, Args: own, ExtraFiles: []*os.File{}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}, nil
}

package process

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitExit waits for a child to end without reaping it: until then nobody else gets its pid, and killing its group is safe.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// tie has the command die with us, however we die. What it started itself is not tied.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// kin are the processes that a command started: those in its group, those that carry its mark in their environment, whoever
// descends from one of these, and whoever was seen to be one before, as parents die and environments change.
type kin struct {
	group int // the command's pid, or 0 for none; the command itself is not one of its kin
	mark  string
	known map[int]string // by pid, when they were started
}

func newKin(group int, mark string) *kin { return &kin{group, mark, map[int]string{}} }

// live reports whether any of them lives.
func (k *kin) live() bool {
	found := k.find()
	release(found)
	return len(found) > 0
}

// signal signals the group, the command included, and everybody else. They are looked for first, as they scatter when the command dies.
func (k *kin) signal(sig syscall.Signal) {
	found := k.find()
	if k.group != 0 {
		_ = syscall.Kill(-k.group, sig)
	}
	for _, p := range found {
		_ = p.Signal(sig)
	}
	release(found)
}

// stopMarked stops every process that carries the mark.
func stopMarked(mark string) { newKin(0, mark).stop(func() bool { return true }) }

func release(ps []*os.Process) {
	for _, p := range ps {
		_ = p.Release()
	}
}

// find gives handles, not numbers: a number may be somebody else's by the time it is used. Without /proc there are none.
func (k *kin) find() (members []*os.Process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	procs, member := map[int]proc{}, map[int]bool{}
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil || id == k.group || id == os.Getpid() {
			continue
		}
		if p, alive := look(id); alive {
			procs[id] = p
			member[id] = k.known[id] == p.started || k.group != 0 && (p.group == k.group || p.parent == k.group) || marked(id, k.mark)
		}
	}
	for grown := true; grown; {
		grown = false
		for id, p := range procs {
			if !member[id] && member[p.parent] {
				member[id], grown = true, true
			}
		}
	}
	for id, yes := range member {
		if !yes {
			continue
		}
		p, err := os.FindProcess(id)
		if err != nil {
			continue
		}
		if now, alive := look(id); alive && now.started == procs[id].started { // the handle is to the one that we looked at
			members = append(members, p)
			k.known[id] = now.started
		} else {
			_ = p.Release()
		}
	}
	return members
}

type proc struct {
	parent, group int
	started       string
}

// look reads /proc/ID/stat. A process that has ended and waits to be reaped is not alive.
func look(id int) (p proc, alive bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return p, false
	}
	return parseStat(b)
}

// parseStat reads what a process says of itself, whose name may be any bytes.
func parseStat(b []byte) (p proc, alive bool) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name before may have spaces and parentheses
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return p, false
	}
	p.parent, _ = strconv.Atoi(string(f[1]))
	p.group, _ = strconv.Atoi(string(f[2]))
	p.started = string(f[19])
	return p, true
}

func marked(id int, mark string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if bytes.HasPrefix(v, []byte(Mark+"=")) && bytes.Contains(v, []byte(mark)) {
			return true
		}
	}
	return false
}

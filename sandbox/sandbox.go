// Package sandbox runs commands inside a fence: what they may write, which hosts they may reach, what they see of the environment and of places with secrets, and how
// much they may use. It says what it can enforce here ([Probe]), and what it can't enforce it refuses: an error with class errdefs.NotAvailable that names the reason
// and the remedy, before anything runs.
//
// A [Policy] is data. [Open] makes a [Fence] of it, which makes commands:
//
//	fence, err := sandbox.Open(sandbox.Policy{Root: dir}, nil)
//	defer fence.Close()
//	cmd, err := fence.Command(ctx, "go", "test", "./...") // an *exec.Cmd
//
// # What holds
//
//   - Writes go to Root, to Write, to the tool caches and to a private temporary directory (TMPDIR), and nowhere else. What they create is no device.
//   - Reads go everywhere but to [Secrets], Hide and HidePatterns; of /dev there are null, zero, full, random, urandom, tty and fd, and with bubblewrap terminals (ptmx, pts) of the command's own.
//     With Landlock alone there are none, since they would be the user's: programs that need one (script, tmux, expect) fail.
//   - The environment has the variables of a list (see [Environ]) and those that Env names.
//   - Network none: no connection leaves. Hosts: connections go through a proxy of ours, which asks [Dial]'s rules.
//   - No Unix socket is opened, so no docker, ssh-agent or D-Bus. Pairs of sockets work.
//   - No new privileges (sudo does nothing), no tracing of or signals to processes outside, no open files but the three standard ones, limits on resources.
//   - Every process of a command is inside, for as long as it lives.
//
// # How
//
// On Linux the program runs itself again: this package's init recognises its own call by an argument 0 and a sealed, in-memory file that only a parent can give it, puts
// Landlock, a seccomp filter and limits on itself, and executes the command. So any program that imports the package, a test too, needs no second binary, and nothing in
// the environment has an effect on it. Other packages' init functions may run before; they should not have side effects. Where bubblewrap is
// installed and works, the helper runs in its namespaces: everything else is mounted read-only, and the network is a private loopback. Capabilities has what that adds.
//
// bubblewrap's program is looked for in the system's own directories, then on PATH. One of PATH is not taken when it lies in the current directory or in a repository, and a policy that lets commands write it, or a
// directory that it lies in, is refused: it runs outside of the fence.
//
// To know, on Linux: processes outside, and their command lines, can be seen in /proc (not their environments, memory and files), unless there is bubblewrap and a kernel before 6.12, where what a command leaves
// running ends with it instead. A command can't signal what another command left running, nor reach its ports, as each command is in a fence of its own. Entries of a directory with
// secrets in it (the home directory, and what it lies in) that are made after Open can't be read. Names can be listed everywhere; it is contents that are hidden. With
// bubblewrap, a command that a signal killed has exit code 128 and the signal's number.
//
// What is hidden is looked for when a command starts. What comes to be while it runs it can read, and so can a command that still runs when somebody outside puts another file in the place of a hidden
// one. A file has a name for each hard link: only those that match are hidden. All of that is so for what ProtectPatterns name, too.
//
// # Caches
//
// Tools keep their caches (Go, npm, yarn, cargo, pip, uv, Gradle, XDG) in a directory for the Root, outside of it, so that builds work. Go takes modules from the user's
// module cache first, without writing there. Settings of the user that may have tokens in them (.npmrc, .netrc) are not seen: name what is needed in Read or Env.
//
// # Elsewhere
//
// On macOS it is Seatbelt, by sandbox-exec. That part was never run on a Mac by its authors: its profile is compared with a text. Elsewhere there is no fence.
package sandbox

import (
	"context"
	"time"
)

// Policy is what a command may do. It is data and crosses processes as JSON. The zero Policy is the strictest: nothing of the project may be written, no network.
type Policy struct {
	Root    string   `json:"root,omitempty"`    // the project: may be written. Absolute and without symbolic links (see Resolve), as are all paths here
	Write   []string `json:"write,omitempty"`   // further directories, or files, that may be written
	Protect []string `json:"protect,omitempty"` // what stays read-only inside of those, and is there: [Settings] lists what usually should. Not with Landlock alone
	Hide    []string `json:"hide,omitempty"`    // what can't be read, besides [Secrets]
	Read    []string `json:"read,omitempty"`    // what can be read although it is in [Secrets] or Hide
	// HidePatterns can't be read either, nor what lies below what matches them: absolute paths in which ** is any number of directories and *, ?, [a-z] and {a,b} are as in a shell; a \ takes a
	// character as it is (see [HidePattern]). What matches need not be there yet: it is looked for when a command starts. Read lifts none of it.
	HidePatterns []string `json:"hide_patterns,omitempty"`
	// ProtectPatterns stay read-only, with what lies below what matches them: patterns as those of HidePatterns, for what is there when a command starts and is written otherwise. Where Protect holds
	ProtectPatterns []string `json:"protect_patterns,omitempty"`
	Network         Network  `json:"network,omitzero"`
	Env             []string `json:"env,omitempty"` // variables that pass besides those of the list: NAME with the caller's value, or NAME=value
	Limits          Limits   `json:"limits,omitzero"`
	Cache           string   `json:"cache,omitempty"` // where caches of tools go; by default a directory for this Root in the user's cache directory, which stays; for a Root among the temporary files one that goes with the fence
	Off             bool     `json:"off,omitempty"`   // no fence at all: the environment whole, nothing limited
}

// Network says who may be reached. The zero Network: nobody.
type Network struct {
	All   bool     `json:"all,omitempty"`
	Hosts []string `json:"hosts,omitempty"` // "example.com", "*.example.com" (what is below it, not itself), an address; see [Dial] for what an address changes
}

// None reports whether nobody may be reached.
func (n Network) None() bool { return !n.All && len(n.Hosts) == 0 }

// Limits are what one process may use. 0 takes the default.
type Limits struct {
	CPU       time.Duration `json:"cpu,omitempty"`       // of processor time; default 1 h
	Files     uint64        `json:"files,omitempty"`     // open at once; default 65,536, or the system's limit if that is less
	FileSize  uint64        `json:"file_size,omitempty"` // bytes of one file; default 16 GiB
	Processes uint64        `json:"processes,omitempty"` // of the user, everywhere; default no limit, as those of the user's other programs count. Not for root
}

// The defaults of [Limits].
const (
	DefaultCPU      = time.Hour
	DefaultFiles    = 1 << 16
	DefaultFileSize = 16 << 30
)

func (l Limits) orDefault() Limits {
	if l.CPU == 0 {
		l.CPU = DefaultCPU
	}
	if l.Files == 0 {
		l.Files = DefaultFiles
	}
	if l.FileSize == 0 {
		l.FileSize = DefaultFileSize
	}
	return l
}

type key struct{}

// With puts the policy into the context that binds everything below. It narrows what is there, it never widens it.
func With(ctx context.Context, p Policy) context.Context {
	if outer, ok := From(ctx); ok {
		p = p.Within(outer)
	}
	return context.WithValue(ctx, key{}, p)
}

// From gives the policy of the context; ok is false when it has none.
func From(ctx context.Context) (p Policy, ok bool) {
	p, ok = ctx.Value(key{}).(Policy)
	return p, ok
}

// Status is whether something can be enforced here.
type Status struct {
	Holds bool   `json:"holds"`
	Why   string `json:"why,omitempty"` // it doesn't, and what would help
}

// Capabilities is what can be enforced here.
type Capabilities struct {
	Backend  string `json:"backend"`            // "bubblewrap" (with Landlock where ABI is not 0), "landlock", "seatbelt" or "none"
	ABI      int    `json:"landlock,omitempty"` // the kernel's level of Landlock
	Writes   Status `json:"writes"`             // content is written where the policy says only. Without it there is no fence
	Metadata Status `json:"metadata"`           // modes, owners, times and extended attributes too
	Inside   Status `json:"inside"`             // Protect, and what is hidden or protected by patterns, inside of what may be written
	Network  Status `json:"network"`            // none, or all
	Loopback Status `json:"loopback"`           // with none, servers that a command starts can be reached by the same command
	Hosts    Status `json:"hosts"`              // some hosts only
	Signals  Status `json:"signals"`            // processes outside can't be signalled
	Limits   Status `json:"limits"`

	bwrap string // the program of bubblewrap, absolute and without symbolic links
}

// Probe says what can be enforced here. It finds out once, by trying.
func Probe() Capabilities { return probe() }

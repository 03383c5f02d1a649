// Package sandbox says what a command may do: a [Policy] is data, which a context carries to whatever runs below ([With]) and which only ever gets narrower on the way
// ([Policy.Within]). Package sandbox/fence enforces it.
package sandbox

import (
	"context"
	"time"
)

// Policy is what a command may do. It is data and crosses processes as JSON. The zero Policy is the strictest: nothing of the project may be written, no network.
type Policy struct {
	Root    string   `json:"root,omitempty"`    // the project: may be written. Absolute and without symbolic links (see fence.Resolve), as are all paths here
	Write   []string `json:"write,omitempty"`   // further directories, or files, that may be written
	Protect []string `json:"protect,omitempty"` // what stays read-only inside of those, and is there: fence.Settings lists what usually should. Not with Landlock alone
	Hide    []string `json:"hide,omitempty"`    // what can't be read, besides fence.Secrets
	Read    []string `json:"read,omitempty"`    // what can be read although it is in fence.Secrets or Hide
	// HidePatterns can't be read either, nor what lies below what matches them: absolute paths in which ** is any number of directories and *, ?, [a-z] and {a,b} are as in a shell; a \ takes a
	// character as it is (see fence.HidePattern). What matches need not be there yet: it is looked for when a command starts. Read lifts none of it.
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
	Hosts []string `json:"hosts,omitempty"` // "example.com", "*.example.com" (what is below it, not itself), an address; see fence.Dial for what an address changes
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

// OrDefault gives the limits with the defaults in place of 0.
func (l Limits) OrDefault() Limits {
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

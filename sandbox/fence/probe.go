package fence

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

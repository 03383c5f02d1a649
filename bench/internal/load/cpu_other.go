//go:build !unix

package load

import "time"

// cpu is not known here: tables have no times then, and allocations only.
func cpu() time.Duration { return 0 }

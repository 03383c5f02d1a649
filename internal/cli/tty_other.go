//go:build !linux && !darwin && !windows

package cli

import "os"

// hungUp reports whether nobody reads from one of the files any more; it can't be told, so it may be.
func hungUp(...*os.File) bool { return true }

// columns knows no terminals: forget can't drop what was typed before a question, which might be taken for an answer to it. So nobody is asked, and runs wait as they do anywhere else.
func columns(*os.File) (n int, ok bool) { return 0, false }

// forget is for terminals.
func forget(*os.File) {}

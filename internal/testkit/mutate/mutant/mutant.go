// Package mutant is what mutated and measured code calls while its tests run.
//
// The program internal/testkit/mutate copies this package into an overlay of the build. No
// package of the repository imports it. It depends only on the standard library, so that
// every package can import it.
//
// Each mutation has a number. PAWL_MUTANT holds the number of the one that is active in this
// process and in the processes that it starts. Mutations count from 1, so 0 activates none.
package mutant

import (
	"os"
	"strconv"
	"sync/atomic"
)

// Environment variables that the package reads once, when a process starts.
const (
	Variable      = "PAWL_MUTANT"      // number of the active mutation
	CoverVariable = "PAWL_MUTANT_HITS" // file that collects the reached blocks
)

var (
	active, _ = strconv.Atoi(os.Getenv(Variable))
	hitsPath  = os.Getenv(CoverVariable)
	hitsFile  = openHits()
)

// On reports whether mutation n is active.
func On(n int) bool { return n == active }

// Off reports whether mutation n is not active.
func Off(n int) bool { return n != active }

// Not returns the condition, negated while mutation n is active.
func Not(n int, condition bool) bool { return condition != (n == active) }

// Nil returns err, or nil while mutation n is active.
func Nil(n int, err error) error {
	if n == active {
		return nil
	}
	return err
}

// Integer is any type of integers.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Number is any type of integers or floating-point numbers.
type Number interface {
	Integer | ~float32 | ~float64
}

// Plus returns v, or v+d while mutation n is active.
func Plus[T Integer](n int, v, d T) T {
	if n == active {
		return v + d
	}
	return v
}

// Minus returns v, or v-d while mutation n is active.
func Minus[T Integer](n int, v, d T) T {
	if n == active {
		return v - d
	}
	return v
}

// AddSub returns a+b, or a-b while mutation n is active.
func AddSub[T Number](n int, a, b T) T {
	if n == active {
		return a - b
	}
	return a + b
}

// SubAdd returns a-b, or a+b while mutation n is active.
func SubAdd[T Number](n int, a, b T) T {
	if n == active {
		return a + b
	}
	return a - b
}

// MulDiv returns a*b, or a/b while mutation n is active.
func MulDiv[T Number](n int, a, b T) T {
	if n == active {
		return a / b
	}
	return a * b
}

// DivMul returns a/b, or a*b while mutation n is active.
func DivMul[T Number](n int, a, b T) T {
	if n == active {
		return a * b
	}
	return a / b
}

// RemMul returns a%b, or a*b while mutation n is active.
func RemMul[T Integer](n int, a, b T) T {
	if n == active {
		return a * b
	}
	return a % b
}

// Hit records that a block of a package was reached. Only its first call per process writes.
func Hit(seen *atomic.Bool, pkg string, block int) {
	if !seen.Load() {
		recordHit(seen, pkg, block)
	}
}

// recordHit appends one line to the file. Each line is one write to a file opened for
// appending, so that several processes can share it.
func recordHit(seen *atomic.Bool, pkg string, block int) {
	if seen.Swap(true) || hitsFile == nil {
		return
	}
	_, _ = hitsFile.WriteString(pkg + " " + strconv.Itoa(block) + "\n")
}

// openHits opens the file before any test runs. A process that may not open it, such as one
// in a sandbox, records nothing.
func openHits() *os.File {
	if hitsPath == "" {
		return nil
	}
	f, err := os.OpenFile(hitsPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // our parent names it
	if err != nil {
		return nil
	}
	return f
}

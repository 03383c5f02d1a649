package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// reading is what a process holds.
type reading struct {
	Alloc      uint64 `json:"alloc"` // bytes of the heap that are in use, after a collection
	Inuse      uint64 `json:"inuse"` // bytes of the heap's spans that have something in use
	Goroutines int    `json:"goroutines"`
	Files      int    `json:"files"` // open descriptors
}

func (r reading) String() string {
	return fmt.Sprintf("heap %.2f MiB (spans %.2f), %d goroutines, %d descriptors", mib(r.Alloc), mib(r.Inuse), r.Goroutines, r.Files)
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// read reads this process. What finalizers and weak pointers let go of, the second collection has.
func read() (r reading) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Alloc, r.Inuse, r.Goroutines = m.HeapAlloc, m.HeapInuse, runtime.NumGoroutine()
	if files, err := os.ReadDir("/dev/fd"); err == nil {
		r.Files = len(files) - 1 // that which reads them
	}
	return r
}

// median is the median of each of the figures.
func median(all []reading) reading {
	return reading{
		Alloc:      middle(all, func(r reading) uint64 { return r.Alloc }),
		Inuse:      middle(all, func(r reading) uint64 { return r.Inuse }),
		Goroutines: middle(all, func(r reading) int { return r.Goroutines }),
		Files:      middle(all, func(r reading) int { return r.Files }),
	}
}

func middle[T cmp.Ordered](all []reading, of func(reading) T) T {
	xs := make([]T, len(all))
	for i, r := range all {
		xs[i] = of(r)
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// factor is how much more there may be in the end than at a sixth of the time.
const factor = 1.1

// slack is how much more there may be whatever the factor says: of a server that holds 4 MiB, 40 descriptors and a dozen goroutines at rest, one more connection of a pool is a tenth. What is lost with each session is more than that by far.
var slack = reading{Alloc: 512 << 10, Inuse: 2 << 20, Goroutines: 4, Files: 4}

// grown says what grew too much.
func grown(first, last reading) (problems []string) {
	check := func(what string, a, b, slack float64) {
		if b > max(a*factor, a+slack) {
			problems = append(problems, fmt.Sprintf("%s grew from %g to %g: at most ×%g, or %g more", what, a, b, factor, slack))
		}
	}
	check("the heap (MiB)", mib(first.Alloc), mib(last.Alloc), mib(slack.Alloc))
	check("the spans of the heap (MiB)", mib(first.Inuse), mib(last.Inuse), mib(slack.Inuse))
	check("the number of goroutines", float64(first.Goroutines), float64(last.Goroutines), float64(slack.Goroutines))
	check("the number of descriptors", float64(first.Files), float64(last.Files), float64(slack.Files))
	return problems
}

// Package parallel sets how many tests of a package run in parallel.
package parallel

import (
	"flag"
	"runtime"
	"strconv"
)

// RaiseLimit lets four parallel tests per processor run, instead of one. It is for packages whose
// tests wait for processes most of the time. The flag -parallel wins. Call it in TestMain.
func RaiseLimit() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

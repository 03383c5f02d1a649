//go:build race

package main

// racing is whether the race detector is on: what it allocates is counted, too.
const racing = true

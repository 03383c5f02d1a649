//go:build race

package crashtest

// raced: the race detector makes a process ten times as slow, so only a sample of the points is tried.
const raced = true

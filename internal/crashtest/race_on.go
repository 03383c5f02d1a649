//go:build race

package crashtest

// raced: the race detector makes a process ten times as slow, so only a sample of the points is tried.
const raced = true

// thinned makes the sample smaller: all points are tried without the race detector.
const thinned = 4

// Package loopfuzz plays random lives of a session: what a model says, what tools come to, what hooks and people decide, where the process dies, is cancelled or
// interrupted, and who says something meanwhile are all drawn (by rapid, so that a life that breaks a promise shrinks to its cause), and the invariants of
// docs/architecture.md are looked at from outside, each time a model or a tool is called and at the end.
//
// It has tests only. A life is a value ([plan]); playing it is deterministic but for the order in which tools that run side by side begin, in a bubble of
// testing/synctest, so an hour takes no time and a goroutine that stays is found. RAPID_CHECKS, or -rapid.checks, says how many lives are played:
//
//	go test ./internal/loopfuzz -rapid.checks 200000 -timeout 1h
//
// A life that breaks a promise is printed as JSON, the shortest that rapid finds, and what happened with it: once its cause is mended it is kept in testdata/lives, which are played
// each time. (rapid writes a file of its own to testdata/rapid, which reproduces it until what is drawn changes.)
package loopfuzz

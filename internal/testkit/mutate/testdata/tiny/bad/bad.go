// Package bad has tests that reach code without checking what it does.
package bad

// Counter counts up to a limit.
type Counter struct {
	Limit, Count int
}

// Add adds one, unless the limit is reached, and reports whether it did. Only the tests of
// package user check the count.
func (c *Counter) Add() bool {
	if c.Count >= c.Limit {
		return false
	}
	c.Count++
	return true
}

// Smaller is called by a test that ignores its result.
func Smaller(a, b int) bool {
	return a < b
}

// Unreached has no test.
func Unreached(a, b int) bool {
	return a > b
}

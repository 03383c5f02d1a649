// Package storetest is a kit for tests, so it is not mutated.
package storetest

// Same reports whether two numbers are the same.
func Same(a, b int) bool { return a == b }

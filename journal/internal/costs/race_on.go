//go:build race

package costs

// Raced says that the race detector is on, which makes everything ten times as slow.
const Raced = true

// Package raced says whether the race detector is on. It makes everything ten times as slow, so that some tests take a sample then, and it allocates by itself
// and drops from a sync.Pool at random, so that gates on bytes hold only without it.
package raced

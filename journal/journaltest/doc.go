// Package journaltest proves that a [journal.Store] is one. A store of your own passes [Run], and [RunDurable] when it outlives its
// process; one that fails either loses or repeats work sooner or later.
//
//	func TestStore(t *testing.T) {
//		journaltest.Run(t, func(t *testing.T) journal.Store { return mystore.New() })
//		journaltest.RunDurable(t, func(t *testing.T, dir string) journal.Store { return open(t, dir) })
//	}
//
// The suite looks at nothing but the contract: what is written at once is there at once or not at all, in order, without a gap and with
// its bytes; one writer wins each position; a fork keeps what it shares; a follower misses nothing, and one of a [journal.Watcher] is woken. It needs a few seconds and a few dozen megabytes.
package journaltest

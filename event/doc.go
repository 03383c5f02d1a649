// Package event tells others what happens. An [Event] is a journal entry as it is written, or a delta that is never written.
// A listener cannot change a run: what may is a hook or a decider.
package event

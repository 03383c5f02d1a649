// Package event tells others what happens. An [Event] is a journal entry as it is written, or a delta that is never written.
// A listener cannot change a run: what may is a hook or a decider. What an entry says is one of package journal's types of Data; docs/observability.md
// lists them with the deltas.
//
// Every event has a subject, a name of several parts such as agent.run.RUN.step.-.tool.CALL.start, and [Subject] makes a pattern of subjects
// a predicate. A [Bus] is a place where anybody reads along: who subscribes says what he wants, by any predicate, and what happens when he is too slow
// for it. Publishing is a call that hands the event to each subscription's buffer; reading is a range in the reader's own goroutine. So nothing runs
// in the background, nothing has to be shut down, and where nobody listens nothing is built. engine.Publishing connects runs to a Bus.
package event

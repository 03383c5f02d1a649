// Package engine says how a run is executed, and where.
//
// An [Engine] is the how: the loop, a graph, a script, a remote agent. A [Host] is the where: who listens, interrupts and answers.
// Between them stands [Steps], the one seam for effects: an engine decides what is next and does nothing itself, so the same code runs in this
// process with a journal, in a workflow engine, and in replay. Every effect is data ([Effect]); whoever does one is a [Performer].
package engine

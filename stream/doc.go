// Package stream has what is to be seen of effects while they go on, between the processes that do them and those who look: words of a model, output of a tool, piece by piece, for a reader that may be cut off and come back.
//
//	// in each worker
//	w, err := temporal.NewWorker(temporal.Config{…, Stream: st})
//
//	// in a program that has a run done: its listeners get deltas, as of a run that is done there
//	eng := temporal.NewEngine(client, inner, temporal.WithStream(st))
//
//	// in any other, from where it was cut off
//	for news, err := range stream.Follow(ctx, store, st, session, at) {
//		…            // news.Events: entries of the journal and deltas, in their order
//		at = news.At // keep it
//	}
//
// A stream is no record. The journal has what was said when it was said whole, and is where to look for it; a stream has what comes before that, and forgets it soon after. A [Store] keeps the streams of sessions: [Memory] for one process, package postgres in
// a database, which may be the journal's.
//
// Items: deltas don't go one by one. A [Writer] gathers what an attempt says for 100 ms, or up to 16 KiB, and puts that into the store as one [Item]. An item has an offset, which only grows within its session, and in the order in which items get there: a reader
// that goes on from the offset of the last item it has misses none and has none twice. The text in it has the very bytes of the deltas; neighbours of one kind are one.
//
// Attempts: an activity that is tried again says everything anew. Each item says which attempt it is of, by the number that Temporal gives it, from 1, and by a name of its own ([Item.By]), for an effect that is begun anew counts from 1 again. Items of an attempt are numbered
// ([Item.Part]), and the last one has [Item.End]: with all parts, no [Item.Lost] and an end, a reader has all that the attempt said. One whose worker was killed has no end. [Follow] makes of this what local runs tell: an event.Retry when a call's
// text starts over, with deltas of a higher event.Event.Attempt from then on, and no delta of a call after its outcome.
//
// Nothing waits for a stream: who publishes puts a delta into a buffer, without an allocation of its own. Where the store is slow, or gone, items get larger, up to 1 MiB an attempt and 64 MiB a process; what comes beyond that is left out, counted, and said in the next item ([Item.Lost]). Before an outcome goes on record
// the last words are waited for, for 1 s at most, and not at all while the store is gone. A program that is shut down waits up to 5 s for what is left.
//
// Retention ([Retention]): of an attempt that has ended, and of those before it, items are kept for 1 min, so that who is cut off has the time to come back; those of one that has not ended for 1 h; and of a session the newest 4 MiB. What is beyond goes from the front, as writers go along: nobody has to clean up. Who
// comes back with an offset behind what was deleted gets a [GoneError], which says from where on it can read; what it missed is in the journal, or will be. Follow goes on by itself, and says in an event.Warning that something is missing.
package stream

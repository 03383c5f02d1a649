// Package temporal has an agent's runs done by the workers of a Temporal service: by any number of processes, which may die and come back while a run goes on.
//
//	// in each worker
//	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{{Agent: support, Engine: eng}}})
//	err = w.Run(ctx)
//
//	// in a program that waits for its run: its listeners, its questions
//	res, err := agent.Run(ctx, support, temporal.NewEngine(c, eng), agent.Request{…}, agent.WithJournal(store))
//
//	// in one that need not: any program can come back to the run, by its session and its ID
//	h, err := temporal.Begin(ctx, c, temporal.Order{Agent: "support", Session: "chat", Message: message.User("…")})
//	done, err := h.Wait(ctx)
//
// store is one journal, which the workers and whoever calls agent.Run share: in PostgreSQL (journal/postgres), or in a file where all are on one machine.
//
// The engine's own path, the loop, graph or script that runs everywhere else, runs as a workflow. Each effect that it asks for (a model call, a judgment, a tool call, a question) is an activity, and the activity is
// the same effect as it is done locally, put on record in the same journal, which all processes share. So the journal keeps what was said and done, and does each thing once, also
// when Temporal has an activity done again; Temporal's history keeps the schedule, in names and positions. With [NewEngine] no message, key or result crosses; of what a model is told the system prompt alone does, when a run begins. An [Order] has its message in it, and a [Done] the answer.
//
// # What is done once
//
// A tool gets the same idempotency key (tool.Call.Key) however often, and wherever, its call is made. A call that was begun, and of whose end nothing is on record because its worker died, is made again if its tool is read-only or idempotent. Any other has had its one attempt: the model is told that its
// outcome is unknown (agent.WithUnknown has people asked instead). A model call is made again; so is one that failed for a reason that may pass (errdefs.RateLimit, NotAvailable, Timeout), [Timing].Retries times, no earlier than the provider asks for. What was said of it by then is said again, under the number of the next attempt.
//
// # What binds a run
//
// Hooks, tools, budgets, dependencies and the sandbox of a run are those of the [Member] that workers have by the ID of its agent. What whoever begins the run has besides can't cross: more hooks, a budget or a sandbox where the member has none are errdefs.Conflict, before anything is done. A gate of tools does cross, and both hold. What binds a run binds the runs below
// it: a subagent's run is a workflow below that of the run that gave it its task, if it is among [Member].Subagents, and so is the run of each agent of a [Team] that has the conversation.
//
// # What goes on while nobody looks
//
// A question waits in the workflow, for ever or as long as agent.WithAskTTL says, and needs no worker. It is answered by [Handle.Answer], by whoever watches the run, or in the journal (agent.Answer): a run that was not told looks by itself after a minute, and then ever more seldom, each hour at last. A workflow goes on with a new history before its own gets long ([Timing].Events and Bytes).
// A run that fails fails its workflow, with the class of its error as its type; one that is interrupted is parked, and its workflow completed.
//
// What models and tools say while they are at it is seen elsewhere through a stream, where there is one: [Config].Stream, [WithStream], package stream.
package temporal

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
// when Temporal has an activity done again; Temporal's history keeps the schedule, in names and positions. No message, key or result crosses; of what a model is told the system prompt alone does, when a run begins.
//
// What models and tools say while they are at it is seen elsewhere through a stream, where there is one: [Config.Stream], [WithStream], package stream.
package temporal

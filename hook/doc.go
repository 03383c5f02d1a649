// Package hook stands in the way of a run at four points: before a generation, before a tool, after a tool, after a generation.
//
// Hooks change or refuse; they are the only things that can. To watch, listen to events. To judge a whole run when it is over
// (commit, discard, revise), write an agent.Decider. A hook is an effect: what it said is journaled, so on resume and in replay it
// is not asked again.
//
// [Shells] are hooks that are commands, in the protocol of Claude Code's: JSON on their standard input, an exit code and JSON as their answer. [DecodeShellHooks] reads them
// from a settings file. They are told of the [EventType]s: the points around tools, the stop of the model, and the beginning and end of sessions and subagents, which whoever runs those fires.
package hook

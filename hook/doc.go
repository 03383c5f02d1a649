// Package hook stands in the way of a run at four points: before a generation, before a tool, after a tool, after a generation.
//
// Hooks change or refuse; they are the only things that can. To watch, listen to events. To judge a whole run when it is over
// (commit, discard, revise), write an agent.Decider. A hook is an effect: what it said is journaled, so on resume and in replay it
// is not asked again.
package hook

// Package hook stands in the way of a run at four points: before a generation, before a tool, after a tool, after a generation.
//
// Hooks change or refuse; they are the only things that can. To watch, listen to events. To judge a whole run when it is over
// (commit, discard, revise), write an agent.Decider. A hook is an effect: what it said is journaled, so on resume and in replay it
// is not asked again. A process that dies before that is on record asks again when it is resumed: what PreToolUse hooks said of the calls of one reply comes on record together, once all are judged,
// and what PostToolUse hooks saw, with the call's outcome. A hook that acts has to bear that: calls have ids.
//
// The stock hooks here need nothing but the standard library. What may be done is judged by those of package hook/permission; hooks that are commands are made by package hook/shell.
package hook

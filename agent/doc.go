// Package agent joins who, how and where for one run: [Run] takes an [Agent], an engine and a [Request], and gives a [Result].
//
// Around the run stand an [Observer], who sees it; a [Decider], who judges it when it is over (keep, drop, do it again); and a [Committer],
// who stores what was kept. The journal remembers every step; [Resume] goes on with a run that died or was interrupted.
//
// A [Handoff] lets a model pass the conversation on to another agent; a [Team] follows that, on one transcript.
package agent

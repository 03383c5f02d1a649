// Package trace writes what is on record of a session as one page of HTML: its runs with those of subagents below them, the steps with their tokens, cost and time, each
// tool call with its input, its result, the differences that it made and who let it run, and everything that went wrong. The page needs nothing
// but itself: no script, no font, no address is in it, and its content security policy forbids any.
package trace

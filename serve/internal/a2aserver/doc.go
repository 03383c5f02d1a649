// Package a2aserver serves an agent by the Agent2Agent protocol, 1.0 and 0.3 at one address. A context is a session and a task is a run: where a task stands is read from the journal, so that every process which has that gives the same answer, and a restart loses nothing.
package a2aserver

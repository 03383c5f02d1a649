package main

import (
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/journal"
)

// line is a command line to go on with, as it can be pasted into a shell: in the same journal.
func (c common) line(words ...string) string {
	if c.journal != "" && c.journal != "memory" {
		words = append(words, "--journal", c.journal)
	}
	for i, w := range words {
		words[i] = quoted(w)
	}
	return "pawl " + strings.Join(words, " ")
}

// again is the line that resumes a session under the same permissions: what lets more happen is not taken from the record.
func (c common) again(session string) string {
	words := append([]string{"resume", session}, c.policy.flags()...)
	for _, server := range c.mcp {
		words = append(words, "--mcp", server)
	}
	if c.trust {
		words = append(words, "--trust")
	}
	return c.line(words...)
}

// plain are the words that a shell takes as they are.
var plain = regexp.MustCompile(`^[\pL\pN_@%+=:,./…-]+$`)

// quoted is a word as a shell reads it, without what would steer a terminal.
func quoted(word string) string {
	if word = printable(word); plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// goOn says how a session's unfinished run is gone on with: by whom it is one of.
func (c common) goOn(session string, st journal.State) string {
	switch {
	case st.ParentRun != "":
		return "it is a task's: go on with the session whose task it is, " + strings.Join(strings.Split(printable(session), "/")[:1], "")
	case st.Agent != "" && st.Agent != programAgent:
		return "go on with the program that runs the agent " + clean(st.Agent)
	}
	return "go on with: " + c.again(session)
}

// programAgent is the ID of the agent that the program runs.
const programAgent = "pawl"

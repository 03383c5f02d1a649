package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/internal/secret"

	"github.com/pawl-dev/pawl/journal"
)

// line is a command line to go on with, as it can be pasted into a shell: in the same journal.
func (c common) line(words ...string) string {
	if c.journal != "" && c.journal != "memory" {
		words = append(words, "--journal", withoutPassword(c.journal))
	}
	for i, w := range words {
		words[i] = quoted(w)
	}
	return "pawl " + strings.Join(words, " ")
}

// withoutPassword is an address, of a journal or a model, as it may be shown: lines to go on with end up in logs. A password can be in the environment (PGPASSWORD), or in a file of the user's.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil && u.RawQuery == "" || u.Scheme == "sqlite" { // a path
		return address
	}
	if _, has := u.User.Password(); has {
		u.User = url.User(u.User.Username())
	}
	q, had := u.Query(), len(u.Query())
	maps.DeleteFunc(q, func(name string, _ []string) bool { return secret.Named(name) })
	if len(q) < had {
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// again is the line that resumes a session as this command was told to run it.
func (c common) again(session string) string {
	return c.line(append([]string{"resume", session}, c.kept(false)...)...)
}

// next is the line of a further prompt.
func (c common) next(session string) string {
	return c.line(append(append([]string{"run", "--session", session}, c.kept(true)...), "…")...)
}

// answering is the line that answers what is pending in a run. The flags are for the line that is printed then.
func (c common) answering(words ...string) string {
	return c.line(append(words, c.kept(false)...)...)
}

// keptFlags are the names of the flags in kept.
var keptFlags = []string{
	"permission-mode", "taint", "allow", "deny", "ask", "no-sandbox", "mcp", "trust", "model", "base-url", "dir", "engine", "system-prompt", "reasoning", "provider-tool", "output-schema", "max-steps", "budget-usd", "budget-tokens", "timeout",
}

// kept are the flags that were given and that whoever goes on has to give again, but for the journal: what lets more happen, limits and the rest are not taken from the record. Of a run that began here
// the model and the directory are: a further prompt wants them, too.
func (c common) kept(further bool) (words []string) {
	words = c.policy.flags()
	for _, server := range c.mcp {
		words = append(words, "--mcp", server)
	}
	for _, name := range c.providerTools {
		words = append(words, "--provider-tool", name)
	}
	if c.trust {
		words = append(words, "--trust")
	}
	further = further || !c.begins
	for _, f := range []struct {
		name, value string
		given       bool
	}{
		{"--model", inFull(c.model, "scripted/"), further && c.model != ""},
		{"--base-url", withoutPassword(c.baseURL), c.baseURL != ""},
		{"--dir", inFull(c.dir, ""), further && c.dir != ""},
		{"--engine", cmp.Or(c.asked, c.engineInFull()), c.asked != "" || c.at != nil || c.engine != "" && c.engine != "loop"},
		{"--system-prompt", inFull(c.system, "@"), c.system != ""},
		{"--reasoning", c.reasoning, c.reasoning != ""},
		{"--output-schema", inFull(c.output, ""), c.output != ""},
		{"--max-steps", fmt.Sprint(c.maxSteps), c.maxSteps != 0 && c.maxSteps != maxSteps},
		{"--budget-usd", fmt.Sprint(c.budgetUSD), c.budgetUSD != 0},
		{"--budget-tokens", fmt.Sprint(c.budgetTokens), c.budgetTokens != 0},
		{"--timeout", c.timeout.String(), c.timeout != 0},
	} {
		if f.given {
			words = append(words, f.name, f.value)
		}
	}
	return words
}

// inFull has the path behind a prefix absolute, so that the line is good elsewhere, too.
func inFull(value, prefix string) string {
	if path, ok := strings.CutPrefix(value, prefix); ok && path != "" {
		if abs, err := filepath.Abs(path); err == nil {
			return prefix + abs
		}
	}
	return value
}

// bare are the words that a shell takes as they are.
var bare = regexp.MustCompile(`^[\pL\pN_@%+=:,./…-]+$`)

// quoted is a word as a shell reads it, without what would steer a terminal.
func quoted(word string) string {
	if word = printable(word); bare.MatchString(word) {
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
	if c.at == nil && (c.engine == "" || c.engine == "loop") {
		c.asked = engineAsked(st.Engine)
	}
	return "go on with: " + c.again(session)
}

// programAgent is the ID of the agent that the program runs.
const programAgent = "pawl"

package loop

import (
	"strconv"

	"github.com/pawl-dev/pawl/engine"
)

// conversation is what a cache key is made of: names, and counts of what was changed on purpose. What is said is no part of it, else nobody would notice when the beginning of a request moved.
type conversation struct {
	session, agent, scope, run string
	attempt, moves, tools      int
	revision                   int
}

// keyed is a conversation with its key.
type keyed struct {
	of  conversation
	key string
}

// cacheKey names the conversation of a call: see model.Request. Without a journal nobody knows what was changed on purpose, and nothing is said. A loop with one session makes it once.
func (l *Engine) cacheKey(run *engine.Run, scope string, tools int) string {
	if run.Log == nil {
		return ""
	}
	c := conversation{session: run.Log.Session(), agent: run.AgentID, scope: scope, moves: run.Log.Moves(scope), revision: l.cfg.Revision}
	if scope != "" { // what is said there is of this attempt only
		c.run, c.attempt = run.ID, run.Attempt
	}
	if l.defers { // a search that found tools changes what is offered
		c.tools = tools
	}
	if k := l.key.Load(); k != nil && k.of == c {
		return k.key
	}
	key := c.String()
	l.key.Store(&keyed{c, key})
	return key
}

// String quotes the names, so that no two conversations have one key.
func (c conversation) String() string {
	b := strconv.AppendQuote(nil, c.session)
	b = strconv.AppendQuote(append(b, ' '), c.agent)
	if c.scope != "" {
		b = strconv.AppendQuote(append(b, " in "...), c.scope)
		b = strconv.AppendQuote(append(b, " of "...), c.run)
		b = strconv.AppendInt(append(b, '#'), int64(c.attempt), 10)
	}
	b = strconv.AppendInt(append(b, '/'), int64(c.moves), 10)
	if c.revision > 0 {
		b = strconv.AppendInt(append(b, '.'), int64(c.revision), 10)
	}
	if c.tools > 0 {
		b = strconv.AppendInt(append(b, '+'), int64(c.tools), 10)
	}
	return string(b)
}

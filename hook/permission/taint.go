package permission

import (
	"cmp"
	"slices"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/internal/permit"
	"github.com/pawl-dev/pawl/tool"
)

// Taint says what becomes of a call that may send data out, once the conversation has read what strangers wrote: text of theirs may have told the model to make it. It reads no text. What counts is which
// tools were called, so nothing that a page says can talk it out of that.
//
// Untrusted is what tools bring that reach beyond this machine (tool.Annotations.OpenWorld): web_fetch, MCP servers' tools; commands, unless they are known to only read in the project or Config.Offline is set; what
// a provider's own tools gave; what a task brings that has read such; agents elsewhere. The same tools may send data out. A task begins as its parent is, and what it read its answer brings.
//
// It binds in every mode, [ModeBypass] too; [ModeDontAsk] refuses what would be asked. Allow rules and rules that were approved for the session lift it only where they name what is reached (WebFetch(domain:example.com), Bash(npm run build),
// mcp__server__tool): who wrote a wider one (WebFetch, Bash(git:*), mcp__server) had no such conversation in mind. That very call, approved for the session, runs.
//
// What there is of it is in the journal (journal.State.Untrusted), from the first call that was made while it was on: it holds in other processes, forks and after compaction.
type Taint string

// The values of Taint.
const (
	TaintOff  Taint = "off"
	TaintAsk  Taint = "ask"  // a person is asked
	TaintDeny Taint = "deny" // the call is refused
)

// Taints are all of them, the loosest first.
func Taints() []Taint { return []Taint{TaintOff, TaintAsk, TaintDeny} }

// On reports whether anything comes of it.
func (t Taint) On() bool { return t == TaintAsk || t == TaintDeny }

// Looser reports whether it lets more happen than another.
func (t Taint) Looser(than Taint) bool {
	return slices.Index(Taints(), cmp.Or(t, TaintOff)) < slices.Index(Taints(), cmp.Or(than, TaintOff))
}

// tainted says why a call can't simply run after what the conversation has read, or "".
func (j *judge) tainted(u *hook.ToolUse, c *permit.Call) string {
	if !j.p.Taint.On() || u.Untrusted == "" || !j.reaches(c, u.Tool) || j.named(u, c) {
		return ""
	}
	return "it may send data out, and the conversation has what strangers wrote, by " + u.Untrusted
}

// brings reports whether the result of a call has what strangers wrote.
func (j *judge) brings(u *hook.ToolUse) bool {
	c := j.world.Read(cmp.Or(u.Call.Name, u.Tool.Name), u.Call.Input, u.Tool.ReadOnly)
	return j.reaches(c, u.Tool) || c.Listens() && !j.p.Offline
}

// reaches reports whether a call may reach beyond this machine.
func (j *judge) reaches(c *permit.Call, def tool.Definition) bool {
	if c.Kind() != permit.Command {
		return def.OpenWorld || c.Remote()
	}
	if j.p.Offline {
		return false
	}
	reads, _ := j.world.OnlyReads(c, j.readable)
	return !reads
}

// named reports whether a rule permits a call that names what it reaches.
func (j *judge) named(u *hook.ToolUse, c *permit.Call) bool {
	rules := j.rules[hook.Allow]
	_, granted := j.p.Grants.find(u)
	for _, text := range granted {
		if r, err := j.world.Parse(text, "approved for this session"); err == nil {
			rules = append(slices.Clip(rules), r)
		}
	}
	var names []*permit.Rule
	for _, r := range rules {
		if r.NamesOne() {
			names = append(names, r)
		}
	}
	by, _ := j.permits(c, names)
	return by != nil
}

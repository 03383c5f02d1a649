package permission

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/internal/permit"
)

// Grants remembers what was approved for sessions, in memory, for hosts that decide it themselves: what people answer for the session is on record, and needs none (journal.Answered,
// [hook.ToolUse.Granted]). Who wants it to outlast the process keeps what [Grants.List] gives, and approves it again. A grant lifts ask rules, and
// what the safety check or a mode asks about; deny rules and ModePlan bind all the same, and so does what another hook, or the tool itself, asks. A session's grants are its own: those of a task, which has a session
// of its own, are others. The zero value is empty and ready. Safe for concurrent use.
type Grants struct {
	mu sync.Mutex
	of map[string][]hook.Grant
}

// Approve remembers g for a session; once more changes nothing. It fails with errdefs.Validation when g says neither a tool nor a rule that can be read.
func (g *Grants) Approve(session string, grant hook.Grant) error {
	switch {
	case session == "":
		return errdefs.Validation.Errorf("permission: approve: no session is named")
	case (grant.Rule == "") == (grant.Tool == ""):
		return errdefs.Validation.Errorf("permission: approve: give a tool with its input, or a rule")
	case grant.Rule != "":
		w, err := permit.NewWorld("/", "/", false, nil) // the rule's form does not depend on where it counts
		if err == nil {
			_, err = w.Parse(grant.Rule, "approved for this session")
		}
		if err != nil {
			return errdefs.Validation.Errorf("permission: approve: %w", err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[string][]hook.Grant{}
	}
	if !slices.Contains(g.of[session], grant) {
		g.of[session] = append(g.of[session], grant)
	}
	return nil
}

// List gives a session's grants, in the order in which they were approved.
func (g *Grants) List(session string) []hook.Grant {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.of[session])
}

// ForgetAll drops the grants of all sessions that of says yes to.
func (g *Grants) ForgetAll(of func(session string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.of, func(session string, _ []hook.Grant) bool { return of(session) })
}

// Forget drops a session's grants.
func (g *Grants) Forget(session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, session)
}

// find says whether this very call was approved, here or on record, and gives the rules that were.
func (g *Grants) find(u *hook.ToolUse) (exact bool, rules []string) {
	for _, grant := range append(g.List(u.Session), u.Granted...) {
		if grant.Rule != "" {
			rules = append(rules, grant.Rule)
		} else if strings.EqualFold(grant.Tool, u.Call.Name) && grant.Input == u.Call.Input {
			exact = true
		}
	}
	return exact, rules
}

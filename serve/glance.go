package serve

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// glance is what is told of a session in a list beyond what stores keep beside its entries. It is looked at once for each entry that the session ends with.
type glance struct {
	created time.Time
	seq     int64
	title   string // what was said first, in a line
	waits   bool   // its run waits for a person
	left    bool   // nobody drove it
}

const (
	glanceBehind = 16    // entries at a session's end that say whether it waits
	glanceBefore = 16    // entries at its beginning, among which the first prompt is
	glancesKept  = 1024  // sessions, as many as a page may have; then all are looked at anew
	titleLength  = 120   // letters
	probe        = "ask" // who asks by the lease whether somebody drives: he gives it up as he takes it
)

// glances are kept. Safe for concurrent use.
type glances struct {
	mu sync.Mutex
	of map[string]glance
}

func (g *glances) get(i journal.Info) (glance, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen, ok := g.of[i.Session]
	if !ok || !seen.created.Equal(i.Created) { // made again under the name
		return glance{}, false
	}
	if seen.seq != i.Seq {
		return glance{title: seen.title}, false
	}
	return seen, true
}

func (g *glances) put(session string, seen glance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil || len(g.of) >= glancesKept {
		g.of = map[string]glance{}
	}
	g.of[session] = seen
}

// forget is for a session that was deleted here. Of others what is kept goes when there is too much.
func (g *glances) forget(session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, session)
}

// glance looks at a session, at a few entries of it at most.
func (s *Server) glance(ctx context.Context, i journal.Info) (glance, error) {
	seen, known := s.glances.get(i)
	if known && (i.Status != "running" || seen.left) {
		return seen, nil
	}
	var err error
	if !known {
		seen.created, seen.seq = i.Created, i.Seq
		if seen.title == "" {
			seen.title, err = s.title(ctx, i.Session)
		}
		if err == nil && i.Status == "interrupted" {
			seen.waits, err = s.waits(ctx, i)
		}
		if err != nil {
			return seen, err
		}
	}
	seen.left = i.Status == "running" && s.left(ctx, i.Session)
	s.glances.put(i.Session, seen)
	return seen, nil
}

// title is the first prompt, in a line.
func (s *Server) title(ctx context.Context, session string) (string, error) {
	for e, err := range s.runs.Journal().Read(ctx, session, 0) {
		if err != nil {
			return "", err
		}
		if d, ok := e.Data.(journal.Said); ok && e.Key == (journal.Key{}) {
			return clip(d.Message.Text()), nil
		}
		if e.Seq >= glanceBefore {
			break
		}
	}
	return "", nil
}

func clip(text string) string {
	if len(text) > 8*titleLength {
		text = text[:8*titleLength]
	}
	line := strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if letters := []rune(line); len(letters) > titleLength {
		line = string(letters[:titleLength-1]) + "…"
	}
	return line
}

// waits reports whether the interrupted run of a session waits for a person, as its last entries say.
func (s *Server) waits(ctx context.Context, i journal.Info) (bool, error) {
	waits, answered, open := false, false, map[string]bool{}
	for e, err := range s.runs.Journal().Read(ctx, i.Session, max(0, i.Seq-glanceBehind)) {
		if err != nil {
			return false, err
		}
		switch d := e.Data.(type) {
		case journal.Asked:
			open[d.ID] = true
		case journal.Answered:
			answered = true
			delete(open, d.ID)
		case journal.Parked:
			waits, answered = d.Cause == string(engine.CauseAwaitingPerson), false
		}
	}
	return waits && (!answered || len(open) > 0), nil
}

// left reports whether a run that is not over is driven by nobody. Where the store does not say, somebody is taken to.
func (s *Server) left(ctx context.Context, session string) bool {
	return !s.runs.Drives(session) && s.runs.Journal().Lease(ctx, session, probe, time.Time{}) == nil
}

// pending is a question that waits for its answer.
type pending struct {
	journal.Pending
	Rule string `json:"rule,omitempty"` // what an approval for the session can cover
}

// pendings are questions with the rules by which they and their like could be approved for the session.
func (s *Server) pendings(ctx context.Context, session string, all []journal.Pending) ([]pending, error) {
	out, dir, read := make([]pending, len(all)), "", false
	for i, p := range all {
		if out[i].Pending = p; p.Call == nil || p.Unknown || p.Once {
			continue
		}
		if !read {
			var err error
			if dir, err = s.dir(ctx, session); err != nil {
				return nil, err
			}
			read = true
		}
		if dir == "" { // then only the call itself can be meant
			continue
		}
		rule, err := permission.ProposeRule(dir, &hook.ToolUse{Call: message.ToolCall{Name: p.Call.Name, Input: p.Call.Input}})
		if err != nil { // of a directory that is gone, say: it can be approved for once
			s.opts.Logger.Warn("no rule can be proposed", "session", session, "error", err)
			continue
		}
		out[i].Rule = rule
	}
	return out, nil
}

// dir is where the run of a session works.
func (s *Server) dir(ctx context.Context, session string) (dir string, err error) {
	for e, err := range s.runs.Journal().Read(ctx, session, 0) {
		if err != nil {
			return "", err
		}
		if d, ok := e.Data.(journal.RunStarted); ok {
			dir = d.Dir
		}
	}
	return dir, nil
}

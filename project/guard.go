package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"runtime"
	"syscall"
)

// guard is what the rules, skills and agents of a project were when tools that could change them unasked began to work there.
type guard struct {
	Process int               `json:"process,omitempty"` // whose tools may still be at work; 0: nobody's
	Texts   map[string]string `json:"texts"`             // their hashes, by file
}

// Text gives a Project as its directory is now, for [Guard]: of use are its rules, skills and agents only, and settings that can't be understood are no error.
func (p *Project) Text(ctx context.Context) (*Project, error) {
	now, _, err := load(ctx, p.Root, append(p.opts[:len(p.opts):len(p.opts)], func(l *loader) { l.textOnly = true }))
	return now, err
}

// Guard remembers the text of the project's rules, skills and agents. Until [Unguard], in this process and others, Load leaves out what has changed since: tools may have done it. Approving it ([Approve]) has it count.
// It is kept beside the approvals. A Runtime guards while its tools could change them with nobody asked.
func Guard(p *Project) error {
	holds := func(a approvals) bool {
		g, ok := a.Guards[p.Root]
		return ok && (running(g.Process) || !unchanged(p.texts, g.Texts))
	}
	if known, err := p.trust.read(); err != nil || holds(known) {
		return err
	}
	return p.trust.change(func(a *approvals) {
		if !holds(*a) {
			a.Guards[p.Root] = guard{os.Getpid(), p.texts}
		}
	})
}

// Unguard ends what [Guard] began with p. What has changed since then stays out until it is approved.
func Unguard(ctx context.Context, p *Project) error {
	now, err := p.Text(ctx)
	same := func(texts map[string]string) bool { return err == nil && unchanged(now.texts, texts) } // in doubt it stays
	known, e := p.trust.read()
	if e != nil {
		return e
	}
	g, ok := known.Guards[p.Root]
	if !ok && same(p.texts) || ok && g.Process != os.Getpid() && running(g.Process) {
		return nil
	}
	return p.trust.change(func(a *approvals) {
		g, ok := a.Guards[p.Root]
		if !ok {
			g.Texts = p.texts
		}
		if g.Process = 0; same(g.Texts) {
			delete(a.Guards, p.Root)
		} else {
			a.Guards[p.Root] = g
		}
	})
}

// HasText reports whether the project has a rule, a skill or an agent of its own.
func (p *Project) HasText() bool { return len(p.texts) > 0 }

// Changed reports whether a rule, a skill or an agent of the project is not what it was in last, or is new.
func (p *Project) Changed(last *Project) bool { return !unchanged(p.texts, last.texts) }

// Guarded reports whether what has changed was left out: see [Guard].
func (p *Project) Guarded() bool { return p.guarded }

// unchanged reports whether each file of now is what it was.
func unchanged(now, was map[string]string) bool {
	for file, hash := range now {
		if was[file] != hash {
			return false
		}
	}
	return true
}

// running reports whether a process may be there.
func running(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil || runtime.GOOS == "windows" {
		return err == nil
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// text reads a file whose text is a part of what models are told.
func (l *loader) text(p *Project, t tree, name string, most int64) ([]byte, error) {
	data, err := t.read(name, most)
	if err != nil || t.shown != "" { // the user's is not for tools to change
		return data, err
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	if p.texts[name] = hash; l.forbidden(t, name) {
		p.denied = append(p.denied, name)
		return nil, errForbidden
	}
	if l.guard == nil || l.guard.Texts[name] == hash {
		return data, nil
	}
	p.waiting = append(p.waiting, Value{Place: t.place(name), Layer: LayerProject, Key: "text", Text: hash, State: StateChanged})
	l.trace.note(StateChanged, name)
	return nil, &fileError{"it was changed while tools could write it with nobody asked, and does not count", "look at it, then approve it: pawl trust " + l.root}
}

package project

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// outer gives what the directories above the project forbid, as far as they have settings, or had: a command can make a project of any directory, which lifts nothing by that. The home directory has the
// user's own settings, which are another layer.
func (l *loader) outer(p *Project) (entries []entry, err error) {
	if l.shown != "" { // it is one of these itself
		return nil, nil
	}
	known, _ := l.trust.read() // what is wrong with it is told once: see approved
	home, _ := filepath.EvalSymlinks(l.home)
	for dir := l.root; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if info, err := os.Stat(filepath.Join(dir, ".agents")); dir == home || (err != nil || !info.IsDir()) && len(known.Pins[dir]) == 0 {
			continue
		}
		q, err := l.above(dir)
		if err != nil {
			return nil, err
		}
		p.above = append(p.above, q)
		entries = append(entries, q.binding...)
	}
	return entries, nil
}

// above reads the settings of a directory further up. Its approvals and what it forbade are its own, so it is as if somebody worked there.
func (l *loader) above(dir string) (*Project, error) {
	rel, err := filepath.Rel(l.root, dir)
	if err != nil {
		return nil, errdefs.Validation.Errorf("project: load: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errdefs.Validation.Errorf("project: load: what %s forbids binds here too, and can't be read: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	shown := filepath.ToSlash(rel) + "/"
	o := &loader{home: l.home, trust: l.trust, trusted: l.trusted, trace: l.trace, root: dir, user: l.user, shown: shown}
	o.project = tree{fs: root.FS(), dir: dir, shown: shown, trace: l.trace}
	q := &Project{Root: dir, trust: l.trust}
	if err := o.settings(q); err != nil {
		return nil, err
	}
	for i := range q.pins {
		q.pins[i].File = strings.TrimPrefix(q.pins[i].File, shown)
	}
	return q, nil
}

// bind takes up what of all entries is in force and binds projects below, too.
func (p *Project) bind(all []entry, values []Value) {
	for i, e := range all {
		if state := values[i].State; e.mayForbid() && !strings.HasPrefix(e.key, "hooks.") && (state == StateActive || state == StateRemoved) {
			e.layer, e.removed = LayerOuter, nil
			p.binding = append(p.binding, e)
		}
	}
}

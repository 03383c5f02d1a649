package project

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/hook/shell"
)

// pin is something that a project's file forbade when it was read last. Tools may write in the project, so what its files forbid no longer stays in force until a person has approved that.
type pin struct {
	File  string `json:"file"`
	Layer Layer  `json:"layer"`
	Key   string `json:"key"`
	Text  string `json:"text"` // entry.text
}

// What of a settings file can forbid something: lists, of which each element counts, and single values, which count if they are stricter than those below. Hooks are the third kind, since they may stand guard.
var (
	forbidLists   = []string{"permissions.deny", "permissions.ask", "disallowedTools", "sandbox.hide", "sandbox.protect"}
	forbidSingles = []string{
		"permissions.defaultMode", "permissions.taint", "sandbox.enabled", "sandbox.network.all", "sandbox.limits.cpu", "sandbox.limits.files", "sandbox.limits.fileSize", "sandbox.limits.processes",
	}
)

// mayForbid reports whether it comes with the project and is of a kind that can forbid something.
func (e entry) mayForbid() bool {
	return e.layer.ofProject() && (slices.Contains(forbidLists, e.key) || slices.Contains(forbidSingles, e.key) || strings.HasPrefix(e.key, "hooks."))
}

// forbids reports whether an entry that counts makes something stricter than the settings before it.
func (e entry) forbids(before *Settings) bool {
	switch {
	case !e.mayForbid():
		return false
	case !e.single:
		return true
	}
	return e.stricter(before)
}

// stricter reports whether a single value would change the settings, and not loosen them.
func (e entry) stricter(s *Settings) bool {
	after := *s
	e.apply(&after)
	return (e.loosens == nil || !e.loosens(s)) && (after.Permissions.Mode != s.Permissions.Mode || after.Permissions.Taint != s.Permissions.Taint || after.Sandbox.Off != s.Sandbox.Off ||
		after.Sandbox.Network.All != s.Sandbox.Network.All || after.Sandbox.Limits != s.Sandbox.Limits)
}

// pinned is what an entry forbids, to be remembered.
func (e entry) pinned() pin {
	if e.removed != nil {
		return *e.removed
	}
	return pin{e.place.File, e.layer, e.key, e.text}
}

// removed are entries for what was in force and no file of the project says any more, each with the layer that it was in. Whether a single value is missed the merge says.
func (l *loader) removed(pins []pin, entries []entry) (out []entry) {
	said := map[[2]string]bool{}
	for _, e := range entries {
		said[[2]string{e.key, e.text}] = e.layer.ofProject() || said[[2]string{e.key, e.text}]
	}
	for _, p := range pins {
		if said[[2]string{p.Key, p.Text}] {
			continue
		}
		e, err := l.again(p)
		if err != nil {
			l.problem(Problem{Place{File: "trust"}, fmt.Sprintf("what %s forbade by %s can't be understood any more: %v", p.File, p.Key, err), "look at the file, and approve it"})
			continue
		}
		out = append(out, e)
	}
	return out
}

// again is the entry that a pin was made of.
func (l *loader) again(p pin) (e entry, err error) {
	where := l.shown + p.File + " (as it was)"
	if strings.HasPrefix(p.Key, "hooks.") {
		var h shell.Hook
		if err := json.Unmarshal([]byte(p.Text), &h); err != nil {
			return e, err
		}
		h.Place = where
		e = hookEntry(h)
	} else {
		text := p.Text
		if slices.Contains(forbidLists, p.Key) {
			text = "[" + text + "]"
		}
		for _, name := range slices.Backward(strings.Split(p.Key, ".")) {
			text = "{" + strconv.Quote(name) + ":" + text + "}"
		}
		d := &decoder{source: newSource(where, []byte(text)), report: new(report), claude: strings.HasPrefix(p.File, ".claude/"), root: l.root, home: l.home, outer: l.shown != ""}
		d.whole = true
		d.settings()
		if err := d.err(); err != nil {
			return e, err
		}
		if len(d.entries) != 1 {
			return e, fmt.Errorf("it has no effect")
		}
		e = d.entries[0]
	}
	e.place, e.layer, e.removed = Place{File: where}, p.Layer, &p
	return e, nil
}

// Pin remembers what the project's own files forbid now. From then on Load keeps it in force, whoever takes it away, a person or a tool, until that is approved: see StateRemoved. It is kept
// beside the approvals, and nothing is written when it is there already. So it is with what directories further up forbid ([LayerOuter]). A Runtime does it whenever it has read the project.
func Pin(p *Project) error {
	for _, q := range p.above {
		if err := Pin(q); err != nil {
			return err
		}
	}
	if len(p.pins) == 0 {
		return nil
	}
	known, err := p.trust.read()
	if err != nil || len(union(known.Pins[p.Root], p.pins)) == len(known.Pins[p.Root]) {
		return err
	}
	return p.trust.change(func(a *approvals) { a.Pins[p.Root] = union(a.Pins[p.Root], p.pins) })
}

func union(a, b []pin) []pin {
	a = slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(a, p) {
			a = append(a, p)
		}
	}
	return a
}

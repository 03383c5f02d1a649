package project

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// DefaultTrustFile is where approvals are kept unless [WithTrustFile] says otherwise: pawl/trust.json in $XDG_STATE_HOME, or in ~/.local/state. "" when there is no home directory.
func DefaultTrustFile() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "pawl", "trust.json")
}

// approvals is the content of a trust file.
type approvals struct {
	Version  int                   `json:"version"`
	Projects map[string][]approval `json:"projects"` // by the project's resolved path
	Pins     map[string][]pin      `json:"pins,omitempty"`
	Guards   map[string]guard      `json:"guards,omitempty"`
}

type approval struct {
	Hash     string    `json:"hash"`              // of what the files want; "" when it is nothing
	Forbids  string    `json:"forbids,omitempty"` // the same of what they may forbid
	Approved time.Time `json:"approved"`
	Wants    []want    `json:"wants,omitempty"` // what the files wanted; of the newest approval only
}

// want is one thing that was approved, so that what is new can be told from it later.
type want struct {
	File  string `json:"file"`
	Layer Layer  `json:"layer"`
	Key   string `json:"key"`
	Hash  string `json:"hash"` // of entry.text
	Text  string `json:"text"` // for people, without what may be secret
}

func wantOf(e entry) want {
	h := sha256.Sum256([]byte(e.text))
	return want{e.place.File, e.layer, e.key, hex.EncodeToString(h[:]), cmp.Or(e.shown, e.said, e.text)}
}

func (w want) same(o want) bool { return w.Layer == o.Layer && w.Key == o.Key && w.Hash == o.Hash }

// compare says of what waits what is other than in the newest approval, and what of that is gone. all are the entries that what waits is of.
func (p *Project) compare(before []want, all map[int]entry) {
	if before == nil {
		return
	}
	var now []want
	for _, e := range all {
		now = append(now, wantOf(e))
	}
	replaced := map[string]bool{} // single values
	for i := range p.waiting {
		e, ok := all[i]
		if !ok {
			continue
		}
		w := wantOf(e)
		switch {
		case slices.ContainsFunc(before, w.same):
		case e.single && slices.ContainsFunc(before, func(o want) bool { return o.Layer == w.Layer && o.Key == w.Key }):
			p.waiting[i].Since, replaced[string(w.Layer)+" "+w.Key] = ChangeChanged, true
		default:
			p.waiting[i].Since = ChangeNew
		}
	}
	for _, w := range before {
		removed := func(v Value) bool { // it is told as a restriction
			return v.State == StateRemoved && v.Key == w.Key && w.Hash == wantOf(entry{text: v.text}).Hash
		}
		if !replaced[string(w.Layer)+" "+w.Key] && !slices.ContainsFunc(now, w.same) && !slices.ContainsFunc(p.waiting, removed) {
			p.withdrawn = append(p.withdrawn, Value{Place: Place{File: w.File}, Layer: w.Layer, Key: w.Key, Text: w.Text, Since: ChangeGone})
		}
	}
}

// keptApprovals is how many contents of a project stay approved, so that going back to another branch asks nothing again.
const keptApprovals = 32

// wants reports whether an approval is of the entry.
func (e entry) wants() bool { return e.layer.ofProject() && e.loosens != nil }

// wanted are the entries of the project's own files that would let something happen, in an order that does not depend on how the files are formatted.
func wanted(entries []entry) []entry {
	out := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !e.wants() })
	slices.SortStableFunc(out, func(a, b entry) int {
		by := cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.key, b.key))
		if by == 0 && !a.single && !strings.HasPrefix(a.key, "hooks.") { // of hooks, and of what is there twice, the order matters
			by = cmp.Compare(a.text, b.text)
		}
		return by
	})
	return out
}

// contentHash is of what is wanted; "" when nothing is.
func contentHash(wants []entry) string {
	if len(wants) == 0 {
		return ""
	}
	h := sha256.New()
	for _, e := range wants {
		for _, s := range []string{string(e.layer), e.key, e.text} {
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Untrusted is what a person has to approve because something of it waits, or was removed, in the order of the files; nil when nothing is. It is all that the approval is of, so that nothing is approved
// unseen; State says what waits, what was removed, and which text was changed. The texts are whole.
func (p *Project) Untrusted() []Value { return slices.Clone(p.waiting) }

// Withdrawn is what was approved last and the project's files want no longer, when something else waits; without what may be secret. It asks for no approval.
func (p *Project) Withdrawn() []Value { return slices.Clone(p.withdrawn) }

// TrustHash stands for all that the project's files want: what an approval is of. "" when they want nothing.
func (p *Project) TrustHash() string { return p.trustHash }

// Approve remembers that a person has seen what a Project's files want, and forbid no longer, and wants it too. It counts from the next Load on, and until that content changes.
func Approve(p *Project) error {
	if p.trustHash == "" && len(p.waiting) == 0 {
		return nil
	}
	still := slices.DeleteFunc(slices.Clone(p.pins), func(q pin) bool {
		return slices.ContainsFunc(p.waiting, func(v Value) bool { return v.State == StateRemoved && v.Key == q.Key && v.text == q.Text })
	})
	for _, v := range p.waiting { // hooks that stand guard from now on
		if v.State == StateWaiting && strings.HasPrefix(v.Key, "hooks.") {
			still = append(still, pin{v.Place.File, v.Layer, v.Key, v.text})
		}
	}
	return p.trust.change(func(a *approvals) {
		list := slices.DeleteFunc(a.Projects[p.Root], func(o approval) bool { return o.Hash == p.trustHash && o.Forbids == p.forbids })
		for i := range list {
			list[i].Wants = nil
		}
		list = append([]approval{{p.trustHash, p.forbids, time.Now().UTC().Truncate(time.Second), p.wants}}, list...)
		a.Projects[p.Root] = list[:min(len(list), keptApprovals)]
		if a.Pins[p.Root] = still; len(still) == 0 {
			delete(a.Pins, p.Root)
		}
		if g, ok := a.Guards[p.Root]; ok && running(g.Process) { // what was seen is what is guarded from now on
			a.Guards[p.Root] = guard{g.Process, p.texts}
		} else {
			delete(a.Guards, p.Root)
		}
	})
}

// Revoke forgets all approvals of a Project; what was forbidden stays so. It counts from the next Load on.
func Revoke(p *Project) error {
	return p.trust.change(func(a *approvals) { delete(a.Projects, p.Root) })
}

// trustStore is a file of approvals.
type trustStore struct {
	path string
	root string // of the project that is loaded
}

var changing sync.Mutex

func (t trustStore) read() (a approvals, err error) {
	a = approvals{Version: 1, Projects: map[string][]approval{}, Pins: map[string][]pin{}, Guards: map[string]guard{}}
	if t.path == "" {
		return a, errdefs.NotAvailable.Errorf("project: trust: there is no home directory to keep approvals in: set HOME or XDG_STATE_HOME")
	}
	if dir := nearest(t.path); dir == t.root || strings.HasPrefix(dir, t.root+string(filepath.Separator)) {
		return a, errdefs.PolicyDenied.Errorf("project: trust: the approvals (%s) lie in the project itself, where its tools could write them: set XDG_STATE_HOME to a directory outside", t.path)
	}
	info, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, nil
	case err != nil:
		return a, errdefs.NotAvailable.Errorf("project: trust: %w", err)
	case !info.Mode().IsRegular():
		return a, errdefs.Validation.Errorf("project: trust: %s is no ordinary file: remove it", t.path)
	case info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows":
		return a, errdefs.PolicyDenied.Errorf("project: trust: others may write %s: look at it, then chmod 600 it", t.path)
	}
	b, err := os.ReadFile(t.path)
	if err != nil {
		return a, errdefs.NotAvailable.Errorf("project: trust: %w", err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, errdefs.Validation.Errorf("project: trust: %s: %w: correct or remove it", t.path, err)
	}
	if a.Version != 1 {
		return a, errdefs.Validation.Errorf("project: trust: %s has version %d, and 1 is known: use a newer program, or remove it", t.path, a.Version)
	}
	if a.Projects == nil {
		a.Projects = map[string][]approval{}
	}
	if a.Pins == nil {
		a.Pins = map[string][]pin{}
	}
	if a.Guards == nil {
		a.Guards = map[string]guard{}
	}
	return a, nil
}

// nearest is the deepest directory of a path that is there, resolved.
func nearest(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil || dir == filepath.Dir(dir) {
			return real
		}
	}
}

// change reads the file and replaces it whole. Of two processes that do it at the same moment one may be forgotten, never half of one be there.
func (t trustStore) change(f func(*approvals)) error {
	changing.Lock()
	defer changing.Unlock()
	a, err := t.read()
	if err != nil {
		return err
	}
	f(&a)
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(t.path, append(b, '\n')); err != nil {
		return errdefs.NotAvailable.Errorf("project: trust: %w", err)
	}
	return nil
}

// replaceFile writes a file that only its owner can read, all of it or nothing.
func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".trust-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

package project

import (
	"context"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pawl-dev/pawl/errdefs"
)

const (
	// quiet is how long nothing has to happen before the files are read again: an editor writes one file by several steps, git many files, and what is read in between is half of it.
	quiet = 100 * time.Millisecond
	// latest is how long that may be put off by files that change all the time.
	latest = time.Second
	// polled is how often files are looked at where changes can't be told of: no more watches, a network's file system that refuses them.
	polled = 2 * time.Second
)

// Watch yields the Project that is there now, and a new one each time that something of it has changed: a file, a directory that came into being, an approval. In place of a Project
// whose settings can't be understood it yields the error, which keeps the one before it in force, and the next good one again. What a Project forbids the next one does too, until that is approved. It reads in the ranging goroutine, 0.1 s after the last
// of a row of changes, at the latest 1 s after the first, and ends with ctx, without an error, or with the loop.
func Watch(ctx context.Context, dir string, opts ...Option) iter.Seq2[*Project, error] {
	return func(yield func(*Project, error) bool) {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			yield(nil, errdefs.NotAvailable.Errorf("project: watch: %w", err))
			return
		}
		defer func() { _ = watcher.Close() }()
		var held []pin // what was forbidden stays so also where it can't be remembered
		w := &watch{watcher: watcher, load: func() (*Project, *trace, error) {
			p, tr, err := load(ctx, dir, append(slices.Clip(opts), func(l *loader) { l.pins = held }))
			if p != nil {
				p.opts = opts // held is for this goroutine
			}
			return p, tr, err
		}}
		for last := ""; ; {
			p, tr, err := w.read()
			if ctx.Err() != nil {
				return
			}
			now := tr.digest()
			if err != nil {
				now += err.Error()
			}
			if err == nil {
				held = p.pins
			}
			if now != last {
				if last = now; !yield(p, err) {
					return
				}
			}
			if !w.wait(ctx, tr) {
				return
			}
		}
	}
}

type watch struct {
	watcher *fsnotify.Watcher
	load    func() (*Project, *trace, error)
	poll    bool // some directory can't be watched
}

// read loads until everything that it looked at was watched before: else a change in between would be missed. Where that never ends, because directories come and go all the
// time, it is looked at again later.
func (w *watch) read() (p *Project, tr *trace, err error) {
	for range 10 {
		p, tr, err = w.load()
		if !w.follow(tr) {
			return p, tr, err
		}
	}
	w.poll = true
	return p, tr, err
}

// follow watches the directories of a trace and no others. It reports whether one of them is new.
func (w *watch) follow(tr *trace) (added bool) {
	w.poll = false
	watched := w.watcher.WatchList()
	for _, dir := range watched {
		if tr.names[dir] == nil {
			_ = w.watcher.Remove(dir) // it may be gone
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(tr.names)) {
		if slices.Contains(watched, dir) {
			continue
		}
		switch err := w.watcher.Add(dir); {
		case err == nil:
			added = true
		case !absent(err): // what is not there is seen to come by the directory above
			w.poll = true
		}
	}
	return added
}

// wait returns when something may have changed, and false when ctx ends.
func (w *watch) wait(ctx context.Context, tr *trace) bool {
	var settled, overdue <-chan time.Time
	if w.poll {
		settled = time.After(polled)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case e, ok := <-w.watcher.Events:
			if !ok {
				return false
			}
			if !tr.matters(e.Name) {
				continue
			}
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				w.forget(e.Name)
			}
			settled = time.After(quiet)
			if overdue == nil {
				overdue = time.After(latest)
			}
		case _, ok := <-w.watcher.Errors: // events were lost
			if !ok {
				return false
			}
			return true
		case <-settled:
			return true
		case <-overdue:
			return true
		}
	}
}

// forget ends watches at and below a path that went away: directories of these names that come later are other ones.
func (w *watch) forget(path string) {
	for _, dir := range w.watcher.WatchList() {
		if dir == path || strings.HasPrefix(dir, path+string(filepath.Separator)) {
			_ = w.watcher.Remove(dir) // it may be forgotten already
		}
	}
}

// matters reports whether a change of a file can change what was read.
func (t *trace) matters(path string) bool {
	names := t.names[filepath.Dir(path)]
	return names[""] || names[filepath.Base(path)] || t.names[path] != nil
}

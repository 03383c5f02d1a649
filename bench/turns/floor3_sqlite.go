package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver that Pawl's journal uses

	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/journal"
)

// f3sqlite is f3 that puts as many bytes into a table as Pawl's journal does, in as many appends, each of them on the disk before the next step: what it costs to keep what happened, by any means. As there, appends that come while
// one is written share the next transaction.
type f3sqlite struct {
	t     *load.Task
	sizes []int // bytes of each append of a session
	db    *sql.DB
	add   *sql.Stmt

	mu      sync.Mutex
	waiting []*appended // for the next transaction
	writing bool
}

// appended is what one append writes.
type appended struct {
	id   int64
	data string
	done chan error
}

func newF3SQLite(t *load.Task) (load.System, error) {
	rec := &recorder{Store: journal.Memory()}
	sys, err := pawlWith(func(*load.Task) (journal.Store, func() error, error) { return rec, func() error { return nil }, nil }, nil)(t)
	if err != nil {
		return nil, err
	}
	if _, err := sys.Open(0).Ask(context.Background(), "Please do it: "+t.Workload.Asks.String(), func(string) {}); err != nil {
		return nil, err
	}
	f := &f3sqlite{t: t, sizes: rec.sizes}
	if f.db, err = sql.Open("sqlite", "file:"+filepath.Join(t.Dir, "floor.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"); err != nil {
		return nil, err
	}
	f.db.SetMaxOpenConns(1)
	// One integer for the session and the number, as in Pawl's table: a key of two columns takes an index, whose pages are divided again and again.
	if _, err := f.db.Exec("create table entries (id integer primary key, data text)"); err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	if f.add, err = f.db.Prepare("insert into entries values (?, ?)"); err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	return f, nil
}

func (f *f3sqlite) Close() error { return errors.Join(f.add.Close(), f.db.Close()) }

func (f *f3sqlite) Open(number int) load.Session {
	s := &f3session{t: f.t}
	all := f.t.Workload.Asks.Turns
	turn, seq := 0, 0
	upTo := func(end int) error {
		for ; seq < end; seq++ {
			if err := f.append(&appended{int64(number)<<32 | int64(seq), strings.Repeat("x", f.sizes[seq]), make(chan error, 1)}); err != nil {
				return err
			}
		}
		return nil
	}
	s.before = func() error {
		turn++
		return upTo(len(f.sizes) * turn / all)
	}
	return s
}

// append returns when r is on the disk.
func (f *f3sqlite) append(r *appended) error {
	f.mu.Lock()
	f.waiting = append(f.waiting, r)
	if f.writing {
		f.mu.Unlock()
		return <-r.done
	}
	f.writing = true
	for len(f.waiting) > 0 {
		rows := f.waiting
		f.waiting = nil
		f.mu.Unlock()
		err := f.write(rows)
		for _, r := range rows {
			r.done <- err
		}
		f.mu.Lock()
	}
	f.writing = false
	f.mu.Unlock()
	return <-r.done
}

// write makes one transaction of rows.
func (f *f3sqlite) write(rows []*appended) error {
	if len(rows) == 1 {
		_, err := f.add.Exec(rows[0].id, rows[0].data)
		return err
	}
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	add := tx.Stmt(f.add)
	defer func() { _ = add.Close() }()
	for _, r := range rows {
		if _, err := add.Exec(r.id, r.data); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// recorder notes how many bytes a store is told to keep.
type recorder struct {
	journal.Store
	sizes []int
}

// Append implements [journal.Store].
func (r *recorder) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	n := 0
	for _, e := range entries {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		n += len(b)
	}
	r.sizes = append(r.sizes, n)
	return r.Store.Append(ctx, session, after, entries...)
}

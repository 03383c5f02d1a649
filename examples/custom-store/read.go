package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/journal"
)

// files are the numbers that a directory's files are named after, in order.
func files(dir string) (firsts []int64, err error) {
	names, err := os.ReadDir(dir)
	for _, f := range names {
		if first, err := strconv.ParseInt(f.Name(), 10, 64); err == nil {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return firsts, err
}

// last is the number of a session's last entry; 0: there is no such session. It costs as much as the last append was long.
func (s *Store) last(session string) (int64, error) {
	firsts, err := files(s.path(session))
	if err != nil || len(firsts) == 0 {
		return 0, err
	}
	first := firsts[len(firsts)-1]
	text, err := os.ReadFile(s.path(session, strconv.FormatInt(first, 10)))
	return first + int64(bytes.Count(text, []byte("\n"))) - 1, err
}

// lines are a session's entries after a position, as they are written. A file never changes, so nothing is held while somebody works on them.
func (s *Store) lines(session string, after int64) iter.Seq2[[]byte, error] {
	return lines(s.path(session), after)
}

func lines(dir string, after int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		firsts, err := files(dir)
		for i, seq := range firsts {
			if i+1 < len(firsts) && firsts[i+1] <= after+1 {
				continue // all of it is before
			}
			var text []byte
			text, err = os.ReadFile(filepath.Join(dir, strconv.FormatInt(seq, 10))) //nolint:gosec // one of the store's own
			if errors.Is(err, fs.ErrNotExist) {
				return // the session was deleted meanwhile
			}
			if err != nil {
				break
			}
			for line := range bytes.Lines(text) {
				if seq > after && !yield(line, nil) {
					return
				}
				seq++
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Read implements [journal.Store].
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		end, err := s.begin(ctx)
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		end()
		for line, err := range s.lines(session, after) {
			var e journal.Entry
			if err = cmp.Or(err, ctx.Err()); err == nil {
				err = json.Unmarshal(line, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Sessions implements [journal.Store]. It reads all entries of all sessions: a store for many keeps what [journal.Info] has beside them.
func (s *Store) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		end, err := s.begin(ctx)
		if err != nil {
			yield(journal.Info{}, err)
			return
		}
		end()
		dirs, err := filepath.Glob(filepath.Join(s.dir, "[0-9a-f]*"))
		var all []journal.Info
		for _, dir := range dirs {
			info, failed := infoOf(dir)
			if err = cmp.Or(err, failed, ctx.Err()); err == nil && info.Seq > 0 && q.Matches(info) {
				all = append(all, info)
			}
		}
		if err != nil {
			yield(journal.Info{}, err)
			return
		}
		slices.SortFunc(all, func(a, b journal.Info) int {
			return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Session, b.Session))
		})
		for n, info := range all {
			if q.Limit > 0 && n == q.Limit || !yield(info, nil) {
				return
			}
		}
	}
}

func infoOf(dir string) (info journal.Info, err error) {
	for line, err := range lines(dir, 0) {
		var e journal.Entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return info, err
		}
		info.Apply(e)
		info.Session = e.Session // the last one is the session's own: what a fork shares bears the name of its parent
	}
	return info, nil
}

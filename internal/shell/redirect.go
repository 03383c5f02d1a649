package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Redirections, and what the script writes to files.

// redirects opens the files of a compound command, in each way in which their names can be expanded.
func (r *reader) redirects(f *frame, st *syntax.Stmt) (in stream, files []Redirect, kept func([]Word) []Word) {
	ch := &choices{}
	for first := true; first || ch.next() && ch.turns < maxChoices; first = false {
		g := *f
		g.choice = ch
		i, more, k := r.open(g, st.Redirs)
		if first {
			in, kept = i, k
		}
		files = append(files, more...)
	}
	return in, files, kept
}

// open expands redirections: where input comes from, which files are named, and what becomes of the output, nil if that goes where it went.
func (r *reader) open(f frame, rs []*syntax.Redirect) (in stream, files []Redirect, kept func([]Word) []Word) {
	if len(rs) == 0 {
		return f.in, nil, nil
	}
	in = f.in
	for _, rd := range rs {
		op := rd.Op.String()
		if rd.N != nil && strings.HasPrefix(rd.N.Value, "{") { // it is given the number
			r.sets(f, strings.Trim(rd.N.Value, "{}"), number)
		}
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			body := r.body(f, rd.Hdoc, rd.Word)
			if rd.Op == syntax.DashHdoc && body.Known {
				body.Text = strings.ReplaceAll("\n"+body.Text, "\n\t", "\n")[1:]
			}
			in = stream{alts: []Word{body}, is: true}
		case syntax.WordHdoc:
			body := r.one(f, rd.Word)
			if body.Known {
				body.Text += "\n"
			}
			in = stream{alts: []Word{body}, is: true}
		case syntax.RdrIn:
			p := r.one(f, rd.Word)
			files = append(files, Redirect{Op: op, Path: p})
			in = stream{alts: r.file(f, p), file: r.stranger(f, p)}
		case syntax.DplIn, syntax.DplOut:
			p := r.one(f, rd.Word)
			if d := strings.Trim(p.Text, "0123456789-"); p.Known && d == "" {
				if rd.Op == syntax.DplOut && (rd.N == nil || rd.N.Value == "1") && p.Text != "1" && p.Text != "2" {
					kept = func([]Word) []Word { return nothing }
				}
				if rd.Op == syntax.DplIn && p.Text != "-" {
					in = stream{alts: unknown}
				}
				continue
			}
			files = append(files, Redirect{Op: op, Path: p, Write: rd.Op == syntax.DplOut})
			if rd.Op == syntax.DplOut {
				kept = func([]Word) []Word { return nothing }
			}
		default:
			p := r.one(f, rd.Word)
			files = append(files, Redirect{Op: op, Path: p, Write: true})
			if rd.N != nil && rd.N.Value != "1" {
				continue
			}
			appends := rd.Op == syntax.AppOut || rd.Op == syntax.AppAll || rd.Op == syntax.RdrInOut
			kept = r.keeper(f, p, appends)
			if rd.Op == syntax.RdrInOut {
				in = stream{alts: unknown}
			}
		}
	}
	return in, files, kept
}

// keeper keeps what is printed to a file. It is a function of its own so that only what is redirected to a file costs it.
func (r *reader) keeper(f frame, p Word, appends bool) func([]Word) []Word {
	return func(out []Word) []Word {
		r.keep(f, p, out, appends)
		return nothing
	}
}

// abs joins a path to the directory of f.
func abs(f frame, p Word) (string, bool) {
	if !p.Known || p.Glob || p.Text == "" {
		return "", false
	}
	if path.IsAbs(p.Text) {
		return path.Clean(p.Text), true
	}
	d := f.dir()
	return path.Join(d.Text, p.Text), d.Known
}

// keep remembers what the script wrote to a file.
func (r *reader) keep(f frame, p Word, out []Word, appends bool) {
	name, ok := abs(f, p)
	if !ok {
		return
	}
	old, written := r.files[name]
	if appends && written {
		out = either(concat(old, out), out)
	} else if appends {
		out = either(unknown, out)
	}
	r.write(name, either(old, out))
}

// write notes what may be in a file. Files are there whoever wrote them, so that branches and subshells only ever add to it.
func (r *reader) write(name string, alts []Word) {
	if r.files == nil {
		r.files = map[string][]Word{}
	}
	alts = settle(alts)
	if old, ok := r.files[name]; !ok || !slices.EqualFunc(old, alts, same) {
		r.wrote = append(r.wrote, name)
	}
	r.files[name] = alts
}

// file gives what is in a file: known only if the script wrote it.
func (r *reader) file(f frame, p Word) []Word {
	name, ok := abs(f, p)
	if !ok {
		return unknown
	}
	if name == "/dev/null" {
		return nothing
	}
	if alts, ok := r.files[name]; ok {
		return alts
	}
	return unknown
}

// stranger reports whether a file that is named is there without the script's doing.
func (r *reader) stranger(f frame, p Word) bool {
	name, ok := abs(f, p)
	if !ok || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		return false
	}
	_, written := r.files[name]
	return !written
}

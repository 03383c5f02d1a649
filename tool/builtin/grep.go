package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// The limits of grep.
const (
	grepLines   = 1000     // lines of a result
	grepCap     = 256_000  // bytes of a result, a little less than 256 KiB
	grepLineCap = 1000     // bytes of a line
	grepMost    = 20 << 20 // bytes of a file; larger ones are skipped
	grepContext = 1000     // lines around a match
)

type grepInput struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Type       string `json:"type"`
	Mode       string `json:"output_mode"`
	IgnoreCase bool   `json:"-i"`
	Numbers    *bool  `json:"-n"`
	After      *whole `json:"-A"`
	Before     *whole `json:"-B"`
	Around     whole  `json:"-C"`
	Multiline  bool   `json:"multiline"`
	Limit      whole  `json:"head_limit"`
	Offset     whole  `json:"offset"`
}

const grepSchema = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","description":"regular expression in the syntax of Go (RE2): no lookaround, no backreferences; escape { and ( to mean themselves"},
"path":{"type":"string","description":"file or directory to search; default the project directory"},
"glob":{"type":"string","description":"only files whose name matches, such as *.go or *.{ts,tsx}, in any directory; with a slash the path below the searched directory has to match, such as src/**/*.js"},
"type":{"type":"string","description":"only files of a language: go, py, js, ts, rust, java, c, cpp, md, json, yaml …"},
"output_mode":{"type":"string","enum":["files_with_matches","content","count"],"description":"files_with_matches (default) names the files, content shows the lines, count gives the number of matching lines of each file"},
"-i":{"type":"boolean","description":"ignore case; default false"},
"-n":{"type":"boolean","description":"line numbers, with content; default true"},
"-A":{"type":"integer","minimum":0,"description":"lines to show after each match, with content"},
"-B":{"type":"integer","minimum":0,"description":"lines to show before each match, with content"},
"-C":{"type":"integer","minimum":0,"description":"lines to show before and after each match, with content"},
"multiline":{"type":"boolean","description":"matches may span lines, and . matches line ends; default false"},
"head_limit":{"type":"integer","minimum":0,"description":"at most so many lines of output; default and maximum 1000"},
"offset":{"type":"integer","minimum":0,"description":"leave out so many lines of output first; default 0"}}}`

// Grep is the tool that searches the contents of files: {pattern, path, glob, type, output_mode, -i, -n, -A, -B, -C (also called
// context_lines), multiline, head_limit, offset}.
//
// The pattern is a Go regular expression, matched line by line without line ends, or over the whole file with multiline. Files come in
// the order of their names. files_with_matches gives their paths, count path:number, and content path:line:text, as grep does:
// lines of context have dashes for colons, and "--" stands between groups. head_limit and offset count lines of output; 1,000 lines
// and 250 KiB are the most. Of a line, 1,000 bytes around the match are shown. Files with a NUL byte in their first 8 KiB are binary
// and left out, as is what [Workspace.Glob] leaves out, symbolic links, and, with a note at the end, unreadable files and those over
// 20 MiB.
//
// Besides the project it searches the output directory, by absolute paths. Read-only and idempotent.
func (w *Workspace) Grep() tool.Tool { return w.tools[5] }

func (w *Workspace) newGrep() tool.Tool {
	return tool.Func("grep", "Search the contents of files with a Go regular expression (RE2). Files that git ignores and binary files are left out."+w.directoriesNote()+w.outsideNote(),
		guarded(w, "grep", w.grep), tool.ReadOnly, tool.Idempotent, tool.WithSchema(json.RawMessage(grepSchema)),
		tool.WithAliases(map[string]string{"context_lines": "-C"}), w.checkRead())
}

func (w *Workspace) grep(ctx context.Context, in grepInput) (tool.Result, error) {
	s, err := newSearch(in)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Path == "" {
		in.Path = "."
	}
	p, err := w.locate(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	may, err := w.reading(ctx)
	if err == nil && !may(p) {
		err = unreadable(p)
	}
	if err != nil {
		return tool.Result{}, err
	}
	info, err := p.root.Lstat(p.rel)
	if err != nil {
		return tool.Result{}, w.reason(p, err)
	}
	if info.IsDir() {
		err = s.tree(ctx, w, p, may)
	} else {
		err = s.single(ctx, w, p)
	}
	if err != nil && !errors.Is(err, errFull) {
		return tool.Result{}, err
	}
	return tool.Result{Content: s.text()}, nil
}

func newSearch(in grepInput) (*search, error) {
	flags := "m"
	if in.IgnoreCase {
		flags += "i"
	}
	if in.Multiline {
		flags += "s"
	}
	_, err := regexp.Compile(in.Pattern) // alone: the error quotes it
	var re *regexp.Regexp
	if err == nil {
		re, err = regexp.Compile("(?" + flags + ")" + in.Pattern)
	}
	if err != nil {
		return nil, errdefs.Validation.Errorf("the pattern is not a valid Go (RE2) regular expression: %w", err)
	}
	s := &search{re: re, in: in, out: page{skip: int(in.Offset), most: grepLines}}
	s.prefix, _ = re.LiteralPrefix()
	if in.Limit > 0 {
		s.out.most = min(int(in.Limit), grepLines)
	}
	s.numbers = in.Numbers == nil || *in.Numbers
	s.before, s.after = min(int(in.Around), grepContext), min(int(in.Around), grepContext)
	if in.Before != nil {
		s.before = min(int(*in.Before), grepContext)
	}
	if in.After != nil {
		s.after = min(int(*in.After), grepContext)
	}
	if in.Glob != "" {
		if err := validGlob(in.Glob); err != nil {
			return nil, err
		}
	}
	if in.Type != "" {
		if s.names = fileTypes[strings.ToLower(in.Type)]; s.names == nil {
			return nil, errdefs.Validation.Errorf("type %s is not known; known are %s; or use glob", show(in.Type), knownTypes())
		}
	}
	return s, nil
}

// wanted applies the filters glob and type to a file; below is its path below the searched directory.
func (s *search) wanted(below string) bool {
	if s.in.Glob != "" {
		name := below
		if !strings.Contains(s.in.Glob, "/") {
			name = path.Base(below)
		}
		if !doublestar.MatchUnvalidated(strings.TrimPrefix(s.in.Glob, "/"), name) {
			return false
		}
	}
	if s.names == nil {
		return true
	}
	for _, pattern := range s.names {
		if doublestar.MatchUnvalidated(pattern, path.Base(below)) {
			return true
		}
	}
	return false
}

func (s *search) tree(ctx context.Context, w *Workspace, p place, may func(place) bool) error {
	k := walk{w: w, in: p, may: may, visit: func(p place, below string) error {
		if !s.wanted(below) {
			return nil
		}
		if info, err := p.root.Lstat(p.rel); err != nil || !info.Mode().IsRegular() {
			return nil // gone meanwhile, or a link: what it leads to is found where it is
		}
		b, _, err := w.readWhole(p, grepMost)
		switch {
		case errors.Is(err, errTooLarge):
			s.large = append(s.large, p.shown)
		case errors.Is(err, errdefs.NotFound):
		case err != nil:
			s.unreadable = append(s.unreadable, p.shown)
		case !hasNUL(b):
			return s.file(ctx, p.shown, b)
		}
		return nil
	}}
	err := k.run(ctx)
	s.unreadable = append(s.unreadable, k.unreadable...)
	return err
}

// single searches one file that was asked for by name: no filter, and no silence about why it wasn't searched.
func (s *search) single(ctx context.Context, w *Workspace, p place) error {
	b, info, err := w.readWhole(p, grepMost)
	switch {
	case errors.Is(err, errTooLarge):
		return errdefs.Validation.Errorf("%s has %d bytes; files up to %d are searched: use bash", p.shown, info.Size(), grepMost)
	case err != nil:
		return err
	case hasNUL(b):
		return errdefs.Validation.Errorf("%s is a binary file of %d bytes", p.shown, len(b))
	}
	return s.file(ctx, p.shown, b)
}

func hasNUL(b []byte) bool { return bytes.IndexByte(b[:min(len(b), headSize)], 0) >= 0 }

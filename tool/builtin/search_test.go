package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
)

func TestGlobFindsFilesAtAnyDepth(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"main.go": "", "a/a.go": "", "a/b/c/deep.go": "", "a/b/x.ts": "", "a/b/x.tsx": "", ".hidden/h.go": "", "we[i]rd/x.go": ""})
	link(t, "a", filepath.Join(w.Dir(), "dirlink"))
	link(t, "a/a.go", filepath.Join(w.Dir(), "filelink.go"))
	link(t, filepath.Join(w.Dir(), "main.go"), filepath.Join(w.Dir(), "abslink.go"))
	link(t, "/etc/hosts", filepath.Join(w.Dir(), "outlink.go"))
	link(t, "nothing", filepath.Join(w.Dir(), "dangling.go"))
	old := time.Now().Add(-time.Hour)
	_ = filepath.WalkDir(w.Dir(), func(path string, _ os.DirEntry, _ error) error { return os.Chtimes(path, old, old) })
	for name, c := range map[string]struct {
		input in
		want  string
	}{
		"** is also no directory":       {in{"pattern": "**/*.go"}, ".hidden/h.go abslink.go a/a.go filelink.go a/b/c/deep.go main.go we[i]rd/x.go"},
		"* is one level":                {in{"pattern": "*.go"}, "abslink.go filelink.go main.go"},
		"a level below":                 {in{"pattern": "*/*.go"}, ".hidden/h.go a/a.go we[i]rd/x.go"},
		"below a path":                  {in{"pattern": "**/*.go", "path": "a"}, "a/a.go a/b/c/deep.go"},
		"below an absolute path":        {in{"pattern": "*", "path": w.Dir() + "/a/b"}, "a/b/x.ts a/b/x.tsx"},
		"a pattern with directories":    {in{"pattern": "a/b/**/*.go"}, "a/b/c/deep.go"},
		"an absolute pattern":           {in{"pattern": w.Dir() + "/a/**/*.go"}, "a/a.go a/b/c/deep.go"},
		"alternatives":                  {in{"pattern": "**/*.{ts,tsx}"}, "a/b/x.ts a/b/x.tsx"},
		"a class and a question mark":   {in{"pattern": "**/[x]?t*"}, "a/b/x.ts a/b/x.tsx"},
		"a whole name":                  {in{"pattern": "a/b/x.ts"}, "a/b/x.ts"},
		"a name with a dot before":      {in{"pattern": "./main.go"}, "main.go"},
		"an escaped character":          {in{"pattern": `we\[i\]rd/*`}, "we[i]rd/x.go"},
		"a directory is no file":        {in{"pattern": "a"}, "no files match"},
		"nothing":                       {in{"pattern": "**/*.rs"}, "no files match"},
		"a directory that isn't there":  {in{"pattern": "x/y/*.go"}, "no files match"},
		"through a link to a directory": {in{"pattern": "dirlink/*.go"}, "a/a.go"},
	} {
		got := strings.Split(ok(t, w.Glob(), c.input), "\n")
		want := strings.Split(c.want, " ")
		if c.want == "no files match" {
			want = []string{c.want}
		}
		less := func(a []string) string {
			m := map[string]int{}
			for _, s := range a {
				m[s]++
			}
			return fmt.Sprint(m)
		}
		if less(got) != less(want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	refused(t, w.Glob(), in{"pattern": "[a"}, "[a is not a valid glob pattern")
	refused(t, w.Glob(), in{"pattern": ""}, "not a valid glob pattern")
	refused(t, w.Glob(), in{"pattern": "../*"}, "outside of the project directory")
	refused(t, w.Glob(), in{"pattern": "*/../../*"}, "cannot have ..")
	refused(t, w.Glob(), in{"pattern": "/etc/*"}, "outside of the project directory")
	refused(t, w.Glob(), in{"pattern": "*", "path": "main.go"}, "main.go is not a directory")
	refused(t, w.Glob(), in{"pattern": "*", "path": "aa"}, "aa does not exist; did you mean a?")
}

func TestGlobGivesTheNewestFirst(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	files := map[string]string{}
	for i := range 600 {
		files[fmt.Sprintf("d%d/f%03d", i%7, i)] = ""
	}
	lay(t, w.Dir(), files)
	now := time.Now()
	for name := range files { // the names say how new they are; pairs are equally new
		var d, i int
		if _, err := fmt.Sscanf(name, "d%d/f%d", &d, &i); err != nil {
			t.Fatal(err)
		}
		when := now.Add(time.Duration(i/2) * time.Second)
		if err := os.Chtimes(filepath.Join(w.Dir(), name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Split(ok(t, w.Glob(), in{"pattern": "**"}), "\n")
	if len(got) != 501 || got[500] != "[the newest 500 of 600 files; a narrower pattern or path shows others]" {
		t.Fatal(len(got), got[len(got)-1])
	}
	if diff := cmp.Diff([]string{"d3/f598", "d4/f599", "d1/f596", "d2/f597", "d0/f595", "d6/f594"}, got[:6]); diff != "" {
		t.Error(diff)
	}
}

func TestGrepShowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{
		"main.go":     "package main\n\nfunc main() {\n\tone()\n\ttwo()\n}\n",
		"lib/lib.go":  "package lib\n\n// One is one.\nfunc One() {}\nfunc Two() {}\n",
		"lib/a/x.py":  "def one():\n    pass\n",
		"web/app.tsx": "const one = 1\r\nconst two = 2\r\n",
		"ja.txt":      "これは日本語です\n",
		"bin":         "one\x00one\n",
		"empty":       "",
	})
	for name, c := range map[string]struct {
		input in
		want  string
	}{
		"the files":                       {in{"pattern": "one"}, "lib/a/x.py\nlib/lib.go\nmain.go\nweb/app.tsx"},
		"the lines":                       {in{"pattern": `one\(`, "output_mode": "content"}, "lib/a/x.py:1:def one():\nmain.go:4:\tone()"},
		"the lines without numbers":       {in{"pattern": `one\(`, "output_mode": "content", "-n": false}, "lib/a/x.py:def one():\nmain.go:\tone()"},
		"how many":                        {in{"pattern": "func", "output_mode": "count"}, "lib/lib.go:2\nmain.go:1"},
		"in any case":                     {in{"pattern": "ONE", "-i": true, "type": "go"}, "lib/lib.go\nmain.go"},
		"a quoted text":                   {in{"pattern": `\Qone(`, "type": "py"}, "lib/a/x.py"},
		"either":                          {in{"pattern": "^two|^func main", "output_mode": "count"}, "main.go:1"},
		"in Japanese":                     {in{"pattern": "日本", "output_mode": "content"}, "ja.txt:1:これは日本語です"},
		"a name at any depth":             {in{"pattern": "one", "glob": "*.go"}, "lib/lib.go\nmain.go"},
		"** is also no directory":         {in{"pattern": "one", "glob": "**/*.go"}, "lib/lib.go\nmain.go"},
		"a path below":                    {in{"pattern": "one", "glob": "lib/**/*"}, "lib/a/x.py\nlib/lib.go"},
		"alternatives of names":           {in{"pattern": "one", "glob": "*.{py,tsx}"}, "lib/a/x.py\nweb/app.tsx"},
		"a language":                      {in{"pattern": "one", "type": "py"}, "lib/a/x.py"},
		"a language by its long name":     {in{"pattern": "one", "type": "TypeScript"}, "web/app.tsx"},
		"below a directory":               {in{"pattern": "one", "path": "lib"}, "lib/a/x.py\nlib/lib.go"},
		"a glob below a directory":        {in{"pattern": "one", "path": "lib", "glob": "a/*"}, "lib/a/x.py"},
		"a single file by its name":       {in{"pattern": "two", "path": "main.go", "output_mode": "content"}, "main.go:5:\ttwo()"},
		"a single file, whatever filters": {in{"pattern": "two", "path": "main.go", "glob": "*.py"}, "main.go"},
		"the end of a CRLF line":          {in{"pattern": "1$", "output_mode": "content"}, "web/app.tsx:1:const one = 1"},
		"an anchor":                       {in{"pattern": "^func", "output_mode": "content", "glob": "lib.go"}, "lib/lib.go:4:func One() {}\nlib/lib.go:5:func Two() {}"},
		"nothing":                         {in{"pattern": "three"}, "no matches"},
		"lines after":                     {in{"pattern": "func main", "output_mode": "content", "-A": 1}, "main.go:3:func main() {\nmain.go-4-\tone()"},
		"lines before":                    {in{"pattern": "func main", "output_mode": "content", "-B": 9}, "main.go-1-package main\nmain.go-2-\nmain.go:3:func main() {"},
		"lines around":                    {in{"pattern": "one", "output_mode": "content", "-C": 1, "type": "go"}, "lib/lib.go-2-\nlib/lib.go:3:// One is one.\nlib/lib.go-4-func One() {}\n--\nmain.go-3-func main() {\nmain.go:4:\tone()\nmain.go-5-\ttwo()"},
		"context_lines are lines around":  {in{"pattern": "two", "output_mode": "content", "context_lines": 1, "path": "main.go"}, "main.go-4-\tone()\nmain.go:5:\ttwo()\nmain.go-6-}"},
		"-A goes before -C":               {in{"pattern": "two", "output_mode": "content", "-C": 1, "-A": 0, "path": "main.go"}, "main.go-4-\tone()\nmain.go:5:\ttwo()"},
		"groups apart":                    {in{"pattern": "package|two", "output_mode": "content", "-A": 1, "path": "main.go"}, "main.go:1:package main\nmain.go-2-\n--\nmain.go:5:\ttwo()\nmain.go-6-}"},
		"groups that touch":               {in{"pattern": "one|two", "output_mode": "content", "-C": 1, "path": "main.go"}, "main.go-3-func main() {\nmain.go:4:\tone()\nmain.go:5:\ttwo()\nmain.go-6-}"},
		"context without numbers":         {in{"pattern": "two", "output_mode": "content", "-B": 1, "-n": false, "path": "main.go"}, "main.go-\tone()\nmain.go:\ttwo()"},
		"over lines":                      {in{"pattern": `main\(\) \{.*two`, "multiline": true, "output_mode": "content"}, "main.go:3:func main() {\nmain.go:4:\tone()\nmain.go:5:\ttwo()"},
		"over lines, not without":         {in{"pattern": `main\(\) \{.*two`, "output_mode": "content"}, "no matches"},
		"over CRLF lines":                 {in{"pattern": "= 1$\nconst", "multiline": true}, "web/app.tsx"},
		"over lines with context":         {in{"pattern": `one\(\)\n\ttwo`, "multiline": true, "output_mode": "content", "-A": 1}, "main.go:4:\tone()\nmain.go:5:\ttwo()\nmain.go-6-}"},
		"how many over lines":             {in{"pattern": `one\(\)\s+two`, "multiline": true, "output_mode": "count"}, "main.go:2"},
		"the first ones":                  {in{"pattern": "one", "head_limit": 2}, "lib/a/x.py\nlib/lib.go\n[there is more: go on with offset 2, or narrow the search]"},
		"the next ones":                   {in{"pattern": "one", "head_limit": 2, "offset": 2}, "main.go\nweb/app.tsx"},
		"behind the last one":             {in{"pattern": "one", "offset": 9}, "no more output: there are 4 lines in all"},
		"the first lines":                 {in{"pattern": "func", "output_mode": "content", "head_limit": 1}, "lib/lib.go:4:func One() {}\n[there is more: go on with offset 1, or narrow the search]"},
		"empty matches":                   {in{"pattern": "x*", "path": "lib/a/x.py", "output_mode": "count"}, "lib/a/x.py:2"},
		"empty matches over lines":        {in{"pattern": "x*", "path": "lib/a/x.py", "output_mode": "count", "multiline": true}, "lib/a/x.py:2"},
		"numbers beyond all measure":      {in{"pattern": "two", "path": "main.go", "output_mode": "content", "-A": 1e18, "head_limit": 1e18}, "main.go:5:\ttwo()\nmain.go-6-}"},
	} {
		if diff := cmp.Diff(c.want, ok(t, w.Grep(), c.input)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		input in
		want  string
	}{
		"an invalid expression": {in{"pattern": "(a"}, "not a valid Go (RE2) regular expression: error parsing regexp: missing closing ): `(a`"},
		"lookaround":            {in{"pattern": "(?!a)"}, "not a valid Go (RE2) regular expression"},
		"a closed group":        {in{"pattern": "a)(b"}, "not a valid Go (RE2)"},
		"an unknown type":       {in{"pattern": "a", "type": "klingon"}, "type klingon is not known; known are bash, c,"},
		"an invalid glob":       {in{"pattern": "a", "glob": "[a"}, "[a is not a valid glob pattern"},
		"an unknown mode":       {in{"pattern": "a", "output_mode": "lines"}, "/output_mode: value must be one of"},
		"a missing path":        {in{"pattern": "a", "path": "man.go"}, "did you mean main.go?"},
		"a binary file":         {in{"pattern": "one", "path": "bin"}, "bin is a binary file of 8 bytes"},
		"both names":            {in{"pattern": "a", "-C": 1, "context_lines": 1}, "are the same: give one of them"},
	} {
		if err := refusal(t, w.Grep(), c.input, c.want); !errors.Is(err, errdefs.Validation) && !errors.Is(err, errdefs.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrepSkipsWhatItCannotSearchAndSaysSo(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"a.txt": "needle\n", "big.txt": "needle\n" + strings.Repeat("x", grepMost), "locked.txt": "needle\n", "dir/x": "needle\n"})
	link(t, "a.txt", filepath.Join(w.Dir(), "link"))
	link(t, "dir", filepath.Join(w.Dir(), "loop"))
	link(t, "..", filepath.Join(w.Dir(), "dir/up"))
	want := "a.txt\ndir/x\nlocked.txt\n[skipped, larger than 20 MiB: big.txt]"
	if os.Getuid() != 0 { // root reads everything
		for _, name := range []string{"locked.txt", "dir"} {
			if err := os.Chmod(filepath.Join(w.Dir(), name), 0); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.Dir(), "dir"), 0o755) })
		want = "a.txt\n[skipped, unreadable: locked.txt, dir]\n[skipped, larger than 20 MiB: big.txt]"
	}
	if diff := cmp.Diff(want, ok(t, w.Grep(), in{"pattern": "needle"})); diff != "" {
		t.Error(diff)
	}
	refused(t, w.Grep(), in{"pattern": "needle", "path": "big.txt"}, "files up to 20971520 are searched")
}

func TestGrepKeepsItsResultSmall(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	wide := strings.Repeat("é", 3000) + "needle" + strings.Repeat("ü", 3000)
	lay(t, w.Dir(), map[string]string{
		"many": strings.Repeat("needle\n", 5000), "wide": strings.Repeat(wide+"\n", 900), "latin": "caf\xe9 needle\n",
	})
	got := ok(t, w.Grep(), in{"pattern": "needle", "output_mode": "content", "path": "many"})
	if !strings.HasSuffix(got, "many:1000:needle\n[there is more: go on with offset 1000, or narrow the search]") {
		t.Error(got[len(got)-200:])
	}
	got = ok(t, w.Grep(), in{"pattern": "needle", "output_mode": "content", "path": "many", "head_limit": 4000, "offset": 4500})
	if !strings.HasPrefix(got, "many:4501:needle\n") || !strings.HasSuffix(got, "many:5000:needle") {
		t.Error(got[len(got)-200:])
	}
	got = ok(t, w.Grep(), in{"pattern": "needle", "output_mode": "content", "path": "wide"})
	if len(got) > 262_144 || !strings.Contains(got, "there is more") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("%d bytes", len(got))
	}
	line, _, _ := strings.Cut(got, "\n")
	if len(line) > 1100 || !strings.Contains(line, "éneedleü") || !strings.Contains(line, " of 12006]") {
		t.Errorf("of a long line, what matches is not shown: %s", line)
	}
	if got := ok(t, w.Grep(), in{"pattern": "needle", "output_mode": "content", "path": "latin"}); got != "latin:1:caf\uFFFD needle" {
		t.Error(got)
	}
}

func TestALongSearchStopsWhenItIsCancelled(t *testing.T) { // alone, because it measures time
	w := open(t, nil)
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("f%d", i)] = strings.Repeat(strings.Repeat("ab", 40)+"\n", 6_000)
	}
	lay(t, w.Dir(), files)
	for _, multiline := range []bool{false, true} {
		search := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := callWith(t, ctx, w.Grep(), in{"pattern": "(a|b)*c", "multiline": multiline})
			return time.Since(began), err
		}
		whole, err := search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), whole/20)
		part, err := search(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || part > whole/2 {
			t.Errorf("canceled after %v: %v after %v; a whole search takes %v", whole/20, err, part, whole)
		}
	}
}

// With multiline, a line is shown exactly if some match of the whole text touches it.
func TestMultilineShowsTheLinesOfEveryMatch(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "ab", "abc", "", "aa\naa"}), 1, 30).Draw(r, "lines"), "\n")
		pattern := rapid.SampledFrom([]string{"a", "a\nb", "c\n", "^b", "b$", "a.b", "b.*?c", "^$", "x*", `\s+`, "a|b\na"}).Draw(r, "pattern")
		lay(t, w.Dir(), map[string]string{"f": text})
		f := newLines([]byte(text))
		touched := map[int]bool{}
		for _, m := range regexp.MustCompile("(?ms:"+pattern+")").FindAllStringIndex(text, -1) {
			for n := f.lineAt(m[0]); n <= f.lineAt(max(m[0], m[1]-1)) && n < f.count(); n++ {
				touched[n] = true
			}
		}
		var want []string
		for n := range f.count() {
			if touched[n] {
				want = append(want, fmt.Sprintf("f:%d:%s", n+1, f.line(n)))
			}
		}
		if len(want) == 0 {
			want = []string{"no matches"}
		}
		if diff := cmp.Diff(strings.Join(want, "\n"), ok(t, w.Grep(), in{"pattern": pattern, "multiline": true, "output_mode": "content"})); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestManyMatchesOverLinesAreAllSeen(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"f": strings.Repeat("a", 5000) + "\n" + strings.Repeat("a\n", 3000) + "b\na\nb\n"})
	if got := ok(t, w.Grep(), in{"pattern": "a", "multiline": true, "output_mode": "count"}); got != "f:3002" {
		t.Error(got)
	}
	if got := ok(t, w.Grep(), in{"pattern": "b\na|a", "multiline": true, "output_mode": "count"}); got != "f:3003" {
		t.Error(got)
	}
}

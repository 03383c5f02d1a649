package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func TestReadShowsNumberedLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1500) // 3,000 bytes
	w := open(t, map[string]string{
		"plain": "one\ntwo\nthree\n", "noend": "one\ntwo", "crlf": "one\r\ntwo\r\n", "empty": "", "blank": "\n\n",
		"bom": "\ufeffone\n", "ja": "日本語のテキスト\n", "ru": "Привет, мир\n", "long": "a\n" + long + "\nb\n", "exact": strings.Repeat("x", 2000) + "\r\n",
		"html": "<b>&amp;</b>\n",
	})
	for name, c := range map[string]struct {
		input in
		want  string
	}{
		"a text":                    {in{"file_path": "plain"}, "     1\tone\n     2\ttwo\n     3\tthree"},
		"from a line on":            {in{"file_path": "plain", "offset": 2}, "     2\ttwo\n     3\tthree"},
		"some lines":                {in{"file_path": "plain", "limit": 1}, "     1\tone\n[there are more lines: go on with offset 2]"},
		"some lines of the middle":  {in{"file_path": "plain", "offset": 2, "limit": 1}, "     2\ttwo\n[there are more lines: go on with offset 3]"},
		"exactly all lines":         {in{"file_path": "plain", "limit": 3}, "     1\tone\n     2\ttwo\n     3\tthree"},
		"offset 0 is the beginning": {in{"file_path": "plain", "offset": 0, "limit": 0}, "     1\tone\n     2\ttwo\n     3\tthree"},
		"numbers as 2.0":            {in{"file_path": "plain", "offset": 3.0, "limit": 1e300}, "     3\tthree"},
		"no line end":               {in{"file_path": "noend"}, "     1\tone\n     2\ttwo"},
		"CRLF":                      {in{"file_path": "crlf"}, "     1\tone\n     2\ttwo"},
		"an empty file":             {in{"file_path": "empty"}, "empty is empty"},
		"empty lines":               {in{"file_path": "blank"}, "     1\t\n     2\t"},
		"a byte order mark":         {in{"file_path": "bom"}, "     1\tone"},
		"Japanese":                  {in{"file_path": "ja"}, "     1\t日本語のテキスト"},
		"Russian":                   {in{"file_path": "ru"}, "     1\tПривет, мир"},
		"markup":                    {in{"file_path": "html"}, "     1\t<b>&amp;</b>"},
		"a long line":               {in{"file_path": "long"}, "     1\ta\n     2\t" + long[:2000] + " [cut: the line has 3000 bytes]\n     3\tb"},
		"a line of just the limit":  {in{"file_path": "exact"}, "     1\t" + strings.Repeat("x", 2000)},
		"another family's name":     {in{"path": "noend"}, "     1\tone\n     2\ttwo"},
	} {
		if diff := cmp.Diff(c.want, ok(t, w.Read(), c.input)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	refused(t, w.Read(), in{"file_path": "plain", "offset": 4}, "the file has 3 lines: offset 4 is past its end")
	refused(t, w.Read(), in{"file_path": "noend", "offset": 9}, "the file has 2 lines")
	refused(t, w.Read(), in{"file_path": "plain", "offset": -1}, "/offset: minimum")
}

func TestReadTellsTextFromBinary(t *testing.T) {
	t.Parallel()
	border := strings.Repeat("x", headSize-1) + "日本語\n"
	w := open(t, map[string]string{
		"nul": "a\x00b", "latin": "caf\xe9\n", "border": border, "utf16": "\xff\xfea\x00b\x00", "late": strings.Repeat("x\n", headSize) + "\xff\n", "cut": "abc\xe6\x97",
		"dir/x": "", "elf": "\x7fELF\x02\x01\x01\x00",
	})
	for _, name := range []string{"nul", "latin", "utf16", "elf", "cut"} {
		err := refusal(t, w.Read(), in{"file_path": name}, name+" is a binary file of")
		if !errors.Is(err, errdefs.Validation) {
			t.Error(err)
		}
	}
	if got := ok(t, w.Read(), in{"file_path": "border"}); !strings.HasPrefix(got, "     1\txxx") {
		t.Error("a rune on the border of what is looked at makes a text binary")
	}
	if got := ok(t, w.Read(), in{"file_path": "late", "offset": headSize + 1}); got != fmt.Sprintf("%6d\t\uFFFD", headSize+1) {
		t.Errorf("%q", got)
	}
	refused(t, w.Read(), in{"file_path": "dir"}, "dir is a directory: list the files in it with glob")
}

func TestReadGivesImagesAsFiles(t *testing.T) {
	t.Parallel()
	images := map[string]string{
		"a.png": "\x89PNG\r\n\x1a\n\x00rest", "b.jpg": "\xff\xd8\xff\xe0rest", "c.gif": "GIF89a\x00", "d.webp": "RIFF\x00\x00\x00\x00WEBPVP8 ",
	}
	w := open(t, images)
	for name, mime := range map[string]string{"a.png": "image/png", "b.jpg": "image/jpeg", "c.gif": "image/gif", "d.webp": "image/webp"} {
		res, err := call(t, w.Read(), in{"file_path": name})
		want := tool.Result{Content: fmt.Sprintf("%s: %s of %d bytes", name, mime, len(images[name])), Files: []message.File{{MIME: mime, Name: name, Data: images[name]}}}
		if diff := cmp.Diff(want, res); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	lay(t, w.Dir(), map[string]string{"big.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("x", imageMost)})
	refused(t, w.Read(), in{"file_path": "big.png"}, "an image of 5242888 bytes; more than 5242880 can't be shown")
}

func TestReadGoesThroughBigFilesInPieces(t *testing.T) {
	w := open(t, nil)
	var b strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "this is line %d of a big file\n", i+1)
	}
	lay(t, w.Dir(), map[string]string{"big": b.String(), "one": strings.Repeat("x", 50<<20), "wide": strings.Repeat(strings.Repeat("y", 1999)+"\n", 1000)})
	if got := ok(t, w.Read(), in{"file_path": "big", "offset": 999_999}); got != "999999\tthis is line 999999 of a big file\n1000000\tthis is line 1000000 of a big file" {
		t.Error(got)
	}
	if got := ok(t, w.Read(), in{"file_path": "big"}); strings.Count(got, "\n") != 2000 || !strings.HasSuffix(got, "[there are more lines: go on with offset 2001]") {
		t.Error(got[len(got)-100:])
	}
	if got := ok(t, w.Read(), in{"file_path": "one"}); !strings.HasSuffix(got, "x [cut: the line has 52428800 bytes]") || len(got) > 2100 {
		t.Error(len(got))
	}
	got := ok(t, w.Read(), in{"file_path": "wide", "limit": 1000})
	if len(got) > 262_144 || !strings.Contains(got, "go on with offset 129]") {
		t.Error(len(got), got[len(got)-60:])
	}
	allocs := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = w.Read().Execute(context.Background(), []byte(`{"file_path":"big","offset":900000,"limit":10}`))
		}
	}).AllocedBytesPerOp()
	if allocs > 1<<20 {
		t.Errorf("reading the end of a file takes %d bytes of memory", allocs)
	}
}

func TestWriteMakesAndOverwritesFiles(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"old.txt": "one\ntwo\n", "bin": "\x00\x01", "big": strings.Repeat("x", 2<<20), "dir/x": ""})
	for name, c := range map[string]struct {
		input in
		want  string
	}{
		"a new file":          {in{"file_path": "new.txt", "content": "a\nb"}, "created new.txt (2 lines)"},
		"a new file far down": {in{"file_path": "p/q/r.txt", "content": "a\n"}, "created p/q/r.txt (1 line)"},
		"an empty file":       {in{"file_path": "none", "content": ""}, "created none (0 lines)"},
		"an absolute path":    {in{"file_path": w.Dir() + "/abs.txt", "content": "日本\n"}, "created abs.txt (1 line)"},
		"an old file":         {in{"file_path": "old.txt", "content": "one\n2\n"}, "overwrote old.txt (2 lines)\n--- a/old.txt\n+++ b/old.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"},
		"a binary file":       {in{"file_path": "bin", "content": "a"}, "overwrote bin (1 line); it had 2 bytes"},
		"a big file":          {in{"file_path": "big", "content": "a"}, "overwrote big (1 line); it had 2097152 bytes"},
	} {
		if diff := cmp.Diff(c.want, ok(t, w.Write(), c.input)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		path, _ := c.input["file_path"].(string)
		if got := content(t, w.Dir(), strings.TrimPrefix(path, w.Dir())); got != c.input["content"] {
			t.Errorf("%s: it contains %q", name, got)
		}
	}
	if got := ok(t, w.Write(), in{"file_path": "new.txt", "content": "a\nb"}); got != "new.txt has this content already (2 lines)" {
		t.Error(got)
	}
	refused(t, w.Write(), in{"file_path": "dir", "content": ""}, "dir is a directory")
	refused(t, w.Write(), in{"file_path": "old.txt/x", "content": ""}, "a part of the path is a file")
	noTemps(t, w.Dir())
}

// noTemps checks that no temporary file stayed behind.
func noTemps(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || strings.Contains(path, ".pawl-") {
			t.Errorf("%s %v", path, err)
		}
		return nil
	})
}

func TestWriteKeepsPermissions(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"run.sh": "a", "private": "a", "locked": "a"})
	for name, mode := range map[string]os.FileMode{"run.sh": 0o755, "private": 0o600, "locked": 0o444} {
		if err := os.Chmod(filepath.Join(w.Dir(), name), mode); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, w.Write(), in{"file_path": "run.sh", "content": "b"})
	ok(t, w.Edit(), in{"file_path": "private", "old_string": "a", "new_string": "b"})
	ok(t, w.Bash(), in{"command": "umask > mask"})
	refused(t, w.Write(), in{"file_path": "locked", "content": "b"}, "locked is write-protected (mode 0444)")
	refused(t, w.Edit(), in{"file_path": "locked", "old_string": "a", "new_string": "b"}, "write-protected")
	ok(t, w.Write(), in{"file_path": "fresh", "content": "b"})
	var mask os.FileMode
	if _, err := fmt.Sscanf(content(t, w.Dir(), "mask"), "%o", &mask); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"run.sh": 0o755, "private": 0o600, "locked": 0o444, "fresh": 0o644 &^ mask} {
		if info, err := os.Stat(filepath.Join(w.Dir(), name)); err != nil || info.Mode() != want {
			t.Errorf("%s has %v, not %v", name, info.Mode(), want)
		}
	}
}

func TestALinkInsideTheProjectIsWrittenThrough(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"a/real.txt": "one\n"})
	link(t, "a/real.txt", filepath.Join(w.Dir(), "link"))
	link(t, filepath.Join(w.Dir(), "a/new.txt"), filepath.Join(w.Dir(), "dangling"))
	ok(t, w.Write(), in{"file_path": "link", "content": "two\n"})
	ok(t, w.Edit(), in{"file_path": "link", "old_string": "two", "new_string": "three"})
	ok(t, w.Write(), in{"file_path": "dangling", "content": "new\n"})
	for name, want := range map[string]string{"a/real.txt": "three\n", "a/new.txt": "new\n"} {
		if got := content(t, w.Dir(), name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"link", "dangling"} {
		if info, err := os.Lstat(filepath.Join(w.Dir(), name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", name)
		}
	}
}

func TestAFailedWriteLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"old.txt": "one\n"})
	p, err := w.locateToWrite("old.txt")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.replace(ctx, p, "two", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	long := strings.Repeat("x", 300) // no file system takes such a name, but the temporary file has another one
	refused(t, w.Write(), in{"file_path": long, "content": "a"})
	if err := w.replace(t.Context(), place{root: w.root, rel: long, shown: long}, "a", nil); err == nil || !strings.Contains(err.Error(), "was not written") {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(w.Dir(), "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.replace(t.Context(), place{root: w.root, rel: "d", shown: "d"}, "a", nil); err == nil { // a directory by now
		t.Error("a directory was replaced")
	}
	if content(t, w.Dir(), "old.txt") != "one\n" {
		t.Error("changed")
	}
	noTemps(t, w.Dir())
}

func TestReadersNeverSeeHalfAFile(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", 100_000), strings.Repeat("b", 200_000)
	w := open(t, map[string]string{"f": a})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 50 {
			ok(t, w.Write(), in{"file_path": "f", "content": b})
			ok(t, w.Write(), in{"file_path": "f", "content": a})
		}
	})
	for range 200 {
		if got := content(t, w.Dir(), "f"); got != a && got != b {
			t.Fatalf("%d bytes", len(got))
		}
	}
	wg.Wait()
}

func TestEditReplacesText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from  string
		input in
		want  string
	}{
		"one place":                        {"a b c", in{"old_string": "b", "new_string": "x"}, "a x c"},
		"by nothing":                       {"a b c", in{"old_string": " b", "new_string": ""}, "a c"},
		"every place":                      {"a b a", in{"old_string": "a", "new_string": "aa", "replace_all": true}, "aa b aa"},
		"several lines":                    {"1\n2\n3\n", in{"old_string": "1\n2\n", "new_string": "x\n"}, "x\n3\n"},
		"dollars and backslashes are text": {"a", in{"old_string": "a", "new_string": `$1 \1 $$`}, `$1 \1 $$`},
		"LF matches CRLF":                  {"1\r\n2\r\n3\r\n", in{"old_string": "1\n2", "new_string": "a\nb"}, "a\r\nb\r\n3\r\n"},
		"a line more in a CRLF file":       {"1\r\n2\r\n", in{"old_string": "2", "new_string": "2\n3"}, "1\r\n2\r\n3\r\n"},
		"from a line end on":               {"1\r\n2\r\n", in{"old_string": "\n2", "new_string": "\nb"}, "1\r\nb\r\n"},
		"up to a line end":                 {"1\r\n2\r\n", in{"old_string": "1\n", "new_string": ""}, "2\r\n"},
		"CRLF given as CRLF":               {"1\r\n2\r\n", in{"old_string": "1\r\n", "new_string": "1\n"}, "1\n2\r\n"},
		"CRLF in new_string":               {"1\r\n2\r\n", in{"old_string": "1", "new_string": "1\r\nx"}, "1\r\nx\r\n2\r\n"},
		"every CRLF place":                 {"1\r\n2\r\n1\r\n2\r\n", in{"old_string": "1\n2\n", "new_string": "x\ny\n", "replace_all": true}, "x\r\ny\r\nx\r\ny\r\n"},
		"mixed line ends, mostly LF":       {"1\n2\r\n3\n4\n", in{"old_string": "2\n3", "new_string": "b\nc"}, "1\nb\nc\n4\n"},
		"a file that isn't UTF-8":          {"caf\xe9 a\n", in{"old_string": "a\n", "new_string": "b\n"}, "caf\xe9 b\n"},
		"other names for members":          {"a", in{"old_str": "a", "new_str": "b"}, "b"},
	} {
		w := open(t, map[string]string{"f": c.from})
		c.input["file_path"] = "f"
		if name == "other names for members" {
			delete(c.input, "file_path")
			c.input["path"] = "f"
		}
		if name == "a file that isn't UTF-8" && !strings.Contains(ok(t, w.Edit(), c.input), "-caf\uFFFDa") && content(t, w.Dir(), "f") != c.want {
			t.Error(name)
			continue
		} else if name != "a file that isn't UTF-8" {
			ok(t, w.Edit(), c.input)
		}
		if got := content(t, w.Dir(), "f"); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestEditShowsTheDifference(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"src/f.go": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	want := "edited src/f.go (1 replacement)\n--- a/src/f.go\n+++ b/src/f.go\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+and a half\n 6\n 7\n 8"
	if diff := cmp.Diff(want, ok(t, w.Edit(), in{"file_path": "src/f.go", "old_string": "5", "new_string": "five\nand a half"})); diff != "" {
		t.Error(diff)
	}
}

func TestEditRefusesWhatItCannotDoSafely(t *testing.T) {
	t.Parallel()
	text := "func main() {\n\tfmt.Println(\"hello\")\n}\n\nfunc other() {\n\tfmt.Println(\"hello\")\n}\n"
	w := open(t, map[string]string{"f.go": text, "aaa": "aaa", "crlf": "a\r\nb\r\n", "dir/x": ""})
	for name, c := range map[string]struct {
		input in
		want  []string
	}{
		"an empty old_string":              {in{"old_string": "", "new_string": "x"}, []string{"old_string is empty"}},
		"an empty old_string everywhere":   {in{"old_string": "", "new_string": "x", "replace_all": true}, []string{"old_string is empty"}},
		"no change":                        {in{"old_string": "a", "new_string": "a"}, []string{"are the same"}},
		"two places":                       {in{"old_string": "\tfmt.Println", "new_string": "x"}, []string{"f.go: old_string occurs 2 times, in the lines 2, 6: give more"}},
		"a text that overlaps itself":      {in{"file_path": "aaa", "old_string": "aa", "new_string": "b"}, []string{"occurs 2 times, in the lines 1, 1"}},
		"only white space differs":         {in{"old_string": "func main() {\n    fmt.Println(\"hello\")", "new_string": ""}, []string{"line 1 differs from it only in white space:\n     1\tfunc main() {\n     2\t\tfmt"}},
		"something like it":                {in{"old_string": "func mian() {", "new_string": ""}, []string{"does not occur; the nearest is line 1:\n     1\tfunc main() {"}},
		"nothing like it":                  {in{"old_string": "xyzzy plugh 42", "new_string": ""}, []string{"does not occur, nor anything like it"}},
		"line numbers":                     {in{"old_string": "     1\tfunc main() {", "new_string": ""}, []string{"line numbers that read shows are not part of the file"}},
		"a missing file":                   {in{"file_path": "f.py", "old_string": "a", "new_string": ""}, []string{"f.py does not exist; did you mean f.go"}},
		"a directory":                      {in{"file_path": "dir", "old_string": "a", "new_string": ""}, []string{"dir is a directory"}},
		"other line ends and nothing else": {in{"file_path": "crlf", "old_string": "a\n", "new_string": "a\r\n"}, []string{"differ only in line ends"}},
	} {
		if c.input["file_path"] == nil {
			c.input["file_path"] = "f.go"
		}
		if err := refusal(t, w.Edit(), c.input, c.want...); err != nil && errdefs.Of(err) == nil {
			t.Errorf("%s: %v has no class", name, err)
		}
	}
	if content(t, w.Dir(), "f.go") != text {
		t.Error("changed")
	}
	lay(t, w.Dir(), map[string]string{"many": strings.Repeat("x\n", 50), "huge": strings.Repeat("x", editMost+1)})
	refused(t, w.Edit(), in{"file_path": "many", "old_string": "x", "new_string": "y"}, "occurs 50 times, in the lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and further on")
	refused(t, w.Edit(), in{"file_path": "huge", "old_string": "y", "new_string": "z"}, "edit takes files up to 20971520")
}

func TestEditsOfOneFileAtOnceAllCount(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "<%d>\n", i)
	}
	w := open(t, map[string]string{"f": b.String()})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := call(t, w.Edit(), in{"file_path": "f", "old_string": fmt.Sprintf("<%d>", i), "new_string": "done"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(content(t, w.Dir(), "f"), "done"); n != 40 {
		t.Errorf("%d of 40 edits are there", n)
	}
}

func TestToolsHonourACancelledContext(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"f": "a\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, input := range []in{
		{"command": "touch made"},
		{"file_path": "f"},
		{"file_path": "made", "content": ""},
		{"file_path": "f", "old_string": "a", "new_string": "b"},
		{"pattern": "*"},
		{"pattern": "a"},
		{},
		{"id": "x"},
	} {
		f := w.Tools()[i]
		if _, err := callWith(t, ctx, f, input); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", f.Definition().Name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir(), "made")); err == nil {
		t.Error("something was done")
	}
}

func TestTheToolsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	reads := tool.Annotations{ReadOnly: true, Idempotent: true}
	want := map[string]tool.Annotations{
		"bash": {Destructive: true, OpenWorld: true}, "read": reads, "write": {Idempotent: true, Destructive: true}, "edit": {Destructive: true}, "glob": reads, "grep": reads,
		"bash_output": {ReadOnly: true}, "bash_kill": {Idempotent: true},
	}
	var names []string
	for _, f := range w.Tools() {
		def := f.Definition()
		names = append(names, def.Name)
		if def.Annotations != want[def.Name] || def.Description == "" {
			t.Errorf("%+v", def)
		}
	}
	if diff := cmp.Diff([]string{"bash", "read", "write", "edit", "glob", "grep", "bash_output", "bash_kill"}, names); diff != "" {
		t.Error(diff)
	}
	s, err := tool.NewSet(w.Bash(), w.Read(), w.Write(), w.Edit(), w.Glob(), w.Grep(), w.BashOutput(), w.BashKill())
	if err != nil || s.Len() != 8 {
		t.Error(err)
	}
}

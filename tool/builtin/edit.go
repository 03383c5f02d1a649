package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// editMost is the size in bytes of a file that edit changes.
const editMost = 20 << 20

type editInput struct {
	Path string `json:"file_path"`
	Old  string `json:"old_string"`
	New  string `json:"new_string"`
	All  bool   `json:"replace_all"`
}

const editSchema = `{"type":"object","additionalProperties":false,"required":["file_path","old_string","new_string"],"properties":{
"file_path":{"type":"string","description":"the file: relative to the project directory, or absolute inside it"},
"old_string":{"type":"string","description":"the text to replace, exactly as in the file, with enough around it to occur only once; not empty"},
"new_string":{"type":"string","description":"what stands there instead; may be empty"},
"replace_all":{"type":"boolean","description":"replace every occurrence; default false"}}}`

// Edit is the tool that replaces text in a file: {file_path, old_string, new_string, replace_all}.
//
// old_string must occur exactly once, unless replace_all is set. In a file with CRLF line ends an old_string with LF matches too, and
// what stands there instead gets CRLF; an old_string that itself has a carriage return is taken literally. Files may have up to
// 20 MiB. The file changes at once or not at all, with all that [Workspace.Write] says of permissions and links. The result has the
// difference with 3 lines around each change, up to 200 lines. When old_string doesn't occur, or too often, the error shows where to
// look.
//
// Destructive.
func (w *Workspace) Edit() tool.Tool { return w.tools[3] }

func (w *Workspace) newEdit() tool.Tool {
	return tool.Func("edit", "Replace text in a file. old_string must be exactly as in the file and occur only once, or replace_all be true. "+
		"The line numbers that read shows are not part of the file."+w.directoriesNote(),
		guarded(w, "edit", w.edit), tool.Destructive, tool.WithSchema(json.RawMessage(editSchema)), fileAliases, w.checkWrite())
}

func (w *Workspace) edit(ctx context.Context, in editInput) (tool.Result, error) {
	switch in.Old {
	case "":
		return tool.Result{}, errdefs.Validation.Errorf("old_string is empty: give the text to replace, or use write to make a file")
	case in.New:
		return tool.Result{}, errdefs.Validation.Errorf("old_string and new_string are the same: nothing would change")
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	p, err := w.locateToWrite(in.Path)
	if err == nil {
		err = w.mayWrite(ctx, p) // before anything is said of what is there
	}
	if err != nil {
		return tool.Result{}, err
	}
	b, info, err := w.readWhole(p, editMost)
	if errors.Is(err, errTooLarge) {
		return tool.Result{}, errdefs.Validation.Errorf("%s has %d bytes; edit takes files up to %d", p.shown, info.Size(), editMost)
	} else if err != nil {
		return tool.Result{}, err
	}
	old := string(b)
	changed, times, err := substitute(old, in)
	if err != nil {
		return tool.Result{}, errdefs.Validation.Errorf("%s: %w", p.shown, err)
	}
	if changed == old {
		return tool.Result{}, errdefs.Validation.Errorf("%s: nothing would change: old_string and new_string differ only in line ends, which edit keeps", p.shown)
	}
	if err := w.replace(ctx, p, changed, info); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Content: fmt.Sprintf("edited %s (%s)\n%s", p.shown, plural(times, "replacement"), showDiff(p.shown, old, changed))}, nil
}

// substitute does an edit on the content of a file.
func substitute(content string, in editInput) (string, int, error) {
	text, toContent := content, func(at int) int { return at }
	replacement := in.New
	if !strings.Contains(in.Old, "\r") && strings.Contains(content, "\r\n") {
		text, toContent = withoutCR(content)
		if 2*strings.Count(content, "\r\n") > strings.Count(content, "\n") {
			replacement = strings.ReplaceAll(strings.ReplaceAll(replacement, "\r\n", "\n"), "\n", "\r\n")
		}
	}
	places := occurrences(text, in.Old, in.All)
	switch {
	case len(places) == 0:
		return "", 0, errors.New(notFound(text, in.Old))
	case len(places) > 1 && !in.All:
		return "", 0, fmt.Errorf("old_string occurs %d times, %s: give more of the text around it, or set replace_all",
			len(places), lineNumbers(text, places))
	}
	if size := len(content) + len(places)*(len(replacement)-len(in.Old)); size > editMost {
		return "", 0, fmt.Errorf("%d replacements would make it %d bytes long; the limit is %d", len(places), size, editMost)
	}
	var out strings.Builder
	done := 0
	for _, at := range places {
		out.WriteString(content[done:toContent(at)])
		out.WriteString(replacement)
		done = toContent(at + len(in.Old))
	}
	out.WriteString(content[done:])
	return out.String(), len(places), nil
}

// withoutCR gives content with LF for CRLF, and what an index into that is in content.
func withoutCR(content string) (string, func(int) int) {
	var gone []int // where in the result each LF stands that was a CRLF
	for i, n := 0, 0; i < len(content); i, n = i+1, n+1 {
		if content[i] == '\r' && i+1 < len(content) && content[i+1] == '\n' {
			gone = append(gone, n)
			i++
		}
	}
	return strings.ReplaceAll(content, "\r\n", "\n"), func(at int) int { return at + sort.SearchInts(gone, at) }
}

// occurrences lists where old begins. To replace all they must not overlap; to be the only one it must not overlap itself either.
func occurrences(text, old string, apart bool) (places []int) {
	step := 1
	if apart {
		step = len(old)
	}
	for at := 0; at <= len(text); {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		places = append(places, at+i)
		at += i + step
	}
	return places
}

func lineNumbers(text string, places []int) string {
	const most = 10
	var out []string
	line, done := 1, 0
	for _, at := range places[:min(most, len(places))] {
		line += strings.Count(text[done:at], "\n")
		done = at
		out = append(out, fmt.Sprint(line))
	}
	s := "in the lines " + strings.Join(out, ", ")
	if len(places) > most {
		s += " and further on"
	}
	return s
}

var numberedLine = regexp.MustCompile(`(?m)^ {0,6}\d+\t`)

// notFound says where the text may be that somebody meant by old.
func notFound(text, old string) string {
	why := "old_string does not occur"
	if numberedLine.MatchString(old) {
		why += " (the line numbers that read shows are not part of the file)"
	}
	lines, want := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\n"), "\n")
	if at := sameButSpace(lines, want); at >= 0 {
		return fmt.Sprintf("%s; line %d differs from it only in white space:\n%s", why, at+1, excerpt(lines, at, at+len(want)))
	}
	if at := mostAlike(lines, want); at >= 0 {
		return fmt.Sprintf("%s; the nearest is line %d:\n%s", why, at+1, excerpt(lines, at-2, at+3))
	}
	return why + ", nor anything like it"
}

func excerpt(lines []string, from, to int) string {
	var out []string
	for i := max(0, from); i < min(to, len(lines), max(0, from)+20); i++ {
		out = append(out, fmt.Sprintf("%6d\t%s", i+1, cut(valid(lines[i]), 500)))
	}
	return strings.Join(out, "\n")
}

func sameButSpace(lines, want []string) int {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	first := squeeze(want[0])
	for i := 0; i+len(want) <= len(lines); i++ {
		same := squeeze(lines[i]) == first
		for j := 1; same && j < len(want); j++ {
			same = squeeze(lines[i+j]) == squeeze(want[j])
		}
		if same {
			return i
		}
	}
	return -1
}

// mostAlike finds the line that shares the most pairs of letters with the longest line of want; -1 when none shares half of them.
func mostAlike(lines, want []string) int {
	const mostLines, mostBytes = 20_000, 300
	longest := 0
	for i, l := range want {
		if len(l) > len(want[longest]) {
			longest = i
		}
	}
	pairs := map[string]int{}
	target := cut(strings.TrimSpace(want[longest]), mostBytes)
	for i := 0; i+2 <= len(target); i++ {
		pairs[target[i:i+2]]++
	}
	best, score := -1, 0.5
	for n, line := range lines[:min(len(lines), mostLines)] {
		line = cut(strings.TrimSpace(line), mostBytes)
		if len(line) < 2 || len(target) < 2 {
			continue
		}
		shared, seen := 0, map[string]int{}
		for i := 0; i+2 <= len(line); i++ {
			if pair := line[i : i+2]; seen[pair] < pairs[pair] {
				seen[pair]++
				shared++
			}
		}
		if s := 2 * float64(shared) / float64(len(line)+len(target)-2); s > score {
			best, score = n, s
		}
	}
	return best
}

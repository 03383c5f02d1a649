package chat

import (
	"slices"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/pawl-dev/pawl/internal/plain"
)

// maxHistory is how many prompts of before can be had back.
const maxHistory = 500

// editor is the text that is being typed, of any number of lines.
type editor struct {
	text    []rune
	at      int // the cursor stands before this one
	history []string
	back    int    // how far in history; 0: at the text that is new
	draft   string // what was typed before history was looked at
	rows    []row  // as laid out, nil when it has to be done anew
	width   int    // for this one
}

// row is a line as it is shown: text[from:to].
type row struct{ from, to int }

// insert puts in a text that was typed or pasted.
func (e *editor) insert(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	r := []rune(plain.Typed(text))
	e.text = slices.Insert(e.text, e.at, r...)
	e.at += len(r)
	e.rows = nil
}

func (e *editor) String() string { return string(e.text) }

func (e *editor) set(text string) {
	e.text, e.rows = []rune(text), nil
	e.at = len(e.text)
}

// take empties the editor and remembers what stood in it.
func (e *editor) take() string {
	text := e.String()
	e.set("")
	e.remember(text)
	return text
}

// remember puts a text behind the others of history.
func (e *editor) remember(text string) {
	e.back, e.draft = 0, ""
	if strings.TrimSpace(text) == "" || len(e.history) > 0 && e.history[len(e.history)-1] == text {
		return
	}
	if e.history = append(e.history, text); len(e.history) > maxHistory {
		e.history = slices.Clone(e.history[1:])
	}
}

// key does what a key says, and reports whether it is one of the editor's.
func (e *editor) key(key, text string) bool {
	switch key {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.text))
	case "home", "ctrl+a":
		e.at = e.start()
	case "end", "ctrl+e":
		e.at = e.stop()
	case "alt+left", "ctrl+left", "alt+b":
		e.at = e.wordBefore()
	case "alt+right", "ctrl+right", "alt+f":
		e.at = e.wordBehind()
	case "up", "ctrl+p":
		e.up()
	case "down", "ctrl+n":
		e.down()
	case "backspace", "ctrl+h", "shift+backspace":
		e.cut(e.at-1, e.at)
	case "delete", "ctrl+d":
		e.cut(e.at, e.at+1)
	case "ctrl+w", "alt+backspace":
		e.cut(e.wordBefore(), e.at)
	case "ctrl+u":
		e.cut(e.start(), e.at)
	case "ctrl+k":
		e.cut(e.at, e.stop())
	case "ctrl+j", "alt+enter", "shift+enter":
		e.insert("\n")
	case "tab":
		e.insert("    ")
	default:
		if text == "" {
			return false
		}
		e.insert(text)
	}
	return true
}

func (e *editor) cut(from, to int) {
	from, to = max(from, 0), min(to, len(e.text))
	if from < to {
		e.text = slices.Delete(e.text, from, to)
		e.at, e.rows = from, nil
	}
}

// start and stop are where the line of the cursor begins and ends.
func (e *editor) start() int {
	at := e.at
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

func (e *editor) stop() int {
	at := e.at
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

func (e *editor) wordBefore() int {
	at := e.at
	for at > 0 && unicode.IsSpace(e.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.text[at-1]) {
		at--
	}
	return at
}

func (e *editor) wordBehind() int {
	at := e.at
	for at < len(e.text) && unicode.IsSpace(e.text[at]) {
		at++
	}
	for at < len(e.text) && !unicode.IsSpace(e.text[at]) {
		at++
	}
	return at
}

// up goes a row up, and from the first one to the prompt before.
func (e *editor) up() {
	if i, x := e.where(); i > 0 {
		e.goTo(i-1, x)
		return
	}
	if e.back < len(e.history) {
		if e.back == 0 {
			e.draft = e.String()
		}
		e.back++
		e.set(e.history[len(e.history)-e.back])
	}
}

// down goes a row down, and from the last one to the prompt behind.
func (e *editor) down() {
	if i, x := e.where(); i < len(e.rows)-1 {
		e.goTo(i+1, x)
		return
	}
	if e.back > 0 {
		e.back--
		if e.back == 0 {
			e.set(e.draft)
		} else {
			e.set(e.history[len(e.history)-e.back])
		}
	}
}

// layout breaks the text into rows of a width.
func (e *editor) layout(width int) []row {
	width = max(width, 4)
	if e.rows != nil && e.width == width {
		return e.rows
	}
	e.width, e.rows = width, e.rows[:0]
	from, used := 0, 0
	for i, r := range e.text {
		if r == '\n' {
			e.rows = append(e.rows, row{from, i})
			from, used = i+1, 0
			continue
		}
		w := columns(r)
		if used+w > width {
			e.rows = append(e.rows, row{from, i})
			from, used = i, 0
		}
		used += w
	}
	e.rows = append(e.rows, row{from, len(e.text)})
	return e.rows
}

// where is the row of the cursor, and its column.
func (e *editor) where() (i, x int) {
	rows := e.layout(e.width)
	i, _ = slices.BinarySearchFunc(rows, e.at, func(r row, at int) int { return r.from - at })
	if i == len(rows) || rows[i].from > e.at {
		i--
	}
	for _, r := range e.text[rows[i].from:e.at] {
		x += columns(r)
	}
	return i, x
}

func (e *editor) goTo(i, x int) {
	r := e.rows[i]
	for e.at = r.from; e.at < r.to && x > 0; e.at++ {
		x -= columns(e.text[e.at])
	}
}

// show is the part of the text around the cursor: most rows at most, and the place of the cursor in it.
func (e *editor) show(width, most int) (lines []string, x, y int) {
	rows := e.layout(width)
	y, x = e.where()
	first := 0
	if len(rows) > most {
		first = min(max(y-most+1, 0), len(rows)-most)
	}
	for _, r := range rows[first:min(first+most, len(rows))] {
		lines = append(lines, seen.Replace(plain.Text(string(e.text[r.from:r.to]))))
	}
	return lines, x, y - first
}

// seen has what is typed as it is counted: what is joined to one sign is two columns at some terminals, and more at others.
var seen = strings.NewReplacer("\t", " ", "\u200d", "")

// columns is how many of them a character takes.
func columns(r rune) int {
	switch {
	case r == '\t' || r < 0x7f:
		return 1
	case !plain.Shown(r):
		return 0
	}
	return lipgloss.Width(string(r))
}

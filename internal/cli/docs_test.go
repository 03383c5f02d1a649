package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/chat"
	"github.com/pawl-dev/pawl/internal/stable"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// pages are what strangers read first. What they show has to work.
var pages = []string{"README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "docs/cli.md", "docs/chat.md", "docs/sessions.md", "docs/agents.md", "docs/fence.md", "docs/mcp.md", "docs/packs.md", "docs/graphs.md", "docs/architecture.md", "docs/observability.md", "docs/tools.md", "docs/sdk.md", "docs/models.md", "docs/temporal.md", "docs/serve.md", "docs/evals.md", "docs/operations.md", "docs/postgres.md", "docs/project.md", "docs/concepts.md", "docs/compatibility.md", "docs/inspector.md", "examples/README.md"}

// examples are the pages of the programs in examples: their own tests run what they show.
func examples(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"examples/*/README.md", "temporal/examples/*/README.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			name, err := filepath.Rel("../..", file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, filepath.ToSlash(name))
		}
	}
	return all
}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	fileBlock = regexp.MustCompile("(?s)```(?:json|md) ([^\n]+)\n(.*?)```")
	textBlock = regexp.MustCompile("(?s)```text\n(.*?)```")
)

// texts are the blocks of text that a page shows.
func texts(page string) (all []string) {
	for _, m := range textBlock.FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	return all
}

// files writes the files that a page shows.
func files(t *testing.T, text, dir string) {
	t.Helper()
	for _, m := range fileBlock.FindAllStringSubmatch(text, -1) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, m[1])), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	commandLine = regexp.MustCompile(`(?:^|[|\x60])\s*pawl ((?:[a-z]+ ?)+)([^\x60#|]*)`)
	flagName    = regexp.MustCompile(`--[a-z][a-z-]*`)
	inQuotes    = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

func TestTheCommandsInThePagesExistWithTheirFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known := 0
	for _, name := range slices.Concat(pages, examples(t)) {
		for line := range strings.Lines(page(t, name)) {
			for _, m := range commandLine.FindAllStringSubmatch(line, -1) {
				words := strings.Fields(m[1])
				if (words[0] == "sessions" || words[0] == "permissions" || words[0] == "mcp" || words[0] == "pack" || words[0] == "graph") && len(words) > 1 {
					words = words[:2]
				} else {
					words = words[:1]
				}
				help := w.pawl(append(words, "--help")...)
				if help.code != 0 || !strings.Contains(help.out, "pawl "+strings.Join(words, " ")) {
					t.Errorf("%s: %q is no command: %s", name, strings.Join(words, " "), strings.TrimSpace(line))
					continue
				}
				known++
				for _, f := range flagName.FindAllString(inQuotes.ReplaceAllString(m[2], ""), -1) {
					if !strings.Contains(help.out, f+" ") && !strings.Contains(help.out, f+"\n") {
						t.Errorf("%s: pawl %s has no %s: %s", name, words, f, strings.TrimSpace(line))
					}
				}
			}
		}
	}
	if known < 10 {
		t.Errorf("only %d command lines were found: the pattern no longer fits the pages", known)
	}
}

func TestTheFlagsOfRunAreAllInTheManual(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(page(t, "docs/cli.md"), "\n## Flags of `run` and `resume`\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]bool{} // of each flag
	for line := range strings.Lines(table) {
		if cell, row := strings.CutPrefix(line, "| `--"); row {
			cell, _, _ = strings.Cut("--"+cell, " | ")
			for _, f := range flagName.FindAllString(cell, -1) {
				rows[f] = true
			}
		}
	}
	inHelp := map[string]bool{"--help": true}
	for _, command := range []string{"run", "resume", "chat"} {
		for line := range strings.Lines(newWorld(t).pawl(command, "--help").out) {
			f := strings.TrimSpace(line)
			if _, long, short := strings.Cut(f, ", --"); short && strings.HasPrefix(f, "-") {
				f = "--" + long
			}
			f, _, _ = strings.Cut(f, " ")
			if !strings.HasPrefix(f, "--") {
				continue
			}
			if inHelp[f] = true; f != "--help" && !rows[f] {
				t.Errorf("the table of docs/cli.md has no row for %s of pawl %s", f, command)
			}
		}
	}
	for f := range rows {
		if !inHelp[f] {
			t.Errorf("docs/cli.md has a row for %s, which neither run nor resume has", f)
		}
	}
	if len(rows) < 15 {
		t.Errorf("only %d rows were found: the pattern no longer fits the page", len(rows))
	}
}

// The section of each command has all its flags, but for --journal, which the page says once.
func TestTheFlagsOfCommandsAreAllInTheManual(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(page(t, "docs/cli.md"), "\n## The commands one by one\n")
	sections := map[string]string{}
	for _, section := range strings.Split(text, "\n### pawl ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for name := range strings.SplitSeq(heading, ", ") {
			sections[name] = body
		}
	}
	var commands func(name []string)
	seen := 0
	ofRun := newWorld(t).pawl("run", "--help").out
	commands = func(name []string) {
		help := newWorld(t).pawl(append(name, "--help")...).out
		_, list, more := strings.Cut(help, "\nAvailable Commands:\n")
		if list, _, _ = strings.Cut(list, "\n\n"); more {
			for line := range strings.Lines(list) {
				if f := strings.Fields(line); f[0] != "help" && f[0] != "completion" {
					commands(append(slices.Clip(name), f[0]))
				}
			}
			return
		}
		if name[0] == "run" || name[0] == "resume" || name[0] == "chat" { // they have a table
			return
		}
		seen++
		section, ok := sections[strings.Join(name, " ")]
		if !ok {
			section = sections[name[0]]
		}
		_, list, _ = strings.Cut(help, "\nFlags:\n")
		for line := range strings.Lines(list) {
			f := flagName.FindString(line)
			if n := strings.Join(name, " "); (n == "graph run" || (n == "worker" || n == "serve" || n == "mcp serve") && f != "--json") && strings.Contains(ofRun, f+" ") { // they are those of pawl run
				continue
			}
			if f != "" && f != "--help" && f != "--journal" && !strings.Contains(section, "`"+f) && !strings.Contains(section, " "+f) {
				t.Errorf("docs/cli.md does not say what %s of pawl %s does", f, strings.Join(name, " "))
			}
		}
	}
	commands(nil)
	if seen < 15 {
		t.Errorf("only %d commands were found", seen)
	}
}

// Scripts of others call commands with their flags.
func TestNoCommandAndNoFlagGoesUnawares(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`^ +(?:-\w, )?(--[a-z-]+)( \S+)?(?:  |$)`)
	var kept []string
	var walk func(name []string)
	walk = func(name []string) {
		help := newWorld(t).pawl(append(slices.Clip(name), "--help")...).out
		command := strings.Join(append([]string{"pawl"}, name...), " ")
		kept = append(kept, command)
		_, list, _ := strings.Cut(help, "\nFlags:\n")
		for line := range strings.Lines(list) {
			if m := flag.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && m[2] != "" {
				kept = append(kept, command+" "+m[1]+" VALUE")
			} else if m != nil {
				kept = append(kept, command+" "+m[1])
			}
		}
		_, list, _ = strings.Cut(help, "\nAvailable Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if f := strings.Fields(line); f[0] != "help" && f[0] != "completion" {
				walk(append(slices.Clip(name), f[0]))
			}
		}
	}
	walk(nil)
	if len(kept) < 100 {
		t.Errorf("only %d were found: the pattern no longer fits the help", len(kept))
	}
	stable.Check(t, "flags.txt", kept, *update)
}

// everyPage is each Markdown file of the repository, but for those that tests work on.
func everyPage(t *testing.T) (all []string) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(name, ".md") {
			all = append(all, name)
		}
		return err
	})
	if err != nil || len(all) < 40 {
		t.Fatal(all, err)
	}
	return all
}

var (
	anyCode  = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`")
	pageLink = regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^) ]+))?\)`)
)

// linked are the links of a page to others of the repository, each with its heading, and to its own headings.
func linked(t *testing.T, name string) (all [][2]string) {
	t.Helper()
	for _, m := range pageLink.FindAllStringSubmatch(anyCode.ReplaceAllString(page(t, name), ""), -1) {
		to := name
		if m[1] != "" {
			to = path.Join(path.Dir(name), m[1])
		}
		all = append(all, [2]string{to, m[2]})
	}
	return all
}

func TestThePagesLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	links := 0
	for _, name := range everyPage(t) {
		for _, l := range linked(t, name) {
			links++
			if _, err := os.Stat(filepath.Join("../..", l[0])); err != nil || strings.HasPrefix(l[0], "../") {
				t.Errorf("%s links to %s, which is not there: %v", name, l[0], err)
			} else if l[1] != "" && (!strings.HasSuffix(l[0], ".md") || !slices.Contains(anchors(page(t, l[0])), l[1])) {
				t.Errorf("%s links to #%s, and %s has no such heading", name, l[1], l[0])
			}
		}
	}
	if links < 400 {
		t.Errorf("only %d links were found: the pattern no longer fits the pages", links)
	}
}

// Who begins at the README, or at the concepts, is one link away from each page; who looks for an example, from each of those.
func TestEveryPageIsOneLinkAway(t *testing.T) {
	t.Parallel()
	from := func(name string) (to []string) {
		for _, l := range linked(t, name) {
			to = append(to, l[0])
		}
		return to
	}
	readme, concepts, list := from("README.md"), append(from("docs/concepts.md"), "docs/concepts.md"), from("examples/README.md")
	for _, name := range everyPage(t) {
		if docs := path.Dir(name) == "docs"; docs && !slices.Contains(readme, name) {
			t.Errorf("README.md does not link to %s", name)
		} else if docs && !slices.Contains(concepts, name) {
			t.Errorf("docs/concepts.md does not link to %s", name)
		}
	}
	for _, name := range examples(t) {
		if !slices.Contains(list, name) {
			t.Errorf("examples/README.md does not link to %s", name)
		}
	}
}

// anchors are the headings of a page as links name them; of two that are the same the second has a -1 behind it.
func anchors(text string) (all []string) {
	fence, seen := false, map[string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		if heading := strings.TrimLeft(line, "#"); !fence && heading != line && strings.HasPrefix(heading, " ") {
			name := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(heading), " ", "-"))
			name = regexp.MustCompile(`[^\pL\pN_-]`).ReplaceAllString(name, "")
			if n := seen[name]; n > 0 {
				all = append(all, fmt.Sprintf("%s-%d", name, n))
			} else {
				all = append(all, name)
			}
			seen[name]++
		}
	}
	return all
}

// Every line that --json can write is in the table, with all its fields, and so is every part of a message.
func TestTheLinesOfJSONAreInTheManual(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(page(t, "docs/cli.md"), "\n## `--json`\n")
	text, _, _ = strings.Cut(text, "\n## ")
	tables := strings.SplitN(text, "\n| part | fields |\n", 2)
	if len(tables) != 2 {
		t.Fatal("docs/cli.md has no table of parts")
	}
	said, parts := fieldsOf(tables[0]), fieldsOf(tables[1])

	var out bytes.Buffer
	cost, origin := int64(1), message.Origin{Provider: "p", Extra: `{}`}
	file := message.File{MIME: "image/png", Name: "n", URL: "u", Hash: "h", Data: "d", Provider: "p", ID: "i"}
	cited := []message.Citation{{URL: "u", Title: "t", Quote: "q", End: 1}}
	m := message.New(message.RoleAssistant, message.Text{Text: "t", Origin: origin, Citations: cited}, message.Reasoning{Text: "r", Signature: "s", Origin: origin}, file,
		message.ToolCall{ID: "c", Name: "n", Input: `{}`, Origin: origin}, message.ToolResult{Call: "c", Name: "n", Content: "x", Files: []message.File{file}, IsError: true},
		message.ProviderCall{Opaque: message.Opaque{Provider: "p", JSON: `{}`}, Call: "c", Name: "n", Input: "i", Output: "o", Sources: cited, IsError: true}, message.Opaque{Provider: "p", JSON: `{}`})
	called := journal.Called{ID: "c", Name: "n", Input: `{}`}
	j := newJSONL(&out)
	for _, d := range []journal.Data{
		journal.RunStarted{Model: "m", Engine: "e", Dir: "d"},
		journal.Said{Message: m},
		journal.ModelFinished{CostMicros: &cost},
		journal.ToolStarted{Call: called},
		journal.CommandStarted{ID: "b", Call: "c", Command: "x"},
		journal.CommandEnded{ID: "b", Reason: "exited", Code: 1, Signal: "SIGTERM"},
		journal.ToolFinished{Call: "c", Name: "n", Content: "x", IsError: true, Outcome: journal.OutcomeError},
		journal.Asked{ID: "c", Prompt: "why", Call: &called, Unknown: true, Once: true, Confirm: true},
		journal.Compacted{TokensBefore: 1, TokensAfter: 1, Preserved: 1, SummarySize: 1},
	} {
		j.event(event.Event{Entry: journal.Entry{Session: "s", Run: "r", Seq: 1, Data: d}, ParentRun: "p"})
	}
	for _, d := range []event.Delta{event.TextDelta, event.ReasoningDelta, event.ToolOutput, event.Retry, event.Warning} {
		j.event(event.Event{Entry: journal.Entry{Session: "s", Run: "r", Seq: 1}, Delta: d, Text: "t", Stream: "stdout", Attempt: 1, ParentRun: "p"})
	}
	j.finished(nil, errdefs.Validation.Errorf("x"))

	wrote := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		name := strings.Trim(string(fields["type"]), `"`)
		for _, of := range []string{"type", "session", "run", "seq", "time", "parent_run"} {
			delete(fields, of)
		}
		wrote[name] = slices.Sorted(maps.Keys(fields))
		if name != "message" {
			continue
		}
		var message struct{ Parts []map[string]any }
		if err := json.Unmarshal(fields["message"], &message); err != nil {
			t.Fatal(err)
		}
		have := map[string][]string{}
		for _, p := range message.Parts {
			kind := p["type"].(string)
			delete(p, "type")
			have[kind] = slices.Sorted(maps.Keys(p))
		}
		if diff := cmp.Diff(have, parts); diff != "" {
			t.Errorf("the parts in docs/cli.md (+) are not those that are written (-):\n%s", diff)
		}
	}
	if diff := cmp.Diff(wrote, said); diff != "" {
		t.Errorf("the lines in docs/cli.md (+) are not those that are written (-):\n%s", diff)
	}
	var kept []string
	for what, of := range map[string]map[string][]string{"": wrote, "part ": parts} {
		for name, fields := range of {
			kept = append(kept, what+name)
			for _, field := range fields {
				kept = append(kept, what+name+" "+field)
			}
		}
	}
	stable.Check(t, "json.txt", kept, *update)
}

// fieldsOf reads a table: by the names in the first column of each row, the names of fields in the second one.
func fieldsOf(table string) map[string][]string {
	out := map[string][]string{}
	field := regexp.MustCompile("^`([a-z_]+)(?:\\{[a-z, ]+\\})?`")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		var fields []string
		rest := regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(row[2], "")
		for _, word := range regexp.MustCompile("`[^`]+`").FindAllString(rest, -1) {
			if m := field.FindStringSubmatch(word); m != nil {
				fields = append(fields, m[1])
			}
		}
		slices.Sort(fields)
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			out[name[1]] = fields
		}
	}
	return out
}

func TestTheClassesOfErrorsAreInTheManual(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(page(t, "docs/cli.md"), "\n## Error classes\n")
	text, _, _ = strings.Cut(text, "\n## ")
	want := []string{"canceled"} // which is none of errdefs
	src, err := os.ReadFile("../../errdefs/errdefs.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`= &Class\{"([a-z_]+)"`).FindAllStringSubmatch(string(src), -1) {
		want = append(want, m[1])
	}
	var have []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		if m[1] != "errdefs" {
			have = append(have, m[1])
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" || len(want) < 10 {
		t.Errorf("the classes in docs/cli.md (+) are not those of errdefs (-):\n%s", diff)
	}
}

// The page has every command of a conversation as its /help has it, and no other.
func TestTheCommandsOfAConversationAreInItsPage(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile("(?m)^\\| `(/[a-z]+[^`]*)` \\|").FindAllStringSubmatch(page(t, "docs/chat.md"), -1)
	var got []string
	for _, m := range said {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(chat.Commands(), got); diff != "" {
		t.Error(diff)
	}
}

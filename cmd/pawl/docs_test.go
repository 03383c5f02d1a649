package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are what strangers read first. What they show has to work.
var pages = []string{"README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "docs/cli.md", "docs/sessions.md", "docs/agents.md", "docs/fence.md", "docs/mcp.md", "docs/packs.md", "docs/architecture.md", "docs/observability.md"}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

func TestTheGoCodeInThePagesCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	for _, name := range pages {
		for _, block := range goBlock.FindAllStringSubmatch(page(t, name), -1) {
			code := block[1]
			if !strings.Contains(code, "package main") {
				code = "package main\n\nimport (\n\t\"context\"\n\n\t\"github.com/pawl-dev/pawl/tool\"\n)\n\nfunc main() {\n" + code + "\n_ = add\n}\n"
			}
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "build", "-o", os.DevNull, file)
			cmd.Dir = "../.."
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, out, code)
			}
		}
	}
}

// The programs of these pages need no key: they run as they stand.
func TestTheProgramsInThePagesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	for name, want := range map[string][]string{
		"docs/sessions.md":      {"completed Done.\n"},
		"docs/observability.md": {"chat test\ninvoke_agent pawl\n"},
		"docs/agents.md":        {"completed The reviewer found two bugs.\n", ".end\n"},
		"docs/packs.md":         {textBlock.FindStringSubmatch(page(t, "docs/packs.md"))[1]},
	} {
		blocks := goBlock.FindAllStringSubmatch(page(t, name), -1)
		if len(blocks) != len(want) {
			t.Fatalf("%s has %d programs, %d are expected", name, len(blocks), len(want))
		}
		for i, block := range blocks {
			dir := t.TempDir()
			files(t, page(t, name), dir)
			file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
			if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			build := exec.Command("go", "build", "-o", program, file)
			build.Dir = "../.."
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
			run := exec.Command(program)
			run.Dir = dir
			if out, err := run.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), want[i]) {
				t.Errorf("%s: %v\n%s\nwant …%s", name, err, out, want[i])
			}
		}
	}
}

var (
	fileBlock = regexp.MustCompile("(?s)```json ([^\n]+)\n(.*?)```")
	textBlock = regexp.MustCompile("(?s)```text\n(.*?)```")
)

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
	w := newWorld(t)
	known := 0
	for _, name := range pages {
		for line := range strings.Lines(page(t, name)) {
			for _, m := range commandLine.FindAllStringSubmatch(line, -1) {
				words := strings.Fields(m[1])
				if (words[0] == "sessions" || words[0] == "permissions" || words[0] == "mcp" || words[0] == "pack") && len(words) > 1 {
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
	for _, command := range []string{"run", "resume"} {
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

func TestThePagesLinkToWhatIsThere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, name := range pages {
		for _, m := range link.FindAllStringSubmatch(page(t, name), -1) {
			if _, err := os.Stat(filepath.Join("../..", filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}

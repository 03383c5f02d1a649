package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// row is one case of the contract: words of docs/cli.md, and what holds them.
type row struct {
	name string // a sentence
	doc  string // the words of docs/cli.md that it holds, or of another page: "serve.md: words"
	// holds names what of the page's tables is held, several with commas: a command
	// ("pawl run"), a flag ("--model"; of another command "pawl serve --addr"), a type of
	// --json ("run.started"), a class ("class timeout"), an exit code ("exit 3") or a
	// route ("POST /v1/runs").
	holds string
	test  func(w *world)
}

// tables are all rows, by the test that runs them.
var tables = map[string][]row{}

// table registers rows, so that TestContract sees them.
func table(test string, rows ...row) bool {
	tables[test] = append(tables[test], rows...)
	return true
}

// runRows runs the rows of a test beside each other, each in a world of its own.
func runRows(t *testing.T) {
	beyondQuick(t)
	if len(tables[t.Name()]) == 0 {
		t.Fatal("there are no rows")
	}
	for _, r := range tables[t.Name()] {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.test(newWorld(t))
		})
	}
}

// page gives the text of a page of docs.
func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// flat writes a text on one line, without the addresses of its links.
func flat(text string) string {
	text = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(text, "]")
	return strings.Join(strings.Fields(text), " ")
}

// code are the spans of code in a text.
var code = regexp.MustCompile("`([^`]+)`")

// section gives what stands under a heading of the page, up to the next one as high.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/cli.md has no section %q", heading)
	}
	level := heading[:strings.Index(heading, " ")+1]
	if i := strings.Index(text, "\n"+level); i >= 0 {
		text = text[:i]
	}
	return text
}

// firstColumn gives the first cells of the tables in a text, without their heads.
func firstColumn(text string) (cells []string) {
	rows := regexp.MustCompile(`(?m)^\|((?:[^|\\]|\\.)*)\|`).FindAllStringSubmatch(text, -1)
	for i, m := range rows {
		isHead := i+1 < len(rows) && strings.Trim(rows[i+1][1], "- ") == ""
		if cell := strings.TrimSpace(m[1]); cell != "" && strings.Trim(cell, "-") != "" && !isHead {
			cells = append(cells, cell)
		}
	}
	return cells
}

// promised lists what the page's tables name.
func promised(t *testing.T) (all []string) {
	text := page(t, "cli.md")
	before, _, _ := strings.Cut(text, "\n## Flags of")
	word := regexp.MustCompile(`^[a-z]+$`)
	for _, cell := range firstColumn(before) {
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			words := strings.Fields(m[1])
			n := slices.IndexFunc(words, func(s string) bool { return !word.MatchString(s) })
			if n < 0 {
				n = len(words)
			}
			all = append(all, strings.Join(words[:n], " "))
		}
	}
	flags := regexp.MustCompile(`--[a-z-]+`)
	for _, cell := range firstColumn(section(t, text, "## Flags of `run` and `resume`")) {
		all = append(all, flags.FindAllString(cell, -1)...)
	}
	for _, command := range []string{"serve", "worker", "approve, reject, answer", "sessions", "trust", "doctor", "mcp", "graph", "pack"} {
		name, _, _ := strings.Cut(command, ",")
		for _, span := range code.FindAllString(section(t, text, "### pawl "+command), -1) {
			for _, flag := range flags.FindAllString(span, -1) {
				if !slices.Contains(all, flag) { // those of run are held there
					all = append(all, "pawl "+name+" "+flag)
				}
			}
		}
	}
	types, _, _ := strings.Cut(section(t, text, "## `--json`"), "`usage` has")
	for _, cell := range firstColumn(types) {
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
	}
	named, _, _ := strings.Cut(section(t, text, "## Error classes"), "The package")
	for _, m := range code.FindAllStringSubmatch(named, -1) {
		if m[1] != "error.class" {
			all = append(all, "class "+m[1])
		}
	}
	codes, _, _ := strings.Cut(section(t, text, "## Exit codes"), "A cancelled run")
	for _, m := range regexp.MustCompile(`(?:^|· |\n)(\d+)\s`).FindAllStringSubmatch(codes, -1) {
		all = append(all, "exit "+m[1])
	}
	route := regexp.MustCompile("`((?:GET |POST |DELETE )?/[^`]*)`")
	for _, cell := range firstColumn(section(t, page(t, "serve.md"), "## Routes")) {
		for _, m := range route.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestContract_EveryEntryOfTheTablesHasARow(t *testing.T) {
	held := map[string]bool{}
	for _, rows := range tables {
		for _, r := range rows {
			for name := range strings.SplitSeq(r.holds, ",") {
				held[strings.TrimSpace(name)] = true
			}
		}
	}
	all := promised(t)
	for _, name := range all {
		if !held[name] {
			t.Errorf("no row holds %q of docs/cli.md or docs/serve.md", name)
		}
	}
	for name := range held {
		if name != "" && !slices.Contains(all, name) {
			t.Errorf("a row holds %q, which the tables of docs/cli.md and docs/serve.md don't name", name)
		}
	}
	if len(all) < 120 {
		t.Errorf("only %d entries were read: the page has another form now", len(all))
	}
}

func TestContract_EveryRowQuotesThePage(t *testing.T) {
	pages := map[string]string{}
	for test, rows := range tables {
		names := map[string]bool{}
		for _, r := range rows {
			if names[r.name] {
				t.Errorf("%s has two rows %q", test, r.name)
			}
			names[r.name] = true
			name, words := "cli.md", r.doc
			if m := regexp.MustCompile(`^([a-z0-9]+\.md): (.*)$`).FindStringSubmatch(words); m != nil {
				name, words = m[1], m[2]
			}
			if pages[name] == "" {
				pages[name] = flat(page(t, name))
			}
			if words == "" || !strings.Contains(pages[name], flat(words)) {
				t.Errorf("%s/%s: docs/%s does not say %q", test, r.name, name, words)
			}
		}
	}
}

func TestContract_LinesAndPartsAreDocumentedFieldByField(t *testing.T) {
	text := section(t, page(t, "cli.md"), "## `--json`")
	lineRows, partRows, found := strings.Cut(text, "`usage` has")
	if !found {
		t.Fatal("the page has another form now")
	}
	compareFields(t, lineRows, lineMembers, nil)
	compareFields(t, partRows, partMembers, sourceMembers)
}

// compareFields compares a table of types and fields with what the tests check.
func compareFields(t *testing.T, text string, want map[string][]member, nested []member) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (.+?) \| (.+) \|$`).FindAllStringSubmatch(text, -1) {
		for _, kind := range code.FindAllStringSubmatch(m[1], -1) {
			members, known := want[kind[1]]
			if seen[kind[1]] = true; !known {
				t.Errorf("docs/cli.md has the type %q, which no test knows", kind[1])
			}
			for _, field := range members {
				name := strings.TrimSuffix(field.name, "?")
				if !regexp.MustCompile("`" + name + "[`{]").MatchString(m[2]) {
					if kind[1] == "command.ended" || !slices.ContainsFunc(nested, func(n member) bool { return n.name == field.name }) {
						t.Errorf("docs/cli.md does not name the field %q of %s", name, kind[1])
					}
				}
			}
		}
	}
	for kind := range want {
		if !seen[kind] {
			t.Errorf("the tests know the type %q, which docs/cli.md does not have", kind)
		}
	}
}

func TestContract_ThePackageKnowsOnlyThePublicAPI(t *testing.T) {
	tier.SkipQuick(t, "it lists packages")
	const module = "github.com/pawl-dev/pawl"
	own := listImports(t, ".", "-test", "-deps", "-f", "{{.ImportPath}}")
	for _, path := range own {
		path, _, _ = strings.Cut(path, " ")
		isOwn := strings.HasPrefix(path, module+"/internal/testkit/")
		if (path == module || strings.HasPrefix(path, module+"/")) && !isOwn {
			t.Errorf("the package reaches %s: it may import only internal/testkit/...", path)
		}
	}
	for _, path := range listImports(t, "./testdata/programs/...", "-f", `{{join .Imports "\n"}}`) {
		if strings.HasPrefix(path, module) && strings.Contains(path, "/internal/") {
			t.Errorf("a program imports %s: programs know only public packages", path)
		}
	}
}

// listImports runs go list in the package's directory and gives its lines.
func listImports(t *testing.T, pattern string, flags ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append(append([]string{"list"}, flags...), pattern)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// The Go programs of all pages are built into one: each is a package whose function main has another name.
// Linking them one by one would take most of the time of the tests of the pages.

var (
	goBlock     = regexp.MustCompile("(?s)```go\n(.*?)```")
	packageMain = regexp.MustCompile(`(?m)^package main$`)
	funcMain    = regexp.MustCompile(`(?m)^func main\(\) \{`)
)

// pageProgram names a Go program in a page, and its code.
type pageProgram struct{ name, page, code string }

// pagePrograms lists the Go programs of the pages.
func pagePrograms() (all []pageProgram, err error) {
	for _, name := range pages {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			return nil, err
		}
		for i, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			code := block[1]
			if !strings.Contains(code, "package main") {
				code = "package main\n\nimport (\n\t\"context\"\n\n\t\"github.com/pawl-dev/pawl/tool\"\n)\n\n" +
					"func main() {\n" + code + "\n_ = add\n}\n"
			}
			all = append(all, pageProgram{programName(name, i), name, code})
		}
	}
	first := programName("README.md", 0)
	for _, p := range all {
		if p.name == first {
			all = append(all, pageProgram{firstProgram, p.page, strings.Replace(p.code, openChat, openScripted, 1)})
		}
	}
	return all, nil
}

// The first program of README.md asks a model that costs a key. The test asks a script.
const (
	firstProgram = "readme_scripted"
	openChat     = `pawl.Open("support.pack.json", "chat")`
	openScripted = `pawl.Open("support.pack.json", "chat", pawl.WithModelName("scripted/m.yaml"))`
)

// programName is the name of a page's program as a package.
func programName(page string, number int) string {
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(page), ".md"))
	return fmt.Sprintf("%s_%d", name, number)
}

// chosen is the variable that selects the program to run.
const chosen = "PAWL_PAGE_PROGRAM"

// buildPages builds the programs of all pages, once.
var buildPages = sync.OnceValues(func() (string, error) {
	programs, err := pagePrograms()
	if err != nil {
		return "", err
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(shared.dir, "pages")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	add := func(name, code string) error {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		replace[filepath.Join(root, "pageprograms", name)] = file
		return os.WriteFile(file, []byte(code), 0o600)
	}
	imports, cases := "", ""
	for _, p := range programs {
		if strings.Contains(p.code, "/internal/") || len(packageMain.FindAllString(p.code, -1)) != 1 || len(funcMain.FindAllString(p.code, -1)) != 1 {
			return "", fmt.Errorf("%s: a program imports no internal package, and has one package and one function main:\n%s", p.page, p.code)
		}
		code := packageMain.ReplaceAllLiteralString(p.code, "package "+p.name)
		code = funcMain.ReplaceAllLiteralString(code, "func Main() {")
		if err := add(p.name+"/"+p.name+".go", code); err != nil {
			return "", err
		}
		imports += fmt.Sprintf("\t%q\n", "github.com/pawl-dev/pawl/pageprograms/"+p.name)
		cases += fmt.Sprintf("\tcase %q:\n\t\t%s.Main()\n", p.name, p.name)
	}
	main := "package main\n\nimport (\n\t\"os\"\n\n" + imports + ")\n\nfunc main() {\n\tswitch os.Getenv(\"" + chosen + "\") {\n" + cases + "\t}\n}\n"
	if err := add("main.go", main); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./pageprograms")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// runPage runs a program of a page in dir.
func runPage(t *testing.T, name, dir string) (string, error) {
	t.Helper()
	program, err := buildPages()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), chosen+"="+name)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheGoCodeInThePagesCompiles(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it builds a program")
	if _, err := buildPages(); err != nil {
		t.Error(err)
	}
}

// The programs of these pages need no key: they run as they stand.
func TestTheProgramsInThePagesRun(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it builds a program")
	for name, want := range map[string][]string{
		"docs/sessions.md":      {"completed Done.\n"},
		"docs/observability.md": {"chat test\ninvoke_agent pawl\n"},
		"docs/agents.md":        {"completed The reviewer found two bugs.\n", ".end\n"},
		"docs/packs.md":         texts(page(t, "docs/packs.md")),
	} {
		if blocks := goBlock.FindAllString(page(t, name), -1); len(blocks) != len(want) {
			t.Fatalf("%s has %d programs, %d are expected", name, len(blocks), len(want))
		}
		for i, end := range want {
			dir := t.TempDir()
			files(t, page(t, name), dir)
			if out, err := runPage(t, programName(name, i), dir); err != nil || !strings.HasSuffix(out, end) {
				t.Errorf("%s: %v\n%s\nwant …%s", name, err, out, end)
			}
		}
	}
}

// The first program that a stranger sees runs with the file beside it, as it stands, but for the model.
func TestTheFirstProgramOfTheREADMERuns(t *testing.T) {
	t.Parallel()
	readme, dir := page(t, "README.md"), t.TempDir()
	if code := goBlock.FindStringSubmatch(readme)[1]; !strings.Contains(code, openChat) {
		t.Fatalf("it opens no pack:\n%s", code)
	}
	tier.SkipQuick(t, "it builds a program")
	files(t, readme, dir)
	if err := os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(`turns: [{text: "It is on its way, Ada."}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runPage(t, firstProgram, dir); err != nil || out != "It is on its way, Ada.\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

package readme_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/readme"
)

func TestMain(m *testing.M) { readme.Main(m, program) }

// program is an example: it says what it is told, or, as a real model without a key, fails.
func program() {
	if os.Args[1] == "-model" {
		fmt.Println("no key in ANTHROPIC_API_KEY")
		os.Exit(1)
	}
	fmt.Println(strings.Join(os.Args[1:], " "))
}

const model = "```sh\ngo run ./examples/x -model anthropic/y   # a real one\n```\n"

// inside is set where the test is run for a page, in its directory.
const inside = "PAWL_README_TEST"

// TestOfX is a test of an example.
func TestOfX(t *testing.T) {
	if os.Getenv("PAWL_X") != "" {
		t.Error("it is as it should not be")
	}
}

func TestAPageIsHeldToWhatItSays(t *testing.T) {
	if os.Getenv(inside) != "" {
		readme.Open(t, "examples/x").Run()
		return
	}
	for name, c := range map[string]struct {
		page, wrong string // "": nothing is
	}{
		"all is well":          {"```sh\ngo run ./examples/x hello && cat examples/x/file\n```\n```text\nhello\nmilk\n```\n```txt file\nmilk\n```\n" + model, ""},
		"a command fails":      {"```sh\nfalse\n```\n" + model, "exit status 1"},
		"its tests are run":    {"```sh\ngo test ./examples/x -v -run TestOfX\nPAWL_X=1 go test ./examples/x -run TestOfX && exit 1\ntrue\n```\n```text\n=== RUN   TestOfX\n```\n```text\nFAIL\n```\n" + model, ""},
		"its tests fail":       {"```sh\nPAWL_X=1 go test ./examples/x -run TestOfX\n```\n" + model, "it is as it should not be"},
		"another output":       {"```sh\ngo run ./examples/x hello\n```\n```text\ngood bye\n```\n" + model, "good bye"},
		"outputs out of order": {"```sh\necho 1; echo 2\n```\n```text\n2\n```\n```text\n1\n```\n" + model, "it is not in"},
		"another file":         {"```txt file\nbread\n```\n" + model, "another file"},
		"no real model":        {"```sh\ntrue\n```\n", "real model"},
		"no key is asked for":  {"```sh\necho ./examples/x -model anthropic/y\n```\n", "it needs no key"},
		"a server that ends":   {"```sh\nfalse 127.0.0.1:7290 &\n```\n" + model, "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"README.md": c.page, "file": "milk\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPageIsHeldToWhatItSays$")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), inside+"=1")
			out, err := cmd.CombinedOutput()
			if (err != nil) != (c.wrong != "") || !strings.Contains(string(out), c.wrong) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Package readme holds an example to its README.md: every command that stands there is run, and what it says they print is what they print.
package readme

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
)

// asProgram is set where the binary of an example's tests is the example.
const asProgram = "PAWL_EXAMPLE"

// atOnce has a program with the race detector end when it ends: it would sleep for a second.
const atOnce = "GORACE=atexit_sleep_ms=0"

// Main is for an example's TestMain: the binary of its tests is the example, too, so that nothing is built twice, and the race detector watches it.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	for _, variable := range []string{"LC_ALL", "LC_MESSAGES", "LC_CTYPE", "LANGUAGE"} {
		_ = os.Unsetenv(variable)
	}
	_ = os.Setenv("LANG", "C.UTF-8") // what programs print in other languages is not what the pages show
	os.Exit(m.Run())
}

// Command is the example with these arguments, in dir.
func Command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...) //nolint:gosec // the test itself
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), asProgram+"=1", atOnce), 10*time.Second
	return cmd
}

// Page is an example's directory as its README.md speaks of it, in a place of its own: what the commands write stays there.
type Page struct {
	Dir     string            // the root that the commands run in; the example's files lie below it, as in the repository
	Address map[string]string // where what the page has at an address is here

	t    *testing.T
	name string // "examples/NAME"
	text string
}

// Open copies the example that the test lies in, whose path in the repository is name ("examples/NAME"). Addresses of this machine (127.0.0.1:7290) become free ones, in all of its files.
func Open(t *testing.T, name string) *Page {
	t.Helper()
	component.Command(t, "bash", "install bash")
	for _, key := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(key, "")
	}
	p := &Page{Dir: t.TempDir(), Address: map[string]string{}, t: t, name: name}
	t.Setenv("XDG_STATE_HOME", filepath.Join(p.Dir, "state"))
	temp := filepath.Join(p.Dir, "tmp")
	t.Setenv("TMPDIR", temp)
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		to := filepath.Join(p.Dir, filepath.FromSlash(name), path)
		if err != nil || d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		b, err := os.ReadFile(path) //nolint:gosec // the example's own
		if err != nil {
			return err
		}
		text := p.local(string(b))
		if path == "README.md" {
			p.text = text
		}
		return os.WriteFile(to, []byte(text), 0o600) //nolint:gosec // in a directory of the test
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	p.showsFiles()
	return p
}

var address = regexp.MustCompile(`127\.0\.0\.1:72\d\d`)

// local puts free addresses in the place of those of a file.
func (p *Page) local(text string) string {
	return address.ReplaceAllStringFunc(text, func(of string) string {
		if p.Address[of] == "" {
			l, err := new(net.ListenConfig).Listen(p.t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				p.t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			p.Address[of] = l.Addr().String()
		}
		return p.Address[of]
	})
}

var block = regexp.MustCompile("(?ms)^```([a-z]+)(?: (\\S+))?\n(.*?)^```$")

// showsFiles checks that what the page shows of a file is there: of Go files a part, other files whole.
func (p *Page) showsFiles() {
	p.t.Helper()
	for _, b := range block.FindAllStringSubmatch(p.text, -1) {
		if b[2] == "" {
			continue
		}
		file, err := os.ReadFile(filepath.Join(p.Dir, filepath.FromSlash(p.name), b[2]))
		if text := string(file); err != nil || text != b[3] && (b[1] != "go" || !strings.Contains(text, "\n"+b[3])) {
			p.t.Errorf("README.md shows another %s: %v\n%s", b[2], err, b[3])
		}
	}
}

// realModel is what a page's commands have in the place of a script, and key the variable that they need.
const (
	realModel = "-model anthropic/"
	key       = "ANTHROPIC_API_KEY"
)

// Run runs the page's blocks of commands (```sh), one script in all, and gives what they printed. A command that ends with & is waited for until the addresses in it answer, and is ended behind the last one. There has to be one that asks a real model; without a key it has to fail, and name the variable for it.
// What the page says is printed (```text) has to be, block by block in order. DIR there is the page's Dir.
func (p *Page) Run() string {
	p.t.Helper()
	var script strings.Builder
	script.WriteString("trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT\n")
	for _, b := range block.FindAllStringSubmatch(p.text, -1) {
		if b[1] != "sh" {
			continue
		}
		for line := range strings.Lines(b[3]) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), " # ")
			command = strings.TrimSpace(command)
			if strings.Contains(command, realModel) {
				fmt.Fprintf(&script, "if SAID=$(%s 2>&1); then echo 'it needs no key'; exit 1; fi\n[[ $SAID == *%s* ]] || { echo \"$SAID\"; exit 1; }\n", command, key)
				continue
			}
			script.WriteString(line)
			if strings.HasSuffix(command, "&") {
				for _, at := range p.Address {
					if strings.Contains(command, at) {
						host, port, _ := net.SplitHostPort(at)
						fmt.Fprintf(&script, "until (exec 3<>/dev/tcp/%s/%s) 2>/dev/null; do kill -0 $!; sleep 0.05; done\n", host, port)
					}
				}
			}
		}
	}
	if !strings.Contains(script.String(), realModel) {
		p.t.Error("README.md does not say how to run it with a real model")
	}
	printed := p.bash(script.String())
	rest := printed
	for _, b := range block.FindAllStringSubmatch(p.text, -1) {
		if b[1] != "text" {
			continue
		}
		want := strings.ReplaceAll(b[3], "DIR", p.Dir)
		_, behind, ok := strings.Cut(rest, want)
		if !ok {
			p.t.Fatalf("README.md says that this is printed:\n%s\nand it is not in:\n%s", want, rest)
		}
		rest = behind
	}
	return printed
}

// shim stands for the go command: "go run ./examples/NAME" and "go test ./examples/NAME" are the binary of the tests, so that nothing is built twice. As go does, it hands the test binary its own flags with "test." before them, in the directory of the package.
const shim = `#!/usr/bin/env bash
export %[4]s
if [ "$1 $2" = "run ./%[1]s" ]; then
	shift 2; %[2]s=1 exec '%[3]s' "$@"
elif [ "$1 $2" = "test ./%[1]s" ]; then
	shift 2; cd '%[1]s'; args=()
	for a; do case $a in -run|-v|-count|-short) a=-test.${a#-};; esac; args+=("$a"); done
	exec '%[3]s' "${args[@]}"
fi
exec '%[5]s' "$@"
`

// bash runs a script with the shim in the go command's place: programs and tests are processes of their own, as they are for whoever reads the page.
func (p *Page) bash(script string) string {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	real, err := exec.LookPath("go")
	if err != nil {
		p.t.Fatal(err)
	}
	bin := p.t.TempDir()
	goes := fmt.Sprintf(shim, p.name, asProgram, self, atOnce, real)
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(goes), 0o700); err != nil { //nolint:gosec // it is a program
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script) //nolint:gosec // what the page says
	cmd.Dir, cmd.WaitDelay = p.Dir, 10*time.Second
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

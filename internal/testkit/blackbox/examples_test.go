package blackbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// example is a program of examples, run as its README.md says.
type example struct {
	needs []string // programs besides bash
	files map[string]string
	check func(w *world, dir string) // looks at what came of it outside the transcript
}

var examples = map[string]example{
	"a2a-pair":         {files: map[string]string{"stock.json": "{\"ratchet\":5}\n"}},
	"code-fixer":       {needs: []string{"go"}, check: fixedCode},
	"crash-and-resume": {},
	"custom-model":     {needs: []string{"jq"}, files: map[string]string{"heating": "off\n"}},
	"custom-store":     {files: map[string]string{"list.txt": "bread\nmilk\napples\n"}},
	"evals":            {files: map[string]string{"tickets.csv": "shipping,7,Wants to know where the parcel is.\nbilling,9,Wants the money back for a broken clock.\n"}},
	"invoices":         {check: tabled},
	"researcher":       {check: reported},
	"support-desk":     {},
	"three-engines":    {check: published},
	"web-ui":           {needs: []string{"curl"}},
}

func TestExamples(t *testing.T) {
	beyondQuick(t)
	onUnix(t)
	found, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	if err != nil || len(found) != len(examples) {
		t.Errorf("%d examples are there, %d are tried: %v", len(found), len(examples), err)
	}
	for name, e := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs(t, "bash")
			for _, program := range e.needs {
				needs(t, program)
			}
			if name == "code-fixer" {
				tier.SkipUnlessAll(t, "its sandboxed go test compiles Go's library first")
			}
			w := newWorld(t)
			dir, isPortTaken := w.example(name)
			for tries := 1; isPortTaken && tries < 5; tries++ {
				w = newWorld(t)
				dir, isPortTaken = w.example(name)
			}
			if isPortTaken {
				t.Fatal("other programs took its ports each time")
			}
			for file, text := range e.files {
				w.wants(filepath.Join(dir, file), text)
			}
			if e.check != nil {
				e.check(w, dir)
			}
		})
	}
}

var (
	fenced    = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	localPort = regexp.MustCompile(`127\.0\.0\.1:72\d\d`)
	goRun     = regexp.MustCompile(`go run \./examples/([a-z0-9-]+)`)
)

// example runs the commands of an example's page, checks what it says they print, and
// gives the directory that the page calls DIR. It checks nothing if another program took
// a port after freeAddress found it.
func (w *world) example(name string) (dir string, isPortTaken bool) {
	w.t.Helper()
	own := filepath.Join(w.dir, "examples", name)
	if err := os.CopyFS(own, os.DirFS(filepath.Join(root, "examples", name))); err != nil {
		w.t.Fatal(err)
	}
	addresses := map[string]string{}
	local := func(of string) string {
		if addresses[of] == "" {
			addresses[of] = freeAddress(w.t)
		}
		return addresses[of]
	}
	err := filepath.WalkDir(own, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			w.write(path, localPort.ReplaceAllStringFunc(w.read(path), local))
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	text := w.read("examples/" + name + "/README.md")
	dir = filepath.Join(w.temp, "dir")
	script := "set -eo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT\n"
	var printed []string
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "text":
			printed = append(printed, m[2])
		case m[1] == "sh" && !strings.Contains(m[2], "-model anthropic/") && !strings.Contains(m[2], "go test ./examples"):
			script += w.commands(m[2], dir, addresses)
		}
	}
	r := w.run(w.command("bash", "-c", script))
	if strings.Contains(r.out+r.err, "address already in use") {
		return dir, true
	}
	if r.code != 0 {
		w.t.Fatalf("%v\n%s", r, script)
	}
	if name == "evals" { // behind the first block the page shows what go test prints
		printed = printed[:1]
	}
	for _, want := range printed {
		for line := range strings.Lines(want) {
			for part := range strings.SplitSeq(strings.TrimSpace(line), "DIR") {
				if !strings.Contains(r.out+r.err, part) {
					w.t.Errorf("it does not print %q: %s%s", part, r.out, r.err)
				}
			}
		}
	}
	return dir, false
}

// commands turns a block of a page into commands of the built programs. A command that
// goes on in the background is waited for until its address answers.
func (w *world) commands(block, dir string, addresses map[string]string) string {
	block = strings.ReplaceAll(block, "$(mktemp -d)", "'"+dir+"'; mkdir -p '"+dir+"'")
	block = goRun.ReplaceAllStringFunc(block, func(m string) string { return "'" + binary(filepath.Base(m)) + "'" })
	var b strings.Builder
	for line := range strings.Lines(block) {
		b.WriteString(line)
		command, _, _ := strings.Cut(line, " # ")
		if !strings.HasSuffix(strings.TrimSpace(command), "&") {
			continue
		}
		for _, address := range addresses {
			if host, port, _ := strings.Cut(address, ":"); strings.Contains(command, address) {
				fmt.Fprintf(&b, "for i in $(seq 600); do (: < /dev/tcp/%s/%s) 2>/dev/null && break; sleep 0.05; done\n", host, port)
			}
		}
	}
	return b.String()
}

// freeAddress gives an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func fixedCode(w *world, dir string) {
	cmd := w.command("go", "test", "./...")
	cmd.Dir = filepath.Join(dir, "slug")
	if r := w.run(cmd); r.code != 0 {
		w.t.Error(r)
	}
}

func reported(w *world, dir string) {
	if text := w.read(filepath.Join(dir, "report.md")); !strings.Contains(text, "/pages/otters.md") || !strings.Contains(text, "/pages/seals.md") {
		w.t.Error(text)
	}
}

func tabled(w *world, dir string) {
	rows := strings.Split(strings.TrimSpace(w.read(filepath.Join(dir, "invoices.csv"))), "\n")
	slices.Sort(rows) // the invoices are read beside each other
	if want := []string{"2026-11-02,Ratchet & Sons,R-17,4800", "2026-11-09,Kelp Cooperative,4711,1250"}; !slices.Equal(rows, want) {
		w.t.Errorf("%q", rows)
	}
}

func published(w *world, _ string) {
	reports, _ := filepath.Glob(filepath.Join(w.temp, "three-engines-*", "*", "report.md"))
	for _, path := range reports {
		if text := w.read(path); !strings.HasPrefix(text, "Sea otters sleep on their backs") {
			w.t.Errorf("%s: %q", path, text)
		}
	}
	if len(reports) != 3 {
		w.t.Errorf("%v", reports)
	}
}

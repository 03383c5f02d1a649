package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const passing = `{"Action":"start","Package":"github.com/pawl-dev/pawl/journal"}
{"Action":"run","Package":"github.com/pawl-dev/pawl/journal","Test":"TestRead"}
{"Action":"output","Package":"github.com/pawl-dev/pawl/journal","Test":"TestRead","Output":"not worth showing\n"}
{"Action":"pass","Package":"github.com/pawl-dev/pawl/journal","Test":"TestRead","Elapsed":1}
{"Action":"output","Package":"github.com/pawl-dev/pawl/journal","Output":"ok  \tgithub.com/pawl-dev/pawl/journal\t41.0s\n"}
{"Action":"pass","Package":"github.com/pawl-dev/pawl/journal","Elapsed":41}
{"Action":"skip","Package":"github.com/pawl-dev/pawl/errdefs","Elapsed":0}
`

const failing = `{"Action":"run","Package":"github.com/pawl-dev/pawl","Test":"TestA"}
{"Action":"output","Package":"github.com/pawl-dev/pawl","Test":"TestA","Output":"a.go:1: it broke\n"}
{"Action":"fail","Package":"github.com/pawl-dev/pawl","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"github.com/pawl-dev/pawl","Output":"FAIL\n"}
{"Action":"fail","Package":"github.com/pawl-dev/pawl","Elapsed":0.2}
`

const dying = `{"Action":"run","Package":"github.com/pawl-dev/pawl","Test":"TestA"}
{"Action":"output","Package":"github.com/pawl-dev/pawl","Test":"TestA","Output":"panic: it broke\n"}
{"Action":"fail","Package":"github.com/pawl-dev/pawl","Elapsed":0.2}
`

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		name, input, ledger string
		status              int
		shows               []string
		hides               []string
	}{
		{
			name: "shows a line per package", input: passing, ledger: "journal\t40\t-\t-\n",
			shows: []string{"ok  \tgithub.com/pawl-dev/pawl/journal\t41.0s", "1 passed, 0 failed, 0 skipped"},
			hides: []string{"not worth showing"},
		},
		{name: "shows the output of a failed test", input: failing, status: 1, shows: []string{"a.go:1: it broke", "FAIL"}},
		{name: "shows what a package printed before it died", input: dying, status: 1, shows: []string{"panic: it broke"}},
		{
			name: "shows what doesn't compile", status: 1,
			input: `{"ImportPath":"p","Action":"build-output","Output":"a.go:2: undefined: x\n"}` + "\n" +
				`{"ImportPath":"p","Action":"build-fail"}` + "\n" + passing,
			shows: []string{"undefined: x"},
		},
		{name: "passes other text on", input: "go: no such tool\n" + passing, ledger: "journal\t40\t-\t-\n", shows: []string{"go: no such tool"}},
		{name: "fails without any result", input: "go: no module\n", status: 1, shows: []string{"go: no module"}},
		{name: "accepts twice the time of a long package", input: passing, ledger: "journal\t25\t-\t-\n"},
		{name: "accepts 30 s more of a short package", input: passing, ledger: "journal\t12\t-\t-\n"},
		{
			name: "rejects what takes twice as long and 30 s longer", input: passing, ledger: "journal\t10\t-\t-\n", status: 1,
			shows: []string{"too slow: journal: 41 s, the ledger has 10 s"},
		},
		{name: "rejects a long package that the ledger lacks", input: passing, status: 1, shows: []string{"too slow: journal"}},
		{name: "reads the column of its tier", input: passing, ledger: "journal\t-\t41\t41\n", status: 1, shows: []string{"too slow: journal"}},
		{name: "rejects a ledger with a bad duration", input: passing, ledger: "journal\t1.5\t-\t-\n", status: 2},
		{name: "rejects a ledger with a missing column", input: passing, ledger: "journal\t1\n", status: 2},
		{name: "rejects a ledger with a row twice", input: passing, ledger: "a\t1\t-\t-\na\t1\t-\t-\n", status: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "durations.tsv")
			if err := os.WriteFile(path, []byte(tc.ledger), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			status, err := run([]string{"-tier", "quick", "-ledger", path}, strings.NewReader(tc.input), &out)
			if status != tc.status || (status == 0) != (err == nil) {
				t.Errorf("status %d (%v), want %d\n%s", status, err, tc.status, &out)
			}
			for _, want := range tc.shows {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q:\n%s", want, &out)
				}
			}
			for _, unwanted := range tc.hides {
				if strings.Contains(out.String(), unwanted) {
					t.Errorf("the output has %q:\n%s", unwanted, &out)
				}
			}
		})
	}
}

func TestReport_WithoutLedger(t *testing.T) {
	var out bytes.Buffer
	if status, err := run([]string{"-tier", "quick", "-ledger", ""}, strings.NewReader(passing), &out); status != 0 {
		t.Errorf("status %d: %v", status, err)
	}
}

func TestReport_Update(t *testing.T) {
	t.Chdir(t.TempDir()) // of another module than the repository's
	root := t.TempDir()
	path := filepath.Join(root, "durations.tsv")
	if err := os.Mkdir(filepath.Join(root, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := "gone\t1\t-\t-\njournal\t3\t60\t-\nstep:soak\t-\t-\t80\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if status, err := run([]string{"-tier", "quick", "-ledger", path, "-root", root, "-update"}, strings.NewReader(passing), &out); status != 0 {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "quick\tmiddle\tall\njournal\t41\t60\t-\nstep:soak\t-\t-\t80\n"; !strings.HasSuffix(string(b), want) {
		t.Errorf("the ledger is %q, want it to end with %q", b, want)
	}
}

func TestReport_Step(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "durations.tsv")
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		shows  string
	}{
		{"runs a command", []string{"-step", "version", "--", "go", "version"}, 0, "ok\tstep version"},
		{"fails with the command", []string{"-step", "nothing", "--", "go", "no-such-command"}, 1, "FAIL\tstep nothing"},
		{"needs a command", []string{"-step", "nothing"}, 1, ""},
		{"needs a tier that exists", []string{"-tier", "slow"}, 2, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			args := append([]string{"-tier", "all", "-ledger", missing}, tc.args...)
			if status, err := run(args, strings.NewReader(""), &out); status != tc.status {
				t.Errorf("status %d (%v), want %d\n%s", status, err, tc.status, &out)
			}
			if !strings.Contains(out.String(), tc.shows) {
				t.Errorf("the output lacks %q:\n%s", tc.shows, &out)
			}
		})
	}
}

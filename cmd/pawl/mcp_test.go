package main

import (
	"strings"
	"testing"
)

func TestAFlagThatNamesNoMCPServerIsWrongUse(t *testing.T) {
	w := newWorld(t)
	for flag, want := range map[string]string{"x": "want NAME=COMMAND or NAME=URL", "a b=c": "the name", "a=ftp": ""} {
		r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/none.yaml", "--mcp", flag, "go")
		if r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", flag, r)
		}
	}
}

func TestALoginNeedsAServerWithAnAddress(t *testing.T) {
	w := newWorld(t)
	for want, args := range map[string][]string{
		"--url is needed": {"wiki"}, "want the name of one server": {}, "begins with http": {"--url", "ftp://x", "wiki"}, "server wiki: connect": {"--url", "http://127.0.0.1:1/mcp", "wiki"},
	} {
		r := w.pawl(append([]string{"mcp", "login", "--no-browser"}, args...)...)
		if r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

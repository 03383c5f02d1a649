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

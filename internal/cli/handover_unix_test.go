//go:build unix

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The program that takes over has the arguments, the streams and the process itself, and its exit code is the program's.
func TestAnotherProgramTakesOver(t *testing.T) {
	t.Parallel()
	path := binary(t)
	fake := func(dir, name string) string {
		text := "#!/bin/sh\necho \"" + name + " $$\"\nfor a; do echo \"[$a]\"; done\ncat\necho err >&2\nexit 7\n"
		if err := os.WriteFile(filepath.Join(dir, "pawl-worker"), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	onPath := fake(t.TempDir(), "on PATH")
	for _, name := range []string{"on PATH", "beside"} {
		if name == "beside" {
			fake(filepath.Dir(path), name)
		}
		cmd := exec.Command(path, "run", "--engine", "temporal://h:1?queue=q", "--json", "what is it?")
		cmd.Env = append(os.Environ(), "PATH="+onPath+":"+os.Getenv("PATH"))
		cmd.Stdin = strings.NewReader("typed\n")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		lines := strings.Split(out.String(), "\n")
		if code := cmd.ProcessState.ExitCode(); code != 7 || errs.String() != "err\n" {
			t.Errorf("%s: exit %d, %s", name, code, &errs)
		}
		if want := name + " " + strconv.Itoa(cmd.Process.Pid); lines[0] != want {
			t.Errorf("%q, want %q", lines[0], want)
		}
		if got := strings.Join(lines[1:], " "); got != "[run] [--engine] [temporal://h:1?queue=q] [--json] [what is it?] typed " {
			t.Errorf("%s: %s", name, got)
		}
	}
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// environment is what all tests of the package share: a home directory and a state directory of their own,
// and no keys. Tests do not set these, so that they can run in parallel.
type environment struct{ dir string }

// isolate changes the environment of the process. The caches of the go command stay where they are.
func isolate() (environment, error) {
	dir, err := os.MkdirTemp("", "pawl-cli-")
	if err != nil {
		return environment{}, err
	}
	e := environment{dir}
	set := goDirectories()
	if cache, err := os.UserCacheDir(); err == nil {
		set["XDG_CACHE_HOME"] = cache
	}
	set["HOME"], set["XDG_STATE_HOME"] = e.home(), e.state()
	set["LANG"] = "C.UTF-8"             // bash warns on standard error about a language that is not installed
	set["PAWL_TEST_TOKEN"] = "secret-1" // settings of MCP servers in tests refer to it
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasSuffix(name, "_API_KEY") || strings.HasPrefix(name, "OTEL_") || name == "PAWL_TOKEN" ||
			strings.HasPrefix(name, "LC_") || name == "LANGUAGE" || name == "TRACEPARENT" || name == "TRACESTATE" || name == "XDG_CONFIG_HOME" {
			err = errors.Join(err, os.Unsetenv(name))
		}
	}
	for name, value := range set {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return e, errors.Join(err, os.Mkdir(e.home(), 0o700), os.Mkdir(e.state(), 0o700))
}

func (e environment) home() string  { return filepath.Join(e.dir, "home") }
func (e environment) state() string { return filepath.Join(e.dir, "state") }

// close removes the directories. It fails if a test used the default journal: tests that run in parallel
// would see each other's sessions there.
func (e environment) close() error {
	var err error
	for _, name := range []string{filepath.Join(e.state(), "pawl", "journal.db"), filepath.Join(e.home(), ".agents")} {
		if _, e := os.Lstat(name); e == nil {
			err = errors.Join(err, fmt.Errorf("a test left %s, which all tests share: give it directories of its own", name))
		}
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// goDirectories asks the go command where its caches are, before HOME changes.
func goDirectories() map[string]string {
	set := map[string]string{}
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPATH", "GOENV").Output()
	if err != nil || json.Unmarshal(out, &set) != nil {
		return map[string]string{} // without Go, tests that need it skip or fail by themselves
	}
	for name, value := range set {
		if value == "" {
			delete(set, name)
		}
	}
	return set
}

// unfenced are flags of runs whose commands simply run. The quick tier needs no sandbox to be there.
func unfenced() []string {
	if tier.Quick() {
		return []string{"--no-sandbox", "--allow", "Bash", "--allow", "Write", "--allow", "Edit"}
	}
	return nil
}

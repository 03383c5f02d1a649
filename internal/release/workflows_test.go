//go:build unix

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Timeout     int `yaml:"timeout-minutes"`
		Steps       []struct {
			Uses, Run string
			With      map[string]any
		}
	}
}

var (
	pinned  = regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40}$`)
	version = regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n`)
	ours    = regexp.MustCompile(`(?:\./|^)(scripts/\w+|\.ci/\w+)`)
)

// Whoever changes a tag of somebody's action changes nothing here, and a step that is taken over can't write what its job doesn't.
func TestWorkflowsArePinnedAndMayDoLittle(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	goes := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		var w workflow
		if err := yaml.Unmarshal(b, &w); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "\npermissions:") {
			t.Errorf("%s: without permissions of its own it has those of the repository's settings", name)
		}
		for scope, may := range w.Permissions {
			if may != "read" {
				t.Errorf("%s: every job may %s %s: say it at the one that needs it", name, may, scope)
			}
		}
		uses := 0
		for id, job := range w.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: %s has no timeout-minutes", name, id)
			}
			for _, s := range job.Steps {
				if s.Uses != "" {
					uses++
				}
				if s.Uses != "" && !pinned.MatchString(s.Uses) {
					t.Errorf("%s: %s is pinned to no commit", name, s.Uses)
				}
				if strings.HasPrefix(s.Uses, "actions/checkout@") {
					if s.With["persist-credentials"] != false {
						t.Errorf("%s: %s leaves the token to what runs after the checkout", name, id)
					}
					for scope, may := range job.Permissions {
						if may == "write" {
							t.Errorf("%s: %s has the repository's code, and may write %s", name, id, scope)
						}
					}
				}
				if v, ok := s.With["go-version"]; ok && v != goes {
					t.Errorf("%s: %s takes Go %v, go.mod has %s", name, id, v, goes)
				}
				if strings.Contains(s.Run, "${{") {
					t.Errorf("%s: %s puts a value into a command: take an environment variable", name, id)
				}
				for _, m := range ours.FindAllStringSubmatch(s.Run, -1) {
					if info, err := os.Stat(filepath.Join(root, m[1])); err != nil || info.Mode()&0o111 == 0 {
						t.Errorf("%s: %s runs %s: %v", name, id, m[1], err)
					}
				}
			}
		}
		if n := len(version.FindAllString(string(b), -1)); n != uses {
			t.Errorf("%s: %d of %d actions say which version they are", name, n, uses)
		}
	}
}

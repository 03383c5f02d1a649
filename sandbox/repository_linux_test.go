package sandbox

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// protecting is a fence over the project that protects what Settings lists, as a Runtime has it.
func (p *place) protecting(caps Capabilities) *Fence {
	return p.fence(caps, Policy{Protect: Settings(p.in), Env: []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}})
}

// superproject has a submodule, a worktree and hooks of its own.
func (p *place) superproject() {
	p.repository(p.out + "/lib")
	p.repository(p.in)
	p.git(p.in, "submodule", "--quiet", "add", p.out+"/lib", "vendor/lib")
	p.git(p.in, "worktree", "add", "-q", "-b", "w", p.in+"/trees/w")
	p.git(p.in, "config", "core.hooksPath", "scripts/hooks")
	p.lay(p.in+"/scripts/hooks/pre-commit", "#!/bin/sh\necho hook\n")
	if err := os.Chmod(p.in+"/scripts/hooks/pre-commit", 0o755); err != nil { //nolint:gosec // a hook
		p.t.Fatal(err)
	}
	p.lay(p.in+"/.git/info/exclude", "trees\n")
	p.git(p.in, "add", ".")
	p.git(p.in, "commit", "-q", "-m", "two")
	p.lay(p.out+"/lib/a", "changed")
	p.git(p.out+"/lib", "commit", "-q", "-a", "-m", "later")
}

func TestGitWorksWhereItsSettingsAreProtected(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		if !caps.Inside.Holds {
			return
		}
		p := newPlace(t)
		p.superproject()
		f := p.protecting(caps)
		for _, script := range []string{
			"echo b >b && git add b && git commit -qm three 2>&1 | grep -q hook && test -z \"$(git status --porcelain --ignore-submodules)\"",
			"git checkout -qb other && echo c >>b && git commit -qam four && git checkout -q main && git merge -q other && git branch -d other",
			"echo d >>b && git stash && git stash pop && git checkout -q b && git tag t && git gc -q && git fsck",
			"git rebase -q HEAD~1 && git reset -q --hard HEAD~1 && git clean -fdq && git mv b c && git commit -qm five",
			"cd trees/w && echo e >e && git add e && git commit -qm w && cd ../.. && git merge -q -m merged w",
			"git worktree add -q trees/new -b new",
			"cd trees/new && git commit -q --allow-empty -m new && cd ../.. && git worktree remove trees/new && git worktree prune && git worktree list",
			"git submodule status && git submodule foreach 'git log -1'",
			"cd vendor/lib && git fetch -q && git checkout -q origin/main && grep changed a && cd ../.. && git add vendor/lib && git commit -qm six && git status",
			"cd vendor/lib && git checkout -qb mine && git commit -q --allow-empty -m x && cd ../.. && git commit -qam seven && git checkout -q HEAD~1 && git checkout -q main",
			"git init -q fresh && cd fresh && git config user.name n && git commit -q --allow-empty -m y && cd .. && rm -rf fresh",
			"git clone -q . copy && git -C copy log -1 && rm -rf copy",
		} {
			if out, err := p.run(f, script); err != nil {
				t.Errorf("%s: %v %s", script, err, out)
			}
		}
		if out, err := p.tryGit(p.in, "status"); err != nil {
			t.Error(out)
		}
	})
}

func TestWhatGitRunsIsNotChangedByACommand(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		if !caps.Inside.Holds {
			return
		}
		p := newPlace(t)
		p.superproject()
		settings := Settings(p.in)
		before := map[string]map[string]string{}
		for _, path := range settings {
			before[path] = p.state(path, true)
		}
		f := p.protecting(caps)
		for _, script := range []string{
			"echo x >>scripts/hooks/pre-commit", "mv scripts s", "rm -rf scripts", "echo x >scripts/hooks/post-checkout", "git config core.hooksPath /tmp",
			"echo 'gitdir: ../../fresh' >vendor/lib/.git", "mv vendor v", "rm -rf vendor", "git -C vendor/lib config core.fsmonitor x", "echo x >.git/modules/vendor/lib/hooks/post-checkout", "mv .git/modules .git/m",
			"mv .git/modules/vendor .git/modules/v", "echo ../.. >.git/worktrees/w/commondir && exit 1", "echo 'gitdir: ../../fresh' >trees/w/.git", "mv trees t", "git worktree remove --force trees/w", "git submodule update", "git submodule deinit -f vendor/lib; exit 1",
		} {
			if out, err := p.run(f, script); err == nil {
				t.Errorf("%s: %s", script, out)
			}
			for _, path := range settings {
				if diff := cmp.Diff(before[path], p.state(path, true)); diff != "" {
					t.Fatalf("%s: %s", script, diff)
				}
			}
		}
		// Somebody outside may remove them.
		if err := os.RemoveAll(p.in + "/trees"); err != nil {
			t.Fatal(err)
		}
		if out, err := p.run(f, "echo runs"); out != "runs" || err != nil {
			t.Error(out, err)
		}
	})
}

// What a person can do against a bare repository that a command makes: docs/fence.md says it.
func TestGitCanBeToldNotToUseBareRepositories(t *testing.T) {
	p := newPlace(t)
	p.git(p.in, "init", "-q", "--bare", "evil")
	mark := p.out + "/MARK"
	p.git(p.in+"/evil", "config", "core.bare", "false")
	p.git(p.in+"/evil", "config", "core.worktree", p.in+"/evil")
	p.git(p.in+"/evil", "config", "core.fsmonitor", "touch "+mark+"; false")
	run := func() error {
		_, _ = p.tryGit(p.in+"/evil", "status")
		_, err := os.Stat(mark)
		return err
	}
	cmd := exec.Command("git", "config", "--file", p.home+"/.gitconfig", "safe.bareRepository", "explicit")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	if err := run(); err == nil {
		t.Error("git used it all the same")
	}
	if err := os.Remove(p.home + "/.gitconfig"); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Error("it is no attack:", err)
	}
}

package fence

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// git runs git as a person does, with no configuration of its own.
func (p *place) git(dir string, args ...string) string {
	p.t.Helper()
	out, err := p.tryGit(dir, args...)
	if err != nil {
		p.t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return out
}

func (p *place) tryGit(dir string, args ...string) (string, error) {
	p.t.Helper()
	cmd := exec.Command(component.Command(p.t, "git", "install git"), append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+p.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// repository makes one with a commit.
func (p *place) repository(dir string) {
	p.t.Helper()
	p.lay(dir+"/a", "a")
	p.git(dir, "init", "-q", "-b", "main")
	p.git(dir, "add", "a")
	p.git(dir, "commit", "-q", "-m", "one")
}

// empty empties the project.
func (p *place) empty() {
	p.t.Helper()
	if err := errors.Join(os.RemoveAll(p.in), os.Mkdir(p.in, 0o700)); err != nil {
		p.t.Fatal(err)
	}
}

func TestOfGitTheSettingsAreWhatItReadsAndRuns(t *testing.T) {
	for name, c := range map[string]struct {
		lay  func(p *place)
		want []string // below the project
	}{
		"a repository": {func(p *place) { p.repository(p.in) }, []string{".git/hooks", ".git/config"}},
		"none":         {func(*place) {}, nil},
		"a worktree of a repository elsewhere": {func(p *place) {
			p.repository(p.out + "/main")
			p.empty()
			p.git(p.out+"/main", "worktree", "add", "-q", "-f", p.in)
		}, []string{".git"}},
		"a repository by a file": {func(p *place) {
			p.repository(p.in)
			p.git(p.in, "init", "-q", "--separate-git-dir", p.in+"/real")
		}, []string{".git", "real/config", "real/hooks"}},
		"worktrees in the project": {func(p *place) {
			p.repository(p.in)
			p.git(p.in, "config", "extensions.worktreeConfig", "true")
			p.git(p.in, "worktree", "add", "-q", "-b", "w", p.in+"/trees/w")
			p.git(p.in+"/trees/w", "config", "--worktree", "core.hooksPath", "own")
			p.lay(p.in+"/trees/w/own/x", "")
		}, []string{".git/hooks", ".git/config", ".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree", "trees/w/.git", "trees/w/own"}},
		"links": {func(p *place) {
			p.repository(p.in)
			p.lay(p.in+"/scripts/x", "")
			p.lay(p.out+"/agents/x", "")
			if err := errors.Join(os.RemoveAll(p.in+"/.git/hooks"), os.Symlink("../scripts", p.in+"/.git/hooks"), os.Rename(p.in+"/.git/config", p.in+"/config"), os.Symlink("../config", p.in+"/.git/config"), os.Symlink(p.out+"/agents", p.in+"/.agents"), os.Symlink(".", p.in+"/.claude")); err != nil {
				t.Fatal(err)
			}
		}, []string{"scripts", "config"}},
		"hooks elsewhere, by a file that is included": {func(p *place) {
			p.repository(p.in)
			p.lay(p.in+"/build/hooks/x", "")
			p.lay(p.in+"/build/gitconfig", "[include]\n\tpath = gitconfig\n[core]\n\thooksPath = build/hooks\n")
			p.git(p.in, "config", "includeIf.onbranch:none.path", "../build/gitconfig")
		}, []string{".git/hooks", ".git/config", "build/gitconfig", "build/hooks"}},
		"hooks elsewhere, by the user": {func(p *place) {
			p.repository(p.in)
			p.lay(p.in+"/.githooks/x", "")
			p.lay(p.home+"/.gitconfig", "[core]\n\thooksPath = .githooks\n")
		}, []string{".git/hooks", ".git/config", ".githooks"}},
		"hooks that are all of the project, and ones outside": {func(p *place) {
			p.repository(p.in)
			p.lay(p.in+"/.git/config", "[core]\nhooksPath=.\nhooksPath=..\nhooksPath="+p.out+"\n")
		}, []string{".git/hooks", ".git/config"}},
		"a submodule": {func(p *place) {
			p.repository(p.out + "/lib")
			p.repository(p.in)
			p.git(p.in, "submodule", "--quiet", "add", "--name", "deep/lib", p.out+"/lib", "vendor/lib")
			p.git(p.in+"/vendor/lib", "config", "core.hooksPath", "mine")
			p.lay(p.in+"/vendor/lib/mine/x", "")
		}, []string{".git/hooks", ".git/config", ".git/modules/deep/lib/config", ".git/modules/deep/lib/hooks", "vendor/lib/.git", "vendor/lib/mine"}},
		"repositories below": {func(p *place) {
			p.repository(p.in + "/x/y")
			p.repository(p.in + "/node_modules/y")
		}, []string{"x/y/.git/config", "x/y/.git/hooks"}},
		"a directory that is a repository": {func(p *place) {
			p.repository(p.out + "/main")
			p.empty()
			p.git(p.out, "clone", "-q", "--bare", "main", p.in)
		}, []string{"config", "hooks"}},
		"a home": {func(p *place) {
			p.lay(p.in+"/home/.gitconfig", "")
			p.lay(p.in+"/home/repository/HEAD", "")
			p.lay(p.in+"/home/repository/.git/HEAD", "")
			p.home = p.in + "/home"
		}, []string{"home/.gitconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c.lay(p)
			t.Setenv("HOME", p.home)
			var got []string
			for _, path := range Settings(p.in) {
				got = append(got, strings.TrimPrefix(path, p.in+"/"))
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// However large, or evil, what is looked at is.
func TestLookingForRepositoriesHasAnEnd(t *testing.T) {
	p := newPlace(t)
	p.lay(p.in+"/.git/HEAD", "")
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "[include]\npath = ../i%d\npath = config\npath = /dev/zero\npath = ../pipe\n[core]\nhooksPath = ../h%[1]d\n", i)
	}
	p.lay(p.in+"/.git/config", text.String())
	p.lay(p.in+"/i1", text.String())
	for i := range mostRepositories + 50 {
		p.lay(fmt.Sprintf("%s/r/%d/.git/HEAD", p.in, i), "")
		p.lay(fmt.Sprintf("%s/r/%d/.git/config", p.in, i), "")
	}
	const left = 1000 // of the names that are looked at: the others were elsewhere
	for i := range 5 {
		for j := range left / 4 {
			p.lay(fmt.Sprintf("%s/s/%d/%d", p.in, i, j), "")
		}
	}
	if err := errors.Join(os.Symlink(".", p.in+"/loop"), exec.Command("mkfifo", p.in+"/pipe").Run()); err != nil {
		component.Absent(t, err.Error(), "install coreutils")
	}
	pipe, err := os.OpenFile(p.in+"/pipe", os.O_RDWR, 0) // somebody who may write holds it open
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	r := &repositories{root: p.in, seen: map[string]bool{}, names: mostNames - left}
	r.worktree(p.in)
	r.below()
	if got := len(reach.Union(r.out, nil)); r.names > mostNames || len(r.seen) > mostRepositories || got < 50 || got > 2*mostRepositories {
		t.Error(r.names, len(r.seen), got)
	}
}

func TestConfigurationIsReadAsGitReadsIt(t *testing.T) {
	p := newPlace(t)
	for _, text := range []string{
		"[core]\n\thooksPath = a b  # comment\n", "[CORE] HOOKSPATH=\"a # b\" ; c\n", "[core]\nhooksPath = a\\\n  b\n", "[core]\nhooksPath = \"a\\\"b\\\\c\\td\"\n", "\ufeff[core]\r\nhooksPath=a\r\n", "[core]hooksPath=a",
		"; [core]\n# hooksPath = x\n[core] ; y\n\thooksPath = \" a \" \n", "[other]\nhooksPath = a\n[core]\nfilemode\nhooksPath =\n", "[core \"x\"]\nhooksPath = a\n[core]\nbare = true\nhooksPath = ~/x\nhooksPath = y\n",
		"[include]\npath = none\n[includeIf \"gitdir:~/W/\"]\npath = none2\n[a.B \"c\"]\nd = e\n[a \"]\\\"x\"]\nb = c\n",
	} {
		p.lay(p.in+"/config", text)
		out, err := p.tryGit(p.in, "config", "--file", "config", "--no-includes", "--null", "--list")
		if err != nil {
			t.Errorf("%q: %v %s", text, err, out)
		}
		var want, got []string
		for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			if strings.Contains(entry, "\n") { // has a value
				want = append(want, entry)
			}
		}
		gitConfig(text, func(key, value string) { got = append(got, key+"\n"+value) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for _, broken := range []string{"[", "[core", "[core \"", "[core]\nhooksPath = \"", "[core]\nhooksPath = a\\", "=\n[core]\n=\nhooksPath=a", "[core]\n\x00", "\\"} { // it comes to an end
		gitConfig(broken, func(string, string) {})
	}
	if got := from("/x", "~/y"); got != filepath.Join(p.home, "y") {
		t.Error(got)
	}
}

// protecting is a fence over the project that protects what Settings lists, as a Runtime has it.
func (p *place) protecting(caps Capabilities) *Fence {
	return p.fence(caps, sandbox.Policy{Protect: Settings(p.in), Env: []string{
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
	if err := os.Chmod(p.in+"/scripts/hooks/pre-commit", 0o755); err != nil {
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

// What can't be kept from a command a person can do something about: docs/fence.md says it.
func TestWhatAPersonCanDoAboutWhatACommandLeavesToGit(t *testing.T) {
	for name, c := range map[string]struct {
		script         string // leaves it
		later, instead []string
		in             string
	}{
		"a bare repository": {
			"git init -q --bare evil && cd evil && git config core.bare false && git config core.worktree \"$PWD\" && git config core.fsmonitor 'touch \"$OUT/MARK\"; false'",
			[]string{"status"},
			[]string{"-c", "safe.bareRepository=explicit", "status"},
			"evil",
		},
		"a submodule": {
			"git init -q sub && cd sub && git commit -q --allow-empty -m x && git config core.fsmonitor 'touch \"$OUT/MARK\"; false' && cd .. && git update-index --add --cacheinfo \"160000,$(git -C sub rev-parse HEAD),sub\"",
			[]string{"status"},
			[]string{"status", "--ignore-submodules=all"},
			".",
		},
		"a common directory": {
			"cp -r .git .evil && git config -f .evil/config core.fsmonitor 'touch \"$OUT/MARK\"; false' && echo ../.evil >.git/commondir",
			[]string{"status"},
			[]string{"clone", "-q", "--no-local", "../in", "../out/copy"},
			"../home",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.repository(p.in)
			if out, err := p.run(p.protecting(Probe()), "OUT="+p.out+"; "+c.script); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			t.Setenv("OUT", p.out)
			ran := func(dir string, args []string) bool {
				out, _ := p.tryGit(dir, args...)
				_, err := os.Stat(p.out + "/MARK")
				t.Log(args, out)
				return err == nil
			}
			if ran(filepath.Join(p.in, c.in), c.instead) {
				t.Error("git ran what a command left all the same")
			}
			dir := p.in
			if c.in == "evil" {
				dir = p.in + "/evil"
			}
			if !ran(dir, c.later) {
				t.Error("it is no attack any more: see whether docs/fence.md can promise more")
			}
		})
	}
}

package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

// worktree is a project that is a git repository.
func worktree(t *testing.T) string {
	t.Helper()
	dir := project(t)
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writing are commands that write what Edit(src/**) is about, though no redirection and no editor says so.
var writing = []string{
	"bash git checkout src/a.go", "bash git checkout HEAD~1 -- src", "bash git checkout main src/a.go", "bash git -C src checkout -- a.go", "bash git --work-tree=src checkout -- a.go", "bash git --git-dir x --work-tree src restore a.go", "bash GIT_WORK_TREE=src git restore a.go",
	"bash git restore src/a.go", "bash git restore -s HEAD --staged --worktree src", "bash git restore -SW src", "bash cd src && git restore a.go", "bash git rm -r src", "bash git rm -f src/a.go", "bash git mv src/a.go x.go", "bash git mv main.go src", "bash git clean -fd src", "bash cd src && git clean -fdx",
	"bash git stash push src/a.go", "bash git stash -- src/a.go", "bash git stash push -m x -- src", "bash git clone https://x.org/r src/new", "bash git worktree add src/w", "bash git apply --directory=src x.patch", "bash git archive -o src/x.tar HEAD", "bash git diff --output=src/a.go",
	"bash find src -name '*.go' -exec git checkout -- {} +", "bash echo src/a.go | xargs git checkout --", "bash sh -c 'git checkout -- src/a.go'",
	"bash patch src/a.go < x.patch", "bash patch -d src -p1 < x.patch", "bash patch -dsrc -p1 < x.patch", "bash cd src && patch -p1 < x.patch", "bash patch -o src/a.go main.go x.patch",
	"bash tar xf x.tar src/a.go", "bash tar -x -Csrc -f x.tar", "bash tar xfC x.tar src", "bash tar xf x.tar -C src", "bash tar --extract --file=x.tar --directory src", "bash cd src; tar xzf ../x.tgz", "bash tar cf src/x.tar docs", "bash tar -C docs -C ../src -xf x.tar", "bash unzip x.zip src/a.go", "bash unzip -o x.zip -d src", "bash unzip -qod src x.zip",
	"bash 7z x x.7z -osrc", "bash zip src/x.zip main.go", "bash cpio -iD src < x.cpio", "bash ls | cpio -p src",
	"bash dd if=main.go of=src/a.go", "bash truncate -s0 src/a.go", "bash truncate --size 0 -- src/a.go",
	"bash curl -o src/a.go https://x.org", "bash curl -osrc/a.go https://x.org", "bash curl --output=src/a.go https://x.org", "bash curl --output-dir src -O https://x.org/a.go", "bash cd src && curl -LO https://x.org/a.go", "bash curl -D src/a.go https://x.org", "bash curl -o 'src/#1' 'https://x.org/{a,b}'",
	"bash wget -P src https://x.org/a.go", "bash wget -Osrc/a.go https://x.org", "bash wget -qO src/a.go https://x.org", "bash cd src && wget https://x.org/a.go", "bash wget -o src/a.go https://x.org", "bash wget -r -P src https://x.org",
}

// perhapsWriting are those of which it can't be told.
var perhapsWriting = []string{
	"bash git checkout main", "bash git checkout .", "bash git checkout -", "bash git checkout -- '*.go'", "bash git checkout -- ':/'", "bash git checkout -b x main", "bash git checkout -f", "bash git checkout \"$X\"", "bash cd docs && git checkout main", "bash git switch main", "bash git switch -c x main",
	"bash git restore .", "bash git restore ':!docs'", "bash git restore \"$X\"", "bash git restore --pathspec-from-file=x", "bash git reset --hard", "bash git reset --hard HEAD~1", "bash git reset --merge", "bash cd docs && git reset --hard", "bash git stash", "bash git stash -u", "bash git stash pop", "bash git stash apply", "bash git stash push -m x", "bash git stash branch x",
	"bash git merge x", "bash git merge --abort", "bash git pull", "bash git pull --rebase origin main", "bash git rebase main", "bash git cherry-pick x", "bash git revert x", "bash git am x", "bash git apply x.patch", "bash git apply < x.patch", "bash git clean -fd", "bash git clean -fd .", "bash git read-tree -u -m HEAD", "bash git checkout-index -fa", "bash git submodule update",
	"bash git $SUB", "bash git -C \"$X\" checkout -- a.go", "bash cd \"$X\" && git rm a.go", "bash GIT_WORK_TREE=$X git checkout -- a.go", "bash git ls-files | xargs git checkout --",
	"bash patch -p1 < x.patch", "bash patch -p1 -i x.patch", "bash tar xf x.tar", "bash tar xPf x.tar -C docs", "bash tar xf x.tar --strip-components=1 docs", "bash tar xf x.tar --wildcards '*.md'", "bash unzip x.zip", "bash unzip x.zip '*.go'", "bash 7z x x.7z",
	"bash dd if=x of=$X", "bash truncate -s 0 \"$X\"", "bash curl -o \"$X\" https://x.org", "bash curl -O \"$URL\"", "bash curl -OJ https://x.org/a", "bash curl -K x", "bash wget -i urls", "bash wget -r https://x.org", "bash wget \"$URL\"", "bash curl -o '#1/a.go' 'https://x.org/{a,src}'",
}

// notWriting are their kin that write nothing of it.
var notWriting = []string{
	"bash git status", "bash git diff src", "bash git log -p src/a.go", "bash git add src/a.go", "bash git commit -am x", "bash git commit -m x -o src/a.go", "bash git push -o x", "bash git fetch", "bash git checkout -b x", "bash git switch -c x", "bash git restore --staged src/a.go", "bash git rm --cached src/a.go", "bash git rm -n src/a.go", "bash git clean -nd", "bash git reset",
	"bash git reset HEAD src/a.go", "bash git reset --soft HEAD~1", "bash git stash list", "bash git stash show -p", "bash git stash drop", "bash git apply --check x.patch", "bash git apply --stat x.patch", "bash git mv main.go x.go", "bash git checkout -- main.go", "bash git checkout main.go", "bash git restore main.go", "bash git merge-base a b", "bash git clean -fd docs",
	"bash git stash push docs", "bash git submodule status", "bash git -C docs checkout -- x.md", "bash git bisect log",
	"bash patch main.go x.patch", "bash patch -p1 --dry-run < x.patch", "bash patch -d docs -p1 < x.patch", "bash tar tf x.tar", "bash tar xf x.tar -C docs", "bash tar xf x.tar docs/x.md", "bash tar cf x.tar src", "bash tar xOf x.tar src/a.go", "bash tar cf x.tar extra", "bash unzip -l x.zip", "bash unzip x.zip -d docs", "bash unzip -o x.zip docs/x.md",
	"bash dd if=src/a.go of=x", "bash truncate -s 0 main.go", "bash curl https://x.org/src/a.go", "bash curl -o x.html https://x.org", "bash curl -O https://x.org/x.tgz", "bash curl -so /dev/null https://x.org", "bash wget https://x.org/x.tgz", "bash wget -P docs https://x.org/x", "bash wget -qO- https://x.org",
}

func TestARuleAgainstEditsBindsWhateverWritesTheFile(t *testing.T) {
	dir := worktree(t)
	check(t, dir, denying, hook.Deny, []ruled{{"Edit(src/**)", writing}, {"Write(src/**)", writing}, {"Edit", writing}})
	check(t, dir, denying, hook.Ask, []ruled{{"Edit(src/**)", perhapsWriting}, {"Edit(src/a.go)", perhapsWriting}})
	check(t, dir, denying, hook.Allow, []ruled{{"Edit(src/**)", notWriting}, {"Edit(src/a.go)", notWriting}})
}

func TestCommandsThatMayWriteAnythingAreAskedAboutOnlyWhereARuleIsAgainstEdits(t *testing.T) {
	dir := worktree(t)
	for _, rule := range []string{"Read(nothere/**)", "mcp__db"} {
		m := judging(t, permission.Config{Deny: []string{rule}, Dir: dir, Fence: true})
		for _, s := range perhapsWriting {
			if d := judged(t, m, call(s)); d.Verdict != hook.Allow && !strings.Contains(s, "$") {
				t.Errorf("%s with %s: %v", s, rule, d)
			}
		}
	}
}

// What a rule for a name at any depth may be about is looked up where it can be: of what is removed or edited where it stands, and of what is copied.
func TestACommandThatTakesOrBringsNothingOfTheNameIsNotAskedAbout(t *testing.T) {
	dir := worktree(t)
	for _, name := range []string{"docs/x.md", "with/go.mod", "other/y"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(verdict hook.Verdict, calls ...string) {
		t.Helper()
		for _, p := range []permission.Config{{Ask: []string{"Edit(go.mod)"}}, {Deny: []string{"Edit(go.mod)"}}} {
			p.Dir, p.Fence = dir, true
			m := judging(t, p)
			for _, s := range calls {
				if d := judged(t, m, call(s)); d.Verdict != verdict || verdict == hook.Ask && !strings.Contains(d.Reason, "it can't be told whether the rule Edit(go.mod)") {
					t.Errorf("%s with %+v: %v", s, p, d)
				}
			}
		}
	}
	rules(hook.Allow, "bash rm -r docs", "bash rm -rf docs other", "bash rm -rf nothere", "bash cp -r docs other", "bash cp -r docs/. new", "bash mv docs other/", "bash sed -i s/a/b/ docs/x.md", "bash git rm -r docs", "bash git clean -fd docs", "bash chmod -R 644 docs", "bash rsync -a docs/ other/", "bash gofmt -w docs")
	rules(hook.Ask, "bash rm -r with", "bash rm -rf .", "bash cp -r with other", "bash cp -r nothere other", "bash cp -r \"$X\" other", "bash mv with other/", "bash git clean -fd", "bash git rm -r with", "bash rsync -a host:docs/ other/", "bash tar xf x.tar -C other", "bash chmod -R 644 with")
	m := judging(t, permission.Config{Ask: []string{"Edit(*.bak)", "Edit(*.gz)"}, Dir: dir, Fence: true})
	for _, s := range []string{"bash sed -i.bak s/a/b/ docs/x.md", "bash gzip docs/x.md"} {
		if d := judged(t, m, call(s)); d.Verdict != hook.Ask {
			t.Errorf("%s: %v", s, d)
		}
	}
}

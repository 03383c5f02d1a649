package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

// reading are commands that only read, inside the project.
var reading = []string{
	"ls", "ls -la", "ls -la src docs", "ls src/*.go", "ls src/*", "ls -R --color=auto .", "ll=1; ls", "pwd", "cat main.go", "cat -n main.go src/a.go", "cat *.go", "cat < main.go", "cat ./src/../main.go",
	"head -20 main.go", "head -n 5 main.go", "head -c10 main.go", "tail -n +3 main.go", "tail -f main.go", "wc -l main.go src/*.go", "nl -ba main.go", "stat -c %s main.go", "file main.go", "du -sh src", "du -d 1 -h .",
	"tree -L 2 -I node_modules", "find . -name '*.go'", `find . -type f \( -name '*.go' -o -name '*.md' \) -not -path './vendor/*'`, "find src -maxdepth 2 -mtime -7 -size -10k -print0", "find .", "fd -e go", "fd a src",
	"grep -rn TODO .", "grep -rn --include='*.go' 'func main' src", "grep -n package main.go", "grep -E 'a|b' main.go", "grep -rnE -A 3 -B2 'x' src docs", "grep -c /api/users main.go", "grep -e x -e y main.go", "rg foo", "rg -n 'func \\w+' -g '*.go' src", "rg --files", "rg -l foo src", "git grep -n TODO",
	"sed -n '1,20p' main.go", "sed -n 5p main.go", "sed 's/a/b/g' main.go", "sed -e 's#/a#/b#' -e '/x/d' main.go", "sed -n '/func/,/^}/p' main.go", "awk '{print $1}' main.go", "awk -F: 'NR==1 || $2 < 3 {print $1}' main.go", "jq . data/k", "jq -r '.version' data/k", "cat data/k | jq '.a | length'",
	"sort main.go | uniq -c | sort -rn | head", "cut -d: -f1 main.go", "cut -d '/' -f 2 main.go", "tr a-z A-Z < main.go", "diff main.go src/a.go", "diff -u main.go src/a.go", "cmp main.go src/a.go", "diff <(sort main.go) <(sort src/a.go)", "comm -12 main.go src/a.go", "sha256sum main.go", "base64 main.go", "xxd -l 16 main.go", "gofmt -l .", "gofmt -d main.go",
	"git status", "git status -sb", "git status --porcelain=v1 -uno", "git log", "git log --oneline -20", "git log -p -- src/a.go", "git log -n 3 --stat --since='2 weeks ago' --format='%h %s'", "git log --oneline main..HEAD", "git log -S foo --all", "git --no-pager log -5", "git diff", "git diff --cached --stat", "git diff HEAD~1 -- src/", "git diff main...HEAD --name-only", "git show", "git show HEAD~1:main.go",
	"git show --stat HEAD", "git blame -L 1,20 main.go", "git ls-files", "git ls-files -o --exclude-standard", "git rev-parse HEAD", "git rev-parse --abbrev-ref HEAD", "git rev-parse --show-toplevel", "git describe --tags --always --dirty", "git branch", "git branch -a", "git branch -vv", "git branch --show-current", "git branch --list 'feature/*'", "git branch --merged main", "git tag", "git tag -l 'v1.*'", "git tag --sort=-creatordate",
	"git remote -v", "git remote get-url origin", "git stash list", "git stash show -p stash@{0}", "git shortlog -sn", "git cat-file -p HEAD", "git reflog -5", "git worktree list", "git -C src status", "git rev-list --count HEAD", "git merge-base main HEAD", "git --version",
	"echo hello", "echo *", "echo src/*", "for f in src/*; do echo ${f##*/}; done", "echo 'rm -rf /'", "echo done at $(date +%F)", "printf '%s\\n' a b", "date", "date +%s", "date -u +%FT%TZ", "date -d yesterday +%F", "whoami", "hostname", "uname -a", "which go", "command -v go >/dev/null 2>&1 && echo yes", "type ls", "node --version", "true", "[ -f main.go ] && cat main.go", "test -d src || echo none",
	"cd src && ls", "cd src && cat a.go && cd .. && ls", "ls 2>/dev/null", "ls src 2>&1 | head", "ls &", "(cd src; ls)", "if [ -f main.go ]; then cat main.go; else ls; fi", "for f in main.go src/a.go; do echo $f; wc -l $f; done", "time ls", "timeout 5 grep -rn x .", "set -e; ls", "cat <<E\nhi\nE", "x=src; ls $x", "[[ -f main.go ]] && ls", "! grep -q x main.go", "ls; git status; git diff", "yes | head -3", "cat $READS/long.txt", "sleep 1; exit 0",
}

// more are commands that do more, read something else, or can't be told not to.
var more = []string{
	"make", "go test ./...", "go vet ./...", "npm run build", "./x.sh", "python3 x.py", "python3 -c 'print(1)'", "node -e 1", "unheard-of", "/bin/ls", "./ls", "src/cat main.go", "sh -c ls", "eval ls", "exec ls", "source main.go", "sudo ls", "ssh host ls", "docker ps", "curl https://example.com", "wget -q x.org", "ping x.org", "git fetch", "git ls-remote", "git remote show origin", "ps aux", "env", "printenv", "set", "export", "history",
	"rm x", "mkdir x", "touch x", "mv a b", "cp main.go x", "ln -s main.go x", "chmod +x main.go", "kill 1", "tee x < main.go", "ls | tee x", "sponge x",
	"ls > x", "ls >> x", "ls 2> err", "ls &> x", "ls >| x", "ls > -", "cat main.go > src/a.go", "echo x <> main.go", "ls > >(cat > x)", "{ ls; } > x", "ls >& x", "cat < /dev/tcp/x.org/80", "echo x > /dev/tcp/x.org/80", "echo x > /dev/sda",
	"echo /etc/*", "echo ../*", "echo */*", "printf %s ~/*", "x='/etc/*'; echo $x", "for f in /etc/*; do echo ${f##*/}; done", "hostname -f", "ls ..", "ls /", "ls ~", "cat ~/.ssh/id", "cat /etc/passwd", "cat ../outside/file", "cat out/file", "ls out", "cat out/*", "grep -rn x ..", "grep -R x .", "grep -f /etc/passwd main.go", "grep -f../outside/file main.go", "find / -name x", "find -L . -name x", "find . -newer ../outside/file", "cd .. && ls", "cd /etc; cat passwd", "cd out && ls", "cd none; cat ../main.go", "cat < ../outside/file", "diff main.go ../outside/file", "diff -r src docs", "diff src docs", "git diff --no-index main.go ../outside/file", "git diff main.go /etc/passwd", "git -C .. status", "git -C /etc log", "git log -- ../outside", "wc -l $(cat main.go)", "rg x /etc", "rg --files /etc", "fd . /etc", "rg -L x", "jq . /etc/x.json", "xxd -ps /etc/passwd", "cd up && cat ../../../outside/file", "tree -l", "du -L .", "head -n /etc/passwd", "pushd src; cd deep; pushd; ls",
	"find . -delete", "find . -name x -exec cat {} +", "find . -execdir ls {} \\;", "find . -ok cat {} \\;", "find . -fprint x", "find . -fls x", "find . -fprintf x %p", "find . | xargs cat", "sort -o main.go main.go", "sort main.go -omain.go", "sort --output=x main.go", "sort --compress-program=./x main.go", "tree -o x", "tree -R -L 1", "uniq main.go x", "xxd main.go x", "xxd -r main.go", "date -s tomorrow", "date 01010000", "date --set=x", "hostname x", "env ls", "env -i ls", "rg --pre ./x foo", "rg --hostname-bin ./x foo", "fd -x rm", "fd --exec rm", "file -C -m x", "sed -i s/a/b/ main.go", "sed -n 'w x' main.go", "sed -n wx main.go", "sed '1e rm x' main.go", "sed s/a/b/e main.go", "sed 's/a/b/w x' main.go", "sed 'r /etc/passwd' main.go", "sed -f x main.go", "sed s/[/]e/x/e/ main.go", "sed --in-place s/a/b/ main.go", "gsed -n -i p main.go",
	`awk 'BEGIN{system("rm x")}'`, `awk '{print > "x"}' main.go`, `awk '{print | "sh"}' main.go`, "awk -f x main.go", `awk 'BEGIN{getline x < "/etc/passwd"; print x}'`, `awk 'BEGIN{ARGV[1]="/etc/passwd";ARGC=2}{print}'`, `awk 'BEGIN{print ENVIRON["KEY"]}'`, "gawk -i inplace 1 main.go", "jq env", "jq -n '$ENV.KEY'", "jq -f x", `jq -n 'import "x" as y; y'`, "jq --arg x y env", "jq -n --slurpfile x /etc/passwd 1", "gofmt -w main.go", "gofmt -cpuprofile x main.go", "yq -i .a=1 x",
	"git commit -m x", "git add .", "git push", "git pull", "git checkout main", "git switch main", "git restore x", "git reset HEAD", "git merge x", "git rebase main", "git stash", "git stash pop", "git stash -u", "git stash push", "git clean -n", "git branch x", "git branch -D x", "git branch -v x", "git branch -m y", "git branch --abbrev x", "git branch --format %x y", "git tag v1", "git tag -d v1", "git tag -n5 v1", "git tag -a v1 -m x", "git remote add x y", "git remote update", "git remote -v update", "git config user.name", "git config core.pager x", "git reflog expire --all", "git worktree add x", "git worktree prune", "git gc", "git init", "git clone x", "git help log", "git notes add",
	"git -c core.pager=x log", "git -c alias.x=!rm x", "git --exec-path=. status", "git --git-dir=src log", "git log --output=x", "git log --outp=x", "git diff --output x", "git diff --ext-diff", "git log --textconv", "git log --ext-diff", "git diff -Ox", "git grep -O x", "git grep --open-files-in-pager x", "git log --show-signature", "git cat-file --textconv HEAD:x", "git blame --contents /etc/passwd main.go", "git bisect run x", "git submodule foreach ls", "git difftool", "git x", "git $X", "GIT_DIR=x git status", "git -p log", "cd bare && git status", "git -C bare log",
	"LD_PRELOAD=./x ls", "PATH=. ls", "LANG=C ls", "PATH=.; ls", "export PATH=.; ls", "for PATH in .; do ls; done", "((PATH=1)); ls", ": ${PATH:=.}; ls", "printf -v PATH .; ls", "read PATH <<< .; ls", "IFS=,; ls", "set -k; ls PATH=.", "set -o keyword; ls PATH=.", "ls() { rm x; }; ls", "f() { ls; }; f", "alias ls='rm x'; ls", "shopt -s expand_aliases; alias ls=rm\nls x", "unalias ls; ls", "hash -p ./x ls; ls", "enable -f ./x.so ls; ls", "trap 'rm x' EXIT; ls", "command rm x", "command time -o x ls", "nice time -o x ls", "timeout 5 rm x", "timeout $X ls", "nohup ls", "xargs ls < main.go", "xargs -a main.go cat", "echo x | sh", "cat main.go | bash", "ls $(rm x)", "ls `rm x`", "cat <(rm x)", "echo $(go env)", "ls; rm x", "ls && rm x", "ls || rm x", "if ls; then rm x; fi", "ls & rm x",
	"ls $X", "cat $FILE", `cat "$FILE"`, "echo $SECRET", "cat <<< $SECRET", "cat <<E\n$SECRET\nE", "cat $(git ls-files)", "x=$(cat main.go); ls $x", "x='a[$(id)]'; [[ x -eq 0 ]]; ls", "[[ 'a[$(id)]' -eq 0 ]]; ls", "for f in $(cat main.go); do cat $f; done", "x=$(ls -a); ls $x", "if", "ls 'x", "", "# nothing",
	"grep --pre=x y", "ls --unheard", "cat -Z main.go", "diff --to-file=/etc/passwd main.go", "wc --files0-from=main.go", "sort --files0-from=main.go", "du --files0-from=main.go", "md5sum -c main.go", "man ls", "less main.go", "vim main.go", "tar tf x.tar", "unzip -l x.zip", "dd if=main.go", "crontab -l", "lsof", "open main.go", "python3 --version -c x", "stty -a",
}

// atReading is a project for these commands, with what they name.
func atReading(t *testing.T) (dir, reads string) {
	t.Helper()
	dir = project(t)
	for _, sub := range []string{"bare/objects", "bare/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bare/HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(filepath.Dir(dir), "reads")
}

func TestACommandThatOnlyReadsRunsUnaskedWithoutASandboxAndInPlan(t *testing.T) {
	dir, reads := atReading(t)
	if len(reading) < 60 || len(more) < 60 {
		t.Error("the tables have shrunk")
	}
	modes := []permission.Mode{permission.ModeDefault, permission.ModeAcceptEdits, permission.ModeDontAsk, permission.ModePlan}
	for _, mode := range modes {
		m := judging(t, permission.Config{Mode: mode, Dir: dir, Readable: []string{reads}})
		plan := judging(t, permission.Config{Mode: permission.ModePlan, Dir: dir, Readable: []string{reads}, Fence: true})
		for _, command := range reading {
			u := useOf("bash", in{"command": strings.ReplaceAll(command, "$READS", reads)})
			if d := judged(t, m, u); d.Verdict != hook.Allow || !strings.Contains(d.Reason, "the command only reads, inside the project") {
				t.Errorf("%s in mode %s: %v", command, mode, d)
			}
			if d := judged(t, plan, u); mode == permission.ModePlan && d.Verdict != hook.Allow {
				t.Errorf("%s in a sandbox, in mode plan: %v", command, d)
			}
		}
		want := hook.Ask
		if mode == permission.ModePlan || mode == permission.ModeDontAsk {
			want = hook.Deny
		}
		for _, command := range more {
			u := useOf("bash", in{"command": command})
			if d := judged(t, m, u); d.Verdict != want {
				t.Errorf("%s in mode %s: %v, want %v", command, mode, d, want)
			}
			if d := judged(t, plan, u); mode == permission.ModePlan && d.Verdict != hook.Deny {
				t.Errorf("%s in a sandbox, in mode plan: %v", command, d)
			}
		}
	}
}

// The safety check is not asked here: what it would stop is not taken for reading in the first place.
func TestNothingOfTheCorpusThatHarmsRunsUnaskedWithoutASandbox(t *testing.T) {
	dir, _ := atReading(t)
	m := judging(t, permission.Config{Dir: dir})
	plan := judging(t, permission.Config{Dir: dir, Mode: permission.ModePlan, Fence: true})
	for _, list := range []string{"deny", "ask"} {
		for _, command := range corpus(t, list) {
			u := useOf("bash", in{"command": command})
			if d := judged(t, m, u); d.Verdict == hook.Allow {
				t.Errorf("%s: %v", command, d)
			}
			if d := judged(t, plan, u); d.Verdict != hook.Deny {
				t.Errorf("%s in mode plan: %v", command, d)
			}
		}
	}
}

// A rule, and a question of the safety check, come before what a mode thinks of a command.
func TestRulesAndTheSafetyCheckBindACommandThatOnlyReads(t *testing.T) {
	dir := project(t)
	for _, c := range []struct {
		call string
		p    permission.Config
		want hook.Verdict
	}{
		{"bash cat .env", permission.Config{Deny: []string{"Read(.env)"}}, hook.Deny},
		{"bash cat main.go", permission.Config{Deny: []string{"Bash(cat:*)"}}, hook.Deny},
		{"bash cat main.go", permission.Config{Ask: []string{"Bash(cat:*)"}}, hook.Ask},
		{"bash grep -rn x .", permission.Config{Deny: []string{"Read(.env)"}}, hook.Ask},
		{"bash ls", permission.Config{Ask: []string{"Bash"}, Mode: permission.ModePlan}, hook.Ask},
		{"bash ls", permission.Config{Safety: permission.SafetyIn(dir)}, hook.Allow},
		{"bash cat ../outside/file", permission.Config{Allow: []string{"Read(../outside/**)"}}, hook.Allow},
		{"bash git status && go test .", permission.Config{Allow: []string{"Bash(go test:*)"}}, hook.Allow},
		{"bash git commit && go test .", permission.Config{Allow: []string{"Bash(go test:*)"}}, hook.Ask},
		{"bash go test . | tee x", permission.Config{Allow: []string{"Bash(go test:*)"}, Mode: permission.ModePlan}, hook.Deny},
	} {
		c.p.Dir = dir
		if d := judged(t, judging(t, c.p), call(c.call)); d.Verdict != c.want {
			t.Errorf("%s with %+v: %v, want %v", c.call, c.p, d, c.want)
		}
	}
}

// A file whose name looks like an option is one for the program that a * gives it to.
func TestAPatternThatMayBecomeAnOptionIsNotReading(t *testing.T) {
	dir := project(t)
	m := judging(t, permission.Config{Dir: dir})
	for _, name := range []string{"", "-osrc"} {
		want := hook.Allow
		if name != "" {
			want = hook.Ask
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if d := judged(t, m, call("bash sort *")); d.Verdict != hook.Ask { // out leads outside
			t.Error(d)
		}
		if d := judged(t, m, call("bash wc -l *.go")); d.Verdict != want {
			t.Errorf("with a file %q: %v", name, d)
		}
		if d := judged(t, m, call("bash sort src/*.go")); d.Verdict != hook.Allow {
			t.Errorf("with a file %q: %v", name, d)
		}
	}
}

package permission

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/shell"
)

// Programs that change what others share: history, registries, machines elsewhere.

func gits(j *examiner, c *shell.Command) {
	d := *c
	args := c.Args
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		switch args[0].Text {
		case "-C", "--work-tree", "--git-dir":
			if len(args) > 1 && args[1].Known && d.Dir.Known {
				to := args[1].Text
				if !strings.HasPrefix(to, "/") {
					to = d.Dir.Text + "/" + to
				}
				d.Dir = shell.Word{Text: to, Known: true}
			} else {
				d.Dir = shell.Word{}
			}
			args = args[min(2, len(args)):]
		case "-c", "--namespace", "--exec-path":
			args = args[min(2, len(args)):]
		default:
			if dir, ok := strings.CutPrefix(args[0].Text, "--work-tree="); ok {
				d.Dir = shell.Word{Text: dir, Known: args[0].Known}
			}
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return
	}
	if !args[0].Known {
		j.ask("git does something that is not known: %s", args[0].Source)
		return
	}
	sub := args[0].Text
	d.Args = args[1:]
	l := parse(&d, "-m --message -b -B -C -c --strategy -X -s --source --onto -o --push-option --format --pretty -n -e --exclude --pathspec-from-file -F --file")
	losing := func(what string) {
		if at, p := j.place(removes, shell.Word{Text: ".", Known: true}, d.Dir); at == outside {
			j.deny("git %s loses changes in %s, which is outside the project", sub, p)
			return
		}
		j.ask("git %s %s", sub, what)
	}
	if why := gitLoses(sub, &d, l); why != "" {
		losing(why)
	}
	switch sub {
	case "config":
		if l.has("--global", "--system") && !l.has("--get", "--get-all", "--get-regexp", "-l", "--list") && len(l.operands) != 1 && l.first() != "get" && l.first() != "list" {
			j.ask("git config changes settings outside the project")
		}
	case "rm":
		if !l.has("--cached", "-n", "--dry-run") {
			for _, w := range l.operands {
				if at, _ := j.place(removes, w, d.Dir); at == project || at == outside {
					j.on(&d, removes, w)
				}
			}
		}
	case "clone", "init":
		if n := len(l.operands); sub == "clone" && n > 1 || sub == "init" && n > 0 {
			j.on(&d, creates, l.operands[n-1])
		}
	case "archive", "bundle", "format-patch", "diff":
		j.onValue(parse(&d, "-o --output --output-directory"), overwrites, "-o", "--output", "--output-directory")
	}
}

var fileName = lazy.Regexp(`(^|/)[^/]*\.[a-z]{1,5}$|/$|^\.`)

// gitLoses says what a git command loses, or "".
func gitLoses(sub string, c *shell.Command, l *line) string {
	unknown := slices.ContainsFunc(c.Args, func(w shell.Word) bool { return !w.Known })
	switch sub {
	case "push":
		switch {
		case l.has("-n", "--dry-run"):
		case l.has("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "-d", "--prune"):
			return "overwrites shared history"
		case slices.ContainsFunc(l.operands[min(1, len(l.operands)):], func(w shell.Word) bool { return strings.HasPrefix(w.Text, "+") || strings.HasPrefix(w.Text, ":") }):
			return "overwrites shared history"
		case unknown && slices.ContainsFunc(c.Args, func(w shell.Word) bool { return !w.Known && w.Text == "" }):
			return "has a word that is not known, which may force it"
		}
	case "reset":
		if l.has("--hard", "--merge", "--keep") || unknown && l.first() == "" {
			return "--hard loses uncommitted changes"
		}
	case "clean":
		if (l.has("-f", "--force") || l.has("-x", "-X")) && !parse(c, "-e").has("-n", "--dry-run") || unknown {
			return "removes files that are not under version control"
		}
	case "checkout", "switch":
		behind := slices.ContainsFunc(c.Args, func(w shell.Word) bool { return w.Text == "--" }) && sub == "checkout"
		switch {
		case l.has("-f", "--force", "--discard-changes", "--ours", "--theirs"), behind, l.has("-B", "-C") && sub == "checkout" && l.has("-B"), sub == "switch" && l.has("-C"):
			return "overwrites uncommitted changes"
		case sub == "checkout" && slices.ContainsFunc(l.operands, func(w shell.Word) bool { return fileName.Get().MatchString(w.Text) }) && !l.has("-b"):
			return "overwrites uncommitted changes"
		case sub == "checkout" && len(l.operands) > 1 && !l.has("-b", "-t", "--track", "--orphan", "--detach"):
			return "overwrites uncommitted changes"
		}
	case "restore":
		if !l.has("--staged", "-S") || l.has("--worktree", "-W") {
			return "overwrites uncommitted changes"
		}
	case "branch":
		if l.has("-D", "-M", "-C") || l.has("-f", "--force") {
			return "loses the commits of a branch"
		}
	case "stash":
		if l.first() == "drop" || l.first() == "clear" {
			return "loses what was put aside"
		}
	case "reflog":
		if l.first() == "expire" || l.first() == "delete" {
			return "loses the way back"
		}
	case "gc":
		if v, ok := l.value("--prune"); ok && v.Text != "2.weeks.ago" || l.has("--aggressive") && ok {
			return "loses the way back"
		}
	case "prune", "filter-branch", "filter-repo", "replace":
		return "rewrites history"
	case "update-ref":
		return "rewrites history"
	case "worktree":
		if l.first() == "remove" && l.has("-f", "--force") {
			return "loses uncommitted changes"
		}
	case "submodule":
		if l.first() == "deinit" && l.has("-f", "--force") {
			return "loses uncommitted changes"
		}
	case "tag":
		if l.has("-f", "--force") {
			return "moves a tag"
		}
	case "rm":
		if l.has("-f", "--force") && !l.has("--cached") {
			return "removes uncommitted changes"
		}
	}
	return ""
}

func gh(j *examiner, c *shell.Command) {
	words := joined(c)
	for _, s := range []string{"repo delete", "release create", "release delete", "repo archive", "repo rename", "secret ", "issue delete", "run delete", "cache delete", "pr merge", "workflow run", "gist delete", "repo edit", "ssh-key", "mr merge"} {
		if strings.HasPrefix(words, s) && !strings.HasPrefix(words, "secret list") && !strings.HasPrefix(words, "ssh-key list") {
			j.ask("%s %s changes what others see", c.Name, strings.TrimSpace(s))
		}
	}
	if strings.HasPrefix(words, "api ") && regexp.MustCompile(`(^| )(-X|--method)[ =]?(DELETE|PUT|PATCH|POST)`).MatchString(words) {
		j.ask("%s api changes what others see", c.Name)
	}
}

func joined(c *shell.Command) string {
	out := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		out = append(out, a.Text)
	}
	return strings.Join(out, " ")
}

// publishing are the words that make a program publish; "publish" for those that are not here.
var publishing = map[string]string{"twine": "upload", "gem": "push yank", "mvn": "deploy release:perform", "gradle": "publish publishPlugins", "goreleaser": "release", "vsce": "publish unpublish", "dotnet": "nuget", "cargo": "publish yank", "pod": "trunk", "npm": "publish unpublish deprecate dist-tag owner access", "pnpm": "publish unpublish", "yarn": "publish", "bun": "publish"}

func publish(j *examiner, c *shell.Command) {
	l := parse(c, "-C --prefix --filter -F --workspace -w --registry --tag --manifest-path -p --package --location -L")
	if v := l.first(); slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, c.Name) && slices.Contains([]string{"config", "c", "set"}, v) {
		j.packageConfig(c, l)
		return
	}
	if l.has("--dry-run", "--snapshot") || c.Name == "mvn" && l.first() != "deploy" && verb(c, "deploy release:perform") == "" {
		return
	}
	words := publishing[c.Name]
	if words == "" {
		words = "publish"
	}
	v := l.first()
	if c.Name == "yarn" && v == "npm" && len(l.operands) > 1 || c.Name == "mvn" || c.Name == "gradle" || c.Name == "dotnet" {
		v = verb(c, words)
	}
	if v == "dist-tag" || v == "owner" || v == "access" {
		if len(l.operands) > 1 && (l.operands[1].Text == "ls" || l.operands[1].Text == "list") {
			return
		}
	}
	if v == "nuget" || v == "trunk" { // dotnet nuget push, pod trunk push
		if verb(c, "push delete") == "" {
			return
		}
	}
	if v != "" && shell.Listed(words, v) {
		j.ask("%s %s publishes", c.Name, v)
	}
}

// runningConfig are the settings of package managers whose value they run, or load.
var runningConfig = []string{"script-shell", "shell", "editor", "git", "viewer", "browser", "node-options", "node-gyp", "init-module", "init.module", "init-author-module", "yarnpath", "yarn-path", "plugins", "onload-script", "userconfig", "globalconfig"}

// packageConfig judges settings that last: npm config set KEY VALUE, KEY=VALUE.
func (j *examiner) packageConfig(c *shell.Command, l *line) {
	words := l.operands
	if l.first() != "set" {
		words = words[1:]
	}
	if len(words) == 0 || words[0].Text != "set" {
		return
	}
	for i, w := range words[1:] {
		key, _, pair := strings.Cut(w.Text, "=")
		switch {
		case i > 0 && !pair: // a value
		case !w.Known && key == "":
			j.ask("%s config sets what is not known: %s", c.Name, w.Source)
		case slices.Contains(runningConfig, strings.ToLower(key)):
			j.ask("%s config sets %s, by which it runs other programs from now on", c.Name, key)
		}
	}
	where, _ := l.value("--location", "-L")
	if l.has("-g", "--global") || where.Text == "global" {
		j.ask("%s config changes the settings of the machine", c.Name)
	}
}

// transfer judges a command that sftp is given for the other machine.
func (j *examiner) transfer(c *shell.Command) {
	if shell.Listed("rm rmdir rename put mput reput chmod chown chgrp ln symlink", c.Name) {
		j.ask("sftp changes files on another machine: %s %s", c.Name, joined(c))
	}
}

// ftp judges what a session of a program like ftp is told to do.
func ftp(j *examiner, c *shell.Command) {
	told := []shell.Word{}
	if c.Input.Is || len(c.Input.From) > 0 {
		told = append(told, c.Input.Text)
	}
	if slices.ContainsFunc(c.Redirects, func(r shell.Redirect) bool { return r.Op == "<" }) {
		told = append(told, shell.Word{})
	}
	l := parse(c, "-e -c -f -u -p")
	for _, name := range l.options {
		if w, ok := l.value(name); ok && shell.Listed("-e -c", name) {
			told = append(told, w)
		} else if ok && name == "-f" {
			told = append(told, shell.Word{})
		}
	}
	for _, w := range told {
		if m := transfers.Get().FindString(w.Text); m != "" {
			j.ask("%s changes files on another machine, or runs a program: %s", c.Name, strings.TrimSpace(m))
		} else if !w.Known {
			j.ask("%s is told what to do by what is not known", c.Name)
		}
	}
}

// transfers are the commands of ftp that change what lies on the other machine, or run a program here.
var transfers = lazy.Regexp(`(?m)(^|;)\s*((rm|rmdir|mrm|delete|mdelete|del|mdel|rename|mv|put|mput|reput|append|send|mirror|chmod|ln|local)\b|!).*`)

func cloud(j *examiner, c *shell.Command) {
	words := joined(c)
	destructive := regexp.MustCompile(`(^| )(rm|rb|delete|destroy|terminate|remove|purge|deletefile|cleanup|del|mb|apps:destroy|pg:reset|delete-[a-z-]+|terminate-[a-z-]+|deregister-[a-z-]+|deploy|sync|secrets|--prod|--delete)( |$)`)
	if m := destructive.FindStringSubmatch(words); m != nil && !strings.Contains(words, "--dryrun") && !strings.Contains(words, "--dry-run") && !strings.Contains(words, " list") {
		if m[2] == "sync" && !strings.Contains(words, "--delete") && c.Name != "rclone" {
			return
		}
		j.ask("%s %s changes what runs or lies elsewhere", c.Name, m[2])
	}
}

func terraform(j *examiner, c *shell.Command) {
	switch parse(c, "").first() {
	case "destroy", "taint", "force-unlock":
		j.ask("%s destroys what runs elsewhere", c.Name)
	case "apply", "import":
		j.ask("%s changes what runs elsewhere", c.Name)
	case "state":
		if verb(c, "rm mv push") != "" {
			j.ask("%s changes the state that others share", c.Name)
		}
	}
}

func kubectl(j *examiner, c *shell.Command) {
	l := parse(c, "-n --namespace --context --kubeconfig -f -l -o --cluster")
	if slices.Contains([]string{"delete", "drain", "replace", "cordon", "scale", "apply", "patch", "edit", "taint", "rollout", "set", "create"}, l.first()) && !l.has("--dry-run") && (l.first() != "rollout" || verb(c, "status history") == "") {
		j.ask("kubectl %s changes what runs elsewhere", l.first())
	}
}

// phone judges what a phone that is plugged in is told.
func phone(j *examiner, c *shell.Command) {
	sub := parse(c, "-s -H -P -L -t").first()
	if shell.Listed(map[string]string{"adb": "reboot uninstall sideload restore remount disable-verity", "fastboot": "flash erase format flashall update oem flashing set_active wipe-super reboot"}[c.Name], sub) {
		j.ask("%s %s changes a device", c.Name, sub)
	}
}

const dockerValues = "-v --volume --mount -e --env -p --publish --name -w --workdir -u --user --network --net --entrypoint --env-file -l --label -h --hostname --pid --ipc --cap-add --security-opt --device --platform --restart -m --memory --cpus --add-host --tmpfs --gpus --volumes-from --ulimit --shm-size --userns --expose -t --tag --build-arg --target --project-name --context -H --host --filter --format -c"

func docker(j *examiner, c *shell.Command) {
	l := parse(c, dockerValues)
	sub, rest := l.first(), l.operands
	if len(rest) > 0 {
		rest = rest[1:]
	}
	next := ""
	if len(rest) > 0 {
		next = rest[0].Text
	}
	if sub == "container" || sub == "image" {
		sub = next
		rest = rest[min(1, len(rest)):]
	}
	switch sub {
	case "run", "create":
		j.container(c)
	case "push":
		j.ask("%s push publishes", c.Name)
	case "compose":
		d := *c
		for i, a := range c.Args {
			if a.Text == "compose" {
				d.Args = c.Args[i+1:]
			}
		}
		compose(j, &d)
	case "system", "volume", "builder", "network", "swarm", "service", "stack", "secret", "node":
		if v := verb(c, "prune rm remove leave init update"); v != "" && (sub != "network" || v == "prune") && sub != "builder" {
			j.ask("%s %s %s may remove data", c.Name, sub, v)
		}
	case "prune":
		j.ask("%s prune removes what is not running", c.Name)
	case "rm", "rmi":
		if slices.ContainsFunc(rest, func(w shell.Word) bool { return !w.Known || w.Glob }) {
			j.ask("%s %s of all there are", c.Name, sub)
		}
		if sub == "rm" && l.has("-v", "--volumes") {
			j.ask("%s rm -v removes data", c.Name)
		}
	case "cp":
		if len(rest) > 1 && !host.Get().MatchString(rest[len(rest)-1].Text) {
			j.on(c, overwrites, rest[len(rest)-1])
		}
	case "save", "export":
		j.onValue(parse(c, "-o --output"), overwrites, "-o", "--output")
	}
}

// container judges what a new container sees of the machine.
func (j *examiner) container(c *shell.Command) {
	for i, a := range c.Args {
		v := shell.Word{}
		switch {
		case (a.Text == "-v" || a.Text == "--volume" || a.Text == "--mount") && i+1 < len(c.Args):
			v = c.Args[i+1]
		case strings.HasPrefix(a.Text, "--volume="), strings.HasPrefix(a.Text, "--mount="):
			v = shell.Word{Text: a.Text[strings.IndexByte(a.Text, '=')+1:], Known: a.Known, Source: a.Source}
		case strings.HasPrefix(a.Text, "-v/") || strings.HasPrefix(a.Text, "-v."):
			v = shell.Word{Text: a.Text[2:], Known: a.Known, Source: a.Source}
		case a.Text == "--privileged" || a.Text == "--pid=host" || a.Text == "--cap-add" || strings.HasPrefix(a.Text, "--cap-add=") || a.Text == "--userns=host" || strings.HasPrefix(a.Text, "--device"):
			j.ask("%s run %s gives a container privileges", c.Name, a.Text)
			continue
		default:
			continue
		}
		from, rest, _ := strings.Cut(v.Text, ":")
		if strings.Contains(v.Text, "type=") || strings.Contains(v.Text, "source=") || strings.Contains(v.Text, "src=") {
			from, rest = "", v.Text
			for part := range strings.SplitSeq(v.Text, ",") {
				if name, s, _ := strings.Cut(part, "="); name == "source" || name == "src" {
					from = s
				}
			}
		}
		if !strings.ContainsAny(from, "/.~") && v.Known {
			continue // a volume of its own
		}
		at, p := j.place(overwrites, shell.Word{Text: from, Known: v.Known || strings.Contains(v.Text, ":"), Source: v.Source}, c.Dir)
		reads := strings.HasSuffix(rest, ":ro") || strings.Contains(rest, ",readonly") || strings.HasSuffix(rest, ",ro")
		switch {
		case at == outside && (reads || strings.HasSuffix(from, ".sock") || within(p, j.home) && p != j.home && j.home != "/"):
			j.ask("%s run gives a container %s", c.Name, p)
		case at == outside || at == device:
			j.deny("%s run gives a container %s, where it may write", c.Name, p)
		case at == nowhere:
			j.ask("%s run gives a container a path that is not known: %s", c.Name, p)
		}
	}
}

func compose(j *examiner, c *shell.Command) {
	l := parse(c, "-f --file -p --project-name --profile --env-file")
	switch {
	case l.first() == "down" && l.has("-v", "--volumes", "--rmi"), l.first() == "rm" && l.has("-v"):
		j.ask("docker compose %s removes data", l.first())
	case l.first() == "run":
		j.container(c)
	case l.first() == "push":
		j.ask("docker compose push publishes")
	}
}

func packages(j *examiner, c *shell.Command) {
	l := parse(c, "-o -c -t")
	v := verb(c, "install remove purge autoremove upgrade dist-upgrade full-upgrade erase add del delete update reinstall downgrade uninstall refresh")
	switch {
	case v == "update" && (strings.HasPrefix(c.Name, "apt") || c.Name == "apk"):
	case v == "" && (c.Name == "dpkg" && l.has("-i", "-r", "-P", "--install", "--remove", "--purge") || c.Name == "rpm" && l.has("-i", "-e", "-U", "-F", "--install", "--erase", "--upgrade") && !l.has("-q") || c.Name == "pacman" && l.has("-S", "-R", "-U") && !l.has("-Q") && !strings.Contains(joined(c), "-Ss") && !strings.Contains(joined(c), "-Si")):
		j.ask("%s changes the programs of the machine", c.Name)
	case v != "" && l.first() == v && !l.has("-s", "--simulate", "--dry-run"):
		j.ask("%s %s changes the programs of the machine", c.Name, v)
	}
}

func brew(j *examiner, c *shell.Command) {
	if v := verb(c, "uninstall remove rm autoremove cleanup"); v != "" && parse(c, "").first() == v {
		j.ask("brew %s removes programs of the machine", v)
	}
}

var dropping = lazy.Regexp(`(?i)\b(drop\s+(database|schema|table|user|role|view|index|keyspace|collection)|truncate\s+(table\s+)?\w|delete\s+from\s+\S+\s*(;|$)|dropdatabase|flushall|flushdb|shutdown|alter\s+user|\.drop\(|deletemany\(\s*\{?\s*\}?\s*\))`)

// database judges the statements that a client of a database is given.
func database(j *examiner, c *shell.Command) {
	text := joined(c)
	if c.Input.Is {
		text += "\n" + c.Input.Text.Text
	}
	if m := dropping.Get().FindString(text); m != "" || verb(c, "drop") != "" && c.Name == "mysqladmin" {
		j.ask("%s removes data: %s", c.Name, m)
	}
}

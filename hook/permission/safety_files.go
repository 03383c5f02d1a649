package permission

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/shell"
)

// Programs that have an effect on files.

// Files.

func remove(j *examiner, c *shell.Command) {
	l := parse(c, map[string]string{"shred": "-n -s --iterations --size --random-source"}[c.Name])
	ops := l.operands
	if c.Name == "gio" {
		if l.first() != "trash" && l.first() != "remove" {
			return
		}
		ops = ops[1:]
	}
	j.on(c, removes, ops...)
}

// targets splits the operands of cp, mv and install into sources and target.
func targets(l *line) (from []shell.Word, to shell.Word, ok bool) {
	if t, ok := l.value("-t", "--target-directory"); ok {
		return l.operands, t, true
	}
	n := len(l.operands)
	if n < 2 {
		return nil, shell.Word{}, false
	}
	return l.operands[:n-1], l.operands[n-1], true
}

const targetOptions = "-t --target-directory -S --suffix"

func move(j *examiner, c *shell.Command) {
	if from, to, ok := targets(parse(c, targetOptions)); ok {
		for _, w := range from {
			if at, _ := j.place(moves, w, c.Dir); at == project && w.Glob { // mv * sub/ loses nothing
				continue
			}
			j.on(c, moves, w)
		}
		j.on(c, overwrites, to)
	}
}

func copies(j *examiner, c *shell.Command) {
	if _, to, ok := targets(parse(c, targetOptions)); ok {
		j.on(c, overwrites, to)
	}
}

func link(j *examiner, c *shell.Command) {
	l := parse(c, targetOptions)
	what := creates
	if l.has("-f", "--force") {
		what = overwrites
	}
	from, to, ok := targets(l)
	if !ok {
		return
	}
	j.on(c, what, to)
	if len(from) == 1 && from[0].Known && to.Known && c.Dir.Known {
		if j.links == nil {
			j.links = map[string]string{}
		}
		j.links[join(c.Dir.Text, to.Text)] = join(c.Dir.Text, from[0].Text)
	}
}

func join(dir, p string) string {
	if !strings.HasPrefix(p, "/") {
		p = dir + "/" + p
	}
	return strings.TrimSuffix(strings.ReplaceAll(p, "/./", "/"), "/")
}

func installs(j *examiner, c *shell.Command) {
	l := parse(c, targetOptions+" -m --mode -o --owner -g --group")
	if w, ok := l.value("-m", "--mode"); ok && (setuid.Get().MatchString(w.Text) || setgid.Get().MatchString(w.Text)) {
		j.ask("%s gives whoever starts the file the rights of its owner: mode %s", c.Name, w.Text)
	}
	if l.has("-d", "--directory") {
		j.on(c, creates, l.operands...)
		return
	}
	if _, to, ok := targets(l); ok {
		j.on(c, overwrites, to)
	}
}

var host = lazy.Regexp(`^[^/]*:`)

func syncs(j *examiner, c *shell.Command) {
	l := parse(c, "-e --rsh --exclude --include --exclude-from --include-from --files-from -f --filter --rsync-path --bwlimit --max-size --min-size --log-file --out-format --info --chmod --chown --partial-dir --temp-dir -T --compare-dest --link-dest --port --password-file --timeout -B")
	if len(l.operands) < 2 || l.has("-n", "--dry-run") {
		return
	}
	from, to := l.operands[:len(l.operands)-1], l.operands[len(l.operands)-1]
	what := overwrites
	if strings.Contains(strings.Join(l.options, " "), "--del") {
		what = removes
	}
	if host.Get().MatchString(to.Text) {
		if what == removes {
			j.ask("rsync removes files on %s", to.Text)
		}
	} else {
		j.on(c, what, to)
	}
	if l.has("--remove-source-files") {
		j.on(c, moves, from...)
	}
	j.onValue(l, overwrites, "--log-file")
}

// secureCopy judges what is written here. Copying to another machine passes, as with rsync without --delete: the command says which files and where to, and it is how things are
// deployed. What a session of sftp puts there is asked about, since it comes with commands that remove and rename.
func secureCopy(j *examiner, c *shell.Command) {
	l := parse(c, "-c -D -F -i -J -l -o -P -S -X")
	if n := len(l.operands); n >= 2 && !host.Get().MatchString(l.operands[n-1].Text) {
		j.on(c, overwrites, l.operands[n-1])
	}
}

func sftp(j *examiner, c *shell.Command) {
	l := parse(c, "-B -b -c -D -F -i -J -l -o -P -R -S -X -s")
	if n := len(l.operands); n > 1 {
		j.on(c, overwrites, l.operands[n-1])
	}
}

func convert(j *examiner, c *shell.Command) {
	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a.Text, "of="); ok {
			j.on(c, overwrites, shell.Word{Text: v, Known: a.Known, Glob: a.Glob, Source: a.Source})
		} else if !a.Known && !strings.Contains(a.Text, "=") {
			j.ask("dd has a word that is not known: %s", a.Source)
		}
	}
}

// setuid are modes by which a program runs as its owner, setgid those by which it runs as its group. On a directory the latter only says whose group its files get.
var (
	setuid = lazy.Regexp(`^0*[4-7][0-7]{3}$|(^|,)[go]*[ua]?[ugo]*[+=][rwxXt]*s`)
	setgid = lazy.Regexp(`^0*[2367][0-7]{3}$|g[+=][rwxXt]*s`)
)

var symbolic = lazy.Regexp(`^-[rwxXstugo,=+-]+$`)

// mode judges chmod and its relatives: the first operand is what changes, the rest is where.
func mode(j *examiner, c *shell.Command) {
	l := parse(c, "--reference")
	ops := l.operands
	if c.Name == "chmod" && setuid.Get().MatchString(l.first()) {
		j.ask("chmod gives whoever starts a file the rights of its owner: mode %s", l.first())
	}
	if _, ok := l.value("--reference"); !ok && len(ops) > 0 && !(c.Name == "chmod" && slices.ContainsFunc(l.options, func(o string) bool { return symbolic.Get().MatchString(o) && o != "-R" })) {
		ops = ops[1:]
	}
	if c.Name == "chattr" { // its mode is an option, or begins with + or =
		ops = slices.DeleteFunc(slices.Clone(l.operands), func(w shell.Word) bool { return strings.HasPrefix(w.Text, "+") || strings.HasPrefix(w.Text, "=") })
	}
	j.on(c, changes, ops...)
}

func facl(j *examiner, c *shell.Command) {
	j.on(c, changes, parse(c, "-m -x -M -X --modify --remove --set --restore").operands...)
}

func inPlace(j *examiner, c *shell.Command) {
	l := parse(c, "-e -f -l --expression --file --line-length")
	in := l.has("--in-place")
	for _, o := range l.options {
		in = in || len(o) > 1 && o[1] != '-' && strings.Contains(o, "i")
	}
	if !in {
		return
	}
	ops := l.operands
	if _, ok := l.value("-e", "-f", "--expression", "--file"); !ok && len(ops) > 0 {
		ops = ops[1:]
	}
	j.on(c, overwrites, ops...)
}

func perlInPlace(j *examiner, c *shell.Command) {
	l := parse(c, "-e -E -I")
	for _, o := range l.options {
		if len(o) > 1 && o[1] != '-' && o[1] != 'M' && o[1] != 'I' && strings.Contains(o, "i") {
			j.on(c, overwrites, l.operands...)
			return
		}
	}
}

func curl(j *examiner, c *shell.Command) {
	l := parse(c, "-o --output --output-dir -D --dump-header -c --cookie-jar -H --header -d --data -X --request -u --user -A -e -b -F -T -m --max-time --connect-timeout -w --write-out -x -K --trace --trace-ascii --stderr --etag-save --retry --url -E --cert --key --cacert --data-raw --data-binary --data-urlencode")
	for _, n := range []string{"-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "--etag-save"} {
		j.onValue(l, overwrites, n)
	}
}

func wget(j *examiner, c *shell.Command) {
	l := parse(c, "-O --output-document -P --directory-prefix -o --output-file -a --append-output -t -T -w -Q -U -e -i --header --post-data --user --password -A -R -D -l --save-cookies")
	for _, n := range []string{"-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file", "-a", "--append-output", "--save-cookies"} {
		j.onValue(l, overwrites, n)
	}
}

func tar(j *examiner, c *shell.Command) {
	if len(c.Args) == 0 {
		return
	}
	const valued = "-f -C --file --directory -T -X --exclude --transform --strip-components -b -I --use-compress-program --files-from --exclude-from --checkpoint-action --to-command"
	d := *c
	d.Args = slices.Clone(c.Args)
	if letters := d.Args[0].Text; !strings.HasPrefix(letters, "-") && d.Args[0].Known { // tar xzf a.tgz: the values stand behind, in the order of the letters
		args := make([]shell.Word, 0, len(d.Args)+4)
		rest := d.Args[1:]
		for i := range len(letters) {
			o := shell.Word{Text: "-" + letters[i:i+1], Known: true}
			args = append(args, o)
			if strings.Contains("fCTXbI", letters[i:i+1]) && len(rest) > 0 {
				args = append(args, rest[0])
				rest = rest[1:]
			}
		}
		d.Args = append(args, rest...)
	}
	l := parse(&d, valued)
	cd := c.Dir
	if dir, ok := l.value("-C", "--directory"); ok {
		if l.has("-x", "--extract", "--get") {
			j.on(c, overwrites, dir)
		}
		cd = shell.Word{}
		switch {
		case dir.Known && strings.HasPrefix(dir.Text, "/"):
			cd = dir
		case dir.Known && c.Dir.Known:
			cd = shell.Word{Text: c.Dir.Text + "/" + dir.Text, Known: true}
		}
	} else if l.has("-x", "--extract", "--get") {
		j.on(c, overwrites, shell.Word{Text: ".", Known: true})
	}
	if l.has("-x", "--extract", "--get") && l.has("-P", "--absolute-names") {
		j.ask("tar unpacks to absolute paths")
	}
	if l.has("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--delete") && !l.has("-x", "--extract", "-t", "--list") {
		if f, ok := l.value("-f", "--file"); ok && f.Text != "-" && !host.Get().MatchString(f.Text) {
			j.on(c, overwrites, f)
		}
		if l.has("--remove-files") {
			for _, w := range l.operands {
				j.path("tar", removes, w, cd)
			}
		}
	}
}

func unzip(j *examiner, c *shell.Command) {
	l := parse(c, "-d -x -P")
	if l.has("-l", "-t", "-p", "-Z", "-v") {
		return
	}
	if _, ok := l.value("-d"); ok {
		j.onValue(l, overwrites, "-d")
		return
	}
	j.on(c, overwrites, shell.Word{Text: ".", Known: true})
}

func sevenZip(j *examiner, c *shell.Command) {
	for _, a := range c.Args {
		if dir, ok := strings.CutPrefix(a.Text, "-o"); ok {
			j.on(c, overwrites, shell.Word{Text: dir, Known: a.Known, Source: a.Source})
		}
	}
}

func zips(j *examiner, c *shell.Command) {
	l := parse(c, "-x -i -b -n -P -O")
	if len(l.operands) > 0 {
		j.on(c, overwrites, l.operands[0])
		if l.has("-m", "--move") {
			j.on(c, removes, l.operands[1:]...)
		}
	}
}

func compress(j *examiner, c *shell.Command) {
	l := parse(c, "-S -o")
	if l.has("-c", "--stdout", "-k", "--keep", "-l", "--list", "-t", "--test") {
		return
	}
	j.on(c, moves, l.operands...)
	j.onValue(l, overwrites, "-o")
}

func cpio(j *examiner, c *shell.Command) {
	if l := parse(c, "-D --directory -F -O -I"); l.has("-i", "-p", "--extract", "--pass-through") {
		j.onValue(l, overwrites, "-D", "--directory")
	}
}

func cmake(j *examiner, c *shell.Command) {
	l := parse(c, "")
	if len(c.Args) < 2 || c.Args[0].Text != "-E" {
		return
	}
	switch l.first() {
	case "rm", "remove", "remove_directory":
		j.on(c, removes, l.operands[1:]...)
	case "copy", "copy_directory", "copy_directory_if_different", "copy_if_different", "rename":
		n := len(l.operands) - 1
		if l.first() == "rename" {
			j.on(c, moves, l.operands[1:max(1, n)]...)
		}
		j.on(c, overwrites, l.operands[n])
	case "touch", "touch_nocreate", "make_directory":
		j.on(c, creates, l.operands[1:]...)
	case "create_symlink", "create_hardlink":
		j.on(c, overwrites, l.operands[len(l.operands)-1])
	case "env", "time", "chdir":
		j.ask("cmake -E %s runs another command", l.first())
	}
}

func patch(j *examiner, c *shell.Command) {
	l := parse(c, "-d --directory -i --input -o --output -p -F -r -D")
	if l.has("--dry-run") {
		return
	}
	j.onValue(l, overwrites, "-d", "--directory")
	j.onValue(l, overwrites, "-o", "--output")
	if len(l.operands) > 0 {
		j.on(c, overwrites, l.operands[0])
	}
}

func gpg(j *examiner, c *shell.Command) {
	l := parse(c, "-o --output -r -u --homedir --keyserver --recipient")
	for _, o := range l.options {
		if strings.HasPrefix(o, "--delete") {
			j.deny("gpg %s removes keys", o)
		}
	}
	j.onValue(l, overwrites, "-o", "--output")
}

func keygen(j *examiner, c *shell.Command) {
	l := parse(c, "-f -t -b -C -N -O -I -n -V -z -D -m -P -R -F -E")
	if l.has("-l", "-y", "-F", "-e", "-B", "-L") {
		return
	}
	f, ok := l.value("-f")
	if l.has("-R") {
		j.ask("ssh-keygen -R changes known_hosts")
		return
	}
	if !ok {
		j.ask("ssh-keygen writes a key into ~/.ssh")
		return
	}
	if at, p := j.place(overwrites, f, c.Dir); at == outside {
		j.ask("ssh-keygen writes %s, which is outside the project", p)
	}
}

func goTool(j *examiner, c *shell.Command) {
	l := parse(c, "-o --o -C")
	switch l.first() {
	case "build", "test":
		for _, name := range []string{"-o", "--o"} {
			if w, ok := l.value(name); ok { // -o=FILE
				w.Text = strings.TrimPrefix(w.Text, "=")
				l.give(name, w)
			}
			j.onOutput(l, name)
		}
	case "env":
		if !l.has("-w") {
			return
		}
		for _, w := range l.operands[1:] {
			switch name, v, _ := strings.Cut(w.Text, "="); {
			case shell.Listed("CC CXX FC AR GCCGO PKG_CONFIG GOROOT GOCACHEPROG", name), name == "GOFLAGS" && strings.Contains(v, "exec"), name == "GOAUTH" && strings.Contains(v, "/"):
				j.ask("go env -w sets %s, by which go runs other programs from now on", name)
			case !w.Known && (name == "GOFLAGS" || !strings.Contains(w.Text, "=")):
				j.ask("go env -w sets what is not known: %s", w.Source)
			}
		}
	}
}

// edits are the options of editors that have a value.
var edits = map[string]string{
	"nano": "-C --backupdir -Q --quotestr -T --tabsize -X --wordchars -Y --syntax -f --rcfile -o --operatingdir -r --fill -s --speller -J --guidestripe",
	"ed":   "-p --prompt",
	"vim":  "-c --cmd -S -u -U -i -w -W -T -V -t -q -r",
}

// edit judges the files that an editor opens to write them.
func edit(j *examiner, c *shell.Command) {
	valued := edits[c.Name]
	if valued == "" && c.Name != "pico" {
		valued = edits["vim"]
	}
	l := parse(c, valued)
	if l.has("-R", "-M", "-v", "--view", "--readonly") {
		return
	}
	for _, w := range l.operands {
		if !strings.HasPrefix(w.Text, "+") { // +LINE
			j.on(c, overwrites, w)
		}
	}
}

func hash(j *examiner, c *shell.Command) {
	if l := parse(c, "-p"); l.has("-p") {
		j.ask("hash -p makes a name stand for another program")
	}
}

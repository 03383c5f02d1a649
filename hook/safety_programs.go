package hook

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// listed reports whether a word is among those of a list separated by spaces.
func listed(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// A line is the words of a program, options apart from operands.
type line struct {
	*shell.Command
	options  []string
	values   map[string]shell.Word // of options that have one
	operands []shell.Word
}

// parse splits words. valued are options that take the next word, without their value glued to them: "-t --target-directory".
func parse(c *shell.Command, valued string) *line {
	l := &line{Command: c}
	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i]
		name, v, eq := strings.Cut(a.Text, "=")
		switch {
		case a.Known && a.Text == "--":
			l.operands = append(l.operands, c.Args[i+1:]...)
			return l
		case !strings.HasPrefix(a.Text, "-") || a.Text == "-":
			l.operands = append(l.operands, a)
		case !a.Known && !eq:
			l.operands = append(l.operands, a)
		case listed(valued, a.Text):
			l.options = append(l.options, a.Text)
			if i++; i < len(c.Args) {
				l.give(a.Text, c.Args[i])
			}
		case eq && strings.HasPrefix(a.Text, "--"):
			l.options = append(l.options, name)
			l.give(name, shell.Word{Text: v, Known: a.Known, Glob: a.Glob, Source: a.Source})
		default:
			l.options = append(l.options, a.Text)
			if len(a.Text) > 2 && a.Text[1] != '-' {
				if listed(valued, a.Text[:2]) { // -tDIR
					l.give(a.Text[:2], shell.Word{Text: a.Text[2:], Known: a.Known, Glob: a.Glob, Source: a.Source})
				} else if last := "-" + a.Text[len(a.Text)-1:]; listed(valued, last) && i+1 < len(c.Args) { // -rt DIR
					i++
					l.give(last, c.Args[i])
				}
			}
		}
	}
	return l
}

func (l *line) give(name string, w shell.Word) {
	if l.values == nil {
		l.values = map[string]shell.Word{}
	}
	l.values[name] = w
}

// has reports whether one of the options is there: long ones as a whole (or shortened, as getopt has it), letters also in a group.
func (l *line) has(names ...string) bool {
	for _, o := range l.options {
		for _, n := range names {
			if o == n || len(n) == 2 && n[0] == '-' && len(o) > 2 && o[0] == '-' && o[1] != '-' && strings.IndexByte(o[1:], n[1]) >= 0 ||
				len(o) > 4 && strings.HasPrefix(o, "--") && strings.HasPrefix(n, o) {
				return true
			}
		}
	}
	return false
}

func (l *line) value(names ...string) (shell.Word, bool) {
	for _, n := range names {
		if w, ok := l.values[n]; ok {
			return w, true
		}
	}
	return shell.Word{}, false
}

func (l *line) first() string {
	if len(l.operands) > 0 {
		return l.operands[0].Text
	}
	return ""
}

// on judges the effect of a program on paths.
func (j *examiner) on(c *shell.Command, what effect, paths ...shell.Word) {
	for _, p := range paths {
		j.path(c.Name, what, p, c.Dir)
	}
}

// onValue judges the effect on the value of an option.
func (j *examiner) onValue(l *line, what effect, names ...string) {
	if w, ok := l.value(names...); ok && w.Text != "-" {
		j.on(l.Command, what, w)
	}
}

func helps(c *shell.Command) bool {
	if len(c.Args) != 1 {
		return false
	}
	switch c.Args[0].Text {
	case "--help", "--version", "-V", "--usage":
		return true
	}
	return false
}

// A rule judges one program by what its words make it do.
type rule func(j *examiner, c *shell.Command)

// program judges one command.
func (j *examiner) program(c *shell.Command) {
	if helps(c) {
		return
	}
	if r := rules[c.Name]; r != nil {
		r(j, c)
		return
	}
	if strings.HasPrefix(c.Name, "mkfs") || strings.HasPrefix(c.Name, "newfs") || strings.HasPrefix(c.Name, "fsck") {
		format(j, c)
	}
}

// rules are the programs that can do harm, with what they do. Programs that aren't here pass.
var rules map[string]rule

func init() {
	rules = map[string]rule{
		"mv": move, "cp": copies, "ln": link, "install": installs, "ginstall": installs, "rsync": syncs, "scp": secureCopy, "dd": convert, "tee": operands(overwrites, ""), "truncate": operands(overwrites, "-s -r --size --reference"),
		"fallocate": operands(overwrites, "-l -o --length --offset"), "touch": operands(creates, "-d -t -r --date --reference"), "mkdir": operands(creates, "-m --mode"), "rmdir": operands(creates, ""), "mkfifo": operands(creates, "-m"), "mknod": operands(creates, "-m"),
		"chmod": mode, "chown": mode, "chgrp": mode, "chattr": mode, "setfacl": facl, "chcon": mode, "chflags": mode, "xattr": nil,
		"sed": inPlace, "gsed": inPlace, "perl": perlInPlace, "ruby": perlInPlace, "curl": curl, "wget": wget, "tar": tar, "gtar": tar, "bsdtar": tar, "unzip": unzip, "7z": sevenZip, "7za": sevenZip, "zip": zips,
		"gzip": compress, "gunzip": compress, "bzip2": compress, "bunzip2": compress, "xz": compress, "unxz": compress, "zstd": compress, "unzstd": compress, "lz4": compress, "patch": patch, "sort": output("-o --output"), "openssl": output("-out -keyout"), "gcc": output("-o"), "cc": output("-o"), "clang": output("-o"), "g++": output("-o"), "c++": output("-o"), "rustc": output("-o --out-dir"), "strace": output("-o"), "pandoc": output("-o --output"), "gpg": gpg, "ssh-keygen": keygen,
		"go": goTool, "git": gits, "fdisk": disk("-l --list"), "sfdisk": disk("-l --list -d --dump"), "gdisk": disk("-l"), "sgdisk": disk("-p --print"), "cfdisk": disk(""), "parted": parted, "wipefs": wipefs, "mkswap": format, "blkdiscard": format, "badblocks": badblocks, "cryptsetup": crypt, "hdparm": drive, "nvme": drive, "sg_format": format, "tune2fs": format, "resize2fs": format, "e2fsck": format, "debugfs": format,
		"lvremove": never("removes volumes"), "vgremove": never("removes volumes"), "pvremove": never("removes volumes"), "zpool": verbDenied("destroy labelclear", "zpool"), "zfs": verbDenied("destroy rollback", "zfs"), "mdadm": asks("changes disks"), "diskutil": verbDenied("eraseDisk eraseVolume erasedisk erasevolume reformat partitionDisk zeroDisk randomDisk secureErase", "diskutil"), "mount": mount, "umount": asks("takes a file system away"), "swapoff": asks("switches memory off"), "swapon": asks("changes memory"), "losetup": asks("changes devices"),
		"shutdown": shutdown, "reboot": never("restarts the machine"), "halt": never("stops the machine"), "poweroff": never("switches the machine off"), "kexec": never("starts another kernel"), "init": runlevel, "telinit": runlevel, "systemctl": systemctl, "loginctl": verbDenied("poweroff reboot halt suspend hibernate kill-user terminate-user kill-session terminate-session terminate-seat", "loginctl"), "pm-suspend": never("suspends the machine"), "rtcwake": never("suspends the machine"), "service": service, "launchctl": asks("changes services"),
		"kill": kill, "pkill": pkill, "killall": killall, "killall5": never("ends all processes"), "skill": pkill, "snice": nil, "slay": never("ends all processes of a user"),
		"userdel": never("removes an account"), "deluser": never("removes an account"), "groupdel": never("removes a group"), "delgroup": never("removes a group"), "usermod": never("changes an account"), "groupmod": never("changes a group"), "useradd": never("makes an account"), "adduser": never("makes an account"), "groupadd": never("makes a group"), "addgroup": never("makes a group"), "passwd": passwd, "chpasswd": never("changes passwords"), "chsh": never("changes an account"), "chfn": never("changes an account"), "vipw": never("changes accounts"), "vigr": never("changes accounts"), "gpasswd": never("changes a group"), "visudo": never("changes privileges"), "chage": chage, "dscl": never("changes accounts"), "sysadminctl": never("changes accounts"), "pwconv": never("changes accounts"),
		"crontab": crontab, "at": asks("runs something later"), "batch": asks("runs something later"), "atrm": asks("cancels jobs"),
		"iptables": firewall, "ip6tables": firewall, "nft": nft, "ufw": ufw, "firewall-cmd": asksUnless("--list --state --get", "changes the firewall"), "ip": ip, "ifconfig": ifconfig, "route": ifconfig, "nmcli": nmcli, "sysctl": sysctl, "modprobe": asks("changes the kernel"), "insmod": asks("changes the kernel"), "rmmod": asks("changes the kernel"), "setenforce": asks("changes security settings"), "hostnamectl": asksUnless("status", "changes the machine's name"), "setcap": asks("gives privileges"), "ipcrm": asks("removes what processes share"), "date": date,
		"sudo": privilege, "doas": privilege, "su": privilege, "pkexec": privilege, "runuser": privilege, "sg": privilege, "newgrp": privilege, "chroot": privilege, "nsenter": privilege, "unshare": privilege, "setpriv": privilege, "capsh": privilege, "systemd-run": privilege, "run0": privilege,
		"docker": docker, "podman": docker, "docker-compose": compose, "kubectl": kubectl, "helm": verbAsks("uninstall delete rollback push", "helm"), "terraform": terraform, "tofu": terraform, "aws": cloud, "gcloud": cloud, "az": cloud, "gsutil": cloud, "doctl": cloud, "flyctl": cloud, "fly": cloud, "heroku": cloud, "vercel": cloud, "netlify": cloud, "firebase": cloud, "wrangler": cloud, "s3cmd": cloud, "rclone": cloud, "mc": cloud,
		"npm": publish, "pnpm": publish, "yarn": publish, "bun": publish, "cargo": publish, "poetry": publish, "uv": publish, "gem": publish, "twine": publish, "mvn": publish, "gradle": publish, "goreleaser": publish, "vsce": publish, "dotnet": publish, "flit": publish, "hatch": publish, "pod": publish, "composer": nil, "gh": gh, "glab": gh,
		"apt": packages, "apt-get": packages, "aptitude": packages, "yum": packages, "dnf": packages, "pacman": packages, "zypper": packages, "apk": packages, "dpkg": packages, "rpm": packages, "snap": packages, "brew": brew, "flatpak": packages,
		"psql": database, "mysql": database, "mariadb": database, "mongosh": database, "mongo": database, "redis-cli": database, "dropdb": asks("removes a database"), "dropuser": asks("removes a user"), "mysqladmin": database, "security": verbDenied("delete-keychain delete-certificate delete-generic-password delete-internet-password", "security"), "defaults": verbAsks("write delete", "defaults"), "tmutil": asks("changes backups"),
		"enable": asksUnless("-p -a", "loads code into the shell"), "hash": hash, "bind": asks("changes the shell"), "history": nil, "vim": nil, "cpio": nil, "fuser": fuser, "nc": nil, "csplit": nil, "apachectl": asks("changes services"), "nginx": nil, "logrotate": asks("changes logs"), "journalctl": journal, "xargs": nil, "fish": nil,
	}
	for _, name := range []string{"rm", "grm", "unlink", "shred", "srm", "wipe", "scrub", "rimraf", "del-cli", "trash", "trash-put", "rip", "gio"} {
		rules[name] = remove
	}
	for name, r := range rules {
		if r == nil {
			delete(rules, name)
		}
	}
}

func operands(what effect, valued string) rule {
	return func(j *examiner, c *shell.Command) { j.on(c, what, parse(c, valued).operands...) }
}

func output(names string) rule {
	return func(j *examiner, c *shell.Command) { j.onValue(parse(c, names), overwrites, strings.Fields(names)...) }
}

func never(why string) rule {
	return func(j *examiner, c *shell.Command) { j.deny("%s %s", c.Name, why) }
}

func asks(why string) rule {
	return func(j *examiner, c *shell.Command) {
		if len(c.Args) > 0 || c.Name == "batch" {
			j.ask("%s %s", c.Name, why)
		}
	}
}

func asksUnless(harmless, why string) rule {
	return func(j *examiner, c *shell.Command) {
		for _, a := range c.Args {
			for h := range strings.FieldsSeq(harmless) {
				if strings.HasPrefix(a.Text, h) {
					return
				}
			}
		}
		if len(c.Args) > 0 {
			j.ask("%s %s", c.Name, why)
		}
	}
}

// verb finds the first of the words among the operands.
func verb(c *shell.Command, words string) string {
	for _, a := range c.Args {
		if listed(words, a.Text) {
			return a.Text
		}
	}
	return ""
}

func verbDenied(words, name string) rule {
	return func(j *examiner, c *shell.Command) {
		if v := verb(c, words); v != "" {
			j.deny("%s %s does lasting damage", name, v)
		}
	}
}

func verbAsks(words, name string) rule {
	return func(j *examiner, c *shell.Command) {
		if v := verb(c, words); v != "" {
			j.ask("%s %s changes what others rely on", name, v)
		}
	}
}

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
			if at, p := j.place(moves, w, c.Dir); at != inside && !(at == project && w.Glob) {
				_ = p
				j.on(c, moves, w)
			}
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
	if l.has("-d", "--directory") {
		j.on(c, creates, l.operands...)
		return
	}
	if _, to, ok := targets(l); ok {
		j.on(c, overwrites, to)
	}
}

var host = regexp.MustCompile(`^[^/]*:`)

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
	if host.MatchString(to.Text) {
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

func secureCopy(j *examiner, c *shell.Command) {
	l := parse(c, "-c -D -F -i -J -l -o -P -S -X")
	if n := len(l.operands); n >= 2 && !host.MatchString(l.operands[n-1].Text) {
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

var symbolic = regexp.MustCompile(`^-[rwxXstugo,=+-]+$`)

// mode judges chmod and its relatives: the first operand is what changes, the rest is where.
func mode(j *examiner, c *shell.Command) {
	l := parse(c, "--reference")
	ops := l.operands
	if _, ok := l.value("--reference"); !ok && len(ops) > 0 && !(c.Name == "chmod" && slices.ContainsFunc(l.options, func(o string) bool { return symbolic.MatchString(o) && o != "-R" })) {
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
		if f, ok := l.value("-f", "--file"); ok && f.Text != "-" && !host.MatchString(f.Text) {
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
	l := parse(c, "-o -C")
	if l.first() == "build" || l.first() == "test" {
		j.onValue(l, overwrites, "-o")
	}
}

// Disks and power.

// format judges programs that write to all of their operands as disks.
func format(j *examiner, c *shell.Command) {
	j.on(c, overwrites, parse(c, "-t -L -b -m -N -O -U -n").operands...)
}

func disk(harmless string) rule {
	return func(j *examiner, c *shell.Command) {
		if l := parse(c, ""); harmless == "" || !l.has(strings.Fields(harmless)...) {
			format(j, c)
		}
	}
}

func parted(j *examiner, c *shell.Command) {
	l := parse(c, "-a --align")
	if l.has("-l", "--list") || len(l.operands) > 1 && l.operands[1].Text == "print" && len(l.operands) == 2 || len(l.operands) == 0 {
		return
	}
	j.on(c, overwrites, l.operands[0])
}

func wipefs(j *examiner, c *shell.Command) {
	if l := parse(c, "-o -t"); l.has("-a", "--all", "-o", "--offset") && !l.has("-n", "--no-act") {
		j.on(c, overwrites, l.operands...)
	}
}

func badblocks(j *examiner, c *shell.Command) {
	if l := parse(c, "-b -c -o -t"); l.has("-w", "-n") {
		j.on(c, overwrites, l.operands...)
	}
}

func crypt(j *examiner, c *shell.Command) {
	if v := verb(c, "luksFormat luksErase erase reencrypt luksKillSlot luksRemoveKey luksHeaderRestore"); v != "" {
		l := parse(c, "")
		j.on(c, overwrites, l.operands[1:]...)
	}
}

func drive(j *examiner, c *shell.Command) {
	for _, a := range c.Args {
		if a.Text == "format" || a.Text == "sanitize" || strings.Contains(a.Text, "erase") || strings.Contains(a.Text, "trim") || strings.HasPrefix(a.Text, "write") {
			j.deny("%s %s destroys a disk", c.Name, a.Text)
		}
	}
}

func mount(j *examiner, c *shell.Command) {
	if l := parse(c, "-t -o -O"); len(l.operands) > 0 || l.has("-a", "--all", "--bind", "-o") {
		j.ask("mount changes the file systems")
	}
}

func shutdown(j *examiner, c *shell.Command) {
	if len(c.Args) == 1 && c.Args[0].Text == "-c" || len(c.Args) > 0 && c.Args[0].Text == "--show" {
		return
	}
	j.deny("shutdown stops the machine")
}

func runlevel(j *examiner, c *shell.Command) {
	l := parse(c, "-t")
	switch level := l.first(); {
	case slices.Contains([]string{"0", "1", "6", "s", "S", "u", "U"}, level) && !strings.Contains(c.Path.Text, "./"):
		j.deny("%s %s stops the machine", c.Name, level)
	case len(l.operands) > 0 && !l.operands[0].Known:
		j.ask("%s changes the runlevel", c.Name)
	}
}

func systemctl(j *examiner, c *shell.Command) {
	if v := verb(c, "poweroff reboot halt kexec suspend hibernate hybrid-sleep suspend-then-hibernate rescue emergency isolate exit switch-root soft-reboot default"); v != "" {
		j.deny("systemctl %s stops the machine or its services", v)
		return
	}
	if v := verb(c, "stop disable mask kill restart start enable daemon-reexec set-default revert edit set-property link preset reload unmask reset-failed daemon-reload"); v != "" && verb(c, "--user") == "" {
		j.ask("systemctl %s changes services", v)
	}
}

func service(j *examiner, c *shell.Command) {
	if v := verb(c, "stop restart start reload force-reload"); v != "" {
		j.ask("service %s changes services", v)
	}
}

func date(j *examiner, c *shell.Command) {
	if parse(c, "-d --date -r -f -j").has("-s", "--set") {
		j.ask("date -s sets the clock")
	}
}

func journal(j *examiner, c *shell.Command) {
	for _, a := range c.Args {
		if strings.HasPrefix(a.Text, "--vacuum") || a.Text == "--rotate" || a.Text == "--flush" {
			j.ask("journalctl %s removes logs", a.Text)
		}
	}
}

// Processes.

func kill(j *examiner, c *shell.Command) {
	args := c.Args
	if len(args) > 0 {
		switch a := args[0].Text; {
		case a == "-l" || a == "-L":
			return
		case a == "-s" || a == "-n" || a == "--signal":
			args = args[min(2, len(args)):]
		case strings.HasPrefix(a, "-") && a != "--" && len(args) > 1:
			args = args[1:]
		}
	}
	for _, a := range args {
		switch {
		case a.Text == "-1":
			j.deny("kill -1 ends all processes")
		case a.Text == "1":
			j.deny("kill 1 ends the first process, on which all depend")
		case !a.Known && a.Text == "-":
			j.ask("kill of a process that is not known: %s", a.Source)
		}
	}
}

var anything = regexp.MustCompile(`^[\^.*$+?\[\]a-zA-Z-]?[\^.*$+?]*$`)

func pkill(j *examiner, c *shell.Command) {
	l := parse(c, "-u -U -G -g -t -s -P -F --signal --euid --uid --group --pgroup --parent --session --terminal --pidfile -r --runstates --ns --nslist -d --older -O")
	_, file := l.value("-F", "--pidfile", "-P", "--parent", "-g", "--pgroup", "-s", "--session")
	switch {
	case l.has("-v", "--inverse"):
		j.deny("%s -v ends all other processes", c.Name)
	case len(l.operands) == 0 && len(l.options) > 0 && !file, len(l.operands) > 0 && l.operands[0].Known && anything.MatchString(l.operands[0].Text) && len(l.operands[0].Text) != 1 || len(l.operands) > 0 && l.operands[0].Text == ".":
		j.deny("%s ends all processes of a user", c.Name)
	case len(l.operands) > 0 && !l.operands[0].Known:
		j.ask("%s of processes that are not known: %s", c.Name, l.operands[0].Source)
	}
}

func killall(j *examiner, c *shell.Command) {
	l := parse(c, "-s --signal -u --user -o -y -n -Z")
	_, user := l.value("-u", "--user")
	switch {
	case len(l.operands) == 0 && user:
		j.deny("killall ends all processes of a user")
	case l.has("-r", "--regexp") && len(l.operands) > 0 && (l.first() == "." || strings.Trim(l.first(), ".*^$+?") == ""):
		j.deny("killall ends all processes")
	case len(l.operands) > 0 && !l.operands[0].Known:
		j.ask("killall of processes that are not known: %s", l.operands[0].Source)
	}
}

func fuser(j *examiner, c *shell.Command) {
	if l := parse(c, "-n -N"); l.has("-k", "--kill") && l.has("-m", "-M", "--mount") {
		for _, w := range l.operands {
			if at, p := j.place(removes, w, c.Dir); at != inside && at != temp {
				j.deny("fuser -k ends all processes that use %s", p)
			}
		}
	}
}

// Accounts and the system.

func passwd(j *examiner, c *shell.Command) {
	if !parse(c, "").has("-S", "--status") {
		j.deny("passwd changes a password")
	}
}

func chage(j *examiner, c *shell.Command) {
	if !parse(c, "").has("-l", "--list") {
		j.deny("chage changes an account")
	}
}

func crontab(j *examiner, c *shell.Command) {
	l := parse(c, "-u")
	switch {
	case l.has("-r"):
		j.deny("crontab -r removes all of a user's jobs")
	case !l.has("-l"):
		j.ask("crontab replaces a user's jobs")
	}
}

func firewall(j *examiner, c *shell.Command) {
	l := parse(c, "-t --table -p -s -d -i -o -j")
	switch {
	case l.has("-F", "-X", "-Z", "-P", "--flush", "--delete-chain", "--policy"):
		j.deny("%s takes the firewall's rules away", c.Name)
	case !l.has("-L", "-S", "-C", "--list", "--list-rules", "--check"):
		j.ask("%s changes the firewall", c.Name)
	}
}

func nft(j *examiner, c *shell.Command) {
	switch {
	case verb(c, "flush delete destroy reset") != "":
		j.deny("nft takes the firewall's rules away")
	case verb(c, "list") == "":
		j.ask("nft changes the firewall")
	}
}

func ufw(j *examiner, c *shell.Command) {
	switch {
	case verb(c, "disable reset") != "":
		j.deny("ufw takes the firewall away")
	case verb(c, "status show version") == "":
		j.ask("ufw changes the firewall")
	}
}

func ip(j *examiner, c *shell.Command) {
	if v := verb(c, "add del delete set flush change replace"); v != "" {
		j.ask("ip %s changes the network", v)
	}
}

func ifconfig(j *examiner, c *shell.Command) {
	if v := verb(c, "down up add del delete flush"); v != "" {
		j.ask("%s %s changes the network", c.Name, v)
	}
}

func nmcli(j *examiner, c *shell.Command) {
	if v := verb(c, "off on down up delete modify disconnect connect add"); v != "" {
		j.ask("nmcli %s changes the network", v)
	}
}

func sysctl(j *examiner, c *shell.Command) {
	l := parse(c, "")
	if l.has("-w", "--write", "-p", "--load", "--system") || slices.ContainsFunc(l.operands, func(w shell.Word) bool { return strings.Contains(w.Text, "=") }) {
		j.ask("sysctl changes the kernel's settings")
	}
}

func privilege(j *examiner, c *shell.Command) {
	if len(c.Args) > 0 && len(parse(c, "").operands) == 0 && slices.Contains([]string{"-l", "-k", "-K", "-v", "-h", "--list", "-V"}, c.Args[0].Text) && c.Name != "su" {
		return
	}
	j.ask("%s gains privileges or leaves the usual bounds", c.Name)
}

func hash(j *examiner, c *shell.Command) {
	if l := parse(c, "-p"); l.has("-p") {
		j.ask("hash -p makes a name stand for another program")
	}
}

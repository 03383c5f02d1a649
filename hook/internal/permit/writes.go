package permit

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/shell"
)

// What programs write that their operands alone don't say.

// writers are the programs of which more is known than that -o is an output.
func writers() map[string]func(*reached) { return writerTable.Of(makeWriters) }

var writerTable lazy.Value[map[string]func(*reached)]

func makeWriters() map[string]func(*reached) {
	return map[string]func(*reached){
		"git": (*reached).git, "tar": (*reached).tar, "gtar": (*reached).tar, "bsdtar": (*reached).tar, "unzip": (*reached).unzip, "zip": (*reached).zip, "cpio": (*reached).cpio,
		"7z": (*reached).sevenZip, "7za": (*reached).sevenZip, "7zz": (*reached).sevenZip, "patch": (*reached).patch, "curl": (*reached).curl, "wget": (*reached).wget, "wget2": (*reached).wget,
	}
}

// here is the directory that a command runs in.
var here = shell.Word{Text: ".", Known: true, Source: "."}

// told is the words of a command, told apart without a list of all the options that it may have.
type told struct {
	options  []string                // a cluster of letters is each of them
	values   map[string][]shell.Word // of options that have one
	operands []shell.Word
	behind   int // how many operands stand in front of --; -1 without one
}

// tell splits words. valued are the options that have a value, in the same word or the next.
func tell(args []shell.Word, valued string) told {
	l := told{values: map[string][]shell.Word{}, behind: -1}
	for i := 0; i < len(args); i++ {
		a := args[i]
		take := func(name string) { // the next word
			if i++; i < len(args) {
				l.values[name] = append(l.values[name], args[i])
			}
		}
		part := func(text string) shell.Word {
			return shell.Word{Text: text, Known: a.Known, Glob: a.Glob, Source: a.Source}
		}
		switch name, v, eq := strings.Cut(a.Text, "="); {
		case a.Known && a.Text == "--":
			l.behind = len(l.operands)
			l.operands = append(l.operands, args[i+1:]...)
			return l
		case len(a.Text) < 2 || a.Text[0] != '-':
			l.operands = append(l.operands, a)
		case strings.HasPrefix(a.Text, "--"):
			l.options = append(l.options, name)
			if eq {
				l.values[name] = append(l.values[name], part(v))
			} else if shell.Listed(valued, name) {
				take(name)
			}
		default:
			for j := 1; j < len(a.Text); j++ {
				letter := "-" + a.Text[j:j+1]
				l.options = append(l.options, letter)
				if !shell.Listed(valued, letter) {
					continue
				}
				if j+1 < len(a.Text) {
					l.values[letter] = append(l.values[letter], part(a.Text[j+1:]))
				} else {
					take(letter)
				}
				break
			}
		}
	}
	return l
}

// has reports whether one of the options, separated by spaces, is there; a long one may be cut short.
func (l told) has(names string) bool {
	for n := range strings.FieldsSeq(names) {
		if slices.ContainsFunc(l.options, func(o string) bool { return o == n || len(o) > 4 && strings.HasPrefix(n, o) }) {
			return true
		}
	}
	return false
}

// value is what the last of the options says.
func (l told) value(names string) (w shell.Word, ok bool) {
	for n := range strings.FieldsSeq(names) {
		if all := l.values[n]; len(all) > 0 {
			return all[len(all)-1], true
		}
	}
	return w, false
}

func (l told) first() string {
	if len(l.operands) > 0 {
		return l.operands[0].Text
	}
	return ""
}

func (r *reached) changes(tree bool, words ...shell.Word) {
	for _, w := range words {
		if !ownStream(w) {
			r.writes = append(r.writes, treed(r.paths(w), tree)...)
		}
	}
}

// within is a file in a directory that a word names.
func within(dir, name shell.Word) shell.Word {
	if dir.Text == "." && dir.Known {
		return name
	}
	return shell.Word{Text: dir.Text + "/" + name.Text, Known: dir.Known && name.Known, Glob: dir.Glob || name.Glob, Source: dir.Source + "/" + name.Source}
}

// inPlace is what a program writes of the files that it reads.
func (r *reached) inPlace(words []shell.Word) {
	in := inPlace()[r.cmd.Name]
	if in == nil || in.String() != "" && !slices.ContainsFunc(r.cmd.Args, func(a shell.Word) bool { return in.MatchString(a.Text) }) {
		return
	}
	n := len(r.writes)
	if r.changes(true, words...); in.String() != "" && !slices.ContainsFunc(r.cmd.Args, func(a shell.Word) bool { // -i.bak: another file comes to be
		return in.MatchString(a.Text) && strings.ContainsAny(a.Text, ".=*~")
	}) {
		standing(r.writes[n:])
	}
}

// outputs are the files that -o and --output say are written, as most programs have it; and those of dd.
func (r *reached) outputs() {
	for i, a := range r.cmd.Args {
		of, dd := strings.CutPrefix(a.Text, "of=")
		long, is := strings.CutPrefix(a.Text, "--output=")
		switch {
		case dd && r.cmd.Name == "dd":
			r.changes(false, shell.Word{Text: of, Known: a.Known, Glob: a.Glob, Source: a.Source})
		case r.cmd.Name == "dd":
		case is:
			r.changes(false, shell.Word{Text: long, Known: a.Known, Glob: a.Glob, Source: a.Source})
		case i+1 < len(r.cmd.Args) && (shell.Listed("-o -O --output --output-document", a.Text) && !r.matches() || slices.Contains(fetchers, r.cmd.Name) && fetchedTo.Get().MatchString(a.Text)):
			r.changes(false, r.cmd.Args[i+1])
		}
	}
}

// fetchedTo is an option of a fetcher, maybe behind others, whose value is the file that it writes.
var fetchedTo = lazy.Regexp(`^-[a-zA-Z]*[oO]$`)

// matches are the programs for which -o is "only the match", or part of a condition.
func (r *reached) matches() bool {
	return slices.Contains([]string{"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "test", "[", "find", "ls", "ps", "set", "ssh", "scp", "mount", "shopt"}, r.cmd.Name)
}

// unpacked is what an archive is unpacked to: the members that are named, or any.
func (r *reached) unpacked(to shell.Word, members []shell.Word) {
	for _, m := range members {
		if m.Known && strings.ContainsAny(m.Text, "*?[") { // the archive's, not the shell's
			members = nil
			break
		}
	}
	if len(members) == 0 {
		r.changes(true, to)
	}
	for _, m := range members {
		r.changes(true, within(to, m))
	}
}

// tarLetters are the options of tar that have a value.
const tarLetters = "fCTXbIgNVLFKH"

func (r *reached) tar() {
	args := r.cmd.Args
	if len(args) > 0 && args[0].Known && !strings.HasPrefix(args[0].Text, "-") { // xzf: the values stand behind, in the order of the letters
		letters, rest := args[0].Text, args[1:]
		args = nil
		for i := range len(letters) {
			args = append(args, shell.Word{Text: "-" + letters[i:i+1], Known: true})
			if strings.IndexByte(tarLetters, letters[i]) >= 0 && len(rest) > 0 {
				args, rest = append(args, rest[0]), rest[1:]
			}
		}
		args = append(args, rest...)
	}
	l := tell(args, "-"+strings.Join(strings.Split(tarLetters, ""), " -")+" --file --directory --files-from --exclude-from --exclude --transform --xform --strip-components --use-compress-program --one-top-level --owner --group --mode --mtime")
	to := here
	for _, dir := range slices.Concat(l.values["-C"], l.values["--directory"]) { // each in the one before it
		if to.Text == "." || path.IsAbs(dir.Text) {
			to = dir
		} else {
			to = within(to, dir)
		}
	}
	switch {
	case l.has("-x --extract --get"):
		if l.has("-O --to-stdout") {
			return
		}
		members := l.operands
		if l.has("-T --files-from --transform --xform --strip-components -s --one-top-level --wildcards") || l.has("-P --absolute-names") {
			members = nil
		}
		r.unpacked(to, members)
		if l.has("-P --absolute-names") {
			r.writes = append(r.writes, Path{Shown: "what is in " + r.cmd.Source, unknown: true})
		}
	case l.has("-c -r -u -A --create --append --update --concatenate --catenate --delete"):
		if file, ok := l.value("-f --file"); ok && !strings.Contains(file.Text, ":") {
			r.changes(false, file)
		}
		if l.has("--remove-files") {
			n := len(r.writes)
			for _, w := range l.operands {
				r.changes(true, within(to, w))
			}
			standing(r.writes[n:])
		}
	}
}

func (r *reached) unzip() {
	l := tell(r.cmd.Args, "-d -x -P")
	if l.has("-l -t -p -c -z -Z -v") || len(l.operands) == 0 {
		return
	}
	to, ok := l.value("-d")
	if !ok {
		to = here
	}
	members := l.operands[1:]
	if l.has("-j") {
		members = nil
	}
	r.unpacked(to, members)
}

func (r *reached) zip() {
	l := tell(r.cmd.Args, "-x -i -b -n -P -O -t")
	if len(l.operands) == 0 {
		return
	}
	r.changes(false, l.operands[0])
	if l.has("-m --move") {
		n := len(r.writes)
		r.changes(true, l.operands[1:]...)
		standing(r.writes[n:])
	}
}

func (r *reached) cpio() {
	l := tell(r.cmd.Args, "-D --directory -F --file -O -I -E -H -R")
	to, ok := l.value("-D --directory")
	if !ok {
		to = here
	}
	switch file, out := l.value("-O -F --file"); {
	case l.has("-p --pass-through"):
		r.changes(true, l.operands...)
	case l.has("-i --extract") && !l.has("-t --list --to-stdout"):
		r.unpacked(to, nil)
	case out && l.has("-o --create"):
		r.changes(false, file)
	}
}

func (r *reached) sevenZip() {
	l := tell(r.cmd.Args, "-o")
	to, ok := l.value("-o")
	if !ok {
		to = here
	}
	switch l.first() {
	case "x", "e":
		r.changes(true, to)
	case "a", "u", "d", "rn":
		r.changes(false, l.operands[1:min(2, len(l.operands))]...)
	}
}

func (r *reached) patch() {
	l := tell(r.cmd.Args, "-d --directory -i --input -o --output -p --strip -F --fuzz -r --reject-file -D --ifdef -B --prefix -V --version-control -Y -z --suffix -g --get")
	if l.has("--dry-run -C --help -v") {
		return
	}
	dir, ok := l.value("-d --directory")
	if !ok {
		dir = here
	}
	switch out, to := l.value("-o --output"); {
	case to:
		r.changes(false, within(dir, out))
	case len(l.operands) > 0:
		r.changes(false, within(dir, l.operands[0]))
	default: // the files that the patch names
		r.changes(true, dir)
	}
	if rejects, ok := l.value("-r --reject-file"); ok {
		r.changes(false, within(dir, rejects))
	}
}

func (r *reached) curl() {
	l := tell(r.cmd.Args, "-o --output --output-dir -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --etag-save --hsts --alt-svc --libcurl -K --config -H --header -d --data --data-raw --data-binary --data-urlencode --json -X --request -u --user -A --user-agent -e --referer -b --cookie -F --form -T --upload-file -m --max-time --connect-timeout -w --write-out -x --proxy -y -Y -z -r --range -E --cert --key --cacert --retry --url -C --resolve -P -Q -t -U")
	dir, ok := l.value("--output-dir")
	if !ok {
		dir = here
	}
	for _, file := range slices.Concat(l.values["-o"], l.values["--output"]) {
		if ownStream(file) {
			continue
		}
		if front, _, filled := strings.Cut(file.Text, "#"); filled && file.Known { // #1 is a part of the address
			r.changes(true, within(dir, shell.Word{Text: path.Dir(front + "x"), Known: true, Source: file.Source}))
			continue
		}
		r.changes(false, within(dir, file))
	}
	if l.has("-O --remote-name --remote-name-all") {
		r.fetched(dir, slices.Concat(l.operands, l.values["--url"]), l.has("-J --remote-header-name"))
	}
	for _, name := range strings.Fields("-D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --etag-save --hsts --alt-svc --libcurl") {
		r.changes(false, l.values[name]...)
	}
	for _, config := range slices.Concat(l.values["-K"], l.values["--config"]) {
		r.writes = append(r.writes, Path{Shown: "what " + config.Text + " says", unknown: true})
	}
}

func (r *reached) wget() {
	l := tell(r.cmd.Args, "-O --output-document -P --directory-prefix -o --output-file -a --append-output --save-cookies --load-cookies -i --input-file -B -e --execute -t --tries -T --timeout -w --wait -Q --quota -U --user-agent --header --post-data --post-file --body-data --method --user --password -A --accept -R --reject -D --domains -I -X -l --level --limit-rate --cut-dirs --default-page --warc-file --rejected-log")
	for _, name := range strings.Fields("-O --output-document -o --output-file -a --append-output --save-cookies --warc-file --rejected-log") {
		r.changes(false, l.values[name]...)
	}
	if _, one := l.value("-O --output-document"); one || l.has("--spider --help --version -V") {
		return
	}
	dir, ok := l.value("-P --directory-prefix")
	if !ok {
		dir = here
	}
	r.fetched(dir, l.operands, l.has("-r --recursive -m --mirror -p --page-requisites -i --input-file -x --force-directories --content-disposition --trust-server-names -e --execute"))
}

// fetched is what is stored in a directory under the names that addresses end with, or under any.
func (r *reached) fetched(dir shell.Word, addresses []shell.Word, anyName bool) {
	for _, a := range addresses {
		u, err := url.Parse(a.Text)
		if name := ""; err == nil && a.Known && !anyName && !strings.ContainsAny(a.Text, "{[") {
			if name = path.Base(u.Path); !strings.Contains(a.Text, "://") && !strings.Contains(a.Text, "/") || name == "." || name == "/" {
				name = "index.html"
			}
			r.changes(false, within(dir, shell.Word{Text: name, Known: true, Source: a.Source}))
			continue
		}
		r.changes(true, dir)
	}
	if anyName {
		r.changes(true, dir)
	}
}

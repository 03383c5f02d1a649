package permit

import (
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// reader is a program that changes nothing as long as it has these options only: it prints, and it reads the files that its words name. Options by which it would follow
// symbolic links below a directory are not among them, nor those by which it runs a program, writes a file, or reads the names of files from one.
type reader struct {
	options  string             // see parseOptions
	any      bool               // it does no more than its name says, whatever its words are
	front    bool               // an option behind an operand is an operand, to some that have the name
	apart    bool               // no option has a value in the same word
	words    *regexp.Regexp     // what each of its words has to be, instead of options and operands
	operand  *regexp.Regexp     // what each of its operands has to be
	text     bool               // its operands are no files
	names    bool               // of variables, behind an option: what is an index there runs
	flat     bool               // its operands are no directories
	first    bool               // its first operand is a pattern or a program, unless one of said is there
	said     string             // the options that say it instead
	code     func(string) bool  // reports whether such a program only reads; nil for a pattern
	most     int                // of operands; 0 for any number
	needs    bool               // of operands: without one it does something else
	verbs    string             // what its first operand has to be
	listing  string             // the options without which an operand is something to be made
	writes   bool               // its operands are written
	commands map[string]*reader // by the word behind its own options
	known    options            // options, parsed
}

// readers need no rule of their own.
func readers() map[string]*reader { return readerTable.Of(makeReaders) }

var readerTable lazy.Value[map[string]*reader]

const (
	lines = "--lines= --bytes= --quiet --silent --verbose --zero-terminated"
	sums  = "btz --binary --text --tag --zero"
	match = `abcEFGhHiIlLnoPqrsTuUvVwxyZz A: B: C: m: d: D: e: f< # --after-context= --basic-regexp --before-context= --binary-files= --byte-offset --color? --colour? --context= --count --devices= --directories=
		--exclude-dir= --exclude= --extended-regexp --file< --files-with-matches --files-without-match --fixed-strings --ignore-case --include= --initial-tab --invert-match --label= --line-buffered --line-number
		--line-regexp --max-count= --no-filename --no-ignore-case --no-messages --null --null-data --only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename --word-regexp`
)

func makeReaders() map[string]*reader {
	all := map[string]*reader{}
	for names, r := range map[string]reader{
		"cat":                              {options: "AbeEnstTuv --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank"},
		"tac":                              {options: "br s: --before --regex --separator="},
		"rev":                              {},
		"nl":                               {options: "p b: d: f: h: i: l: n: s: v: w: --body-numbering= --number-format= --number-separator= --number-width= --starting-line-number="},
		"head":                             {options: "# qvz n: c: " + lines},
		"tail":                             {options: "# fFqrvz n: c: s: --follow? --max-unchanged-stats= --pid= --retry --sleep-interval= " + lines},
		"wc":                               {options: "clLmw --bytes --chars --lines --max-line-length --words --total="},
		"cut":                              {options: "nsz b: c: d: f: --bytes= --characters= --complement --delimiter= --fields= --only-delimited --output-delimiter= --zero-terminated"},
		"tr":                               {options: "cCdst --complement --delete --squeeze-repeats --truncate-set1", text: true},
		"sort":                             {options: "# bcCdfghiMmnrRsuVz k: t: --check? --dictionary-order --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key= --merge --month-sort --numeric-sort --reverse --stable --unique --version-sort --zero-terminated"},
		"uniq":                             {options: "cdDiuz f: s: w: --all-repeated? --check-chars= --count --ignore-case --repeated --skip-chars= --skip-fields= --unique --zero-terminated", most: 1, front: true}, // a second one is written
		"paste":                            {options: "sz d: --delimiters= --serial"},
		"fold":                             {options: "bs w: --bytes --spaces --width="},
		"expand unexpand":                  {options: "ai t: --all --initial --tabs="},
		"column":                           {options: "tnx c: o: s: --output-separator= --separator= --table"},
		"join":                             {options: "i 1: 2: a: e: j: o: t: v:"},
		"comm":                             {options: "123z --check-order --nocheck-order --output-delimiter= --total"},
		"cmp":                              {options: "bls i: n: --bytes= --ignore-initial= --print-bytes --quiet --silent --verbose"},
		"diff":                             {options: "abBcdeEinpqstTuwyZ C: F: I: U: W: --brief --color? --context? --expand-tabs --ignore-all-space --ignore-blank-lines --ignore-case --ignore-matching-lines= --ignore-space-change --ignore-trailing-space --label= --minimal --report-identical-files --show-c-function --side-by-side --strip-trailing-cr --suppress-common-lines --text --unified? --width=", flat: true}, // below a directory it follows links
		"grep egrep fgrep":                 {options: match, first: true, said: "-e -f --regexp --file"},
		"rg":                               {options: "abcFHhIilNnopPqsSuUvVwx.0 A: B: C: d: e: E: f< g: j: m: M: r: t: T: --after-context= --before-context= --block-buffered --byte-offset --case-sensitive --color= --colors= --column --context= --context-separator= --count --count-matches --crlf --encoding= --file< --files --files-with-matches --files-without-match --fixed-strings --glob= --glob-case-insensitive --heading --hidden --iglob= --ignore-case --include-zero --invert-match --json --line-buffered --line-number --line-regexp --max-columns= --max-columns-preview --max-count= --max-depth= --max-filesize= --multiline --multiline-dotall --no-column --no-config --no-filename --no-heading --no-ignore --no-ignore-parent --no-ignore-vcs --no-line-number --no-messages --null --null-data --only-matching --passthru --pcre2 --pretty --quiet --regexp= --replace= --smart-case --sort= --sortr= --stats --text --threads= --trim --type-list --type-not= --type= --unrestricted --vimgrep --with-filename --word-regexp", first: true, said: "-e -f --regexp --file --files --type-list"},
		"sed gsed":                         {options: "Enrsuz e: --expression= --null-data --posix --quiet --regexp-extended --separate --silent --unbuffered", first: true, said: "-e --expression", code: sedReads},
		"awk gawk mawk nawk":               {options: "F: v: --assign= --field-separator=", first: true, code: awkReads},
		"jq":                               {options: "aCcejMnRrSs --ascii-output --color-output --compact-output --exit-status --indent= --join-output --monochrome-output --null-input --raw-input --raw-output --slurp --sort-keys --stream --tab", first: true, code: jqReads},
		"ls":                               {options: "1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ I: T: w: --all --almost-all --author --block-size= --classify? --color? --context --directory --escape --file-type --format= --full-time --group-directories-first --hide= --human-readable --hyperlink? --ignore-backups --ignore= --indicator-style= --inode --kibibytes --literal --no-group --numeric-uid-gid --quote-name --quoting-style= --recursive --reverse --si --size --sort= --tabsize= --time-style= --time= --width= --zero"},
		"tree":                             {options: "aACcdDfFghiJnNpqQrSstUuvX I: L: P: --charset= --dirsfirst --du --filelimit= --gitignore --ignore-case --inodes --metafirst --noreport --prune --si --sort= --timefmt=", apart: true},
		"find gfind":                       {options: "P -amin= -anewer< -atime= -cmin= -cnewer< -ctime= -and -daystart -depth -empty -executable -false -gid= -group= -ilname= -iname= -inum= -ipath= -iregex= -iwholename= -links= -lname= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer< -newermt= -nogroup -not -nouser -or -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -samefile< -size= -true -type= -uid= -user= -wholename= -writable -xdev -xtype= a o"},
		"fd fdfind":                        {options: "0aFgHIipsu1 c: d: e: E: S: t: --absolute-path --and= --changed-before= --changed-within= --color= --exact-depth= --exclude= --extension= --fixed-strings --full-path --glob --hidden --ignore-case --max-depth= --max-results= --min-depth= --no-ignore --no-ignore-vcs --print0 --prune --regex --size= --type=", first: true},
		"stat":                             {options: "fLtx c: --file-system --format= --printf= --terse"},
		"file":                             {options: "0biIkhLNnrv F: --brief --dereference --mime --mime-encoding --mime-type --no-dereference --separator="},
		"du":                               {options: "0abchklmsSx B: d: t: --all --apparent-size --block-size= --bytes --exclude= --human-readable --max-depth= --one-file-system --separate-dirs --si --summarize --threshold= --time? --total"},
		"df":                               {options: "ahHiklPT B: t: x: --all --block-size= --human-readable --inodes --local --output? --portability --print-type --si --total --type="},
		"realpath":                         {options: "eLmPqsz --canonicalize-existing --canonicalize-missing --logical --no-symlinks --physical --quiet --relative-base< --relative-to< --strip --zero"},
		"readlink":                         {options: "efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero"},
		"basename":                         {options: "az s: --multiple --suffix= --zero", text: true},
		"dirname":                          {options: "z --zero", text: true},
		"md5sum sha1sum sha256sum":         {options: sums},
		"sha224sum sha384sum sha512sum":    {options: sums},
		"b2sum cksum sum":                  {options: "rs" + sums},
		"shasum":                           {options: "bt a: --algorithm= --binary --text"},
		"base64 base32":                    {options: "di w: --decode --ignore-garbage --wrap="},
		"od":                               {options: "abcdfilosvx A: j: N: S: t: w? --address-radix= --format= --output-duplicates --read-bytes= --skip-bytes= --width?"},
		"xxd":                              {options: "abeipuE c: g: l: o: s:", most: 1, front: true}, // a second one is written
		"hexdump hd":                       {options: "bcCdovx e: n: s:"},
		"strings":                          {options: "af n: t: --all --bytes= --print-file-name --radix="},
		"gofmt":                            {options: "dels"},
		"echo true false : yes exit sleep": {any: true},
		"test [":                           {any: true, names: true},
		"printf":                           {text: true, first: true, code: printfReads},
		"seq":                              {options: "w f: s: --equal-width --format= --separator=", text: true},
		"which type command":               {options: "aPptvV --all", text: true},
		"groups id":                        {options: "agGnruz --group --groups --name --real --user --zero", text: true},
		"pwd":                              {options: "LP"},
		"cd pushd":                         {options: "eLP", most: 1, needs: true},
		"popd":                             {words: regexp.MustCompile(`^$`)},
		"tee":                              {options: "ai --append --ignore-interrupts", writes: true},
		"set":                              {words: regexp.MustCompile(`^([-+][efuvxCE]*o?|pipefail|errexit|nounset|xtrace|noglob|verbose|noclobber|errtrace)$`), needs: true},
		"date":                             {options: "Ru d: I? r< --date= --iso-8601? --reference< --rfc-3339= --rfc-email --universal --utc", operand: regexp.MustCompile(`^\+`)}, // any other one sets the clock
		"hostname":                         {words: regexp.MustCompile(`^-[sI]$`)},
		"uname arch":                       {words: regexp.MustCompile(`^(-[asnrmpiov]+|--[a-z-]+)$`)},
		"nproc":                            {words: regexp.MustCompile(`^--(all|ignore=\d+)$`)},
		"uptime":                           {words: regexp.MustCompile(`^-[ps]$`)},
		"whoami tty logname":               {words: regexp.MustCompile(`^-s$`)},
		"node python python3 make cmake gcc clang": {words: regexp.MustCompile(`^--version$`), needs: true},
		"git": {options: "P C: --literal-pathspecs --no-optional-locks --no-pager --version", commands: gitReaders},
	} {
		r.parse()
		for name := range strings.FieldsSeq(names) {
			all[name] = &r
		}
	}
	return all
}

func (r *reader) parse() {
	r.known = parseOptions(r.options)
	for _, sub := range r.commands {
		sub.parse()
	}
}

// What git's commands have in common.
const (
	gitRevisions = `# n: g i E F P --after= --all --all-match --ancestry-path? --author-date-order --author= --before= --boundary --branches? --cherry --cherry-mark --cherry-pick --committer= --count --date-order --dense
		--exclude= --extended-regexp --first-parent --fixed-strings --follow --full-history --glob= --grep= --invert-grep --left-only --left-right --max-count= --max-parents= --merges --min-parents= --no-merges --no-walk? --not
		--perl-regexp --regexp-ignore-case --remotes? --reverse --right-only --show-pulls --simplify-by-decoration --simplify-merges --since= --skip= --sparse --tags? --topo-order --until= --walk-reflogs `
	gitPretty = `--abbrev-commit --abbrev? --children --clear-decorations --color? --date= --decorate-refs-exclude= --decorate-refs= --decorate? --encoding= --format= --graph --log-size --no-abbrev --no-abbrev-commit --no-color --no-decorate
		--no-graph --no-notes --notes? --oneline --parents --pretty? --relative-date --source `
	gitDiffs = `abcDmpRrstuwWz B? C? G: L: l: M? S: U: X? --abbrev? --binary --cached --cc --check --color-moved? --color-words? --color? --combined-all-paths --compact-summary --cumulative --diff-algorithm= --diff-filter= --dirstat?
		--exit-code --find-copies-harder --find-copies? --find-object= --find-renames? --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol
		--ignore-space-change --ignore-submodules? --indent-heuristic --inter-hunk-context= --line-prefix= --merge-base --minimal --name-only --name-status --no-color --no-ext-diff --no-patch --no-prefix --no-renames --no-textconv
		--numstat --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw --relative? --rotate-to= --shortstat --skip-to= --staged --stat? --submodule? --summary --text
		--unified= --word-diff-regex= --word-diff? `
	gitRefs = "--color? --contains= --format= --ignore-case --merged= --no-color --no-contains= --no-merged= --points-at= --sort= "
)

// gitReaders are git's commands that change nothing. Its external programs for differences and signatures are not among the options.
var gitReaders = map[string]*reader{
	"status":        {options: "bsvz u? --ahead-behind --branch --column? --find-renames? --ignore-submodules? --ignored? --long --no-ahead-behind --no-column --no-renames --porcelain? --renames --short --show-stash --untracked-files? --verbose"},
	"log":           {options: gitRevisions + gitPretty + gitDiffs},
	"show":          {options: gitRevisions + gitPretty + gitDiffs},
	"diff":          {options: gitDiffs},
	"shortlog":      {options: "censw? --after= --all --author= --before= --committer --email --format= --group= --grep= --merges --no-merges --numbered --since= --summary --until="},
	"blame":         {options: "bcefklnpstw C? L: M? --abbrev? --color-by-age --color-lines --date= --first-parent --ignore-rev= --incremental --line-porcelain --porcelain --root --show-email --show-name --show-number --show-stats --since="},
	"ls-files":      {options: "cdfikmostuvz x: --abbrev? --cached --deduplicate --deleted --directory --eol --error-unmatch --exclude-standard --exclude= --format= --full-name --ignored --killed --modified --no-empty-directory --others --recurse-submodules --resolve-undo --stage --unmerged"},
	"ls-tree":       {options: "dlrtz --abbrev? --format= --full-name --full-tree --long --name-only --name-status --object-only"},
	"rev-parse":     {options: "q --abbrev-ref? --absolute-git-dir --all --branches? --git-common-dir --git-dir --git-path= --is-bare-repository --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --not --path-format= --quiet --remotes? --revs-only --short? --show-cdup --show-prefix --show-superproject-working-tree --show-toplevel --symbolic --symbolic-full-name --tags? --verify"},
	"rev-list":      {options: gitRevisions + gitPretty + "--disk-usage? --header --no-commit-header --objects --timestamp"},
	"describe":      {options: "--abbrev? --all --always --broken? --candidates= --contains --dirty? --exact-match --exclude= --first-parent --long --match= --tags"},
	"merge-base":    {options: "a --all --fork-point --independent --is-ancestor --octopus"},
	"name-rev":      {options: "--all --always --name-only --refs= --tags"},
	"show-ref":      {options: "dhqs? --abbrev? --branches --dereference --exists --hash? --head --heads --quiet --tags --verify"},
	"for-each-ref":  {options: "--count= --exclude= --omit-empty " + gitRefs},
	"cat-file":      {options: "epst --batch-all-objects --batch-check? --batch? --unordered"},
	"count-objects": {options: "Hv --human-readable --verbose"},
	"check-ignore":  {options: "nqvz --no-index --non-matching --quiet --verbose"},
	"grep": {
		options: "aEFGhHIilLnopPqrvwWz A: B: C: e: f< m: # --after-context= --all-match --and --basic-regexp --before-context= --break --cached --color? --column --context= --count --exclude-standard --extended-regexp --files-with-matches --files-without-match --fixed-strings --full-name --function-context --heading --ignore-case --invert-match --line-number --max-count= --max-depth= --name-only --no-color --not --null --only-matching --or --perl-regexp --quiet --recurse-submodules --show-function --text --untracked --word-regexp",
		first:   true, said: "-e -f",
	},
	"reflog":   {options: gitRevisions + gitPretty + gitDiffs, verbs: "show exists list"},
	"stash":    {options: gitRevisions + gitPretty + gitDiffs + "--include-untracked --only-untracked", verbs: "list show", needs: true},
	"remote":   {options: "v --all --push --verbose", verbs: "get-url"},
	"worktree": {options: "vz --porcelain --verbose", verbs: "list", needs: true},
	"branch":   {options: "arv --abbrev? --all --column? --list --no-abbrev --no-column --omit-empty --remotes --show-current --verbose " + gitRefs, listing: "--list"},
	"tag":      {options: "l n? --column? --list --no-column --omit-empty " + gitRefs, listing: "-l --list"},
	"version":  {options: "--build-options"},
}

// awkEffects is what a program in awk has to have in it to run, write, or read anything besides its operands.
var awkEffects = lazy.Regexp(`\\\n|system|getline|[|>@]|ARGV|ARGC|ENVIRON|SYMTAB|PROCINFO`)

func awkReads(program string) bool {
	return !awkEffects.Get().MatchString(strings.ReplaceAll(program, "||", " "))
}

// printfReads reports whether a format sets no variable: %n does.
func printfReads(format string) bool {
	return !strings.Contains(format, "%") || !strings.Contains(format, "n") || !printfSets.Get().MatchString(strings.ReplaceAll(format, "%%", ""))
}

var printfSets = lazy.Regexp(`%[^a-zA-Z%]*[hljztLq]*n`)

// jqEffects is what a program in jq has to have in it to read anything besides its operands.
var jqEffects = lazy.Regexp(`\b(env|ENV|import|include|modulemeta|get_search_list)\b`)

func jqReads(program string) bool { return !jqEffects.Get().MatchString(program) }

package fence

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// seatbelt is the profile for macOS's sandbox-exec. What is allowed last counts: all but writes, then what may be written, then what is hidden or protected, then the
// network. port is the proxy's, 0 for none.
func seatbelt(p sandbox.Policy, v view, writes []string, port int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	paths := func(rule string, paths []string) {
		if len(paths) == 0 {
			return
		}
		line("(%s", rule)
		for _, path := range paths {
			line("  (subpath %s)", quoteSeatbelt(path))
		}
		line(")")
	}
	line("(version 1)")
	line("(allow default)")
	line("(deny file-write*)")
	line(`(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx") (subpath "/dev/fd"))`)
	line(`(deny file-read-data file-write* (regex #"^/dev/ttys[0-9]+$"))`) // a person's terminal; those that a command makes have the extension
	line(`(allow file-read-data file-write* (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))`)
	paths("allow file-write*", writes)
	paths("deny file-write*", v.kept)
	paths("deny file-read* file-write*", v.hidden)
	paths("allow file-read*", v.read)
	for _, dir := range above(slices.Concat(v.held, p.Protect), writes) { // nor is it moved with a directory that it lies in
		line("(deny file-write-unlink (literal %s))", quoteSeatbelt(dir))
	}
	line(`(deny file-read* file-write* (regex #"^/dev/r?disk") (literal "/dev/mem") (literal "/dev/kmem"))`)
	line("(deny signal)")
	line("(allow signal (target same-sandbox))")
	line("(deny appleevent-send)") // others would run what is asked for outside: other programs, the Finder, launchd
	line("(deny lsopen)")
	line("(deny job-creation)")
	if !p.Network.All {
		line("(deny network*)")
		line(`(deny mach-lookup (global-name "com.apple.dnssd.service"))`)
		if port != 0 {
			line(`(allow network-outbound (remote ip "localhost:%d"))`, port)
		}
	}
	line("(deny network-outbound (remote unix-socket))")
	if p.Network.All {
		line(`(allow network-outbound (literal "/private/var/run/mDNSResponder"))`) // names are looked up there
	}
	return b.String()
}

// above lists the directories that paths lie in, as far as those lie in what may be written.
func above(paths, writes []string) (out []string) {
	for _, path := range paths {
		for dir := filepath.Dir(path); slices.ContainsFunc(writes, func(w string) bool { return w != dir && reach.Inside(w, dir) }); dir = filepath.Dir(dir) {
			out = append(out, dir)
		}
	}
	return reach.Union(out, nil)
}

// quoteSeatbelt quotes a path as a string of the profile's language.
func quoteSeatbelt(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// limitsScript is what sh runs first, where no helper can: the limits, then the command, which its arguments are.
func limitsScript(l sandbox.Limits) string {
	l = l.OrDefault()
	lines := []string{
		"ulimit -c 0", "ulimit -t " + strconv.Itoa(int(max(1, l.CPU.Seconds()))), "ulimit -f " + strconv.FormatUint(l.FileSize/512, 10),
		`files=` + strconv.FormatUint(l.Files, 10), `most=$(ulimit -H -n)`, `[ "$most" = unlimited ] || [ "$files" -le "$most" ] || files=$most`, `ulimit -n "$files"`,
	}
	if l.Processes > 0 {
		lines = append(lines, "ulimit -u "+strconv.FormatUint(l.Processes, 10))
	}
	for i := range lines {
		lines[i] += " || exit 126"
	}
	return strings.Join(append(lines, `exec "$@"`), "\n")
}

package permission

import (
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// Programs that have an effect on the machine: disks, power, accounts, the network.

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

// core are directories that the machine runs by: what is mounted over one hides what is in it.
var core = []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/dev", "/proc", "/sys", "/root"}

func mount(j *examiner, c *shell.Command) {
	l := parse(c, "-t --types -o --options -O --test-opts -L --label -U --uuid")
	if n := len(l.operands); n > 0 {
		how, _ := l.value("-o", "--options")
		again := strings.Contains(how.Text, "remount")
		to := l.operands[n-1]
		if to.Known && (n > 1 || again) && strings.HasPrefix(to.Text, "/") {
			p := path.Clean(to.Text)
			top := strings.Count(p, "/") == 1 && j.where(overwrites, p) == outside && p != "/mnt" && p != "/media"
			if top || within(j.home, p) || slices.ContainsFunc(core, func(dir string) bool { return within(p, dir) }) {
				j.deny("mount puts another file system over %s, or changes how it is mounted", p)
			}
		}
	}
	if len(l.operands) > 0 || l.has("-a", "--all", "--bind", "-o") {
		j.ask("mount changes the file systems")
	}
}

// logsave writes to its first operand what the command behind it prints.
func logsave(j *examiner, c *shell.Command) {
	if l := parse(c, ""); len(l.operands) > 0 && l.first() != "-" {
		j.on(c, overwrites, l.operands[0])
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

func bus(j *examiner, c *shell.Command) {
	for _, a := range c.Args {
		for _, w := range []string{"PowerOff", "Reboot", "Halt", "Suspend", "Hibernate", "KExec"} {
			if strings.HasSuffix(a.Text, w) {
				j.deny("%s %s stops the machine", c.Name, a.Text)
			}
		}
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

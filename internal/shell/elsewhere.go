package shell

import "strings"

// Programs that run a command on another machine, or in a container.

// Elsewhere reports whether a label of [Command.By] says that the command runs on another machine, or in a container: nothing that it does is done here.
func Elsewhere(by string) bool {
	switch by {
	case "ssh", "sftp", "docker exec", "podman exec", "kubectl exec", "adb shell", "lxc exec", "incus exec", "multipass exec", "vagrant ssh", "minikube ssh":
		return true
	}
	return false
}

// far is a frame for what runs elsewhere: neither its directory nor its variables are known.
func (f frame) far() frame {
	f = f.fork()
	f.remote = true
	f.sc.set(dirKey, variable{alts: unknown})
	return f
}

// elsewhere reads the words of a command that runs elsewhere.
func (r *reader) elsewhere(f frame, args []Word, source string) {
	r.exec(f.far(), args, nil, nil, source)
}

// behind gives the words behind the first operand and its options, when it is one of verbs. short, own and long are options that take a value: of the program, of the verb, of both.
func behind(args []Word, verbs, short, own, long string) ([]Word, bool) {
	i := options(args, short, long)
	if i >= len(args) || !Listed(verbs, args[i].Text) {
		return nil, false
	}
	args = args[i+1:]
	return args[min(options(args, own, long), len(args)):], true
}

// past leaves out a -- that args begin with.
func past(args []Word) []Word {
	if len(args) > 0 && args[0].Known && args[0].Text == "--" {
		return args[1:]
	}
	return args
}

// reaches reads programs of devices and machines beside this one.
func (r *reader) reaches(f frame, c Command) {
	switch c.Name {
	case "adb":
		if args, ok := behind(c.Args, "shell exec-out exec-in", "sHPLt", "e", ""); ok {
			r.joined(f.relabel("adb shell").far(), args)
		}
	case "lxc", "incus", "multipass":
		if args, ok := behind(c.Args, "exec", "", "d", "project cwd env user group mode working-directory"); ok && len(args) > 0 {
			r.elsewhere(f.relabel(c.Name+" exec"), past(args[1:]), c.Source)
		}
	case "vagrant":
		_, ok := behind(c.Args, "ssh winrm powershell", "", "", "")
		for i, a := range c.Args {
			switch v, eq := strings.CutPrefix(a.Text, "--command="); {
			case !ok || i == 0:
			case eq:
				r.text(f.relabel("vagrant ssh").far(), Word{Text: v, Known: a.Known, Source: a.Source})
			case (a.Text == "-c" || a.Text == "--command") && i+1 < len(c.Args):
				r.text(f.relabel("vagrant ssh").far(), c.Args[i+1])
			case a.Text == "--" && i+1 < len(c.Args): // the rest is ssh's
				rest := c.Args[i+1:]
				r.joined(f.relabel("vagrant ssh").far(), rest[min(options(rest, sshValues, ""), len(rest)):])
			}
		}
	case "minikube":
		if args, ok := behind(c.Args, "ssh", "pn", "n", "profile node"); ok {
			r.joined(f.relabel("minikube ssh").far(), past(args))
		}
	}
}

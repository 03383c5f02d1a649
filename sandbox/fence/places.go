package fence

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// atHome are places with secrets, from the home directory. What is not there costs nothing.
var atHome = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/doctl", ".config/op", ".config/pawl", ".local/state/pawl", ".config/rclone", ".oci",
	".docker/config.json", ".config/containers/auth.json", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials", ".password-store",
	".local/share/keyrings", ".local/share/kwalletd", ".config/age", ".config/sops", ".vault-token", ".terraform.d/credentials.tfrc.json", ".pgpass", ".my.cnf", ".npmrc",
	".yarnrc.yml", ".pypirc", ".gem/credentials", ".bundle/config", ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties",
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
	"snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome",
	"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
	"Library/Application Support/BraveSoftware", "Library/Application Support/Microsoft Edge", "Library/Application Support/com.apple.TCC", "Library/Application Support/pawl",
}

// ofSystem are those that root could read.
var ofSystem = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/kubernetes", "/etc/krb5.keytab",
	"/etc/NetworkManager/system-connections", "/var/lib/kubelet", "/var/lib/docker", "/var/lib/containerd",
}

// ofOrchestrators are readable to everybody in a container.
var ofOrchestrators = []string{"/run/secrets", "/var/run/secrets"}

// Secrets lists the places that commands can't read: keys, tokens, browsers' profiles and shells' histories of the user, what Pawl itself keeps (its directories in $XDG_CONFIG_HOME and $XDG_STATE_HOME, or
// in ~/.config and ~/.local/state), and what of the system only root can read. They are the ones that are there now, resolved.
func Secrets() []string {
	return slices.DeleteFunc(places(), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// places are the secrets that are there, and those that may come.
func places() []string {
	var all []string
	for _, home := range homes() {
		for _, rel := range atHome {
			all = append(all, filepath.Join(home, rel))
		}
	}
	all = append(append(all, own()...), ofOrchestrators...)
	if os.Geteuid() == 0 {
		all = append(all, ofSystem...)
		keys, _ := filepath.Glob("/etc/ssh/*_key")
		all = append(all, keys...)
	}
	for i, path := range all {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			all[i] = real
		}
	}
	return slices.DeleteFunc(reach.Union(all, nil), func(path string) bool { return path == "/dev/null" })
}

// homes are the user's home directories, without symbolic links: who changed HOME still has keys in the other one.
func homes() (out []string) {
	all := []string{os.Getenv("HOME")}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		all = append(all, u.HomeDir)
	}
	for _, home := range all {
		if real, err := filepath.EvalSymlinks(home); err == nil && filepath.IsAbs(real) {
			out = append(out, real)
		}
	}
	return out
}

// own are Pawl's directories where the environment has them elsewhere than at home: tokens of logins, and what is remembered of all projects (journal, approvals).
func own() (out []string) {
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		if dir, err := filepath.Abs(filepath.Join(os.Getenv(name), "pawl")); err == nil && os.Getenv(name) != "" {
			out = append(out, dir)
		}
	}
	return out
}

// settings are what in a project decides what runs outside of a fence later.
var settings = []string{".git/hooks", ".git/config", ".agents", ".claude", ".vscode", ".envrc"}

// SettingNames lists what in a project decides what runs outside of a fence later, whether it is there or not, relative to the project and with slashes: see [Settings].
func SettingNames() []string { return slices.Clone(settings) }

// Settings lists what in a project decides what runs outside of a fence later, and is there: the settings of agents, and git's hooks and configuration, where they really are if that is in the project (a
// symbolic link itself can't be protected). Of git that is what it reads for the project, for its worktrees and submodules, and for repositories in the project, as far as they are found among the first 4,000
// names (but not in node_modules) and are no more than 100: the .git file of a worktree, configuration and what it includes, and the directories of hooks, core.hooksPath too. Git is not asked: it would run
// what a repository says. The paths are absolute and resolved. They are for Policy.Protect, where [Capabilities] Inside holds.
func Settings(root string) []string {
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil
	}
	var out []string
	add := func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if dir := shut(path, err); dir != "" { // a command may have done that, and another one opens it again
			real, err = dir, nil
		}
		if err == nil && real != root && reach.Inside(root, real) && !covered(out, real) {
			out = append(out, real)
		}
	}
	for _, rel := range settings {
		add(filepath.Join(root, filepath.FromSlash(rel)))
	}
	for _, path := range gitSettings(root) {
		add(path)
	}
	return out
}

// hidden is what a policy hides and is there.
func hidden(p sandbox.Policy) []string { return concealed(p, Secrets()) }

// concealed adds what the policy hides to secrets: what lies in something hidden, or is meant to be read, is left out.
func concealed(p sandbox.Policy, secrets []string) []string {
	all := reach.Union(secrets, p.Hide)
	there := make(map[string]bool, len(all)+len(p.Read))
	for _, path := range all {
		there[path] = true
	}
	for _, path := range p.Read {
		there[path] = true
	}
	return slices.DeleteFunc(all, func(path string) bool {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if there[dir] {
				return true
			}
			if dir == filepath.Dir(dir) {
				return slices.Contains(p.Read, path)
			}
		}
	})
}

// temporary reports whether a project lies in the directory for temporary files: who makes a new one each time would leave a cache behind each time.
func temporary(root string) bool {
	temp, err := filepath.EvalSymlinks(os.TempDir())
	return err == nil && reach.Inside(temp, root)
}

// defaultCache is where the caches of tools for a project go. It is outside of the project, and readable to nobody else.
func defaultCache(root string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "pawl", digest(root)), nil
}

// covered reports whether a path is one of dirs, or lies in one.
func covered(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return reach.Inside(dir, path) })
}

package fence

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/sandbox"
)

func TestSecretsCannotBeReadAndTheRestCan(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		if err := os.Symlink(p.home+"/.ssh", p.home+"/keys"); err != nil {
			t.Fatal(err)
		}
		elsewhere := p.out + "/vault"
		p.lay(elsewhere+"/key", "secret")
		if err := os.Symlink(elsewhere, p.home+"/.gnupg"); err != nil {
			t.Fatal(err)
		}
		p.lay(p.out+"/hidden/x", "secret")
		f := p.fence(caps, sandbox.Policy{Hide: []string{p.out + "/hidden"}})
		for _, path := range []string{
			p.home + "/.ssh/id", p.home + "/keys/id", p.home + "/.docker/config.json", p.home + "/.gnupg/key", elsewhere + "/key", p.out + "/hidden/x",
			"/proc/self/root" + p.home + "/.ssh/id", p.in + "/../home/.ssh/id",
		} {
			if out, err := p.run(f, "cat "+path); strings.Contains(out, "secret") || err == nil && out != "" {
				t.Errorf("%s: %q %v", path, out, err)
			}
		}
		if out, err := p.run(f, "cat "+p.home+"/notes "+p.home+"/.docker/other; ls "+p.home); err != nil || !strings.HasPrefix(out, "openopen") {
			t.Errorf("%q %v", out, err)
		}
		if out, _ := p.run(f, "ln "+p.home+"/.ssh/id k; mv "+p.home+"/.ssh moved; cat k moved/id"); strings.Contains(out, "secret\n") {
			t.Error(out)
		}
		shown := p.fence(caps, sandbox.Policy{Read: []string{p.home + "/.ssh/id"}})
		if out, err := p.run(shown, "cat "+p.home+"/.ssh/id"); err != nil || out != "secret" {
			t.Errorf("what the policy names: %q %v", out, err)
		}
		if out, _ := p.run(shown, "cat "+p.home+"/.docker/config.json"); strings.Contains(out, "secret") {
			t.Errorf("what it doesn't name: %q", out)
		}
		if os.Geteuid() == 0 {
			if out, err := p.run(f, "cat /etc/shadow"); err == nil && out != "" {
				t.Error("/etc/shadow can be read")
			}
		}
	})
}

// Tokens of logins, and what other projects' sessions said.
func TestWhatPawlKeepsCannotBeRead(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		for name, dirs := range map[string][2]string{"at home": {}, "elsewhere": {"/config", "/state"}} {
			p := newPlace(t)
			config, state := p.home+"/.config", p.home+"/.local/state"
			if dirs[0] != "" {
				config, state = p.out+dirs[0], p.out+dirs[1]
				t.Setenv("XDG_CONFIG_HOME", config)
				t.Setenv("XDG_STATE_HOME", state)
			}
			p.lay(config+"/pawl/mcp/wiki.json", "secret")
			p.lay(config+"/other/x", "open")
			p.lay(state+"/pawl/journal.db", "secret")
			f := p.fence(caps, sandbox.Policy{})
			if out, err := p.run(f, "cat "+config+"/other/x; cat "+config+"/pawl/mcp/* "+state+"/pawl/journal.db"); err == nil || !strings.HasPrefix(out, "open") || strings.Contains(out, "secret\n") || strings.HasSuffix(out, "secret") {
				t.Errorf("%s: %q %v", name, out, err)
			}
			if !caps.Inside.Holds {
				continue
			}
			f = p.fence(caps, sandbox.Policy{Write: []string{filepath.Dir(state)}}) // a directory around it
			if out, err := p.run(f, "echo forged >"+state+"/pawl/journal.db || mv "+state+" "+state+"2 || mv "+state+"/pawl "+state+"/p"); err == nil {
				t.Errorf("%s: %q", name, out)
			}
			if b, err := os.ReadFile(state + "/pawl/journal.db"); string(b) != "secret" || err != nil {
				t.Errorf("%s: a command wrote what is remembered of all projects: %q %v", name, b, err)
			}
		}
	})
}

// A secret is known by its place: a command must not move that away for the next one.
func TestWhatASecretLiesInIsNotMovedAway(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		if !caps.Inside.Holds {
			return
		}
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{Root: p.home})
		if out, err := p.run(f, `cd "$HOME" && mv .docker moved`); err == nil {
			t.Error(out)
		}
		if out, err := p.run(f, `cat "$HOME/.docker/other"; cat "$HOME"/moved/*`); !strings.HasPrefix(out, "open") || strings.Contains(out, "secret") {
			t.Error(out, err)
		}
	})
}

func TestWhatLiesInTheProjectIsProtectedWhereThatHolds(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		p.lay(p.in+"/.git/hooks/pre-commit", "kept")
		p.lay(p.in+"/.git/config", "kept")
		p.lay(p.in+"/.git/HEAD", "head")
		p.lay(p.in+"/.agents/settings.json", "kept")
		protect := Settings(p.in)
		if len(protect) != 3 {
			t.Fatal(protect)
		}
		if !caps.Inside.Holds {
			_, err := open(sandbox.Policy{Root: p.in, Protect: protect}, nil, caps)
			if err == nil || !strings.Contains(err.Error(), "bubblewrap") {
				t.Error(err)
			}
			if _, err = open(sandbox.Policy{Root: p.home}, nil, caps); err == nil || !strings.Contains(err.Error(), "which lies in the writable directory") {
				t.Errorf("a project with secrets in it: %v", err)
			}
			return
		}
		f := p.fence(caps, sandbox.Policy{Protect: protect})
		before := p.state(p.in, true)
		for _, script := range []string{
			"echo x >>.git/config", "rm .git/config", "mv .git/config c", "echo x >.git/hooks/post-commit", "mv .git g", "rm -rf .git/hooks .git/config", "mv .agents a", "echo x >.agents/new",
			"mv .git g && mkdir .git && echo x >.git/config", "mkdir n && mv -T n .agents", "umount .agents", "unshare -Urm umount .agents",
		} {
			if out, err := p.run(f, script); err == nil {
				t.Errorf("%s: %s", script, out)
			}
		}
		_ = errors.Join(os.RemoveAll(p.in+"/n"), os.RemoveAll(p.in+"/c")) // copies
		if diff := cmp.Diff(before, p.state(p.in, true)); diff != "" {
			t.Error(diff)
		}
		if out, err := p.run(f, "echo x >.git/HEAD && echo x >.git/new && mv .git/new .git/HEAD && cat .git/config"); err != nil || out != "kept" {
			t.Errorf("%s %v", out, err)
		}
		home := p.fence(caps, sandbox.Policy{Root: p.home})
		if out, err := p.run(home, "echo x >"+p.home+"/new; cat "+p.home+"/.ssh/id; echo x >"+p.home+"/.ssh/new"); err == nil || strings.Contains(out, "secret\n") {
			t.Errorf("%s %v", out, err)
		}
		if _, err := os.Stat(p.home + "/.ssh/new"); err == nil {
			t.Error("a hidden place was written")
		}
	})
}

package fence

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

func TestWhatAPatternNamesCannotBeReadByAProgram(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		lay := func() {
			p.lay(p.in+"/.env", "s3cr3t")
			p.lay(p.in+"/a/b/.env", "s3cr3t")
			p.lay(p.in+"/a/secret/deep/x", "s3cr3t")
			p.lay(p.in+"/keys/one.pem", "s3cr3t")
			p.lay(p.in+"/keys/[id]", "s3cr3t")
			p.lay(p.out+"/vault/x", "s3cr3t")
			p.lay(p.out+"/one.key", "s3cr3t")
			p.lay(p.out+"/linked", "s3cr3t")
			if err := os.Symlink(p.out+"/linked", p.in+"/keys/link.pem"); err != nil {
				t.Fatal(err)
			}
		}
		lay()
		outside := []string{HidePattern(p.out+"/vault", ""), HidePattern(p.out, "*.key")}
		inside := []string{HidePattern(p.in, "**/.env"), HidePattern(p.in+"/a/secret", ""), HidePattern(p.in, "keys/*.pem"), HidePattern(p.in+"/keys/[id]", "")}
		if !caps.Inside.Holds {
			for _, pat := range inside {
				if _, err := open(sandbox.Policy{Root: p.in, HidePatterns: []string{pat}}, nil, caps); !errors.Is(err, errdefs.NotAvailable) || !strings.Contains(err.Error(), "bubblewrap") {
					t.Errorf("%s: %v", pat, err)
				}
			}
			inside = nil
		}
		policy := sandbox.Policy{HidePatterns: append(outside, inside...)}
		f := p.fence(caps, policy)
		hidden := []string{"$OUT/vault/x", "$OUT/one.key"}
		if len(inside) > 0 {
			hidden = append(hidden, ".env", "a/b/.env", "a/secret/deep/x", "keys/one.pem", "keys/link.pem", "'keys/[id]'", "$OUT/linked", "/proc/self/cwd/.env")
		}
		for _, path := range hidden {
			if out, err := p.run(f, `exec 3<`+path+`; cat <&3`); strings.Contains(out, "s3cr3t") {
				t.Errorf("%s: %q %v", path, out, err)
			}
		}
		if out, err := p.run(f, `echo x >>"$OUT/linked"; cat mine && echo open >new && cat new`); err != nil || !strings.HasSuffix(out, "mineopen") {
			t.Errorf("the rest: %q %v", out, err)
		}
		// Nor by another name.
		if len(inside) > 0 {
			before := p.state(p.in, false)
			for _, script := range []string{
				`mv .env e; cat e`, `ln .env e; cat e`, `mv a/b c; cat c/.env`, `mv a c; cat c/secret/deep/x`, `mv a/secret c; cat c/deep/x`, `mv keys c; cat c/one.pem`, `cp -r a c; cat c/b/.env`,
				`rm .env; cat .env`, `umount .env; cat .env`, `unshare -Urm umount a/secret; cat a/secret/deep/x`, `mkdir d && mv a d/`, `tar c . | tar xO ./.env`,
			} {
				out, _ := p.run(f, script)
				again, _ := p.run(f, `cat .env a/b/.env a/secret/deep/x keys/one.pem; for d in c d; do find $d -type f -exec cat {} +; done; cat e`) // a command that starts later
				if strings.Contains(out+again, "s3cr3t") {
					t.Errorf("%s: %q, then %q", script, out, again)
				}
				_ = errors.Join(os.RemoveAll(p.in+"/c"), os.RemoveAll(p.in+"/d"), os.Remove(p.in+"/e"))
				lay0(t, p, before)
			}
		}
		// What comes later counts for commands that start later.
		p.lay(p.out+"/two.key", "s3cr3t")
		if out, err := p.run(f, `cat "$OUT/two.key"`); strings.Contains(out, "s3cr3t") {
			t.Errorf("a file that came later: %q %v", out, err)
		}
		if len(inside) > 0 {
			p.lay(p.in+"/later/.env", "s3cr3t")
			if out, err := p.run(f, `cat later/.env`); strings.Contains(out, "s3cr3t") {
				t.Errorf("a file that came later: %q %v", out, err)
			}
		}
	})
}

// lay0 puts files back that a command has moved away.
func lay0(t *testing.T, p *place, state map[string]string) {
	t.Helper()
	for path, s := range state {
		if _, content, ok := strings.Cut(s, " "); ok && strings.HasPrefix(s, "-") {
			if b, err := os.ReadFile(path); err != nil || string(b) != content {
				p.lay(path, content)
			}
		}
	}
}

func TestWhatLiesAroundTheProjectCanBeHidden(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{HidePatterns: []string{HidePattern(filepath.Dir(p.in), "")}})
		if out, err := p.run(f, `cat "$OUT/file"`); strings.Contains(out, "untouched") || err == nil {
			t.Errorf("%q %v", out, err)
		}
		if out, err := p.run(f, `cat mine && echo x >made && echo y >"$TMPDIR/y" && cat made "$TMPDIR/y"`); err != nil || out != "minex\ny" {
			t.Errorf("%q %v", out, err)
		}
	})
}

// What a rule names and is not there yet can't be read when it comes, where Landlock keeps it so: even by a command that runs already.
func TestWhatIsNotThereYetIsHiddenOutside(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		if caps.ABI == 0 {
			return
		}
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{HidePatterns: []string{HidePattern(p.out+"/later", "")}})
		cmd, err := f.Command(t.Context(), "sh", "-c", `echo ready; read x; cat "$OUT/later" "$OUT/file"`)
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		if line, err := r.ReadString('\n'); line != "ready\n" || err != nil {
			t.Fatal(line, err)
		}
		p.lay(p.out+"/later", "s3cr3t")
		_ = in.Close()
		if b, err := io.ReadAll(r); err != nil || string(b) != "untouched" {
			t.Errorf("%q %v", b, err)
		}
		_ = cmd.Wait()
	})
}

func TestWhatIsHiddenIsNotShownAgain(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		if !caps.Inside.Holds {
			return
		}
		p := newPlace(t)
		p.lay(p.in+"/.agents/key", "secret")
		p.lay(p.in+"/.agents/other", "secret")
		f := p.fence(caps, sandbox.Policy{HidePatterns: []string{p.in + "/.agents"}, Protect: []string{p.in + "/.agents", p.in + "/.agents/other"}, Read: []string{p.in + "/.agents/key"}})
		if out, err := p.run(f, "cat .agents/*"); strings.Contains(out, "secret") {
			t.Errorf("%q %v", out, err)
		}
		f = p.fence(caps, sandbox.Policy{Hide: []string{p.in + "/.agents"}, Read: []string{p.in + "/.agents/key"}})
		if out, err := p.run(f, "cat .agents/*"); out != "secret" || err != nil {
			t.Errorf("what Hide hides can be shown by Read: %q %v", out, err)
		}
	})
}

func TestWhatPatternsProtectCanBeReadAndNotChanged(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		for _, name := range []string{"/go.mod", "/a/b/go.mod", "/locks/x", "/locks/in/key"} {
			p.lay(p.in+name, "as it was")
		}
		p.lay(p.out+"/go.mod", "elsewhere")
		if err := os.Symlink("go.mod", p.in+"/link"); err != nil {
			t.Fatal(err)
		}
		patterns := []string{HidePattern(p.in, "**/go.mod"), HidePattern(p.in+"/locks", ""), HidePattern(p.out+"/go.mod", ""), HidePattern(p.in+"/later", "")}
		if !caps.Inside.Holds {
			if _, err := open(sandbox.Policy{Root: p.in, ProtectPatterns: patterns}, nil, caps); !errors.Is(err, errdefs.NotAvailable) || !strings.Contains(err.Error(), "bubblewrap") {
				t.Error(err)
			}
			patterns = patterns[2:] // what is written nowhere, or not there, needs nothing
		}
		f := p.fence(caps, sandbox.Policy{ProtectPatterns: patterns, HidePatterns: hiddenWhere(caps, p.in+"/locks/in/key")})
		if out, err := p.run(f, `cat go.mod a/b/go.mod locks/x "$OUT/go.mod"; cat locks/in/key; echo new >a/b/other && echo x >later`); err != nil || !strings.HasPrefix(out, "as it wasas it wasas it waselsewhere") || caps.Inside.Holds && strings.Count(out, "as it was") != 3 {
			t.Errorf("%q %v", out, err)
		}
		if !caps.Inside.Holds {
			return
		}
		for _, script := range []string{
			`echo x >go.mod`, `echo x >link`, `rm go.mod`, `mv go.mod y`, `mv a/b/other go.mod`, `ln -f a/b/other go.mod`, `chmod 777 go.mod`, `touch -d 2001-01-01 go.mod`, `truncate -s 0 a/b/go.mod`, `sed -i s/as/AS/ go.mod`,
			`echo x >locks/new`, `rm -r locks`, `mv locks l; echo x >l/x`, `echo x >locks/x`, `echo x >later`, `umount go.mod; echo x >go.mod`, `unshare -Urm sh -c "umount go.mod; echo x >go.mod"`, `ln go.mod hard && echo x >hard`, `rm -rf .`,
		} {
			out, err := p.run(f, script+"; sync")
			for _, name := range []string{"/go.mod", "/a/b/go.mod", "/locks/x", "/locks/in/key"} {
				if b, e := os.ReadFile(p.in + name); string(b) != "as it was" || e != nil {
					t.Fatalf("%s: %s is %q %v, said %q %v", script, name, b, e, out, err)
				}
			}
			if info, e := os.Stat(p.in + "/go.mod"); e != nil || info.Mode().Perm()&0o111 != 0 || info.ModTime().Year() == 2001 {
				t.Fatalf("%s: %v %v", script, info, e)
			}
		}
		if _, err := os.Stat(p.in + "/locks/new"); err == nil {
			t.Error("a file was made in a directory that is protected")
		}
	})
}

// hiddenWhere hides a file in the project where that holds.
func hiddenWhere(caps Capabilities, file string) []string {
	if !caps.Inside.Holds {
		return nil
	}
	return []string{HidePattern(file, "")}
}

func TestAPatternIsReadAsItIsMeant(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/p/.env", "/p/.env", true},
		{"/p/.env", "/p/.env/x", true},
		{"/p/.env", "/p/.envx", false},
		{"/p/**/.env", "/p/.env", true},
		{"/p/**/.env", "/p/a/b/.env/x", true},
		{"/p/**/.env", "/q/.env", false},
		{"/p/**/*.pem", "/p/a/x.pem", true},
		{"/p/*.pem", "/p/a/x.pem", false},
		{`/p/\[id\]`, "/p/[id]/x", true},
		{`/p/\[id\]/*.x`, "/p/[id]/a.x", true},
		{"/p/{a,b}/c", "/p/b/c/d", true},
	} {
		if got := readPattern(c.pattern).covers(c.path); got != c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.path, got)
		}
		policy := sandbox.Policy{Root: "/p", HidePatterns: []string{c.pattern}}
		if MayRead(policy, c.path) == c.want || MayWrite(policy, c.path) && c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.path, !c.want)
		}
		policy = sandbox.Policy{Root: "/p", ProtectPatterns: []string{c.pattern}}
		if in := reach.Inside("/p", c.path); !MayRead(policy, c.path) || MayWrite(policy, c.path) == (c.want || !in) {
			t.Errorf("protected %s, %s: %v", c.pattern, c.path, !c.want)
		}
	}
	if got := HidePattern("/p/[id]*", "**/x"); got != `/p/\[id]\*/**/x` || !readPattern(got).covers("/p/[id]*/y/x") || readPattern(got).covers("/p/i/y/x") {
		t.Error(got)
	}
	for _, bad := range []string{"", "x", "/p/../x", "/p/[", "/p/", "/p/**/../x"} {
		for _, policy := range []sandbox.Policy{{HidePatterns: []string{bad}}, {ProtectPatterns: []string{bad}}} {
			if _, err := open(policy, nil, Probe()); !errors.Is(err, errdefs.Validation) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
}

func TestOfAPatternIsFoundWhatIsThere(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"/x.pem", "/a/x.pem", "/a/b/x.pem", "/a/b/c", "/node/x/.env/f", "/.env"} {
		p.lay(p.in+name, "")
	}
	if err := errors.Join(os.Symlink(p.in, p.in+"/a/loop.pem"), os.Symlink("/nowhere", p.in+"/a/gone.pem"), os.Symlink(p.in+"/a", p.in+"/link")); err != nil {
		t.Fatal(err)
	}
	for pat, want := range map[string][]string{
		"**/*.pem": {"/a/b/x.pem", "/a/x.pem", "/x.pem"}, "*.pem": {"/x.pem"}, "*/*.pem": {"/a/x.pem"}, "**/.env": {"/.env", "/node/x/.env"}, "a/b": {"/a/b"}, "none": nil, "link": {"/a"}, "l*": {"/a"},
		"{a,node}/**/x*": {"/a/b/x.pem", "/a/x.pem", "/node/x"},
	} {
		hits, err := found(sandbox.Policy{Root: p.in, HidePatterns: []string{p.in + "/" + pat}})
		var got []string
		for _, h := range hits {
			got = append(got, strings.TrimPrefix(h.path, p.in))
			if h.held == slices.Contains([]string{"**/.env", "**/*.pem"}, pat) {
				t.Errorf("%s: held: %v", pat, h.held)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", pat, err, diff)
		}
	}
}

// What a directory holds that another command has shut can't be looked at, and its owner's next command opens it again. Root sees everything, so somebody else looks.
func TestADirectoryThatIsShutIsTakenForWhatItMayHold(t *testing.T) {
	dir := t.TempDir()
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	test := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(test, binary, 0o755), os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(test)
	cmd.Env = []string{"SANDBOX_TEST_ATTACK=shut", "SHUT=" + filepath.Join(dir, "project")}
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if want := "/edits true\n/lone false\n/sub false\nkept /.git\nthrough\n"; string(out) != want || err != nil {
		t.Errorf("%s %v", out, err)
	}
}

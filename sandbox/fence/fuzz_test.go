//go:build unix

package fence

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// wired is a connection whose other side has said all that it says.
type wired struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (w *wired) Read(b []byte) (int, error)  { return w.in.Read(b) }
func (w *wired) Write(b []byte) (int, error) { return w.out.Write(b) }

// What a command asks of the proxy is one address and one port, in whatever pieces it comes; and before a whole request nothing is asked.
func FuzzSocks(f *testing.F) {
	for _, s := range []string{
		"\x05\x01\x00\x05\x01\x00\x03\x07example\x01\xbb", "\x05\x02\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50more", "\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50",
		"\x05\x00", "\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50", "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", "\x05\x01\x00\x05\x01\x00\x03\x05a:1]b\x00\x50", "\x05\x01\x00\x05\x01\x00\x09",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		atOnce := &wired{in: bytes.NewReader(b)}
		addr, code, err := socksRequest(atOnce)
		inPieces := &wired{in: iotest.OneByteReader(bytes.NewReader(b))}
		addr2, code2, err2 := socksRequest(inPieces)
		if addr != addr2 || code != code2 || (err == nil) != (err2 == nil) || atOnce.out.String() != inPieces.out.String() {
			t.Fatalf("%q: %q %d %v, in pieces %q %d %v", b, addr, code, err, addr2, code2, err2)
		}
		if (err != nil || code != 0) && addr != "" {
			t.Fatalf("%q: %q, with %d %v", b, addr, code, err)
		}
		if err == nil && code == 0 {
			host, port, err := net.SplitHostPort(addr)
			if n, bad := strconv.ParseUint(port, 10, 16); err == nil && (bad != nil || net.JoinHostPort(host, strconv.Itoa(int(n))) != addr) {
				t.Fatalf("%q: %q", b, addr)
			}
		}
	})
}

// A repository's configuration is read like git does it: what it would refuse ends nothing, and a value that is written down again is the same.
func FuzzGitConfig(f *testing.F) {
	for _, s := range []string{
		"[core]\n\thooksPath = hooks # x\n", "[include \"a\\\"]b\"] path=\"x;y\" ; z\n", "[a]b=c\\\n d\\t\\\"\n", "\ufeff[A.B]\r\nc-D = \r\n", "[a", "[a\nb=c", "=\n[x]\nk", "[x]\nk = \"open\n", "k=v\\", "[\"\\",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		gitConfig(text, func(key, value string) {
			section, name, ok := cutLast(key, ".")
			if !ok || name == "" || name != strings.ToLower(name) || strings.ContainsFunc(name, func(c rune) bool { return !ofKey(c) }) {
				t.Fatalf("%q: the key %q", text, key)
			}
			if strings.ContainsAny(section+value, "\n\x00\b") || !strings.Contains(text, "[") {
				return
			}
			quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(value)
			n := 0
			gitConfig("[x \"y\"]\n"+name+" = \""+quoted+"\"\n", func(k, v string) {
				if n++; k != "x.y."+name || v != value {
					t.Fatalf("%q: %q = %q is %q = %q when it is written down", text, name, value, k, v)
				}
			})
			if n != 1 {
				t.Fatalf("%q: %q = %q is %d values when it is written down", text, name, value, n)
			}
		})
	})
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// A pattern that hides files is looked for from a directory that each of its matches lies in; a path that is quoted is that path alone.
func FuzzPattern(f *testing.F) {
	for _, s := range [][2]string{{"/a/**/.env", "/a/b/.env"}, {"/a\\*/{b,c}", "/a*/b"}, {"/**/*.pem", "/x.pem"}, {"/a/b", "/a/b"}, {"/[a]/**", "/a/b"}, {"/a/../b/*", "/b/c"}, {"/", "/"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		if !strings.HasPrefix(path, "/") || filepath.Clean(path) != path || len(text) > 100 || strings.Count(text, "{") > 4 || strings.ContainsRune(path, 0) || !utf8.ValidString(text+path) {
			return
		}
		if ok, err := doublestar.Match(HidePattern(path, ""), path); err != nil || !ok {
			t.Fatalf("%q, quoted as %q, is not that path: %v", path, HidePattern(path, ""), err)
		}
		if p := readPattern(HidePattern(path, "")); p.rest != "" || p.dir != path {
			t.Fatalf("%q, quoted, is read as %+v", path, p)
		}
		if !strings.HasPrefix(text, "/") || filepath.Clean(text) != text || !doublestar.ValidatePattern(text) {
			return
		}
		p := readPattern(text)
		if ok, _ := doublestar.Match(text, path); ok && path != p.dir && !strings.HasPrefix(path, strings.TrimSuffix(p.dir, "/")+"/") {
			t.Fatalf("%q matches %q, and is looked for in %q only", text, path, p.dir)
		}
		if p.text && p.name != "" {
			if ok, _ := doublestar.Match(text, filepath.Join(p.dir, "x", p.name)); !ok && !strings.Contains(p.name, "/") {
				t.Fatalf("%q does not match its own name %q", text, p.name)
			}
		}
	})
}

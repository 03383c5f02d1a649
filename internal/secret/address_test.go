package secret_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/secret"
)

func TestAnAddressIsShownWithoutWhatOpensIt(t *testing.T) {
	for text, want := range map[string]string{
		"https://u:hunter2@h/p?token=hunter2#f": "https://h/p?…#f",
		"https://h/p":                           "https://h/p",
		"127.0.0.1:4318":                        "127.0.0.1:4318", // no address, and no secret
		"http://u:hunter2@no host":              "…",
		"http://h/x?key=hunter2\n":              "…",
		"user:hunter2@host/mcp":                 "…@host/mcp",
		"https:u:hunter2@h":                     "…@h",
		"http:/u:hunter2@h":                     "…@h",
		"https://h/@name":                       "https://h/@name",
	} {
		if got := secret.Address(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// An address that is shown tells nobody's name, password or query.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"https://u:SECRET@h/p?token=SECRET#f", "https://SECRET@h", "%zz:SECRET@h", "https://h?SECRET", "//u:SECRET@", "mailto:x?SECRET", "SECRET@h:1/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := secret.Address(text)
		front, _, _ := strings.Cut(text, "#")
		if _, query, ok := strings.Cut(front, "?"); ok && len(query) >= 6 && strings.Contains(got, "?"+query) {
			t.Fatalf("%q is shown as %q", text, got)
		}
		if again := secret.Address(got); again != got && again != strings.ReplaceAll(got, "…", "%E2%80%A6") && again != "…" {
			t.Fatalf("%q is shown as %q, and that as %q", text, got, again)
		}
	})
}

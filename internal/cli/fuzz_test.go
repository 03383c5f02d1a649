package cli

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A time that is read is more than nothing, and no other text that says the same is read as another one.
func FuzzAge(f *testing.F) {
	for _, s := range []string{"30d", "2w", "1w12h", "90m", "", "0", "-1h", "1d-1h", "9999w99999d2562047h", "1h2w", "1e3d", "١d", "3d\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		age, err := parseAge(text)
		if err != nil {
			if age != 0 || !strings.Contains(err.Error(), "want a time such as") {
				t.Fatalf("%q: %v, %v", text, age, err)
			}
			return
		}
		if age <= 0 {
			t.Fatalf("%q is %v", text, age)
		}
		if again, err := parseAge(age.String()); err != nil || again != age {
			t.Fatalf("%q is %v, which is read as %v, %v", text, age, again, err)
		}
		if d, err := time.ParseDuration(text); err == nil && d != age {
			t.Fatalf("%q is %v, and Go has %v", text, age, d)
		}
	})
}

// The address of a service is a host and a port, whatever stands in it, and an engine behind it is none that leads elsewhere again.
func FuzzService(f *testing.F) {
	for _, s := range []string{
		"temporal://", "temporal://h:1?engine=loop&namespace=n&queue=q", "temporal://[::1]", "temporal://u:p@h", "temporal://h/x", "temporal://h?engine=temporal://x", "temporal://h:0", "temporal://h:99999", "temporal://h?queue=", "temporal://h?queue=a&queue=b", "temporal://h?x=1", "temporal://h#f", "temporal://%zz", "temporal://h?;", "temporal://a b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !strings.HasPrefix(text, scheme) {
			text = scheme + text
		}
		at, how, err := serviceOf(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		if how == "" || strings.HasPrefix(how, scheme) {
			t.Fatalf("%q: the engine %q", text, how)
		}
		if at.Address != "" {
			host, port, err := net.SplitHostPort(at.Address)
			if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
				t.Fatalf("%q: %q, %v", text, at.Address, err)
			}
			if again, err := addressOf(at.Address); err != nil || again != at.Address {
				t.Fatalf("%q: %q is read again as %q, %v", text, at.Address, again, err)
			}
		}
	})
}

// What comes from a pipe or a file is taken whole, or refused with the line that is no text.
func FuzzReadText(f *testing.F) {
	for _, s := range []string{"", "a\nb", "a\n\xffb", "\xed\xa0\x80", "\ufeffx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readText("it", strings.NewReader(text))
		switch {
		case (err == nil) != utf8.ValidString(text), err == nil && got != text, err != nil && got != "":
			t.Fatalf("%q: %q, %v", text, got, err)
		case err != nil && !strings.Contains(err.Error(), "line "):
			t.Fatalf("%q: %v", text, err)
		}
	})
}

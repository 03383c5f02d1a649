package process

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever a process calls itself, it is nobody else's child, and no other group's.
func FuzzStat(f *testing.F) {
	for _, name := range []string{"sh", "a b) R 1 1 (", "(sd-pam)", "\n", ")", "", ") Z 1 1"} {
		f.Add(name, 77, 78)
	}
	f.Fuzz(func(t *testing.T, name string, parent, group int) {
		p, alive := parseStat(fmt.Appendf(nil, "5 (%s) S %d %d %s4242 0\n", name, parent, group, strings.Repeat("0 ", 16)))
		if !alive || p.parent != parent || p.group != group || p.started != "4242" {
			t.Fatalf("%q: %+v, %v", name, p, alive)
		}
		parseStat([]byte(name))
	})
}

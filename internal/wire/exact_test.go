package wire_test

import (
	"bytes"
	"testing"

	"github.com/pawl-dev/pawl/internal/wire"
)

func TestExactKeepsNoRoomThatNobodyUses(t *testing.T) {
	for _, c := range []struct{ estimate, size, most int }{
		{300, 100, 112}, {4096, 1, 8}, {10, 10, 16}, {10, 6000, 8192}, {5000, 4900, 5376}, {300, 0, 0},
	} {
		got := wire.Exact(c.estimate, func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), c.size)...) })
		if len(got) != c.size || cap(got) > c.most {
			t.Errorf("of %d bytes, thought to be %d: %d, with room for %d, want %d at most", c.size, c.estimate, len(got), cap(got), c.most)
		}
	}
	if got := wire.Exact(100, func([]byte) []byte { return nil }); got != nil {
		t.Errorf("nothing is %q", got)
	}
}

func TestExactGivesBytesOfTheirOwn(t *testing.T) {
	write := func(s string) []byte { return wire.Exact(100, func(b []byte) []byte { return append(b, s...) }) }
	a := write("first")
	if write("other"); string(a) != "first" {
		t.Errorf("what was written before is %q now", a)
	}
}

package journal

import (
	"fmt"
	"testing"
)

func TestTheIndexOfEffectsFindsEachByItsKey(t *testing.T) {
	key := func(i int) Key { return Key{fmt.Sprint(i % 30), fmt.Sprint(i % 7), fmt.Sprint(i / 11)} }
	const n = 3000
	want := map[Key]int64{}
	f := newEffects()
	for i := range n {
		if have := want[key(i)]; f.of(key(i)).begun != have {
			t.Fatalf("%v before %d: %d, want %d", key(i), i, f.of(key(i)).begun, have)
		}
		f.put(key(i)).begun = int64(i + 1)
		want[key(i)] = int64(i + 1)
	}
	old := f
	c := f.clone()
	for i := range n { // what is put into one is in it alone
		f.put(Key{"new", "op", fmt.Sprint(i)}).begun = 1
		c.put(key(i)).begun = -want[key(i)]
	}
	for k, begun := range want {
		if f.of(k).begun != begun || c.of(k).begun != -begun {
			t.Fatalf("%v: %d and %d, want %d", k, f.of(k).begun, c.of(k).begun, begun)
		}
	}
	if c.of(Key{"new", "op", "0"}).begun != 0 || len(c.all) != len(want) || len(f.all) != len(want)+n {
		t.Error("the copy has what was put into the other, or something is there twice")
	}
	if again := old.clone(); len(again.all) != len(want) || again.of(key(0)).begun != want[key(0)] { // although its table was written to
		t.Error("an old value does not give what it had")
	}
	if (&effects{}).of(key(0)).begun != 0 {
		t.Error("the index of no run has something")
	}
}

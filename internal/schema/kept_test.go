package schema

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestATextIsCompiledOnce(t *testing.T) {
	a, err := Compile([]byte(`{"title": "once"}`))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if b, err := Compile([]byte(`{"title": "once"}`)); a != b || err != nil {
				t.Errorf("it was compiled again: %v", err)
			}
		})
	}
	all.Wait()
	if b, err := Compile([]byte(`{"title": "other"}`)); a == b || err != nil {
		t.Error("another text is another schema", err)
	}
	for range 2 {
		if _, err := Compile([]byte(`{"type": 1}`)); err == nil {
			t.Error("what is no schema compiles")
		}
	}
}

func TestWhatIsKeptIsBoundedAndWhatIsUsedStays(t *testing.T) {
	k := keeper{}
	used := &Schema{}
	k.keep([]byte("used"), used)
	for i := range 100 {
		k.keep(fmt.Appendf(nil, "%d%s", i, strings.Repeat(" ", maxKept/10)), &Schema{})
		if k.find([]byte("used")) != used {
			t.Fatalf("what is used is gone after %d others", i)
		}
	}
	size := 0
	for _, m := range []map[string]*Schema{k.now, k.old} {
		for text := range m {
			size += len(text)
		}
	}
	if size > 2*maxKept || len(k.old) < 2 {
		t.Errorf("%d bytes of text are kept, want at most %d", size, 2*maxKept)
	}
	k.keep(make([]byte, maxKept), &Schema{})
	if k.find(make([]byte, maxKept)) != nil || k.find([]byte("used")) != used {
		t.Error("one large text pushes out the others")
	}
}

package good

import (
	"errors"
	"testing"
)

func TestSum(t *testing.T) {
	if got, err := Sum(1, 2, 3); got != 5 || err != nil {
		t.Errorf("Sum(1, 2, 3) = %d, %v", got, err)
	}
	if got, err := Sum(1); got != 0 || err != nil {
		t.Errorf("Sum(1) = %d, %v", got, err)
	}
	if _, err := Sum(); !errors.Is(err, ErrEmpty) {
		t.Errorf("Sum() says %v", err)
	}
}

func TestAverage(t *testing.T) {
	if got := Average(3, 5); got != 4 {
		t.Errorf("Average(3, 5) = %d", got)
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int]string{-2: "negative", -1: "negative", 0: "zero", 1: "positive", 2: "positive"} {
		if got := Classify(n); got != want {
			t.Errorf("Classify(%d) = %q", n, got)
		}
	}
	for n, want := range []string{"many", "one", "a few", "a few", "many"} {
		if got := Name(n); got != want {
			t.Errorf("Name(%d) = %q", n, got)
		}
	}
	for want, v := range map[string]any{"text a": "a", "error b": errors.New("b"), "unknown": 1} {
		if got := Kind(v); got != want {
			t.Errorf("Kind(%v) = %q", v, got)
		}
	}
}

func TestWithin(t *testing.T) {
	for n, want := range []bool{false, true, true, true, false} {
		if got := Within(n, 1, 3); got != want {
			t.Errorf("Within(%d, 1, 3) = %v", n, got)
		}
	}
	if !Within(9, 1, 0) || Within(9, 1, 1) {
		t.Error("bounds in the wrong order are not ignored")
	}
}

func TestVisit(t *testing.T) {
	door, open := &Door{}, false
	door.Visit(func() { open = door.Open })
	if !open || door.Open || door.Visits != 1 {
		t.Errorf("open inside: %v, afterwards: %+v", open, door)
	}
}

func TestAdmits(t *testing.T) {
	for _, open := range []bool{false, true} {
		for _, key := range []bool{false, true} {
			for _, guest := range []bool{false, true} {
				if got, want := (&Door{Open: open}).Admits(key, guest), open || key && !guest; got != want {
					t.Errorf("open %v, key %v, guest %v: %v", open, key, guest, got)
				}
			}
		}
	}
}

package user

import "testing"

func TestCountTwo(t *testing.T) {
	for limit, want := range []int{0, 1, 2, 2} {
		if got := CountTwo(limit); got != want {
			t.Errorf("CountTwo(%d) = %d, want %d", limit, got, want)
		}
	}
}

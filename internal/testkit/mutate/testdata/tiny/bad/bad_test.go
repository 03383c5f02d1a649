package bad

import "testing"

func TestSmaller(t *testing.T) {
	Smaller(1, 2)
}

package slug

import "testing"

func TestOf(t *testing.T) {
	for title, want := range map[string]string{
		"Pawl":                "pawl",
		"Ratchets and pawls":  "ratchets-and-pawls",
		"Why, and how? (2/2)": "why-and-how-2-2",
	} {
		if got := Of(title); got != want {
			t.Errorf("Of(%q) = %q, want %q", title, got, want)
		}
	}
}

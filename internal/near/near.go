// Package near finds the names that somebody may have meant.
package near

import (
	"path"
	"slices"
	"strings"
)

// longest is the longest name that is compared: the work is the product of the lengths.
const longest = 256

// Names gives those of names that want may have been meant to be, the nearest first, at most five. Case doesn't matter. Near are a few
// single-byte edits, two letters that changed places, another file extension, and one name inside the other.
func Names(want string, names []string) []string {
	type scored struct {
		name string
		far  int
	}
	if len(want) > longest {
		return nil
	}
	var near []scored
	w := strings.ToLower(want)
	stem := strings.TrimSuffix(w, path.Ext(w))
	for _, name := range names {
		if len(name) > longest {
			continue
		}
		n := strings.ToLower(name)
		far := distance(w, n)
		switch {
		case far <= max(1, len(w)/3):
		case far == 2 && anagrams(w, n): // two letters that changed places
		case stem != "" && strings.TrimSuffix(n, path.Ext(n)) == stem: // another extension
			far = 3
		case len(w) >= 4 && len(n) >= 4 && (strings.Contains(n, w) || strings.Contains(w, n)):
			far = 100 + far
		default:
			continue
		}
		near = append(near, scored{name, far})
	}
	slices.SortFunc(near, func(a, b scored) int {
		if a.far != b.far {
			return a.far - b.far
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, s := range near[:min(5, len(near))] {
		out = append(out, s.name)
	}
	return out
}

func anagrams(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return string(x) == string(y)
}

// distance is the number of single-byte edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diag+cost)
		}
	}
	return row[len(b)]
}

// Package slug makes names for addresses of titles.
package slug

import "strings"

// Of gives a title in lower case, with one hyphen between its words and no other sign.
func Of(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

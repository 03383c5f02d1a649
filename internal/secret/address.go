package secret

import (
	"net/url"
	"strings"
)

// Address is an address as it may be shown: without a name, a password and what stands behind a question mark. One that has none of these is shown as it is, and of one that can't be read nothing is.
func Address(text string) string {
	if !strings.ContainsAny(text, "@?") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	if u.User = nil; u.RawQuery != "" {
		u.RawQuery = "…"
	}
	shown := u.String()
	if i := strings.LastIndexByte(shown, '@'); i >= 0 && u.Host == "" { // a name and a password where none belong
		return "…" + shown[i:]
	}
	return shown
}

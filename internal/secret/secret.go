// Package secret knows secrets by their form and by the names of what holds them: for what is shown, kept or sent on.
package secret

import (
	"net/http"
	"regexp"
	"strings"
)

// Redacted stands where a secret was taken out.
const Redacted = "[redacted]"

// Least is the shortest text that is taken for a secret because of where it stands, in bytes: shorter ones are parts of words.
const Least = 8

// Patterns gives the forms that makers of keys and tokens publish, in a slice of the caller's own.
func Patterns() []*regexp.Regexp { return append([]*regexp.Regexp(nil), patterns...) }

var patterns = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`),                                  // AWS access key ids
	regexp.MustCompile(`\bgh[pousr]_[0-9A-Za-z]{36,}\b`),                               // GitHub, up to 255: counting so far makes the expression large
	regexp.MustCompile(`\bgithub_pat_[0-9A-Za-z_]{22,}\b`),                             // GitHub, fine-grained
	regexp.MustCompile(`\bglpat-[0-9A-Za-z_-]{20,}`),                                   // GitLab
	regexp.MustCompile(`\bxox[abeoprs]-[0-9A-Za-z-]{10,}`),                             // Slack
	regexp.MustCompile(`\bsk-(ant-|proj-|live-)?[0-9A-Za-z_-]{20,}`),                   // Anthropic, OpenAI
	regexp.MustCompile(`\b[rs]k_(live|test)_[0-9A-Za-z]{16,}`),                         // Stripe
	regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`),                                      // Google
	regexp.MustCompile(`\bnpm_[0-9A-Za-z]{36}\b`),                                      // npm
	regexp.MustCompile(`\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+`), // JSON web tokens
}

// Header reports whether headers of that name hold secrets.
func Header(name string) bool {
	name = strings.ToLower(name)
	for _, sign := range []string{"auth", "key", "token", "cookie"} {
		if strings.Contains(name, sign) {
			return true
		}
	}
	return false
}

// InHeaders gives the secrets that h holds, "Bearer …" with and without its first word.
func InHeaders(h http.Header) (out []string) {
	add := func(s string) {
		if len(s) >= Least {
			out = append(out, s)
		}
	}
	for name, values := range h {
		if !Header(name) {
			continue
		}
		for _, v := range values {
			add(v)
			if _, bare, ok := strings.Cut(v, " "); ok {
				add(bare)
			}
		}
	}
	return out
}

// Named reports whether a variable, or a parameter of an address, of that name holds a secret: one of its words says so, as in
// OPENAI_API_KEY or access_token.
func Named(name string) bool {
	for _, word := range strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		switch word {
		case "KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "SIG", "SIGNATURE":
			return true
		}
	}
	return false
}

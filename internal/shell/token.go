package shell

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// The words of other languages.

// A token is a name (with the names before its points), a text, or a character.
type token struct {
	name  string
	text  Word
	str   bool
	char  byte
	shell bool // a text in backquotes
}

// tokens splits code. It knows what the languages have in common, which is enough to find literal calls.
func tokens(l *language, s string) (out []token) {
	hash := l != &node && l != &php && l != &java
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '#' && hash && (i == 0 || s[i-1] == ' ' || s[i-1] == '\n' || s[i-1] == ';'):
			for i < len(s) && s[i] != '\n' {
				i++
			}
		case c == '"' || c == '\'' || c == '`':
			t, n := quoted(l, s[i:])
			prefix := ""
			if k := len(out) - 1; k >= 0 && i > 0 && s[i-1] != ' ' && out[k].name != "" && len(out[k].name) <= 2 && strings.Trim(strings.ToLower(out[k].name), "rbfu") == "" && (l == &python) {
				prefix = strings.ToLower(out[k].name)
				out = out[:k]
			}
			if strings.Contains(prefix, "f") && strings.Contains(t.text.Text, "{") {
				t.text = Word{Source: t.text.Source}
			}
			if strings.Contains(prefix, "r") {
				t.text.Text = t.text.Source
			}
			out = append(out, t)
			i += n
		case c >= '0' && c <= '9':
			j := i
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			out = append(out, token{str: true, text: Word{Text: s[i:j], Known: true, Source: s[i:j]}})
			i = j
		case c == '_' || c == '$' || c == '@' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			j := i + 1
			for j < len(s) && (s[j] == '_' || s[j] >= '0' && s[j] <= '9' || s[j] >= 'a' && s[j] <= 'z' || s[j] >= 'A' && s[j] <= 'Z' || s[j] >= 0x80 || s[j] == '.' && j+1 < len(s) && (s[j+1] == '_' || s[j+1] >= 'A' && s[j+1] <= 'z') || s[j] == ':' && j+2 < len(s) && s[j+1] == ':') {
				if s[j] == ':' {
					j++
				}
				j++
			}
			name := s[i:j]
			if (l == &perl || l == &ruby) && (name == "qx" || name == "q" || name == "qq") && j < len(s) && strings.IndexByte("({[</|!", s[j]) >= 0 {
				t, n := delimited(s[j:])
				t.shell = name == "qx"
				out = append(out, t)
				i = j + n
				continue
			}
			if k := len(out) - 1; k >= 0 && out[k].char == '.' {
				name = "." + name
				out = out[:k]
			}
			out = append(out, token{name: name})
			i = j
		case c == '%' && l == &ruby && i+2 < len(s) && s[i+1] == 'x' && strings.IndexByte("({[<|", s[i+2]) >= 0:
			t, n := delimited(s[i+2:])
			t.shell = true
			out = append(out, t)
			i += 2 + n
		case c == ' ' || c == '\t' || c == '\r':
			i++
		default:
			out = append(out, token{char: c})
			i++
		}
		if len(out) > 4000 {
			return append(out, token{name: "…"})
		}
	}
	return out
}

// delimited reads a text in brackets.
func delimited(s string) (token, int) {
	closing := s[0]
	if i := strings.IndexByte("({[<", s[0]); i >= 0 {
		closing = ")}]>"[i]
	}
	end := strings.IndexByte(s[1:], closing)
	if end < 0 {
		end = len(s) - 1
	}
	text := s[1 : 1+end]
	return token{str: true, text: Word{Text: text, Known: !strings.ContainsAny(text, "$@") && !strings.Contains(text, "#{"), Source: text}}, min(end+2, len(s))
}

// quoted reads a text in quotes. Source is it without its escapes resolved.
func quoted(l *language, s string) (token, int) {
	q := s[:1]
	if l == &python && (strings.HasPrefix(s, `"""`) || strings.HasPrefix(s, "'''")) {
		q = s[:3]
	}
	i := len(q)
	for i < len(s) && !strings.HasPrefix(s[i:], q) {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(s))
	raw := s[len(q):i]
	w := Word{Text: raw, Known: true, Source: raw}
	interpolates := q[0] != '\'' && l != &python && (strings.Contains(raw, "#{") && l == &ruby || strings.ContainsAny(raw, "$@") && (l == &perl || l == &php) || strings.Contains(raw, "${") && l == &node && q == "`" || strings.Contains(raw, "$(") && l == &julia)
	if strings.Contains(raw, `\`) {
		t, _, err := expand.Format(nil, raw, nil)
		if w.Text = t; err != nil {
			w.Known = false
		}
	}
	if interpolates {
		w.Known = false
	}
	return token{str: true, text: w, shell: q == "`" && l != &node}, min(i+len(q), len(s))
}

package shell

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// Programs that make known text of known text.

var filterValues = map[string]string{"head": "-n -c", "tail": "-n -c", "base64": "-w --wrap", "xxd": "-c -l -s -g", "cut": "-d -f -c -b", "openssl": "-in", "sed": "-e"}

// filters make known text of known text.
func filters() map[string]func(args []Word, in string) Word { return filterTable.Of(makeFilters) }

var filterTable lazy.Value[map[string]func(args []Word, in string) Word]

func makeFilters() map[string]func(args []Word, in string) Word {
	return map[string]func(args []Word, in string) Word{
		"base64": func(args []Word, in string) Word {
			for _, a := range args {
				if a.Text == "--decode" || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, "dD") {
					return decoded(base64.StdEncoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(squeeze(in), "=")))
				}
			}
			return lit(base64.StdEncoding.EncodeToString([]byte(in)) + "\n")
		},
		"base32": func(args []Word, in string) Word {
			if len(args) > 0 {
				return decoded(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(squeeze(in), "=")))
			}
			return lit(base32.StdEncoding.EncodeToString([]byte(in)) + "\n")
		},
		"openssl": func(args []Word, in string) Word {
			s := joinText(args)
			if (strings.HasPrefix(s, "base64 ") || strings.Contains(s, "-base64") || strings.Contains(s, "-a")) && strings.Contains(s+" ", "-d ") {
				return decoded(base64.StdEncoding.DecodeString(squeeze(in)))
			}
			return Word{}
		},
		"xxd": func(args []Word, in string) Word {
			s := joinText(args)
			switch {
			case strings.Contains(s, "r") && strings.Contains(s, "p"):
				return decoded(hex.DecodeString(squeeze(in)))
			case s == "-p" || s == "-ps":
				return lit(hex.EncodeToString([]byte(in)) + "\n")
			}
			return Word{}
		},
		"rev": func(_ []Word, in string) Word {
			var out []string
			for line := range strings.SplitSeq(in, "\n") {
				rs := []rune(line)
				slices.Reverse(rs)
				out = append(out, string(rs))
			}
			return lit(strings.Join(out, "\n"))
		},
		"tac": func(_ []Word, in string) Word {
			ls := strings.SplitAfter(strings.TrimSuffix(in, "\n")+"\n", "\n")
			slices.Reverse(ls)
			return lit(strings.Join(ls, ""))
		},
		"tr":   translate,
		"head": func(args []Word, in string) Word { return few(args, in, false) },
		"tail": func(args []Word, in string) Word { return few(args, in, true) },
		"sort": func(args []Word, in string) Word {
			if len(args) > 0 {
				return Word{}
			}
			ls := strings.SplitAfter(strings.TrimSuffix(in, "\n")+"\n", "\n")
			slices.Sort(ls)
			return lit(strings.Join(ls, ""))
		},
		"cut": func([]Word, string) Word { return Word{} },
		"sed": func(args []Word, in string) Word {
			if len(args) == 1 && args[0].Text == "" {
				return lit(in)
			}
			return Word{}
		},
	}
}

// decoded is what a decoder gave; what it gave before an error was printed all the same, and is not known.
func decoded(b []byte, err error) Word {
	if err != nil {
		return Word{}
	}
	return lit(string(b))
}

func squeeze(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			return -1
		}
		return c
	}, s)
}

func joinText(args []Word) string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		out = append(out, a.Text)
	}
	return strings.Join(out, " ")
}

func few(args []Word, in string, last bool) Word {
	n := 10
	for i, a := range args {
		s := a.Text
		if s == "-n" && i+1 < len(args) {
			s = args[i+1].Text
		}
		if v, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(s, "-n"), "-")); err == nil && v >= 0 {
			n = v
		} else if s != "-n" {
			return Word{}
		}
	}
	ls := strings.SplitAfter(strings.TrimSuffix(in, "\n")+"\n", "\n")
	ls = ls[:len(ls)-1]
	n = min(n, len(ls))
	if last {
		return lit(strings.Join(ls[len(ls)-n:], ""))
	}
	return lit(strings.Join(ls[:n], ""))
}

// set gives the characters of a tr set; false for what is not understood.
func set(s string) ([]byte, bool) {
	s = strings.NewReplacer("[:lower:]", "a-z", "[:upper:]", "A-Z", "[:digit:]", "0-9", "[:space:]", " \t\n\r\v\f").Replace(s)
	if strings.Contains(s, "[:") || strings.Contains(s, "[=") {
		return nil, false
	}
	s, ok := unescape(s)
	if !ok {
		return nil, false
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' && s[i] <= s[i+2] {
			for c := int(s[i]); c <= int(s[i+2]); c++ {
				out = append(out, byte(c)) //nolint:gosec // G115: between two bytes
			}
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return out, true
}

func translate(args []Word, in string) Word {
	remove := false
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		flag := args[0].Text
		args = args[1:]
		if flag == "--" {
			break
		}
		if flag != "-d" {
			return Word{}
		}
		remove = true
	}
	if len(args) == 0 || !remove && len(args) < 2 {
		return Word{}
	}
	from, ok := set(args[0].Text)
	if !ok {
		return Word{}
	}
	var to []byte
	if !remove {
		if to, ok = set(args[1].Text); !ok || len(to) == 0 {
			return Word{}
		}
	}
	out := make([]byte, 0, len(in))
	for i := range len(in) {
		j := slices.Index(from, in[i])
		switch {
		case j < 0:
			out = append(out, in[i])
		case !remove:
			for k := len(from) - 1; k > j; k-- { // the last mention counts
				if from[k] == in[i] {
					j = k
					break
				}
			}
			out = append(out, to[min(j, len(to)-1)])
		}
	}
	return lit(string(out))
}

package permission_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// labels are the files of the corpus, which are named by the verdict that their lines get.
var labels = []string{"deny", "ask", "allow"}

// TestTheCorpusHasTheFormsThatListsOfForbiddenWordsGotWrong holds testdata/safety/forms.txt, a label and a command a line, against the corpus.
func TestTheCorpusHasTheFormsThatListsOfForbiddenWordsGotWrong(t *testing.T) {
	lines := map[string][]string{}
	for _, label := range labels {
		lines[label] = corpus(t, label)
	}
	forms := corpus(t, "forms")
	for _, form := range forms {
		label, command, _ := strings.Cut(form, " ")
		if !slices.Contains(labels, label) {
			t.Errorf("forms.txt: %q is no label: %s", label, form)
			continue
		}
		if slices.Contains(lines[label], command) {
			continue
		}
		at := slices.IndexFunc(labels, func(l string) bool { return slices.Contains(lines[l], command) })
		if at < 0 {
			t.Errorf("%s.txt has no line: %s", label, command)
		} else {
			t.Errorf("%s.txt has what forms.txt calls %s: %s", labels[at], label, command)
		}
	}
	if len(forms) < 80 {
		t.Errorf("forms.txt has %d lines: it has shrunk", len(forms))
	}
}

func TestEachForbiddenWordStopsSomeLinesOfTheCorpusAndNotOthers(t *testing.T) {
	word := func(w string) *regexp.Regexp { return regexp.MustCompile(`(^|[^\w-])` + w + `($|[^\w-])`) }
	patterns := map[string]*regexp.Regexp{}
	for _, w := range []string{"dd", "mkfs", "fdisk", "parted", "shutdown", "reboot", "halt", "poweroff", "mount", "sudo"} {
		patterns[w] = word(w)
	}
	for _, s := range []string{"rm -rf", "rm -fr", "rm -r", "rm --recursive", "rmdir -p", "rm *", "rm /", "-rf /", "--no-preserve-root", "--preserve-root=false", "/dev/", "../"} {
		patterns[s] = regexp.MustCompile(regexp.QuoteMeta(s))
	}
	counts := func(pattern *regexp.Regexp, label string) (n int) {
		for _, command := range corpus(t, label) {
			if pattern.MatchString(command) {
				n++
			}
		}
		return n
	}
	for name, pattern := range patterns {
		denied, asked, allowed := counts(pattern, "deny"), counts(pattern, "ask"), counts(pattern, "allow")
		if denied+asked == 0 || allowed == 0 {
			t.Errorf("%q stands in %d lines that are denied, %d that are asked about and %d that pass: at least one must be stopped, and one pass", name, denied, asked, allowed)
		}
		if name == "mount" && denied == 0 {
			t.Error("no mount is denied")
		}
	}
}

package archtest

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unread are functions whose name says that they read bytes from outside, and that need no target of their own: why.
var unread = map[string]string{
	"internal/soak.parse": "the soak's own requests to its own provider", "internal/soak.content.UnmarshalJSON": "the same",
	"a2a.ParseVersion":                    "one of two words",
	"engine.Board.UnmarshalJSON":          "journal's Snapshot, which FuzzBoard reads",
	"engine/graph.Duration.UnmarshalText": "time.ParseDuration",
	"engine/graph.decodeStruct":           "of decode",
	"hook.Verdict.UnmarshalText":          "one of a few words",
	"hook/permission.ParseMode":           "one of a few words",
	"hook/permission.parse":               "words that FuzzNoMutationOfACatastropheIsAllowed has read",
	"hook/internal/permit.reader.parse":   "our own table of commands",
	"internal/cassettes.parse":            "files of the tests",
	"internal/shell.decoded":              "FuzzRead gets there",
	"journal.exact.UnmarshalJSON":         "a message in a board: FuzzBoard",
	"journal/internal/layout.row.decode":  "journal.DecodeData",
	"pack.decode":                         "the tree of FuzzLoader",
	"pack.Skill.decode":                   "the tree of FuzzLoader",
	"pack.source.parse":                   "FuzzLoader gets there",
	"pack.templates.parse":                "FuzzTemplate gets there",
	"pack.Loader.parse":                   "of Loader.Parse",
	"project.loader.decode":               "decoder.settings, behind the size of the file",
	"project.source.parse":                "FuzzSettings gets there",
	"hook/internal/permit.World.parse":    "of World.Parse",
	"internal/wires.block.parse":          "reads what we wrote, for the tests",
	"model/gemini.Model.decode":           "internal/wires: FuzzReply",
	"model/openai.Model.decode":           "internal/wires: FuzzReply",
	"model/openai.Responses.decode":       "internal/wires: FuzzReply",
}

// reads are names of functions that take bytes apart.
var reads = regexp.MustCompile(`^(Parse|parse|Decode|decode|Unmarshal|unmarshal)([A-Z].*)?$`)

// functions are those of the tree's packages by directory: Parse, Entry.UnmarshalJSON.
func functions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for path, f := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if all[dir] == nil {
			all[dir] = map[string]bool{}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				all[dir][receiver(fn.Recv.List[0].Type)+"."+fn.Name.Name] = true
			} else if ok {
				all[dir][fn.Name.Name] = true
			}
		}
	}
	return all
}

// Every fuzz target is in the table of docs/testing.md, with a function that is there; and what reads bytes is in it, too, or among those that are said to need no target.
func TestEveryParserHasItsFuzzTarget(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared, fuzzed, told, read := functions(t), targets(t), map[string]bool{}, map[string]bool{}
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 4 {
			continue
		}
		dir, target := strings.Trim(cells[0], "|` "), strings.Trim(cells[2], "` ")
		if !slices.Contains(fuzzed[dir], target) {
			t.Errorf("docs/testing.md: there is no %s in %s", target, dir)
			continue
		}
		if told[dir+"."+target] {
			t.Errorf("docs/testing.md: %s of %s is there twice", target, dir)
		}
		told[dir+"."+target] = true
		for _, by := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if read[dir+"."+by[1]] = true; !declared[dir][by[1]] {
				t.Errorf("docs/testing.md: there is no %s in %s", by[1], dir)
			}
		}
	}
	for dir, all := range fuzzed {
		for _, target := range all {
			if !told[dir+"."+target] {
				t.Errorf("%s of %s is not in docs/testing.md", target, dir)
			}
		}
	}
	for dir, all := range declared {
		if strings.HasPrefix(dir, "bench") || strings.HasPrefix(dir, "examples") || strings.HasPrefix(dir, "internal/oracle") {
			continue
		}
		for name := range all {
			if reads.MatchString(name[strings.LastIndexByte(name, '.')+1:]) && !read[dir+"."+name] && unread[dir+"."+name] == "" {
				t.Errorf("%s of %s reads bytes: give it a fuzz target and a row of docs/testing.md, or a line in unread", name, dir)
			}
		}
	}
	for name := range unread {
		dir, of := name[:strings.LastIndexByte(name, '/')+1], name[strings.LastIndexByte(name, '/')+1:]
		last, fn, _ := strings.Cut(of, ".")
		if !declared[dir+last][fn] || read[name] {
			t.Errorf("unread: %s is not there, or has a target", name)
		}
	}
}

// scripts/test runs them all, by a rule and not by a list.
func TestEveryFuzzTargetIsRun(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "scripts/fuzz"))
	if err != nil {
		t.Fatal(err)
	}
	test, err := os.ReadFile(filepath.Join(root, "scripts/test"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(test, []byte("-- ./scripts/fuzz 200 #")) || !bytes.Contains(script, []byte("grep -rl --include='*_test.go' '^func Fuzz' .")) {
		t.Error("scripts/test runs scripts/fuzz, which finds the targets by itself")
	}
}

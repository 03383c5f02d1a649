package blackbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// journals has a directory for each version of the journal that a release wrote.
const journals = "testdata/journals"

// kept are the sessions of each version, and how a later binary goes on with them.
var kept = []struct {
	session string
	replay  []string // flags of a replay
	before  []string // a command that answers first, without the session
	resume  []string // the command that goes on, behind the flags that all have; nil: the session is over
	program bool     // the program of testdata goes on
	out     string   // what going on prints on standard output
	effects string   // what going on writes
}{
	{session: "plain", resume: []string{"run", "--session", "plain", "more"}, out: "Again.\n"},
	{session: "killed", resume: []string{"resume", "killed"}, out: "Done.\n", effects: "two\n"},
	{session: "waiting", before: []string{"approve", "w"}, resume: []string{"resume", "waiting"}, out: "Done.\n", effects: "one\n"},
	{session: "delegated", resume: []string{"resume", "delegated"}, out: "Done.\n", effects: "sub two\n"},
	{
		session: "graph", replay: []string{"--engine", "graph:flow.yaml"}, before: []string{"approve", "may"},
		resume: []string{"resume", "graph", "--engine", "graph:flow.yaml"}, out: "Published: foxes\n", effects: "foxes",
	},
	{
		session: "script", replay: []string{"--engine", "script:flow.star"}, before: []string{"answer", "ask", "blue"},
		resume: []string{"resume", "script", "--engine", "script:flow.star"}, out: "It is blue.\n", effects: "blue",
	},
	{session: "compacted", resume: []string{"run", "--session", "compacted", "more"}, out: "Again.\n"},
	{session: "forked", resume: []string{"run", "--session", "forked", "more"}, out: "Again.\n"},
	{session: "failed", resume: []string{"run", "--session", "failed", "more"}, out: "Again.\n"},
	{session: "files", resume: []string{"run", "--session", "files", "more"}, out: "Again.\n"},
	{session: "background", resume: []string{"run", "--session", "background", "more"}, out: "Again.\n"},
	{session: "pack", program: true, out: "It is on its way back.\n", effects: "7\n"},
}

// versions are the directories of fixtures.
func versions(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(journals, "v*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no fixtures: %v", journals, err)
	}
	return found
}

// opens puts a version's project and journal into the world.
func (w *world) opens(version string) {
	w.t.Helper()
	if err := os.CopyFS(w.dir, os.DirFS(filepath.Join(version, "project"))); err != nil {
		w.t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(version, "journal.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(w.journal, string(b))
}

// golden gives a file of a version.
func golden(t *testing.T, version, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(version, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestJournals_AreShownAsTheyWere(t *testing.T) {
	beyondQuick(t)
	for _, version := range versions(t) {
		t.Run(filepath.Base(version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.opens(version)
			if got := w.ok("sessions", "list", "--all", "--json").out; got != golden(t, version, "list.jsonl") {
				t.Errorf("sessions list has\n%s", got)
			}
			for _, k := range kept {
				if got := w.ok("sessions", "export", k.session).out; got != golden(t, version, k.session+".jsonl") {
					t.Errorf("sessions export %s has\n%s", k.session, got)
				}
				if got := w.ok("sessions", "show", k.session).out; got != golden(t, version, k.session+".txt") {
					t.Errorf("sessions show %s has\n%s", k.session, got)
				}
				if got := w.ok("sessions", "show", k.session, "--html", "-").out; !strings.HasSuffix(strings.TrimSpace(got), "</html>") {
					t.Errorf("sessions show %s --html ends with %q", k.session, got[max(0, len(got)-40):])
				}
			}
		})
	}
}

func TestJournals_AreImportedAndReplayed(t *testing.T) {
	beyondQuick(t)
	for _, version := range versions(t) {
		for _, k := range kept {
			t.Run(filepath.Base(version)+" "+k.session, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.opens(version)
				if err := os.Remove(w.journal); err != nil {
					t.Fatal(err)
				}
				text := golden(t, version, k.session+".jsonl")
				if r := w.pawlWith(text, "sessions", "import", "-"); r.code != 0 || r.out != k.session+"\n" {
					t.Fatal(r)
				}
				if got := w.ok("sessions", "export", k.session).out; got != text {
					t.Errorf("imported and exported it has\n%s", got)
				}
				if k.session == "delegated" || k.program {
					return // a task's session is not in the file, and the program's tools are its own
				}
				if r := w.pawl(append([]string{"replay", k.session}, k.replay...)...); r.code != 0 || !strings.Contains(r.out, "effects as on record") {
					t.Error(r)
				}
			})
		}
	}
}

func TestJournals_GoOnAndRepeatNothing(t *testing.T) {
	beyondQuick(t)
	onUnix(t)
	for _, version := range versions(t) {
		for _, k := range kept {
			t.Run(filepath.Base(version)+" "+k.session, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.opens(version)
				before := golden(t, version, k.session+".jsonl")
				var r result
				switch {
				case k.program:
					r = w.run(w.command(binary("conversation"), "-journal", w.journal))
				default:
					w.answers(k.session, k.before)
					r = w.pawl(slices.Concat(k.resume[:1], []string{
						"--dir", w.dir, "--model", "scripted/" + k.session + ".yaml", "--no-sandbox", "--permission-mode", "bypassPermissions",
					}, k.resume[1:])...)
				}
				if r.code != 0 || r.out != k.out {
					t.Errorf("%v, want %q", r, k.out)
				}
				w.wants("effects", k.effects)
				if after := w.ok("sessions", "export", k.session).out; !strings.HasPrefix(after, before) || len(after) == len(before) {
					t.Errorf("the entries of before were changed:\n%s", after)
				}
				if got := w.status(k.session); got != "completed" {
					t.Errorf("it is %q", got)
				}
			})
		}
	}
}

// answers gives the answer of a row. Its second word is the beginning of what waits.
func (w *world) answers(session string, before []string) {
	w.t.Helper()
	if before == nil {
		return
	}
	_, waiting, _ := strings.Cut(w.ok("sessions", "show", session).out, "waiting for a person:\n")
	for line := range strings.Lines(waiting) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(id, before[1]) {
			w.ok(append([]string{before[0], session, id}, before[2:]...)...)
			return
		}
	}
	w.t.Fatalf("nothing that begins with %q waits: %s", before[1], waiting)
}

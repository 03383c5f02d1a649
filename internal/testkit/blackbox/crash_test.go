package blackbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

func TestCrash(t *testing.T) { runRows(t) }

// steps is a script of two calls that write, between which a process can be killed. Each
// call waits until the file that it names is there.
const steps = `turns:
- {delay: %s, text: "First.", tool_calls: [{id: a, name: bash, input: {command: "echo one >> effects; touch began-a; until test -e go-a; do sleep 0.02; done"}}]}
- {text: "Second.", tool_calls: [{id: b, name: bash, input: {command: "echo two >> effects; touch began-b; until test -e go-b; do sleep 0.02; done; echo end >> effects"}}]}
- {delay: %s, text: "Done."}
`

// killed runs steps, kills the process once is reports true, and resumes the run.
func (w *world) killed(once func() bool, script string, flags ...string) (lines, result) {
	w.t.Helper()
	onUnix(w.t)
	w.write("model.yaml", script)
	p := w.start(append(append([]string{"run", "--json", "--session", "s"}, free...), "go")...)
	w.until("the moment of the kill", once)
	p.end()
	if got := w.status("s"); got != "unfinished" {
		w.t.Errorf("it is %q behind the kill", got)
	}
	for _, name := range []string{"go-a", "go-b"} {
		w.write(name, "")
	}
	w.write("model.yaml", strings.ReplaceAll(script, "delay: 300s", "delay: 0s"))
	r := w.pawl(append(append([]string{"resume", "s", "--json"}, free...), flags...)...)
	return decode(w.t, r.out), r
}

// has reports whether a file of the project is there.
func (w *world) has(name string) func() bool {
	return func() bool {
		found, _ := filepath.Glob(filepath.Join(w.dir, name))
		return len(found) > 0
	}
}

// recorded reports whether the journal has an entry of a kind about a call.
func (w *world) recorded(kind, call string) func() bool {
	return func() bool {
		r := w.pawl("sessions", "export", "s")
		for line := range strings.Lines(r.out) {
			if strings.Contains(line, `"kind":"`+kind+`"`) && strings.Contains(line, call) {
				return true
			}
		}
		return false
	}
}

var _ = table("TestCrash",
	row{"killed before the first reply, everything is done once", "finishes an interrupted or killed run: what is on record is not done again", "pawl resume", func(w *world) {
		_, r := w.killed(w.recorded("said", ""), fmt.Sprintf(steps, "300s", "0s"))
		if w.wants("effects", "one\ntwo\nend\n"); r.code != 0 {
			w.t.Error(r)
		}
	}},
	row{"killed during a call, it is not run again and the model is told", "`report` (default): the model is told that the outcome is unknown", "--unknown", func(w *world) {
		all, r := w.killed(w.has("began-b"), fmt.Sprintf(strings.Replace(steps, "until test -e go-a; do sleep 0.02; done", "true", 1), "0s", "0s"))
		w.wants("effects", "one\ntwo\n")
		end := all.of("tool.finished")
		if r.code != 0 || len(end) != 1 || end[0]["call_id"] != "b" || end[0]["outcome"] != "unknown" || all.end(w.t)["text"] != "Done." {
			w.t.Errorf("%v\n%v", end, r)
		}
	}},
	row{"killed during a call, --unknown retry runs it again", "`retry`: it runs again, with the same idempotency key", "--unknown", func(w *world) {
		_, r := w.killed(w.has("began-a"), fmt.Sprintf(steps, "0s", "0s"), "--unknown", "retry")
		if w.wants("effects", "one\none\ntwo\nend\n"); r.code != 0 {
			w.t.Error(r)
		}
	}},
	row{"killed during a call, --unknown ask has a person decide", "`ask`: it waits for a person to approve that it runs again", "--unknown, pawl approve, approval.requested", func(w *world) {
		all, r := w.killed(w.has("began-a"), fmt.Sprintf(steps, "0s", "0s"), "--unknown", "ask")
		asked := all.of("approval.requested")
		if w.wants("effects", "one\n"); r.code != 3 || len(asked) != 1 || asked[0]["unknown"] != true {
			w.t.Fatalf("%v\n%v", asked, r)
		}
		id, _ := asked[0]["call_id"].(string)
		w.ok("approve", "s", id)
		w.ok(append([]string{"resume", "s"}, free...)...)
		w.wants("effects", "one\none\ntwo\nend\n")
	}},
	row{"killed during a call, a person can refuse that it runs again", "`ask`: it waits for a person to approve that it runs again", "--unknown, pawl reject", func(w *world) {
		all, _ := w.killed(w.has("began-a"), fmt.Sprintf(steps, "0s", "0s"), "--unknown", "ask")
		id, _ := at(all.end(w.t), "pending", 0, "call_id").(string)
		w.ok("reject", "s", id)
		w.ok(append([]string{"resume", "s"}, free...)...)
		w.wants("effects", "one\ntwo\nend\n")
	}},
	row{"killed behind the last call, nothing is done again", "what is on record is not done again", "pawl resume", func(w *world) {
		w.write("go-a", "")
		w.write("go-b", "")
		all, r := w.killed(w.recorded("tool.finished", `"b"`), fmt.Sprintf(steps, "0s", "300s"))
		if w.wants("effects", "one\ntwo\nend\n"); r.code != 0 || len(all.of("tool.started")) != 0 || all.end(w.t)["text"] != "Done." {
			w.t.Error(r)
		}
	}},
	row{"killed and resumed, a replay finds no difference", "drives the loop from a session's record, and compares", "pawl replay", func(w *world) {
		w.killed(w.has("began-a"), fmt.Sprintf(steps, "0s", "0s"))
		if r := w.ok("replay", "s"); !strings.HasSuffix(r.out, " effects as on record, completed\n") {
			w.t.Error(r)
		}
	}},
	row{"killed, the run's commands end, too", "commands and what they started", "", func(w *world) {
		w.sleeps("s").end()
		w.gone("pid")
	}},
	row{"killed while another process drives, it does not disturb", "by a file lock, at once", "", func(w *world) {
		first := w.sleeps("s")
		if r := w.pawl(append([]string{"resume", "s"}, free...)...); r.code != 1 || !strings.Contains(r.err, "being driven by somebody else") {
			w.t.Error(r)
		}
		first.end()
		w.write("model.yaml", strings.Replace(sleeps, "sleep 300", "true", 1))
		if r := w.pawl(append([]string{"resume", "s"}, free...)...); r.code != 0 || r.out != "Done.\n" {
			w.t.Error(r)
		}
	}},
)

// A run is killed at many moments that nobody chose, again while it is resumed, and each
// effect is counted.
func TestCrash_AtAnyMoment(t *testing.T) {
	beyondQuick(t)
	onUnix(t)
	moments := 4
	if tier.All() {
		moments = 60
	}
	for i := range moments {
		t.Run(fmt.Sprintf("moment %d", i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var script strings.Builder
			script.WriteString("turns:\n")
			for n := range 8 {
				fmt.Fprintf(&script, "- {text: w, tool_calls: [{id: c%d, name: bash, input: {command: \"echo c%d >> effects\"}}]}\n", n, n)
			}
			script.WriteString("- {text: Done.}\n")
			w.write("model.yaml", script.String())
			effects := func() int { return strings.Count(w.read("effects"), "\n") }
			killed := func(behind int, args ...string) {
				p := w.start(append(args, free...)...)
				w.until("enough is done", func() bool { return effects() >= behind || p.over() })
				p.end()
				// The session of a killed process can be listed as running for a moment.
				w.until("nobody drives the session", func() bool { return w.status("s") != "running" })
			}
			first := 1 + i%8
			killed(first, "run", "--session", "s", "go")
			for n := 1; n < 3 && w.status("s") == "unfinished"; n++ {
				killed(first+n, "resume", "s")
			}
			for w.status("s") == "unfinished" {
				w.ok(append([]string{"resume", "s"}, free...)...)
			}
			if got := w.status("s"); got != "completed" {
				t.Errorf("it is %q in the end", got)
			}
			shown := w.ok("sessions", "show", "s").out
			for n := range 8 {
				done := strings.Count(w.read("effects"), fmt.Sprintf("c%d\n", n))
				unknown := strings.Contains(shown, fmt.Sprintf("tool bash · unknown · c%d", n))
				if done > 1 || done == 0 && !unknown {
					t.Errorf("c%d was done %d times, unknown: %v", n, done, unknown)
				}
			}
		})
	}
}

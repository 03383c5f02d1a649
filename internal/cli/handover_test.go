package cli

import (
	"regexp"
	"strings"
	"testing"
)

// The program is made without Temporal: what needs it says how it is installed, and nothing began.
func TestWithoutTheWorkerProgramItIsSaidHowToInstallIt(t *testing.T) {
	w := newWorld(t)
	t.Setenv("PATH", t.TempDir())
	const engine = "temporal://127.0.0.1:7233?queue=q"
	for name, args := range map[string][]string{
		"run":    {"run", "--engine", engine, "--journal", w.journal, "go"},
		"stdin":  {"run", "--engine=" + engine, "-"},
		"resume": {"resume", "s", "--engine", engine},
		"worker": {"worker", "--queue", "q"},
	} {
		r := w.pawl(args...)
		if r.code != exitUsage || r.out != "" || !strings.HasSuffix(r.err, "Install it: go install github.com/pawl-dev/pawl/temporal/cmd/pawl-worker@latest\n") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := w.pawl("run", "--json", "--engine", engine, "go")
	lines := w.decoded(r)
	if r.code != exitUsage || len(lines) != 1 || lines[0]["type"] != "run.finished" || lines[0]["status"] != "failed" {
		t.Errorf("%+v", r)
	}
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "v0.3.0-rc.1": "v0.3.0-rc.1", "devel": "latest", "v0.0.0-20261101120000-0123456789ab": "latest", "v0.3.1-0.20261101120000-0123456789ab+dirty": "latest"} {
		if err := (Program{Name: "pawl", Version: version}).handOver("x"); !strings.HasSuffix(err.Error(), "pawl-worker@"+want) {
			t.Error(err)
		}
	}
	if r := w.pawl("worker", "--help"); r.code != 0 || !strings.Contains(r.out, "--grace") {
		t.Errorf("%+v", r)
	}
}

func TestWhereAServiceIsAndWhatItsWorkersHave(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		at  Service
		how string
	}{
		"temporal://":                      {Service{}, "loop"},
		"temporal://h":                     {Service{Address: "h:7233"}, "loop"},
		"temporal://h:1/":                  {Service{Address: "h:1"}, "loop"},
		"temporal://[::1]:1?queue=a b":     {Service{Address: "[::1]:1", Queue: "a b"}, "loop"},
		"temporal://[::1]":                 {Service{Address: "[::1]:7233"}, "loop"},
		"temporal://?engine=graph:a/b.yml": {Service{}, "graph:a/b.yml"},
		"temporal://h:1?engine=script%3Ax%26y.star&namespace=n&queue=q": {Service{Address: "h:1", Namespace: "n", Queue: "q"}, "script:x&y.star"},
	} {
		at, how, err := serviceOf(text)
		if err != nil || at != want.at || how != want.how {
			t.Errorf("%s: %+v %q %v", text, at, how, err)
		}
		if again, how, err := serviceOf(at.flag(how)); err != nil || again != want.at || how != want.how { // what is printed can be pasted
			t.Errorf("%s is written %s: %+v %q %v", text, at.flag(how), again, how, err)
		}
	}
	for text, want := range map[string]string{
		"temporal://h:port":               "invalid port",
		"temporal://h:0":                  "is no address: want HOST:PORT",
		"temporal://u:p@h:1":              "it has a user",
		"temporal://h:1/queue":            "want temporal://HOST:PORT",
		"temporal://h:1?q=1":              "q is not known",
		"temporal://h:1?queue=":           "want one queue, with a value",
		"temporal://h:1?queue=a&queue=b":  "want one queue, with a value",
		"temporal://?engine=temporal://h": "loop or graph:FILE or script:FILE",
	} {
		if at, how, err := serviceOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %q %v", text, at, how, err)
		}
	}
	for address, local := range map[string]bool{"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "10.0.0.1:1": false, "temporal:7233": false, "localhost.example:1": false} {
		if (Service{Address: address}).local() != local {
			t.Error(address)
		}
	}
}

// A session that was begun on Temporal is gone on with there: each line says so.
func TestTheEngineOfASessionIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "loop": "", "graph:flow": "graph:FILE", "script": "script:FILE", "temporal:loop": "temporal://HOST:PORT", "temporal:graph:flow": "temporal://HOST:PORT?engine=graph:FILE",
	} {
		if got := engineAsked(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestALineToGoOnWithNamesTheEngineOfAGraph(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	graph := w.file("g.yaml", "name: g\nentry: may\nnodes: [{id: may, type: approval, config: {prompt: \"Publish?\", output: ok}}]\nedges: [{from: may, to: __end__}]\n")
	r := w.pawl("run", "--engine", "graph:"+graph, "--dir", w.dir, "--journal", w.journal, "--session", "s", "go")
	line := regexp.MustCompile(`pawl (approve s \S+)`).FindStringSubmatch(r.err)
	if r.code != exitWaiting || line == nil {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl(append(strings.Fields(line[1]), "--journal", w.journal)...); r.code != 0 || !strings.Contains(r.err, "go on with: pawl resume s --engine graph:FILE --journal") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("resume", "s", "--dir", w.dir, "--journal", w.journal, "--engine", "graph:"+graph); r.code != 0 {
		t.Errorf("%+v", r)
	}
}

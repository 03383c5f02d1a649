package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What can't work is said before anything begins, with what would be right.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "turns: [{text: Done.}]")
	at, db := w.engine(), w.journal
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nobody answers":                {[]string{"run", "--engine", "temporal://127.0.0.1:1", "--journal", db, "go"}, 1, "the Temporal service at 127.0.0.1:1: is it running"},
		"no such namespace":             {[]string{"run", "--engine", "temporal://" + w.server.Address + "?namespace=nowhere", "--journal", db, "go"}, 2, "it has no namespace nowhere"},
		"no such namespace of a worker": {[]string{"worker", "--address", w.server.Address, "--namespace", "nowhere", "--journal", db}, 2, "it has no namespace nowhere"},
		"a journal of its own":          {[]string{"run", "--engine", at, "--journal", "memory", "go"}, 2, "processes that have one journal"},
		"a file, and another machine":   {[]string{"worker", "--address", "temporal.example"}, 2, "a file is one machine's, and the service at temporal.example:7233 is on another one"},
		"an address that is none":       {[]string{"worker", "--address", "http://x/y"}, 2, "want HOST:PORT"},
		"what is behind the URL":        {[]string{"run", "--engine", "temporal://x:1?que=a", "go"}, 2, "que is not known: want engine, namespace or queue"},
		"a service within one":          {[]string{"run", "--engine", "temporal://x:1?engine=temporal://y:1", "go"}, 2, "the engine behind the ? is one that workers have"},
		"a worker's engine":             {[]string{"worker", "--engine", at, "--journal", db}, 2, "say where the service is with --address"},
		"a worker's time":               {[]string{"worker", "--timeout", "1s", "--journal", db}, 2, "give it to pawl run"},
		"the workers' taint":            {[]string{"run", "--engine", at, "--journal", db, "--taint", "off", "go"}, 2, "--taint off: with --engine temporal://… the workers say that"},
		"the workers' model":            {[]string{"run", "--engine", at, "--journal", db, "--model", "scripted/x", "go"}, 2, "--model: with --engine temporal://… the workers say that"},
		"the workers' rules":            {[]string{"run", "--engine", at, "--journal", db, "--allow", "Bash", "go"}, 2, "--allow: with --engine"},
		"the workers' mode":             {[]string{"run", "--engine", at, "--journal", db, "--permission-mode", "bypassPermissions", "go"}, 2, "--permission-mode bypassPermissions: with --engine"},
		"the workers' limits":           {[]string{"resume", "--engine", at, "--journal", db, "--budget-usd", "1", "s"}, 2, "no session"},
		"another engine than it has":    {[]string{"run", "--engine", w.engine("grph:x"), "--journal", db, "go"}, 2, `--engine "grph:x": want loop or graph:FILE`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := w.pawl(c.args...)
			if r.code != c.code || !strings.Contains(r.err, c.want) || r.out != "" {
				t.Errorf("%+v\nwant exit %d, %s", r, c.code, c.want)
			}
		})
	}
}

// A run without a worker says what it waits for, and goes on when one comes.
func TestARunThatWaitsForAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "turns: [{text: Done.}]")
	r, wait := w.begin("run", "--engine", w.engine()+"&queue=later", "--journal", w.journal, "go")
	hint := "no worker is at the queue later of " + w.server.Address + ": start one with pawl worker"
	w.until("nothing is said of the worker that is missing", func() bool { return strings.Contains(r.stderr.String(), hint) })
	w.works("--queue", "later")
	wait()
	if r.code != 0 || r.out != "Done.\n" {
		t.Errorf("%+v", r)
	}
}

// Where the service is may be said in Temporal's own way, and on one machine a file will do as the journal.
func TestTheEnvironmentOfTemporal(t *testing.T) {
	w := newWorld(t, "turns: [{text: Done.}]")
	t.Setenv("TEMPORAL_ADDRESS", w.server.Address)
	t.Setenv("TEMPORAL_NAMESPACE", w.server.Namespace)
	w.journal = "sqlite:" + w.dir + "/journal.db"
	k := w.works()
	if k.ready["address"] != w.server.Address || k.ready["namespace"] != w.server.Namespace {
		t.Errorf("%v", k.ready)
	}
	if r := w.pawl("run", "--engine", "temporal://", "--journal", w.journal, "go"); r.code != 0 || r.out != "Done.\n" {
		t.Errorf("%+v", r)
	}
}

// The program is pawl, too, and by itself it is a worker.
func TestTheProgramItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "turns: [{text: Done.}]")
	for words, want := range map[string]string{"--help": "pawl-worker [flags]", "run --help": "pawl-worker run [flags] PROMPT", "worker --help": "pawl-worker worker [flags]", "version": "pawl-worker "} {
		out, err := w.command(append([]string{"pawl-worker"}, strings.Fields(words)...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v %s", words, err, out)
		}
	}
}

// A role that may only use the journal does without the schema by which words are seen as they are said: it is told so, and the run is done.
func TestARoleThatMayMakeNoSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "turns: [{text: Done.}]")
	if r := w.pawl("sessions", "list", "--journal", w.journal); r.code != 0 { // makes the tables
		t.Fatalf("%+v", r)
	}
	c, err := pgx.Connect(t.Context(), w.journal)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(t.Context(), `CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA pawl TO app; GRANT ALL ON ALL TABLES IN SCHEMA pawl TO app`)
	_ = c.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.journal = strings.Replace(w.journal, "user=pawl", "user=app", 1)
	k := w.works()
	const said = "what models and tools say is shown only when it has been said: "
	if r := w.run("--json", "go"); r.code != 0 || strings.Contains(r.out, "text.delta") || !strings.Contains(r.err, said) {
		t.Errorf("%+v", r)
	}
	_ = k.Process.Signal(syscall.SIGTERM)
	if err := k.Wait(); err != nil || !strings.Contains(k.errs.String(), said) {
		t.Errorf("%v: %s", err, k.errs)
	}
}

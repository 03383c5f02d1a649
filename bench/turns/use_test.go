package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// deaf calls the tool with what the model did not say, and is right in all else.
type deaf struct {
	liar
	t *load.Task
}

func (d deaf) Open(int) load.Session { return d }

func (d deaf) Ask(ctx context.Context, prompt string, said func(string)) (load.Answer, error) {
	d.t.Call("item 7")
	return d.liar.Ask(ctx, prompt, said)
}

func TestAnArgumentThatTheModelDidNotSayIsAnError(t *testing.T) {
	w, err := load.Named("W3", .01)
	if err != nil {
		t.Fatal(err)
	}
	right := upstream.Answer(w.Asks)
	_, err = load.Run(t.Context(), "deaf", w, "", "", func(task *load.Task) (load.System, error) {
		return deaf{liar{answer: load.Answer{Text: right}, said: right}, task}, nil
	})
	if err == nil || !strings.Contains(err.Error(), `"item 7"`) {
		t.Error(err)
	}
}

func TestAProgramOfASystemGivesItsArgumentsAsTheyAre(t *testing.T) {
	var out bytes.Buffer
	if err := load.Main(t.Context(), []string{"run", "-system", "f3", "-workload", "W3", "-upstream", upstreamOf(t), "-times", "0.01"}, systems, &out); err != nil || !strings.Contains(out.String(), `"system":"f3"`) {
		t.Error(err, out.String())
	}
}

func TestAWorkloadHasAName(t *testing.T) {
	for workloads, want := range map[string][]string{
		"W2-200": {"W2-200"}, "W9-fork,W3-flushed": {"W9-fork", "W3-flushed"}, "W1": {"W1"}, "W2": {"W2-200", "W2-400"}, "W4-big": {"W4-big"},
	} {
		o := options{workloads: workloads}
		all, err := o.chosen(t.Context())
		var got []string
		for _, r := range all {
			if got = append(got, r.workload); workloads == "W1" && r.title != "W1" {
				t.Errorf("W1 is %s, too", r.title)
			}
		}
		if got = slices.Compact(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", workloads, got, err, want)
		}
	}
}

func TestWhatCanNotBeMeasuredOrKeptIsSaidBeforeAnythingIs(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	few := []string{"-workloads", "W3", "-systems", "f3", "-pairs", "1", "-times", "0.01"}
	for want, args := range map[string][]string{
		"W10, and each workload":                          {"-workloads", "w3"},
		"but f0, f3, pawl,":                               {"-systems", "pawll"},
		"no row of the table":                             {"-workloads", "W3", "-systems", "pawl"},
		"x=/nowhere/x: ":                                  {"-also", "x=/nowhere/x"},
		"nowhere" + string(filepath.Separator) + "a.json": append(few, "-json", filepath.Join(dir, "nowhere", "a.json")),
		"nowhere" + string(filepath.Separator) + "a.svg":  append(few, "-svg", filepath.Join(dir, "nowhere", "a.svg")),
		"cut.json: want what -json":                       {"-from", file("cut.json", `[{"title":"W3"`)},
		"has nothing of what":                             {"-from", file("none.json", "[]")},
		"has no measurement":                              {"-from", file("bare.json", `[{"title":"W9","workload":"W9-open","system":"pawl-memory","pairs":[{}]}]`)},
		"pair 1 of W3, f3 has no mea":                     {"-from", file("bare3.json", `[{"title":"W3","workload":"W3","system":"f3","base":"f1","pairs":[{}]}]`)},
	} {
		var out bytes.Buffer
		if err := benchMain(t.Context(), args, &out); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%v: %v, want %q; %s", args, err, want, out.String())
		}
	}
	old := file("old.json", "kept before")
	if err := writable(old); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "kept before" {
		t.Errorf("%q, %v", text, err)
	}
}

// ended calls once when a table's first row is there.
type ended struct {
	io.Writer
	then func()
}

func (e ended) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("W3 ")) {
		e.then()
	}
	return e.Writer.Write(b)
}

func TestWhatWasMeasuredBeforeAnInterruptIsKept(t *testing.T) {
	tmp, kept := t.TempDir(), filepath.Join(t.TempDir(), "a.json")
	t.Setenv("TMPDIR", tmp)
	ctx, interrupt := context.WithCancel(t.Context())
	var out, again bytes.Buffer
	first := func() { time.AfterFunc(300*time.Millisecond, interrupt) } // when the next row is under way
	err := benchMain(ctx, []string{"-workloads", "W3", "-systems", "f3", "-pairs", "20", "-times", "0.001", "-json", kept}, ended{&out, first})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "interrupted: ") || strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	if err := benchMain(t.Context(), []string{"-workloads", "W3", "-systems", "f3", "-from", kept}, &again); err != nil || !strings.Contains(out.String(), again.String()) {
		t.Errorf("%v: %s\nwas\n%s", err, again.String(), out.String())
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

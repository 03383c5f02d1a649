package main

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestALeakIsRead(t *testing.T) {
	first := read()
	if again := grown(first, read()); len(again) > 0 {
		t.Fatalf("nothing leaks: %q", again)
	}
	over := make(chan struct{})
	defer close(over)
	for name, leak := range map[string]func(){
		"the number of goroutines": func() {
			for range 2 * (slack.Goroutines + runtime.NumGoroutine()) {
				go func() { <-over }()
			}
		},
		"the number of descriptors": func() {
			for range 2 * (slack.Files + first.Files) {
				f, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = f.Close() })
			}
		},
		"the heap": func() {
			kept := make([]byte, 4<<20+first.Alloc/4)
			t.Cleanup(func() { runtime.KeepAlive(kept) })
		},
	} {
		before := read()
		leak()
		problems := grown(before, read())
		if len(problems) == 0 || !strings.HasPrefix(problems[0], name) {
			t.Errorf("%s: found %q", name, problems)
		}
	}
}

func TestWhatMayGrow(t *testing.T) {
	base := reading{Alloc: 100 << 20, Inuse: 200 << 20, Goroutines: 100, Files: 100}
	for name, c := range map[string]struct {
		last reading
		want string
	}{
		"nothing grew":        {base, ""},
		"by a tenth":          {reading{Alloc: 109 << 20, Inuse: 219 << 20, Goroutines: 110, Files: 110}, ""},
		"the heap by more":    {reading{Alloc: 111 << 20, Inuse: 200 << 20, Goroutines: 100, Files: 100}, "the heap (MiB) grew"},
		"its spans by more":   {reading{Alloc: 100 << 20, Inuse: 221 << 20, Goroutines: 100, Files: 100}, "the spans of the heap"},
		"goroutines by more":  {reading{Alloc: 100 << 20, Inuse: 200 << 20, Goroutines: 111, Files: 100}, "the number of goroutines grew from 100 to 111"},
		"descriptors by more": {reading{Alloc: 100 << 20, Inuse: 200 << 20, Goroutines: 100, Files: 111}, "the number of descriptors"},
		"it shrank":           {reading{}, ""},
	} {
		if got := strings.Join(grown(base, c.last), "; "); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	few := reading{Goroutines: 10, Files: 10}
	if got := grown(few, reading{Goroutines: 10 + slack.Goroutines, Files: 10 + slack.Files}); len(got) > 0 {
		t.Errorf("of few, some more: %q", got)
	}
	if got := grown(few, reading{Goroutines: 11 + slack.Goroutines, Files: 11 + slack.Files}); len(got) != 2 {
		t.Errorf("of few, more than some: %q", got)
	}
}

func TestTheMedianIsOfEachFigure(t *testing.T) {
	got := median([]reading{{9, 1, 5, 70}, {1, 2, 900, 7}, {2, 900, 4, 6}})
	if want := (reading{2, 2, 5, 7}); got != want {
		t.Errorf("%v: want %v", got, want)
	}
}

package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/stream"
)

var head = stream.Item{Session: "s", Run: "r", Key: callKey, Seq: 3, Attempt: 2}

// joined is what items of one attempt say, which have to be all there are of it.
func joined(t *testing.T, items []stream.Item) (text string, lost int64, ended bool) {
	t.Helper()
	for n, i := range items {
		if i.Part != n+1 || i.By != items[0].By || ended {
			t.Errorf("item %d is part %d of %s; ended: %v", n+1, i.Part, i.By, ended)
		}
		text, lost, ended = text+i.Text, lost+i.Lost, i.End
	}
	return text, lost, ended
}

func TestAWriterGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stream.Memory(stream.Retention{})
		w := stream.NewWriter(s, stream.Batching{}, nil)
		a := w.Begin(head)
		want := ""
		for n := range 1000 { // a token each ms
			token := fmt.Sprint(n, " ")
			want += token
			a.Add(event.Event{Delta: event.TextDelta, Text: token})
			time.Sleep(time.Millisecond)
		}
		a.End()
		a.Add(event.Event{Delta: event.TextDelta, Text: "after the end"})
		if !a.Flush(t.Context()) {
			t.Error("it is not there")
		}
		items := all(t, s, "s", 0)
		text, lost, ended := joined(t, items)
		if text != want || lost > 0 || !ended {
			t.Errorf("%d bytes of %d, %d lost, ended %v", len(text), len(want), lost, ended)
		}
		if len(items) > 11 || len(items) < 10 {
			t.Errorf("%d items in a second", len(items))
		}
		for _, i := range items {
			if len(i.Runs) > 1 || i.Attempt != 2 || i.Seq != 3 || i.Key != callKey {
				t.Errorf("%+v", i)
			}
		}
		w.Close(t.Context())
	})
}

func TestMuchIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stream.Memory(stream.Retention{})
		w := stream.NewWriter(s, stream.Batching{}, nil)
		began := time.Now()
		a, silent := w.Begin(head), w.Begin(head)
		a.Add(event.Event{Delta: event.ToolOutput, Stream: "stdout", Text: strings.Repeat("x", 10<<10)})
		a.Add(event.Event{Delta: event.ToolOutput, Stream: "stderr", Text: strings.Repeat("y", 10<<10)})
		synctest.Wait()
		items := all(t, s, "s", 0)
		if len(items) != 1 || len(items[0].Text) != 20<<10 || len(items[0].Runs) != 2 || time.Since(began) > 0 {
			t.Errorf("%d items after %v", len(items), time.Since(began))
		}
		silent.End() // who said nothing has no item
		w.Close(t.Context())
		if n := len(all(t, s, "s", 0)); n != 1 {
			t.Errorf("%d items", n)
		}
	})
}

// faulty is a store that fails while it is told to: before it appends, or behind it.
type faulty struct {
	stream.Store
	mu     sync.Mutex
	before bool
	behind int  // every so many appends
	hangs  bool // until its context ends
	n      int
}

func (f *faulty) set(change func()) { f.mu.Lock(); defer f.mu.Unlock(); change() }

func (f *faulty) Append(ctx context.Context, items ...stream.Item) error {
	f.mu.Lock()
	before, hangs := f.before, f.hangs
	f.n++
	behind := f.behind > 0 && f.n%f.behind == 0
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if before {
		return errors.New("gone")
	}
	if err := f.Store.Append(ctx, items...); err != nil || !behind {
		return err
	}
	return errors.New("nobody knows")
}

func TestAStoreThatIsGoneHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: stream.Memory(stream.Retention{Bytes: 1 << 30}), before: true}
		var log bytes.Buffer
		w := stream.NewWriter(f, stream.Batching{Pending: 100_000}, slog.New(slog.NewTextHandler(&log, nil)))
		a := w.Begin(head)
		var said strings.Builder
		speak := func(lines int) {
			for n := range lines {
				line := fmt.Sprint(said.Len(), strings.Repeat("x", n%3*1000), "\n")
				a.Add(event.Event{Delta: event.TextDelta, Text: line})
				said.WriteString(line)
				time.Sleep(10 * time.Millisecond)
			}
		}
		began := time.Now()
		speak(50)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("it was held up: %v", took)
		}
		if a.Flush(t.Context()) {
			t.Error("it is not there")
		}
		f.set(func() { f.before = false })
		time.Sleep(10 * time.Second)
		if text, lost, _ := joined(t, all(t, f.Store, "s", 0)); text != said.String() || lost > 0 {
			t.Errorf("after a while: %d bytes of %d, %d lost", len(text), said.Len(), lost)
		}
		f.set(func() { f.before = true })
		speak(300) // more than it keeps
		f.set(func() { f.before = false })
		time.Sleep(10 * time.Second)
		speak(5)
		f.set(func() { f.before = true })
		speak(300) // and at its end
		a.End()
		f.set(func() { f.before = false })
		w.Close(t.Context())
		items := all(t, f.Store, "s", 0)
		text, lost, ended := joined(t, items)
		if len(text)+int(lost) != said.Len() || lost < 300_000 || !ended || len(text) < 250_000 {
			t.Errorf("after long: %d bytes and %d lost of %d, ended: %v", len(text), lost, said.Len(), ended)
		}
		at := 0
		for _, i := range items { // what is missing is missing where the item says
			at += int(i.Lost)
			if end := at + len(i.Text); end > said.Len() || said.String()[at:end] != i.Text {
				t.Fatalf("part %d is not what was said at %d", i.Part, at)
			}
			at += len(i.Text)
		}
		if n := strings.Count(log.String(), "can't be written"); n != 3 {
			t.Errorf("said %d times:\n%s", n, &log)
		}
	})
}

func TestNothingIsThereTwiceWhenNobodyKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: stream.Memory(stream.Retention{}), behind: 2}
		w := stream.NewWriter(f, stream.Batching{}, slog.New(slog.DiscardHandler))
		a, b := w.Begin(head), w.Begin(stream.Item{Session: "other", Attempt: 1})
		want := ""
		for n := range 200 {
			token := fmt.Sprint(n, " ")
			want += token
			a.Add(event.Event{Delta: event.TextDelta, Text: token})
			b.Add(event.Event{Delta: event.TextDelta, Text: token})
			time.Sleep(7 * time.Millisecond)
		}
		a.End()
		b.End()
		w.Close(t.Context())
		for _, session := range []string{"s", "other"} {
			if text, lost, ended := joined(t, all(t, f.Store, session, 0)); text != want || lost > 0 || !ended {
				t.Errorf("%s: got %q", session, text)
			}
		}
	})
}

func TestAWriterCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Store: stream.Memory(stream.Retention{}), hangs: true}
		var log bytes.Buffer
		w := stream.NewWriter(f, stream.Batching{}, slog.New(slog.NewTextHandler(&log, nil)))
		a := w.Begin(head)
		a.Add(event.Event{Delta: event.TextDelta, Text: "12345"})
		waits, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if began := time.Now(); a.Flush(waits) || time.Since(began) != time.Second {
			t.Errorf("waited %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		w.Close(ctx)
		if took := time.Since(began); took != 5*time.Second || !strings.Contains(log.String(), "bytes=5") {
			t.Errorf("closed after %v: %s", took, &log)
		}
		a.Add(event.Event{Delta: event.TextDelta, Text: "nobody hears"})
		a.End()
		if a.Flush(t.Context()) {
			t.Error("it is there?")
		}
		w.Close(ctx)
	})
}

func TestADeltaCostsNothing(t *testing.T) {
	s := &faulty{Store: stream.Memory(stream.Retention{}), hangs: true}
	w := stream.NewWriter(s, stream.Batching{Every: time.Hour, Bytes: 1 << 30, Pending: 1 << 30}, slog.New(slog.DiscardHandler))
	a := w.Begin(head)
	a.Add(event.Event{Delta: event.TextDelta, Text: "the first one"})
	if n := testing.AllocsPerRun(20_000, func() {
		a.Add(event.Event{Delta: event.TextDelta, Text: "word "})
	}); n != 0 {
		t.Errorf("%v allocations a delta", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Close(ctx)
}

// A server dies and comes back while somebody speaks and somebody reads.
func TestAServerThatIsGoneForAWhile(t *testing.T) {
	server := pgtest.New(t)
	dsn := server.DSN(t)
	w := stream.NewWriter(opened(t, dsn, stream.Retention{}), stream.Batching{Every: 20 * time.Millisecond}, slog.New(slog.DiscardHandler))
	reads := opened(t, dsn, stream.Retention{})
	got, want := make(chan string), strings.Builder{}
	go func() {
		text, after := "", int64(0)
		for ended := false; !ended && t.Context().Err() == nil; {
			for i, err := range stream.Read(t.Context(), reads, "s", after) {
				if err != nil {
					time.Sleep(20 * time.Millisecond)
					break
				}
				text, after, ended = text+i.Text, i.Offset, i.End
				if i.Lost > 0 {
					t.Errorf("%d lost", i.Lost)
				}
				if ended {
					break
				}
			}
		}
		got <- text
	}()
	a := w.Begin(head)
	speak := func(until time.Time) {
		for n := 0; time.Now().Before(until); n++ {
			token := fmt.Sprint(n, " ")
			want.WriteString(token)
			a.Add(event.Event{Delta: event.TextDelta, Text: token})
			time.Sleep(time.Millisecond)
		}
	}
	speak(time.Now().Add(300 * time.Millisecond))
	server.Kill(t)
	speak(time.Now().Add(500 * time.Millisecond))
	server.Restart(t)
	speak(time.Now().Add(300 * time.Millisecond))
	a.End()
	if text := <-got; text != want.String() {
		t.Errorf("got %d bytes of %d", len(text), want.Len())
	}
	w.Close(t.Context())
}

// Where each delta is an item of its own it is there when Add returns: a reader who has an outcome has what was said before it.
func TestAWriterThatDoesNotGather(t *testing.T) {
	s := stream.Memory(stream.Retention{})
	w := stream.NewWriter(s, stream.Batching{Every: -1}, nil)
	a := w.Begin(head)
	for n, token := range []string{"one ", "two ", "three"} {
		a.Add(event.Event{Delta: event.TextDelta, Text: token})
		if items := all(t, s, "s", 0); len(items) != n+1 || items[n].Text != token {
			t.Fatalf("after %q: %+v", token, items)
		}
	}
	a.End()
	text, lost, ended := joined(t, all(t, s, "s", 0))
	if text != "one two three" || lost > 0 || !ended {
		t.Errorf("%q, %d lost, ended %v", text, lost, ended)
	}
	w.Close(t.Context())
}

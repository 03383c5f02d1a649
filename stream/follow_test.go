package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/stream"
)

// scene is a session's journal and its stream.
type scene struct {
	t     *testing.T
	j     journal.Store
	s     stream.Store
	seq   int64
	begun map[string]int64 // where the journal was when an attempt began
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, j: journal.Memory(), s: stream.Memory(stream.Retention{}), begun: map[string]int64{}}
}

func (c *scene) notes(key journal.Key, d journal.Data) int64 {
	c.t.Helper()
	if err := c.j.Append(c.t.Context(), "s", c.seq, journal.Entry{Run: "r", Key: key, Data: d}); err != nil {
		c.t.Fatal(err)
	}
	c.seq++
	return c.seq
}

// says has an attempt say something of the effect that began with an entry.
func (c *scene) says(seq int64, key journal.Key, attempt int, by string, part int, text string) {
	c.t.Helper()
	i := item("s", by, part, text)
	i.Key, i.Seq, i.Behind, i.Attempt = key, seq, max(seq, c.begun[by]), attempt
	if c.begun[by] == 0 {
		c.begun[by] = c.seq
		i.Behind = c.seq
	}
	appends(c.t, c.s, i)
}

// heard is what there is from a position on, in words, and where it ends.
func (c *scene) heard(from stream.Position) (string, stream.Position) {
	c.t.Helper()
	var words []string
	for n, err := range stream.There(c.t.Context(), c.j, c.s, "s", from) {
		if err != nil {
			c.t.Fatal(err)
		}
		from = n.At
		for _, e := range n.Events {
			words = append(words, said(e))
		}
	}
	return strings.Join(words, " "), from
}

func said(e event.Event) string {
	switch {
	case e.Data != nil:
		return fmt.Sprintf("[%s %s]", e.Type(), e.Key.ID)
	case e.Delta == event.TextDelta:
		return fmt.Sprintf("%s%d:%s", e.Key.ID, e.Attempt, e.Text)
	}
	return fmt.Sprintf("%s%d:%s(%s)", e.Key.ID, e.Attempt, e.Type(), e.Text)
}

var k1, k2 = journal.Key{Op: "model", ID: "a"}, journal.Key{Op: "model", ID: "b"}

func done(text string) journal.Data { return journal.ModelFinished{Message: message.Assistant(text)} }

func TestWhatIsSaidComesBetweenTheEntriesOfItsEffect(t *testing.T) {
	c := newScene(t)
	c.notes(journal.Key{}, journal.Said{Message: message.User("go")})
	a := c.notes(k1, journal.ModelStarted{})
	c.says(a, k1, 1, "w1", 1, "one")
	b := c.notes(k2, journal.ModelStarted{})
	c.says(b, k2, 1, "w2", 1, "other")
	c.says(a, k1, 1, "w1", 2, "two")
	c.notes(k1, done("onetwo"))
	c.says(a, k1, 1, "w1", 3, "late")
	c.says(b, k2, 1, "w2", 2, "more")
	c.notes(k2, done("othermore"))
	const want = "[said ] [model.started a] a0:one [model.started b] b0:other a0:two b0:more [model.finished a] [model.finished b]"
	got, end := c.heard(stream.Position{})
	if got = strings.Replace(got, "a0:late ", "", 1); got != want { // who comes when all is over finds it before the outcome: so it was said
		t.Errorf("heard %s\nwant  %s", got, want)
	}
	if got, _ := c.heard(end); got != "" || len(end.Under) > 0 {
		t.Errorf("behind the end: %s, %+v", got, end)
	}
	c.says(a, k1, 1, "w1", 4, "too late")
	c.says(b, k2, 1, "w2", 3, "too late")
	if got, _ := c.heard(end); got != "" {
		t.Errorf("behind their outcomes: %s", got)
	}
	if got, _ := c.heard(stream.Position{Seq: 4, Offset: end.Offset}); strings.Contains(got, "a0:") {
		t.Errorf("behind the outcomes that were told before: %s", got)
	}
}

func TestALateWordIsLeftOut(t *testing.T) {
	c := newScene(t)
	a := c.notes(k1, journal.ModelStarted{})
	c.says(a, k1, 1, "w", 1, "one")
	_, at := c.heard(stream.Position{})
	c.notes(k1, done("one"))
	heard, at := c.heard(at)
	c.says(a, k1, 1, "w", 2, "late")
	b := c.notes(k2, journal.ModelStarted{})
	c.says(b, k2, 1, "v", 1, "next")
	more, _ := c.heard(at)
	if heard != "[model.finished a]" || more != "[model.started b] b0:next" {
		t.Errorf("heard %s, then %s", heard, more)
	}
	// Who comes back with the numbers alone.
	if more, _ := c.heard(stream.Position{Seq: at.Seq, Offset: at.Offset}); more != "[model.started b] b0:next" {
		t.Errorf("heard %s", more)
	}
}

func TestAnAttemptThatStartsOverSaysSo(t *testing.T) {
	c := newScene(t)
	a := c.notes(k1, journal.ModelStarted{})
	c.says(a, k1, 1, "w1", 1, "one")
	c.notes(k1, journal.ModelFailed{Error: "overloaded"})
	c.says(a, k1, 2, "w2", 1, "on")
	c.says(a, k1, 1, "w1", 2, "zombie") // its worker was given up, and does not know it yet
	i := item("s", "w2", 2, "xone")
	i.Key, i.Seq, i.Behind, i.Attempt, i.Runs = k1, a, c.begun["w2"], 2, []stream.Run{{Kind: event.Retry, Try: 1, Bytes: 1}, {Kind: event.TextDelta, Try: 1, Bytes: 3}}
	appends(t, c.s, i)
	c.says(a, k1, 3, "w3", 1, "one")
	c.notes(journal.Key{}, journal.Resumed{})
	c.says(a, k1, 1, "w4", 1, "whole") // begun anew: Temporal counts from 1
	c.notes(k1, done("whole"))
	want := "[model.started a] a0:one [model.failed a] a1:retry(overloaded) a1:on a2:retry(x) a2:one a3:retry(another worker took it up) a3:one [resumed ] a4:retry(another worker took it up) a4:whole [model.finished a]"
	got := ""
	at := stream.Position{}
	// Cut after each piece of news: only what was taken is not given again, and numbers go on.
	for {
		var next *stream.News
		for n, err := range stream.There(t.Context(), c.j, c.s, "s", at) {
			if err != nil {
				t.Fatal(err)
			}
			next = &n
			break
		}
		if next == nil {
			break
		}
		for _, e := range next.Events {
			got += " " + said(e)
		}
		b, err := json.Marshal(next.At) // kept by whoever comes back
		if err != nil {
			t.Fatal(err)
		}
		at = stream.Position{}
		if err := json.Unmarshal(b, &at); err != nil {
			t.Fatal(err)
		}
	}
	if got = strings.TrimSpace(got); got != want {
		t.Errorf("heard %s\nwant  %s", got, want)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	c := newScene(t)
	a := c.notes(k1, journal.ModelStarted{})
	c.says(a, k1, 1, "w", 1, "one")
	_, at := c.heard(stream.Position{})
	c.says(a, k1, 1, "w", 3, "three")
	i := item("s", "w", 4, "four")
	i.Key, i.Seq, i.Lost = k1, a, 10
	appends(t, c.s, i)
	c.says(a, k1, 1, "w", 5, "five")
	const missing = "a0:warning(Some of what was said here is missing. The outcome will have it.)"
	if got, _ := c.heard(at); got != missing+" a0:three "+missing+" a0:four a0:five" {
		t.Errorf("heard %s", got)
	}
}

func TestWhoComesBackTooLateIsToldAndGoesOn(t *testing.T) {
	c := newScene(t)
	c.s = stream.Memory(stream.Retention{Bytes: 2000})
	a := c.notes(k1, journal.ModelStarted{})
	c.says(a, k1, 1, "w", 1, "one")
	_, at := c.heard(stream.Position{})
	for part := 2; part < 30; part++ {
		c.says(a, k1, 1, "w", part, fmt.Sprint(part))
	}
	if _, err := c.s.Read(t.Context(), "s", at.Offset); !errors.As(err, new(stream.GoneError)) {
		t.Fatal(err)
	}
	got, at := c.heard(at)
	if !strings.HasPrefix(got, "a0:warning(") || strings.Count(got, "warning") != 1 || !strings.HasSuffix(got, "a0:27 a0:28 a0:29") {
		t.Errorf("heard %s", got)
	}
	c.says(a, k1, 1, "w", 30, "30")
	c.notes(k1, done("whole"))
	if got, _ := c.heard(at); got != "a0:30 [model.finished a]" {
		t.Errorf("then %s", got)
	}
	c.s = stream.Memory(stream.Retention{}) // another database
	b := c.notes(k2, journal.ModelStarted{})
	at.Offset = 1 << 60
	c.says(b, k2, 1, "v", 1, "new")
	if got, _ := c.heard(at); !strings.HasSuffix(got, "[model.started b] b0:new") {
		t.Errorf("of another stream %s", got)
	}
}

// fragile is a stream that can't be read for a while.
type fragile struct {
	stream.Store
	mu     sync.Mutex
	broken bool
}

func (f *fragile) breaks(yes bool) { f.mu.Lock(); f.broken = yes; f.mu.Unlock() }

func (f *fragile) Read(ctx context.Context, session string, after int64) ([]stream.Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		return nil, errdefs.NotAvailable.Errorf("broken")
	}
	return f.Store.Read(ctx, session, after)
}

func TestEntriesComeThoughTheStreamCantBeRead(t *testing.T) {
	c := newScene(t)
	f := &fragile{Store: c.s, broken: true}
	c.s = f
	a := c.notes(k1, journal.ModelStarted{})
	c.says(a, k1, 1, "w", 1, "one")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var heard []string
	for n, err := range stream.Follow(ctx, c.j, c.s, "s", stream.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range n.Events {
			heard = append(heard, said(e))
		}
		switch len(heard) {
		case 1:
			b := c.notes(k2, journal.ModelStarted{})
			c.says(b, k2, 1, "v", 1, "other")
		case 2:
			c.notes(k1, done("one"))
		case 3:
			f.breaks(false)
		case 4:
			stop()
		}
	}
	if got := strings.Join(heard, " "); got != "[model.started a] [model.started b] [model.finished a] b0:other" {
		t.Errorf("heard %s", got)
	}
}

func TestWhoFollowsASessionThatIsDeletedIsTold(t *testing.T) {
	c := newScene(t)
	c.notes(k1, journal.ModelStarted{})
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var last error
	for _, err := range stream.Follow(ctx, c.j, c.s, "s", stream.Position{}) {
		if last = err; err == nil {
			if err := c.j.Delete(ctx, "s"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(last, errdefs.NotFound) {
		t.Errorf("told %v", last)
	}
}

package journal_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pawl-dev/pawl/journal"
)

// A session is kept in stretches: where one ends is nothing that a reader, or a fork, could see.
func TestALongSessionInMemoryIsReadAndForkedAnywhere(t *testing.T) {
	store := journal.Memory()
	const n = 200
	for i := range n {
		if err := store.Append(t.Context(), "s", int64(i), journal.Entry{Data: journal.RunStarted{Owner: fmt.Sprint("run-", i+1)}}); err != nil {
			t.Fatal(err)
		}
	}
	// read wants entries after+1 to last, those up to shared of the session s.
	read := func(session string, after, shared, last int64) {
		t.Helper()
		next := after
		for e, err := range store.Read(t.Context(), session, after) {
			next++
			if err != nil || e.Seq != next {
				t.Fatalf("%s behind %d: entry %d, %v, want %d", session, after, e.Seq, err, next)
			}
			if d, ok := e.Data.(journal.RunStarted); next <= shared && (!ok || d.Owner != fmt.Sprint("run-", next)) {
				t.Fatalf("%s: entry %d is %v", session, next, e.Data)
			}
		}
		if next != max(last, after) {
			t.Fatalf("%s behind %d: read to %d, want %d", session, after, next, last)
		}
	}
	for at := int64(1); at < n; at++ {
		read("s", at, n, n)
		fork := fmt.Sprint("fork-", at)
		if err := store.Append(t.Context(), fork, 0, journal.Entry{Data: journal.SessionCreated{Parent: "s", At: at}}); err == nil {
			t.Fatal("a fork behind another place than its own")
		}
		if err := store.Append(t.Context(), fork, at, journal.Entry{Data: journal.SessionCreated{Parent: "s", At: at}}); err != nil {
			t.Fatal(err)
		}
		for i := range int64(70) {
			if err := store.Append(t.Context(), fork, at+1+i, journal.Entry{Data: journal.RunStarted{}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, after := range []int64{0, 15, 16, 17, 47, 48, 49, at - 1, at, at + 1, at + 69} {
			read(fork, after, at, at+71)
		}
	}
	read("s", 0, n, n)
}

var tick journal.Data = journal.Stopped{}

func TestAMemoryStoreDoesNotMoveWhatItHas(t *testing.T) {
	store := journal.Memory()
	at := int64(0)
	add := func(n int) {
		for range n {
			if err := store.Append(t.Context(), "s", at, journal.Entry{Data: tick}); err != nil {
				t.Fatal(err)
			}
			at++
		}
	}
	var none, first runtime.MemStats
	runtime.ReadMemStats(&none)
	add(100)
	runtime.ReadMemStats(&first)
	const size = 48 // what an entry says beside its data, which it shares with who made it; with all else it is 128
	if each := float64(first.TotalAlloc-none.TotalAlloc) / 100; each > 3*size {
		t.Errorf("each of the first hundred entries takes %.0f bytes, want %d and some", each, size)
	}
	add(900)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 6400
	add(n)
	runtime.ReadMemStats(&after)
	if each := float64(after.TotalAlloc-before.TotalAlloc) / n; each > 1.2*size {
		t.Errorf("an entry takes %.0f bytes, want %d and some", each, size)
	}
}

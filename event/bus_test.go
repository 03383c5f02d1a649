package event_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

var (
	oldest = event.Policy{Full: event.DropOldest, Buffer: 3}
	newest = event.Policy{Full: event.DropNewest, Buffer: 3}
	block  = event.Policy{Buffer: 3}
)

// publish publishes the numbers from a to b.
func publish(ctx context.Context, b *event.Bus, from, to int) {
	for i := from; i <= to; i++ {
		b.Publish(ctx, said(strconv.Itoa(i)))
	}
}

// texts reads n events and leaves; less than 0: all.
func texts(events iter.Seq[event.Event], n int) (out []string) {
	for e := range events {
		if out = append(out, e.Text); len(out) == n {
			break
		}
	}
	return out
}

func TestWhoReadsAlongGetsWhatMatchesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b event.Bus
		if b.Listening() {
			t.Error("nobody is there")
		}
		publish(t.Context(), &b, 1, 1)
		even := b.Subscribe(t.Context(), func(e event.Event) bool { return (e.Text[len(e.Text)-1]-'0')%2 == 0 }, event.Policy{})
		all := b.Subscribe(t.Context(), nil, event.Policy{Full: event.DropOldest})
		if !b.Listening() {
			t.Error("somebody is there")
		}
		var wg sync.WaitGroup
		var got, want [2][]string
		wg.Go(func() { got[0] = texts(even.Events(), -1) })
		wg.Go(func() { got[1] = texts(all.Events(), -1) })
		for i := 2; i <= 100; i++ {
			if want[1] = append(want[1], strconv.Itoa(i)); i%2 == 0 {
				want[0] = append(want[0], strconv.Itoa(i))
			}
			publish(t.Context(), &b, i, i)
		}
		b.Close()
		b.Close()
		wg.Wait()
		same(t, "read", want, got)
		publish(t.Context(), &b, 101, 101)
		if late := b.Subscribe(t.Context(), nil, block); b.Listening() || texts(late.Events(), -1) != nil || even.Lost()+all.Lost()+late.Lost() != 0 {
			t.Error("a closed bus is silent")
		}
	})
}

func TestALossySubscriptionLosesWhatItSaysAndCountsIt(t *testing.T) {
	for name, c := range map[string]struct {
		policy event.Policy
		want   []string
		lost   int64
	}{
		"the newest":         {newest, []string{"1", "2", "3"}, 7},
		"the oldest":         {oldest, []string{"8", "9", "10"}, 7},
		"a sample":           {event.Policy{Sample: 4}, []string{"1", "5", "9"}, 0},
		"a sample of all":    {event.Policy{Sample: 1, Buffer: 20}, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, 0},
		"a sample, too slow": {event.Policy{Full: event.DropOldest, Sample: 2, Buffer: 2}, []string{"7", "9"}, 3},
		"no buffer given":    {event.Policy{Full: event.DropNewest, Buffer: -1}, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var b event.Bus
			sub := b.Subscribe(t.Context(), nil, c.policy)
			publish(t.Context(), &b, 1, 10)
			b.Close()
			same(t, "read", c.want, texts(sub.Events(), -1))
			if sub.Lost() != c.lost {
				t.Errorf("%d lost, want %d", sub.Lost(), c.lost)
			}
		})
	}
}

func TestTheDefaultBufferIsWhatItSays(t *testing.T) {
	var b event.Bus
	sub := b.Subscribe(t.Context(), nil, event.Policy{Full: event.DropNewest})
	publish(t.Context(), &b, 1, event.DefaultBuffer+5)
	if sub.Close(); sub.Lost() != 5 {
		t.Error(sub.Lost())
	}
}

// What was published is read, or lost, and nothing else, however readers and publishers fall together.
func TestNothingIsMiscounted(t *testing.T) {
	for name, p := range map[string]event.Policy{"block": {Buffer: 2}, "oldest": {Full: event.DropOldest, Buffer: 2}, "newest": {Full: event.DropNewest, Buffer: 2}} {
		t.Run(name, func(t *testing.T) {
			const publishers, each = 4, 500
			var b event.Bus
			var readers, all sync.WaitGroup
			for range 3 {
				sub := b.Subscribe(t.Context(), nil, p)
				readers.Go(func() {
					n, last := int64(0), map[string]int{}
					for e := range sub.Events() {
						i, _ := strconv.Atoi(e.Text)
						if n++; i <= last[e.Run] {
							t.Errorf("%s: %d after %d", e.Run, i, last[e.Run])
						}
						last[e.Run] = i
					}
					if n+sub.Lost() != publishers*each || p.Full == event.Block && sub.Lost() != 0 {
						t.Errorf("%d read and %d lost of %d", n, sub.Lost(), publishers*each)
					}
				})
			}
			for i := range publishers {
				all.Go(func() {
					for k := range each {
						e := said(strconv.Itoa(k + 1))
						e.Run = fmt.Sprint("r", i)
						b.Publish(t.Context(), e)
					}
				})
			}
			all.Wait()
			b.Close()
			readers.Wait()
		})
	}
}

func TestAFullSubscriptionThatBlocksHoldsThePublisherUntil(t *testing.T) {
	for name, c := range map[string]struct {
		then func(t *testing.T, b *event.Bus, s *event.Subscription, publisher, subscriber context.CancelFunc)
		lost int64
		left []string
	}{
		"there is room":               {func(t *testing.T, _ *event.Bus, s *event.Subscription, _, _ context.CancelFunc) { next(t, s) }, 0, []string{"2", "3", "4"}},
		"the publisher's ctx ends":    {func(_ *testing.T, _ *event.Bus, _ *event.Subscription, p, _ context.CancelFunc) { p() }, 1, []string{"1", "2", "3"}},
		"the subscription's ctx ends": {func(_ *testing.T, _ *event.Bus, _ *event.Subscription, _, s context.CancelFunc) { s() }, 1, nil},
		"the subscription is closed":  {func(_ *testing.T, _ *event.Bus, s *event.Subscription, _, _ context.CancelFunc) { s.Close() }, 1, nil},
		"the bus is closed":           {func(_ *testing.T, b *event.Bus, _ *event.Subscription, _, _ context.CancelFunc) { b.Close() }, 1, []string{"1", "2", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b event.Bus
				theirs, endTheirs := context.WithCancel(t.Context())
				mine, endMine := context.WithCancel(t.Context())
				defer endTheirs()
				defer endMine()
				sub := b.Subscribe(theirs, nil, block)
				lossy := b.Subscribe(t.Context(), nil, oldest)
				gone := false
				go func() {
					publish(mine, &b, 1, 4)
					gone = true
				}()
				if synctest.Wait(); gone {
					t.Fatal("there is room for 3")
				}
				same(t, "who does not block, whenever it came, has them all", []string{"2", "3", "4"}, texts(lossy.Events(), 3))
				c.then(t, &b, sub, endMine, endTheirs)
				if synctest.Wait(); !gone || sub.Lost() != c.lost {
					t.Errorf("went on: %t, lost %d, want %d", gone, sub.Lost(), c.lost)
				}
				b.Close()
				same(t, "left", c.left, texts(sub.Events(), -1))
			})
		})
	}
}

// next reads one event and stays until the test is over.
func next(t *testing.T, s *event.Subscription) {
	pull, stop := iter.Pull(s.Events())
	t.Cleanup(stop)
	pull()
}

func TestWherePublishersWaitAllGoOnWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b event.Bus
		sub := b.Subscribe(t.Context(), nil, event.Policy{Buffer: 4})
		publish(t.Context(), &b, 1, 4)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { publish(t.Context(), &b, 5+i, 5+i) })
		}
		synctest.Wait()
		got := texts(sub.Events(), 12)
		wg.Wait()
		slices.Sort(got)
		if len(slices.Compact(got)) != 12 || sub.Lost() != 0 {
			t.Error(got, sub.Lost())
		}
	})
}

func TestAnEndedContextIsNoMatterWhereThereIsRoom(t *testing.T) {
	var b event.Bus
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sub := b.Subscribe(t.Context(), nil, block)
	publish(ended, &b, 1, 4)
	if b.Close(); sub.Lost() != 1 {
		t.Error(sub.Lost())
	}
	same(t, "read", []string{"1", "2", "3"}, texts(sub.Events(), -1))
}

func TestAReaderThatLeavesEndsItsSubscription(t *testing.T) {
	for name, leave := range map[string]func(s *event.Subscription, end func()){
		"break":        func(s *event.Subscription, _ func()) { texts(s.Events(), 1) },
		"close":        func(s *event.Subscription, _ func()) { s.Close(); s.Close() },
		"its ctx ends": func(_ *event.Subscription, end func()) { end() },
		"its ctx ends as it reads": func(s *event.Subscription, end func()) {
			for range s.Events() {
				end()
			}
		},
		"close as it reads": func(s *event.Subscription, _ func()) {
			for range s.Events() {
				s.Close()
			}
		},
		"panic": func(s *event.Subscription, _ func()) {
			defer func() {
				if recover() == nil {
					panic("the panic is the reader's to see")
				}
			}()
			for range s.Events() {
				panic("oops")
			}
		},
		"goexit": func(s *event.Subscription, _ func()) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for range s.Events() {
					runtime.Goexit()
				}
			})
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, p := range []event.Policy{block, oldest, newest} {
					var b event.Bus
					ctx, end := context.WithCancel(t.Context())
					other := b.Subscribe(t.Context(), nil, event.Policy{})
					sub := b.Subscribe(ctx, nil, p)
					publish(t.Context(), &b, 1, 3)
					leave(sub, end)
					publish(t.Context(), &b, 4, 9) // nobody is in the way
					if sub.Lost() != 0 {
						t.Error("what it left behind is not lost", sub.Lost())
					}
					if got := texts(sub.Events(), -1); got != nil {
						t.Error("it reads on:", got)
					}
					if other.Close(); b.Listening() {
						t.Error("the bus still listens")
					}
					end()
				}
			})
		})
	}
}

func TestAReaderThatWaitsIsWokenByTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []func(*event.Bus, *event.Subscription, func()){
			func(b *event.Bus, _ *event.Subscription, _ func()) { b.Close() },
			func(_ *event.Bus, s *event.Subscription, _ func()) { s.Close() },
			func(_ *event.Bus, _ *event.Subscription, cancel func()) { cancel() },
		} {
			var b event.Bus
			ctx, cancel := context.WithCancel(t.Context())
			sub := b.Subscribe(ctx, nil, block)
			var wg sync.WaitGroup
			for range 2 { // of two readers both
				wg.Go(func() { texts(sub.Events(), -1) })
			}
			synctest.Wait()
			end(&b, sub, cancel)
			wg.Wait()
			cancel()
		}
	})
}

// heavy is an entry whose end can be seen.
type heavy struct{ journal.Stopped }

func publishHeavy(ctx context.Context, b *event.Bus) (freed chan struct{}) {
	d := &heavy{}
	freed = make(chan struct{})
	runtime.AddCleanup(d, func(c chan struct{}) { close(c) }, freed)
	b.Publish(ctx, entry("r", journal.Key{}, d))
	return freed
}

func collected(freed chan struct{}) {
	for {
		runtime.GC()
		select {
		case <-freed:
			return
		default:
			runtime.Gosched()
		}
	}
}

// A subscription that nobody ever reads, under a context that ends, is found and forgotten by whoever comes next, and what waits in it is
// free though somebody holds on to it.
func TestWhatNobodyReadsIsForgotten(t *testing.T) {
	for name, come := range map[string]func(*event.Bus){
		"listening":   func(b *event.Bus) { b.Listening() },
		"publishing":  func(b *event.Bus) { publish(context.Background(), b, 1, 1) },
		"subscribing": func(b *event.Bus) { b.Subscribe(context.Background(), nil, block).Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b, freed := new(event.Bus), make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			held := b.Subscribe(ctx, nil, oldest)
			runtime.AddCleanup(b.Subscribe(ctx, nil, oldest), func(c chan struct{}) { close(c) }, freed)
			emptied := publishHeavy(t.Context(), b)
			cancel()
			come(b)
			collected(freed)
			collected(emptied)
			runtime.KeepAlive(b)
			runtime.KeepAlive(held)
		})
	}
}

func TestWhatWasReadIsNotHeld(t *testing.T) {
	var b event.Bus
	sub := b.Subscribe(t.Context(), nil, block)
	freed := publishHeavy(t.Context(), &b)
	pull, stop := iter.Pull(sub.Events())
	defer stop()
	pull()
	publish(t.Context(), &b, 1, 1)
	pull() // the reader itself has the last one
	collected(freed)
	runtime.KeepAlive(sub)
}

// Who waits in Publish may have got its room and find the subscription ended: the event is lost all the same, and counted.
func TestAnEventThatWaitedInVainIsCounted(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var b event.Bus
			sub := b.Subscribe(t.Context(), nil, block)
			go publish(t.Context(), &b, 1, 4)
			synctest.Wait()
			pull, stop := iter.Pull(sub.Events())
			defer stop()
			read := int64(0)
			for _, ok := pull(); ok; _, ok = pull() {
				read++
				b.Close()
			}
			if synctest.Wait(); read+sub.Lost() != 4 {
				t.Errorf("%d read, %d lost of 4", read, sub.Lost())
			}
		})
	}
}

func TestAPredicateThatPanicsDidNotMatchAndHurtsNobody(t *testing.T) {
	var b event.Bus
	bad := b.Subscribe(t.Context(), func(e event.Event) bool { panic(e.Text) }, block)
	good := b.Subscribe(t.Context(), nil, block)
	publish(t.Context(), &b, 1, 2)
	b.Close()
	same(t, "of the good one", []string{"1", "2"}, texts(good.Events(), -1))
	if got := texts(bad.Events(), -1); got != nil || bad.Lost() != 0 {
		t.Error(got, bad.Lost())
	}
}

func TestAPredicateHoldsNoLock(t *testing.T) {
	var b event.Bus
	var later *event.Subscription
	sub := b.Subscribe(t.Context(), func(e event.Event) bool {
		if e.Text == "1" {
			later = b.Subscribe(t.Context(), nil, newest)
			b.Publish(t.Context(), said("2"))
			return b.Listening()
		}
		return true
	}, newest)
	publish(t.Context(), &b, 1, 1)
	b.Close()
	same(t, "of the first", []string{"2", "1"}, texts(sub.Events(), -1))
	same(t, "of the later one", []string{"2"}, texts(later.Events(), -1))
}

func TestAReaderMayPublishAndSubscribeFromItsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b event.Bus
		sub := b.Subscribe(t.Context(), nil, block)
		publish(t.Context(), &b, 1, 1)
		n := 0
		for range sub.Events() {
			if n++; n == 10 {
				break
			}
			publish(t.Context(), &b, n, n)
			b.Subscribe(t.Context(), nil, oldest).Close()
		}
		if b.Listening() {
			t.Error("all have left")
		}
	})
}

// The only reader of a full subscription that blocks waits for itself: until a ctx ends.
func TestAReaderThatWaitsForItselfIsFreedByAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b event.Bus
		sub := b.Subscribe(t.Context(), nil, block)
		publish(t.Context(), &b, 1, 1)
		for range sub.Events() {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { synctest.Wait(); cancel() }()
			publish(ctx, &b, 2, 5)
			break
		}
		if sub.Lost() != 1 {
			t.Error(sub.Lost())
		}
	})
}

func TestPublishingAllocatesNothing(t *testing.T) {
	match := matching(t, "agent.run.*.stream.>")
	for _, n := range []int{0, 1, 100} {
		var b event.Bus
		for i := range n {
			b.Subscribe(t.Context(), match, []event.Policy{oldest, newest, {Full: event.DropNewest, Sample: 7}}[i%3])
		}
		publish(t.Context(), &b, 1, 10*event.DefaultBuffer) // the buffers have grown
		if allocs := testing.AllocsPerRun(1000, func() { b.Publish(t.Context(), said("x")) }); allocs != 0 {
			t.Errorf("with %d subscriptions an event takes %v allocations", n, allocs)
		}
	}
	var b event.Bus // and where somebody reads it
	sub := b.Subscribe(t.Context(), match, event.Policy{})
	pull, stop := iter.Pull(sub.Events())
	defer stop()
	if allocs := testing.AllocsPerRun(1000, func() {
		b.Publish(t.Context(), said("x"))
		if _, ok := pull(); !ok {
			t.Error("it ended")
		}
	}); allocs != 0 {
		t.Errorf("to publish and read takes %v allocations", allocs)
	}
}

func BenchmarkPublish(b *testing.B) {
	match := matching(b, "agent.run.*.stream.>")
	other := matching(b, "agent.run.another.>")
	for _, n := range []int{0, 1, 100} {
		for name, match := range map[string]func(event.Event) bool{"all": nil, "pattern": match, "other": other} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				var bus event.Bus
				for range n {
					bus.Subscribe(b.Context(), match, event.Policy{Full: event.DropOldest})
				}
				publish(b.Context(), &bus, 1, 2*event.DefaultBuffer) // the buffers are full, as they are of a slow reader
				e := said("word ")
				b.ReportAllocs()
				for b.Loop() {
					bus.Publish(b.Context(), e)
				}
			})
		}
	}
}

func BenchmarkPublishAndRead(b *testing.B) {
	var bus event.Bus
	sub := bus.Subscribe(b.Context(), nil, event.Policy{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range sub.Events() {
		}
	}()
	e := said("word ")
	b.ReportAllocs()
	for b.Loop() {
		bus.Publish(b.Context(), e)
	}
	bus.Close()
	<-done
}

func BenchmarkSubject(b *testing.B) {
	e := said("word ")
	b.ReportAllocs()
	for b.Loop() {
		_ = e.Subject()
	}
}

func BenchmarkMatch(b *testing.B) {
	match := matching(b, "agent.run.*.stream.*.model.*.delta")
	e := said("word ")
	b.ReportAllocs()
	for b.Loop() {
		_ = match(e)
	}
}

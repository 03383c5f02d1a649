package message_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"pgregory.net/rapid"
)

// The formats of these tests. In both, a message whose text is empty is nothing.
type (
	wireA struct{}
	wireB struct{}
)

func encodeA(m message.Message) []byte {
	if m.Text() == "" {
		return nil
	}
	return []byte("," + m.Text())
}

func encodeB(m message.Message) []byte { return bytes.ToUpper(encodeA(m)) }

// plain is what Encoded has to give, in one piece.
func plain(h message.History, i, j int, encode func(message.Message) []byte) string {
	var b []byte
	for _, m := range h.Messages()[i:j] {
		if !m.IsZero() {
			b = append(b, encode(m)...)
		}
	}
	return string(b)
}

func TestEncodedIsWhatItsMessagesAreWhateverBecameOfTheHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := 0
		draw := func(most int) (ms []message.Message) {
			for range rapid.IntRange(0, most).Draw(t, "messages") {
				switch said++; rapid.IntRange(0, 9).Draw(t, "kind") {
				case 0:
					ms = append(ms, message.Message{})
				case 1:
					ms = append(ms, message.User(""))
				case 2:
					ms = append(ms, message.User(strings.Repeat(fmt.Sprint("large", said), 2000)))
				default:
					ms = append(ms, message.User(fmt.Sprint("message ", said, strings.Repeat("x", rapid.IntRange(0, 2000).Draw(t, "length")))))
				}
			}
			return ms
		}
		all := []message.History{message.NewHistory(draw(120)...)}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			h := all[rapid.IntRange(0, len(all)-1).Draw(t, "from")]
			i := rapid.IntRange(0, h.Len()).Draw(t, "i")
			j := rapid.IntRange(i, h.Len()).Draw(t, "j")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				h = h.Slice(i, j)
			case 1:
				h = h.Edit(message.Edit{Head: draw(3), From: i, To: j, Tail: draw(3)})
			case 2:
				h = h.Append(draw(60)...)
			case 3:
				h = h.Append(draw(3)...)
			default:
			}
			all = append(all, h)
			for _, f := range []struct {
				format any
				encode func(message.Message) []byte
			}{{wireA{}, encodeA}, {wireB{}, encodeB}} {
				if rapid.Bool().Draw(t, "asked") {
					i := rapid.IntRange(0, h.Len()).Draw(t, "i")
					j := rapid.IntRange(i, h.Len()).Draw(t, "j")
					head := [][]byte{[]byte("head")}
					got := h.Encoded(head, i, j, f.format, f.encode)
					if string(bytes.Join(got[1:], nil)) != plain(h, i, j, f.encode) {
						t.Fatalf("%T, messages %d to %d of %d: other bytes", f.format, i, j, h.Len())
					}
					for _, b := range got[1:] {
						if len(b) == 0 || len(b) != cap(b) {
							t.Fatalf("a piece of %d bytes, with room for %d", len(b), cap(b))
						}
					}
				}
			}
		}
		for _, h := range all { // nothing that was said has changed
			if string(bytes.Join(h.Encoded(nil, 0, h.Len(), wireA{}, encodeA), nil)) != plain(h, 0, h.Len(), encodeA) {
				t.Fatalf("%d messages: other bytes", h.Len())
			}
		}
	})
}

// talk makes a conversation of n messages, which were sent again and again as it grew.
func talk(h message.History, n int, encode func(message.Message) []byte) message.History {
	for i := h.Len(); i < n; i++ {
		h = h.Append(message.User(fmt.Sprintf("message %06d %s", i, strings.Repeat("x", 200))))
		h.Encoded(nil, 0, h.Len(), wireA{}, encode)
	}
	return h
}

func TestAMessageOfALongHistoryIsEncodedOnceWhoeverSharesIt(t *testing.T) {
	encoded := 0
	encode := func(m message.Message) []byte { encoded++; return encodeA(m) }
	h := talk(message.History{}, 500, encode)
	talk(h.Slice(0, 400), 410, encode)
	h.Edit(message.Edit{Head: []message.Message{message.User("sum")}, From: 100, To: 500}).Encoded(nil, 0, 401, wireA{}, encode)
	talk(h, 510, encode)
	talk(h, 510, encode) // a fork
	for _, m := range h.All() {
		m.Encoded(wireA{}, encode)
	}
	if want := 500 + 10 + 1 + 10 + 10; encoded != want {
		t.Errorf("%d encodings, want %d", encoded, want)
	}
}

func TestALongHistoryHasFewPieces(t *testing.T) {
	h := talk(message.History{}, 4000, encodeA)
	size := len(plain(h, 0, h.Len(), encodeA))
	few := size>>15 + 6
	fork := talk(talk(h.Slice(0, 3000), 3000, encodeA).Append(h.Messages()[3000:3900]...), 4000, encodeA)
	for name, of := range map[string]message.History{
		"as it grew":            h,
		"an earlier view":       h.Append(message.User("x")).Slice(0, 4000).Append(message.User("y")),
		"a fork":                talk(talk(h, 4010, encodeA).Edit(message.Edit{To: 4000}), 4050, encodeA),
		"an edit":               h.Edit(message.Edit{Head: []message.Message{message.User("sum")}, From: 10, To: 4000}),
		"another fork, of half": fork,
	} {
		if n := len(of.Encoded(nil, 0, of.Len(), wireA{}, encodeA)); n > few+4 {
			t.Errorf("%s: %d pieces for %d bytes in %d messages", name, n, size, of.Len())
		}
	}
	loaded := message.NewHistory(h.Messages()...)
	if n := len(loaded.Encoded(nil, 0, loaded.Len(), wireB{}, encodeB)); n > few {
		t.Errorf("at once: %d pieces", n)
	}
	large := bytes.Repeat([]byte("x"), 100_000)
	with := h.Append(message.User("large"), message.User("y"))
	got := with.Encoded(nil, 0, 4002, wireA{}, func(m message.Message) []byte {
		if m.Text() == "large" {
			return large
		}
		return encodeA(m)
	})
	if &got[len(got)-2][0] != &large[0] {
		t.Error("a large message was copied")
	}
}

// A run says what it sends to a history of its own, and to that of its session, which the next run begins with.
func TestWhatRunsOfASessionSayLiesSideBySide(t *testing.T) {
	session := talk(message.History{}, 60, encodeA)
	for run := range 100 {
		own := session
		for step := range 20 {
			m := message.User(fmt.Sprintf("run %06d step %06d %s", run, step, strings.Repeat("x", 200)))
			session, own = session.Append(m), own.Append(m)
			own.Encoded(nil, 0, own.Len(), wireA{}, encodeA)
		}
	}
	size := len(plain(session, 0, session.Len(), encodeA))
	if n := len(session.Encoded(nil, 0, session.Len(), wireA{}, encodeA)); n > size>>15+10 {
		t.Errorf("%d pieces for %d bytes in %d messages", n, size, session.Len())
	}
}

func TestWhatIsSentAgainCostsNoAllocationAtAnyLength(t *testing.T) {
	pieces := make([][]byte, 0, 200)
	for _, n := range []int{20, 400, 4000} {
		h := talk(message.History{}, n, encodeA)
		if got := testing.AllocsPerRun(20, func() { h.Encoded(pieces, 0, n, wireA{}, encodeA) }); got != 0 {
			t.Errorf("%d messages: %.0f allocations", n, got)
		}
	}
}

// What encodes gives bytes that are there already, so that all that is allocated is for keeping them side by side.
func TestAShortHistoryKeepsNoRoomAndALongOneLittle(t *testing.T) {
	for _, c := range []struct {
		messages int
		most     func(size int) int
	}{
		{48, func(int) int { return 0 }},
		{100, func(size int) int { return 2*size + 8000 }},
		{4000, func(size int) int { return size + size/4 }},
	} {
		least := math.MaxInt
		for range 6 {
			var h message.History
			encodings := map[message.Message][]byte{}
			for i := range c.messages {
				m := message.User(fmt.Sprint(i))
				h, encodings[m] = h.Append(m), bytes.Repeat([]byte("x"), 250)
			}
			encode := func(m message.Message) []byte { return encodings[m] }
			pieces := make([][]byte, 0, 200)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for n := 1; n <= h.Len(); n++ {
				h.Encoded(pieces, 0, n, wireA{}, encode)
			}
			runtime.ReadMemStats(&after)
			least = min(least, int(after.TotalAlloc-before.TotalAlloc))
		}
		if most := c.most(250 * c.messages); least > most {
			t.Errorf("%d messages: %d bytes to keep %d, want at most %d", c.messages, least, 250*c.messages, most)
		}
	}
}

func TestAHistoryIsSentByManyAtOnce(t *testing.T) {
	h := talk(message.History{}, 60, encodeA)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			of, format, encode := h, any(wireA{}), encodeA
			if i%2 == 1 {
				format, encode = wireB{}, encodeB
			}
			for k := range 60 {
				of = of.Append(message.User(fmt.Sprint(i, " says ", k)))
				if got := string(bytes.Join(of.Encoded(nil, k, of.Len(), format, encode), nil)); got != plain(of, k, of.Len(), encode) {
					t.Errorf("%d: other bytes", i)
				}
				if got := string(bytes.Join(h.Encoded(nil, 0, h.Len(), format, encode), nil)); got != plain(h, 0, h.Len(), encode) {
					t.Errorf("%d: other bytes of what all have", i)
				}
			}
		})
	}
	wg.Wait()
}

func TestNobodyGetsWhatIsBehindAHistory(t *testing.T) {
	for _, n := range []int{5, 100} {
		h := talk(message.History{}, n, encodeA)
		talk(h, n+1, encodeA)
		for _, part := range [][2]int{{0, n + 1}, {n + 1, n + 1}, {3, 2}, {-1, 2}} {
			for name, get := range map[string]func(){
				"Encoded": func() { h.Encoded(nil, part[0], part[1], wireA{}, encodeA) },
				"Slice":   func() { h.Slice(part[0], part[1]) },
			} {
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s: %d messages have a part from %d up to %d", name, n, part[0], part[1])
						}
					}()
					get()
				}()
			}
		}
	}
}

func TestAHistoryKnowsWhatItsMessagesHave(t *testing.T) {
	file := message.New(message.RoleUser, message.File{MIME: "a/b", URL: "u"})
	result := message.Results(message.ToolResult{Call: "c", Files: []message.File{{MIME: "a/b", URL: "u"}}})
	extra := message.New(message.RoleUser, message.Text{Text: "a", Origin: message.Origin{Provider: "p", Extra: "{}"}})
	base := message.NewHistory(message.User("a"))
	for name, c := range map[string]struct {
		h                  message.History
		zero, files, extra bool
	}{
		"nothing":             {base, false, false, false},
		"the empty one":       {message.History{}, false, false, false},
		"a file":              {base.Append(file), false, true, false},
		"a file, then others": {base.Append(file).Append(message.User("b")), false, true, false},
		"a result with one":   {base.Append(result), false, true, false},
		"an extra":            {base.Append(extra), false, false, true},
		"the zero Message":    {base.Append(message.Message{}), true, false, false},
		"all, in a part":      {base.Append(message.Message{}, file, extra).Slice(1, 4), true, true, true},
		"a fork":              {base.Append(message.User("c")), false, false, false},
		"what an edit keeps":  {base.Append(file, extra).Edit(message.Edit{From: 0, To: 2}), false, true, false},
		"what an edit adds":   {base.Edit(message.Edit{Head: []message.Message{extra}, From: 0, To: 1}), false, false, true},
	} {
		if c.h.HasZero() != c.zero || c.h.HasFiles() != c.files || c.h.HasExtra() != c.extra {
			t.Errorf("%s: %t, %t, %t", name, c.h.HasZero(), c.h.HasFiles(), c.h.HasExtra())
		}
	}
}

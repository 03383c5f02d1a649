package journaltest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// big gives a text of about n bytes that is easily spoiled, another one for each name.
func big(name string, n int) string {
	piece := name + ": \"text\"\\ with \\u0022 and\n\x00 more — 好 \u2028 <&> {\"a\":\"b\"}, "
	return strings.Repeat(piece, n/len(piece)+1)
}

// A store may keep large contents apart from their entries, and once for several. That is its own affair as long as nobody can tell.
var larges = []check{
	{"a string of 5 MB comes back byte for byte", func(t *testing.T, s journal.Store) {
		text := big("one", 5<<20)
		file := message.File{MIME: "image/png", Data: text}
		want := []journal.Entry{
			said(text),
			{Data: journal.ToolFinished{Call: "c", Name: "write", Content: text, Files: []message.File{file}, Outcome: journal.OutcomeOK}},
			{Data: journal.RunStarted{Agent: "x", Owner: "o", Attempt: 1, Inputs: map[string]any{big("key", 20_000): big("value", 20_000)}}},
		}
		for i := range want {
			want[i].Time = time.Unix(int64(i), 0)
		}
		add(t, s, "a", 0, want...)
		same(t, "a", 0, read(t, s, "a", 0), want)
	}},
	{"lengths around every power of two come back", func(t *testing.T, s journal.Store) {
		var want []string
		for n := 1 << 8; n <= 1<<17; n *= 2 {
			for d := -3; d <= 3; d++ {
				want = append(want, strings.Repeat("x", n+d), strings.Repeat("\"", n/2+d))
			}
		}
		talk(t, s, "a", 0, want...)
		holds(t, s, "a", want...)
		for _, after := range []int64{1, int64(len(want) / 2)} {
			if got := heard(t, s, "a", after); len(got) != len(want)-int(after) || got[0] != want[after] {
				t.Errorf("after %d: %d texts", after, len(got))
			}
		}
	}},
	{"what two sessions have outlives either", func(t *testing.T, s journal.Store) {
		text := big("one", 30_000)
		talk(t, s, "a", 0, text)
		talk(t, s, "b", 0, "x", text)
		talk(t, s, "c", 0, text)
		drop(t, s, "a")
		holds(t, s, "b", "x", text)
		holds(t, s, "c", text)
		drop(t, s, "c")
		holds(t, s, "b", "x", text)
		drop(t, s, "b")
	}},
	{"what is twice in an append is there twice", func(t *testing.T, s journal.Store) {
		text, other := big("one", 30_000), big("other", 30_000)
		talk(t, s, "a", 0, text, other, text)
		add(t, s, "b", 0, said(other), journal.Entry{Run: "r1", Data: journal.Said{Message: message.New(message.RoleUser, message.Text{Text: text}, message.Text{Text: text})}})
		talk(t, s, "c", 0, text)
		holds(t, s, "b", other, text+text)
		drop(t, s, "a")
		holds(t, s, "b", other, text+text)
		holds(t, s, "c", text)
		drop(t, s, "b")
		holds(t, s, "c", text)
	}},
	{"a fork's large contents outlive its parent, and the parent's its fork", func(t *testing.T, s journal.Store) {
		text, own := big("one", 30_000), big("own", 30_000)
		talk(t, s, "p", 0, text, "x", own)
		fork(t, s, "f", "p", 2, own)
		fork(t, s, "g", "f", 1, "y")
		drop(t, s, "p")
		holds(t, s, "f", text, "x", "[session.created]", own)
		holds(t, s, "g", text, "[session.created]", "y")
		drop(t, s, "f")
		holds(t, s, "g", text, "[session.created]", "y")
		drop(t, s, "g")
		talk(t, s, "p", 0, text)
		fork(t, s, "f", "p", 1, text)
		drop(t, s, "f")
		holds(t, s, "p", text)
	}},
	{"a fork of a session with large contents is who its parent was", func(t *testing.T, s journal.Store) {
		agent, user := big("agent", 20_000), big("user", 20_000)
		agent, user = strings.ReplaceAll(agent, "\x00", ""), strings.ReplaceAll(user, "\x00", "")
		add(t, s, "p", 0, run(agent, user), said(big("one", 30_000)), run("later", "later"))
		fork(t, s, "f", "p", 2)
		for _, i := range infos(t, s, journal.Query{Agent: agent}) {
			if i.Session != "f" || i.User != user {
				t.Errorf("%s has user %.20q", i.Session, i.User)
			}
		}
		if got := names(t, s, journal.Query{Agent: agent, User: user}); len(got) != 1 {
			t.Errorf("%q are of that agent and user", got)
		}
	}},
	{"what was deleted can be appended again", func(t *testing.T, s journal.Store) {
		text := big("one", 30_000)
		for range 3 {
			talk(t, s, "a", 0, text, text)
			holds(t, s, "a", text, text)
			drop(t, s, "a")
		}
		talk(t, s, "b", 0, text)
		holds(t, s, "b", text)
	}},
	{"a refused append leaves large contents as they were", func(t *testing.T, s journal.Store) {
		text, other := big("one", 30_000), big("other", 30_000)
		talk(t, s, "a", 0, text)
		for range 3 {
			if err := s.Append(context.Background(), "a", 0, said(text), said(other)); err == nil {
				t.Error("an append after entry 0 of 1 was let in")
			}
		}
		talk(t, s, "b", 0, other)
		drop(t, s, "b")
		holds(t, s, "a", text)
	}},
	{"appends and deletions of the same content at once lose nothing", func(t *testing.T, s journal.Store) {
		texts := []string{big("one", 20_000), big("two", 20_000), big("three", 20_000)}
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				name := fmt.Sprint("s", i)
				want := []string{"x", texts[i%3], texts[i%3]}
				for range 30 {
					entries := make([]journal.Entry, len(want))
					for j, text := range want {
						entries[j] = said(text)
					}
					if err := s.Append(context.Background(), name, 0, entries...); err != nil {
						t.Errorf("append: %v", err)
						return
					}
					var got []string
					for e, err := range s.Read(context.Background(), name, 0) {
						if err != nil {
							t.Errorf("read: %v", err)
							return
						}
						got = append(got, e.Data.(journal.Said).Message.Text())
					}
					if strings.Join(got, "") != strings.Join(want, "") {
						t.Errorf("%s has %d texts, not what was appended", name, len(got))
					}
					if err := s.Delete(context.Background(), name); err != nil {
						t.Errorf("delete: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
	}},
}

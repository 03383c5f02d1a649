package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// Where there is no terminal there are few lines: one after ten seconds, and then whenever it took twice as long.
func TestWithoutATerminalALongWaitIsAFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		l := newLive(streams{strings.NewReader(""), &out, &errs})
		p := newProgress(l.out, l.out, false)
		l.shows(p.line)
		key := journal.Key{Op: "model", ID: "1"}
		tell := func(e event.Event) { l.event(e, func() { p.event(e) }) }
		tell(event.Event{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}, Data: journal.ToolStarted{Call: journal.Called{ID: "c", Name: "glob"}}, Time: time.Now()}})
		time.Sleep(9 * time.Second)
		tell(event.Event{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}, Data: journal.ToolFinished{Call: "c", Name: "glob", Content: "two"}, Time: time.Now()}})
		tell(event.Event{Entry: journal.Entry{Run: "r", Key: key, Data: journal.ModelStarted{}}})
		time.Sleep(50 * time.Second)
		tell(event.Event{Entry: journal.Entry{Run: "r", Key: key}, Delta: event.Retry, Text: "busy", Wait: 40 * time.Second})
		time.Sleep(15 * time.Second)
		l.logger().Info(mcp.LogStarts, "server", "wiki")
		time.Sleep(11 * time.Second)
		l.logger().Info(mcp.LogStarted, "server", "wiki")
		tell(event.Event{Entry: journal.Entry{Run: "r", Key: key}, Delta: event.TextDelta, Text: "Done."})
		time.Sleep(time.Minute)
		l.end()
		l.end()
		want := `● glob
  ✓ glob (9 s): two
… waiting for the model: 10 s
… waiting for the model: 20 s
… waiting for the model: 40 s
retry: busy (again in 40 s)
… trying again in 30 s
… trying again in 20 s
… the MCP server wiki starts: 10 s
Done.`
		if got := errs.String(); got != want || out.Len() > 0 {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestTheLastLineMakesRoom(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &screen{status: &out}
	w := s.writer(&out)
	step := func(want string, do func()) {
		t.Helper()
		out.Reset()
		if do(); out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	write := func(text string) {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	step(clearLine+"a", func() { s.show("a") })
	step("", func() { s.show("a") }) // it stands there
	step(clearLine+"b", func() { s.show("b") })
	step(clearLine+"one\n", func() { write("one\n") })
	step("two\n", func() { write("two\n") })
	step("words", func() { write("words") })
	step("", func() { s.show("c") }) // behind words there is no room
	step(" end\n", func() { write(" end\n") })
	step(clearLine+"c", func() { s.show("c") })
	step(clearLine, func() { s.hold() }) // a question stands there
	step("", func() { s.show("d"); write("later\n") })
	step("later\n", func() { s.release() })
	step(clearLine+"d", func() { s.show("d") })
	step(clearLine, func() { s.show("") })
	step("", func() { s.show("") })
}

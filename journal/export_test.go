package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"pgregory.net/rapid"
)

// stores are an empty one of each kind.
func stores(t *testing.T) map[string]journal.Store {
	t.Helper()
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "journal.db"))
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	return map[string]journal.Store{"memory": journal.Memory(), "sqlite": file}
}

// toolWork is a session with two runs: calls that are answered in another order, one refused, one that failed, and one that a kill cut off.
func toolWork() []journal.Entry {
	call := func(id, name, input string) message.ToolCall {
		return message.ToolCall{ID: id, Name: name, Input: input}
	}
	asks := func(run, step, text string, cs ...message.ToolCall) []journal.Entry {
		key := journal.Key{Op: "model", ID: step}
		return []journal.Entry{
			{Run: run, Key: key, Data: journal.ModelStarted{Model: "m"}},
			{Run: run, Key: key, Data: journal.ModelFinished{Message: message.Assistant(text, cs...), Usage: model.Usage{Input: 3, Output: 2}, Stop: model.StopTools}},
		}
	}
	begin := func(run string, c message.ToolCall) journal.Entry {
		return journal.Entry{Run: run, Key: journal.Key{Op: "tool", ID: c.ID}, Data: journal.ToolStarted{Call: journal.CalledOf(c)}}
	}
	end := func(run string, c message.ToolCall, how journal.Outcome) journal.Entry {
		return journal.Entry{Run: run, Key: journal.Key{Op: "tool", ID: c.ID}, Data: journal.ToolFinished{
			Call: c.ID, Name: c.Name, Content: "it is " + string(how), IsError: how != journal.OutcomeOK, Outcome: how,
		}}
	}
	a, b := call("a", "write", `{"file_path":"a.txt","content":"<a>"}`), call("b", "bash", `{"command":"make"}`)
	c, d := call("c", "edit", `{"file_path":"./a.txt"}`), call("d", "edit", `{"file_path":"gone.txt"}`)
	e, f := call("e", "rm", `{}`), call("f", "write", `{"file_path":"dir/f.txt"}`)
	all := [][]journal.Entry{
		{{Data: journal.SessionCreated{}}, started("r1", 1), said("make a file")},
		asks("r1", "1", "I do.", a, b),
		{begin("r1", a), begin("r1", b), end("r1", b, journal.OutcomeError), end("r1", a, journal.OutcomeOK)},
		asks("r1", "2", "", c, d, e),
		{keyed("judge", "e", journal.ToolJudged{Call: "e", Verdict: "deny", Reason: "no"})},
		{begin("r1", c), end("r1", c, journal.OutcomeOK), begin("r1", d), end("r1", d, journal.OutcomeError)},
		asks("r1", "3", "done"),
		{finished(journal.RunFinished{Status: "completed", Committed: true})},
		{started("r2", 1), {Run: "r2", Data: journal.Said{Message: message.User("another")}}},
		asks("r2", "1", "", f),
		{begin("r2", f)},
	}
	var entries []journal.Entry
	for _, some := range all {
		entries = append(entries, some...)
	}
	for i := range entries {
		entries[i].Time = time.Date(2026, 2, 3, 4, 5, i, 6789, time.UTC)
	}
	return entries
}

func write(t *testing.T, s journal.Store, session string, entries ...journal.Entry) {
	t.Helper()
	must(t, s.Append(t.Context(), session, 0, entries...))
}

func export(t testing.TB, s journal.Store, session string) string {
	t.Helper()
	var b strings.Builder
	must(t, journal.Export(t.Context(), s, session, &b))
	return b.String()
}

func load(t testing.TB, s journal.Store, lines, as string) string {
	t.Helper()
	name, err := journal.Import(t.Context(), s, strings.NewReader(lines), as)
	must(t, err)
	return name
}

// sessions are the names of all that a store has.
func sessions(t testing.TB, s journal.Store) (names []string) {
	t.Helper()
	for i, err := range s.Sessions(t.Context(), journal.Query{}) {
		must(t, err)
		names = append(names, i.Session)
	}
	return names
}

func TestWhatWasExportedComesBackWithTheSameBytes(t *testing.T) {
	for kind, from := range stores(t) {
		write(t, from, "s", toolWork()...)
		lines := export(t, from, "s")
		for other, to := range stores(t) {
			if got := load(t, to, lines, ""); got != "s" {
				t.Errorf("it is called %q", got)
			}
			if d := cmp.Diff(lines, export(t, to, "s")); d != "" {
				t.Errorf("from %s to %s: -exported +exported again\n%s", kind, other, d)
			}
			if d := cmp.Diff(open(t, from).State(), open(t, to).State(), states); d != "" {
				t.Errorf("from %s to %s: the session is another one: -there +here\n%s", kind, other, d)
			}
			load(t, to, lines, "renamed")
			if got := strings.ReplaceAll(export(t, to, "renamed"), `"session":"renamed"`, `"session":"s"`); got != lines {
				t.Errorf("renamed, more than its name differs: %s", cmp.Diff(lines, got))
			}
		}
	}
}

func TestAnyEntriesComeBackWithTheSameBytes(t *testing.T) {
	for kind, s := range stores(t) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			entries := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) journal.Entry {
				return journal.Entry{
					Time: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")),
					Run:  anyText().Draw(t, "run"),
					Key:  journal.Key{Op: fmt.Sprint("op", n, rapid.Uint64().Draw(t, "op")), ID: anyText().Draw(t, "id")},
					Data: anyData().Filter(func(d journal.Data) bool { return d.Kind() != "session.created" }).Draw(t, "data"),
				}
			}), 1, 5, func(e journal.Entry) journal.Key { return e.Key }).Draw(rt, "entries")
			n++
			name := fmt.Sprint("s", n)
			must(t, s.Append(t.Context(), name, 0, entries...))
			lines := export(t, s, name)
			must(t, s.Delete(t.Context(), name))
			load(t, s, lines, "")
			if again := export(t, s, name); again != lines {
				rt.Fatalf("%s: %s", kind, cmp.Diff(lines, again))
			}
		})
	}
}

const exported = "testdata/export.jsonl"

// A fork of a fork: every line bears the session's own name, and two of them say whence the lines before came.
func TestAForkIsExportedWhole(t *testing.T) {
	at := time.Date(2026, 2, 4, 0, 0, 0, 0, time.UTC)
	for kind, s := range stores(t) {
		write(t, s, "first", toolWork()...)
		must(t, s.Append(t.Context(), "second", 9, journal.Entry{Time: at, Data: journal.SessionCreated{Parent: "first", At: 9}}, journal.Entry{Time: at, Data: journal.Said{Message: message.User("else")}}))
		must(t, s.Append(t.Context(), "third", 11, journal.Entry{Time: at.Add(1), Data: journal.SessionCreated{Parent: "second", At: 11}}))
		lines := export(t, s, "third")
		if *update {
			must(t, os.WriteFile(exported, []byte(lines), 0o600))
		}
		want, err := os.ReadFile(exported)
		must(t, err)
		if d := cmp.Diff(string(want), lines); d != "" {
			t.Errorf("%s: -golden +exported\n%s", kind, d)
		}
		for other, to := range stores(t) { // which have none of the parents
			load(t, to, lines, "")
			if d := cmp.Diff(lines, export(t, to, "third")); d != "" {
				t.Errorf("from %s to %s: -exported +exported again\n%s", kind, other, d)
			}
			for i, err := range to.Sessions(t.Context(), journal.Query{}) {
				if must(t, err); i.Session != "third" || i.Parent != "second" || i.Seq != 12 || !i.Created.Equal(at.Add(1)) {
					t.Errorf("%s lists %+v", other, i)
				}
			}
		}
	}
}

func TestAForkThatSharesNothingIsExportedAsASessionOfItsOwn(t *testing.T) {
	for kind, s := range stores(t) {
		write(t, s, "p", said("hi"))
		must(t, s.Append(t.Context(), "f", 0, journal.Entry{Data: journal.SessionCreated{Parent: "p"}}, said("ho")))
		lines := export(t, s, "f")
		to := journal.Memory()
		load(t, to, lines, "")
		if again := export(t, to, "f"); again != lines || strings.Contains(lines, "parent") {
			t.Errorf("%s: %s, then %s", kind, lines, again)
		}
	}
}

func TestAKilledRunIsImportedAsItWasAndCanBeResumed(t *testing.T) {
	from := journal.Memory()
	write(t, from, "s", toolWork()...)
	lines := export(t, from, "s")
	for kind, to := range stores(t) {
		load(t, to, lines, "")
		l := open(t, to)
		if st := l.State(); st.Run != "r2" || st.Status != "" || !st.Created.Equal(toolWork()[0].Time) {
			t.Errorf("%s: %+v", kind, st)
		}
		if out, begun := l.Recorded(journal.Key{Op: "tool", ID: "f"}); out != nil || !begun {
			t.Errorf("%s: the open call has outcome %v, begun %v", kind, out, begun)
		}
		must(t, l.Drive(t.Context(), "new", journal.Entry{Run: "r2", Data: journal.Resumed{Owner: "new"}}))
	}
}

const (
	openLine = `{"v":1,"seq":1,"time":"2026-01-01T00:00:00Z","session":"s","kind":"session.created","data":{}}`
	runLine  = `{"v":1,"seq":2,"time":"2026-01-01T00:00:00Z","session":"s","run":"r","kind":"run.started","data":{"agent":"a","owner":"o","attempt":1}}`
)

func TestAFileThatIsNotAWholeSessionIsRefusedWithItsLine(t *testing.T) {
	line := func(seq int, rest string) string {
		return fmt.Sprintf(`{"v":1,"seq":%d,"time":"2026-01-01T00:00:00Z","session":"s",%s}`, seq, rest)
	}
	started, done := `"kind":"model.started","key":{"op":"model","id":"1"},"data":{}`, `"kind":"model.finished","key":{"op":"model","id":"1"},"data":{"message":{"role":"assistant","parts":[]},"usage":{}}`
	fork := func(parent string, at int) string {
		return fmt.Sprintf(`"kind":"session.created","data":{"parent":%q,"at":%d}`, parent, at)
	}
	for name, c := range map[string]struct {
		lines []string
		says  []string
	}{
		"nothing":                     {nil, []string{"nothing to read"}},
		"no JSON":                     {[]string{openLine, "hello"}, []string{"line 2:", "invalid character 'h'"}},
		"a line cut off":              {[]string{openLine, runLine[:50]}, []string{"line 2:", "unexpected end"}},
		"two entries on a line":       {[]string{openLine + openLine}, []string{"line 1:", "invalid character '{'"}},
		"an empty line":               {[]string{openLine, "", runLine}, []string{"line 2:", "empty"}},
		"other JSON":                  {[]string{`{"a":1}`}, []string{"line 1:", "not an entry"}},
		"a newer version":             {[]string{strings.Replace(openLine, `"v":1`, `"v":2`, 1)}, []string{"line 1:", "version 2", "newer"}},
		"an unknown kind":             {[]string{openLine, line(2, `"kind":"dreamt","data":{}`)}, []string{"line 2:", `"dreamt"`}},
		"wrong data":                  {[]string{openLine, line(2, `"kind":"resumed","data":{"owner":1}`)}, []string{"line 2:", "resumed"}},
		"a gap":                       {[]string{openLine, strings.Replace(runLine, `"seq":2`, `"seq":3`, 1)}, []string{"line 2:", "entry 3", "want entry 2"}},
		"an entry twice":              {[]string{openLine, openLine}, []string{"line 2:", "want entry 2"}},
		"a beginning in the middle":   {[]string{runLine}, []string{"line 1:", "entry 2", "want entry 1"}},
		"a negative number":           {[]string{strings.Replace(openLine, `"seq":1`, `"seq":-1`, 1)}, []string{"line 1:", "want entry 1"}},
		"two sessions":                {[]string{openLine, strings.Replace(runLine, `"s"`, `"t"`, 1)}, []string{"line 2:", `"t"`, `"s"`, "one session"}},
		"no session":                  {[]string{strings.Replace(openLine, `"session":"s",`, "", 1)}, []string{"line 1:", "which session"}},
		"no time":                     {[]string{strings.Replace(openLine, `"time":"2026-01-01T00:00:00Z",`, "", 1)}, []string{"line 1:", "no time"}},
		"a second beginning":          {[]string{openLine, line(2, `"kind":"session.created","data":{}`)}, []string{"line 2:", "only entry 1"}},
		"a fork of another place":     {[]string{openLine, line(2, fork("p", 7))}, []string{"line 2:", `"p" at 7`, "want 1"}},
		"a fork without its prefix":   {[]string{line(1, fork("p", 0))}, []string{"line 1:", `"p"`, "begins with the entries"}},
		"an intent twice":             {[]string{openLine, runLine, line(3, started), line(4, started)}, []string{"line 4:", "model/1", "already"}},
		"an outcome twice":            {[]string{openLine, runLine, line(3, done), line(4, done)}, []string{"line 4:", "model/1", "already"}},
		"a line over 64 MiB":          {[]string{openLine, `{"v":` + strings.Repeat(" ", 64<<20)}, []string{"line 2:", "67108864"}},
		"a line of 64 MiB and a byte": {[]string{openLine, strings.Repeat(" ", 64<<20+1), runLine}, []string{"line 2:", "67108864"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := journal.Memory()
			got, err := journal.Import(t.Context(), s, strings.NewReader(strings.Join(c.lines, "\n")), "")
			if got != "" || errdefs.Of(err) != errdefs.Validation || errdefs.Conflict.Is(err) || errdefs.NotAvailable.Is(err) {
				t.Fatalf("%q, %v (%v)", got, err, errdefs.Of(err))
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %q", want, err)
				}
			}
			if left := sessions(t, s); left != nil {
				t.Errorf("it left %q", left)
			}
		})
	}
}

func TestALineAlmostAtTheLimitIsImported(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a few hundred megabytes")
	}
	s := journal.Memory()
	long := strings.Replace(openLine, `"session.created","data":{}`, `"prepared","data":{"system":"`+strings.Repeat("x", 64<<20-200)+`"}`, 1)
	load(t, s, long, "")
	if e := open(t, s).Seq(); e != 1 {
		t.Errorf("%d entries", e)
	}
}

func TestKeysOfAnotherAttemptOrForkAreFree(t *testing.T) {
	for name, between := range map[string]journal.Entry{
		"attempt": started("r1", 2), "run": started("r2", 1), "fork": {Data: journal.SessionCreated{Parent: "p", At: 3}},
	} {
		from, to := journal.Memory(), journal.Memory()
		entries := []journal.Entry{started("r1", 1), said("hi"), reply("1", "x"), between}
		if name == "fork" {
			entries = append(entries, started("r2", 1))
		}
		write(t, from, "s", append(entries, reply("1", "y"))...)
		load(t, to, export(t, from, "s"), "")
	}
}

func TestASessionThatIsThereIsNotWrittenOver(t *testing.T) {
	for kind, s := range stores(t) {
		write(t, s, "s", toolWork()...)
		lines := export(t, s, "s")
		for _, as := range []string{"", "s"} {
			if _, err := journal.Import(t.Context(), s, strings.NewReader(lines), as); errdefs.Of(err) != errdefs.Conflict || !strings.Contains(err.Error(), "--as NAME") {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if again := export(t, s, "s"); again != lines {
			t.Errorf("%s: it changed: %s", kind, again)
		}
	}
}

// short takes so many bytes and then no more.
type short int

func (s *short) Write(b []byte) (int, error) {
	if *s -= short(len(b)); *s < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

func TestATransferThatFailsSaysSoAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	good := journal.Memory()
	write(t, good, "s", toolWork()...)
	lines := export(t, good, "s")
	none := journal.Memory()
	imported := func(ctx context.Context, s journal.Store, r io.Reader) error {
		_, err := journal.Import(ctx, s, r, "")
		return err
	}
	var out bytes.Buffer
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"export: no session":        {journal.Export(t.Context(), none, "s", &out), errdefs.NotFound},
		"export: the store fails":   {journal.Export(t.Context(), &failing{Store: good, read: true}, "s", &out), errDisk},
		"export: the store skips":   {journal.Export(t.Context(), &failing{Store: good, gap: true}, "s", &out), errdefs.Internal},
		"export: the writer fails":  {journal.Export(t.Context(), good, "s", new(short)), errDisk},
		"export: cancelled":         {journal.Export(ctx, good, "s", &out), context.Canceled},
		"import: the reader fails":  {imported(t.Context(), none, io.MultiReader(strings.NewReader(lines), iotest.ErrReader(errDisk))), errDisk},
		"import: the store fails":   {imported(t.Context(), &failing{Store: none, write: true}, strings.NewReader(lines)), errDisk},
		"import: cancelled":         {imported(ctx, none, strings.NewReader("not read any more")), context.Canceled},
		"import: byte by byte fits": {imported(t.Context(), journal.Memory(), iotest.OneByteReader(strings.NewReader(lines))), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if left := sessions(t, none); left != nil || out.Len() > 0 {
		t.Errorf("they left %q and %q", left, &out)
	}
}

func FuzzImport(f *testing.F) {
	file, err := os.ReadFile(exported)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, "")
	f.Add([]byte(openLine+"\n"+runLine), "as")
	f.Add([]byte(openLine+"\n"+openLine), "")
	all, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all, "")
	f.Fuzz(func(t *testing.T, lines []byte, as string) {
		s := journal.Memory()
		name, err := journal.Import(t.Context(), s, bytes.NewReader(lines), as)
		if err != nil {
			if left := sessions(t, s); left != nil || errdefs.Of(err) != errdefs.Validation {
				t.Fatalf("%v left %q", err, left)
			}
			return
		}
		first := export(t, s, name)
		if n := strings.Count(first, "\n"); n != bytes.Count(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"))+1 {
			t.Fatalf("%d lines of\n%s", n, lines)
		}
		to := journal.Memory()
		if again := export(t, to, load(t, to, first, "")); again != first {
			t.Fatalf("the bytes moved: %s", cmp.Diff(first, again))
		}
	})
}

func ExampleExport() {
	ctx, here, there := context.Background(), journal.Memory(), journal.Memory()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_ = here.Append(ctx, "talk", 0, journal.Entry{Time: at, Data: journal.SessionCreated{}}, journal.Entry{Time: at, Data: journal.Parked{Cause: "shutdown"}})

	var file bytes.Buffer
	_ = journal.Export(ctx, here, "talk", &file)
	fmt.Print(&file)
	name, err := journal.Import(ctx, there, &file, "copy")
	fmt.Println(name, err)
	// Output:
	// {"v":1,"seq":1,"time":"2026-01-01T00:00:00Z","session":"talk","kind":"session.created","data":{}}
	// {"v":1,"seq":2,"time":"2026-01-01T00:00:00Z","session":"talk","kind":"parked","data":{"cause":"shutdown"}}
	// copy <nil>
}

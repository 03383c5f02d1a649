package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/message"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write testdata again")

const golden = "testdata/v1.jsonl"

// samples are one entry of every kind, numbered.
func samples() []journal.Entry {
	all := journaltest.Samples()
	for i := range all {
		all[i].Seq, all[i].Session = int64(i)+1, "golden"
	}
	return all
}

func TestTheGoldenJournalIsReadForever(t *testing.T) {
	if *update {
		var b bytes.Buffer
		for _, e := range samples() {
			b.Write(encode(t, e))
			b.WriteByte('\n')
		}
		if err := os.WriteFile(golden, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var got []journal.Entry
	for l := range bytes.Lines(file) {
		var e journal.Entry
		if err := json.Unmarshal(l, &e); err != nil {
			t.Fatalf("%v\n%s", err, l)
		}
		if again := encode(t, e); string(again)+"\n" != string(l) {
			t.Errorf("written again it differs:\n got %s\nwant %s", again, l)
		}
		got = append(got, e)
	}
	if d := cmp.Diff(samples(), got, equal); d != "" {
		t.Errorf("-sample +golden\n%s\nIf fields were added, add them to a new corpus: this one stays.", d)
	}
}

// equal compares messages by their content, and nothing with empty as the same.
var equal = cmp.Options{
	cmp.Comparer(func(a, b message.Message) bool { return bytes.Equal(a.AppendJSON(nil), b.AppendJSON(nil)) }),
	cmp.Comparer(func(a, b message.History) bool {
		return a.Len() == b.Len() && bytes.Equal(transcript(a), transcript(b))
	}),
	cmpopts.EquateEmpty(),
}

func transcript(h message.History) (out []byte) {
	for _, m := range h.All() {
		out = append(m.AppendJSON(out), '\n')
	}
	return out
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func encode(t fataler, e journal.Entry) []byte {
	t.Helper()
	b, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(0, 10, -1), rapid.SampledFrom([]string{"", "<&>", "\u2028\x00\"\\", `\ufffd`, "\ufffd", "👋é", "2026"}))
}

func anyMessage() *rapid.Generator[message.Message] {
	return rapid.Custom(func(t *rapid.T) message.Message {
		text := anyText().Draw(t, "text")
		return rapid.SampledFrom([]message.Message{
			message.User(text), message.Assistant(text),
			message.Assistant(text, message.ToolCall{ID: text, Name: "n", Input: `{"a":1}`}),
			message.New(message.RoleUser, message.File{MIME: "a/b", Data: "\xff\x00" + text}),
			message.Results(message.ToolResult{Call: text, Name: "n", Content: text, IsError: true}),
		}).Draw(t, "message")
	})
}

// anyData generates any Data by its type: fields that are added later are covered too.
func anyData() *rapid.Generator[journal.Data] {
	value := rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]any{
			nil, true, 3, math.MinInt64, int64(7), 1.5, -3.0, 1e300, 0.1, 12345678901234567890.0, json.Number("9007199254740993"), "a\xff", []byte("\xff"), time.Second,
			anyText().Draw(t, "s"),
			[]string{"<&>"},
			[]int{1},
			anyMessage().Draw(t, "message"),
			[]any{1.0, nil, 1},
			map[string]any{"<k>": json.Number("18446744073709551615")},
			map[string]any{"$int64": 1},
			map[string]any(nil),
		}).Draw(t, "value")
	})
	c := rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[message.Message]():              anyMessage().AsAny(),
			reflect.TypeFor[json.RawMessage]():              rapid.SampledFrom([]json.RawMessage{nil, []byte(`{"to":"<b>","n":1.50}`), []byte(`"x"`)}).AsAny(),
			reflect.TypeFor[journal.Vars]():                 rapid.Map(rapid.MapOfN(anyText(), value, 0, 3), func(m map[string]any) journal.Vars { return m }).AsAny(),
			reflect.TypeFor[map[string][]message.Message](): rapid.MapOfN(anyText(), rapid.SliceOfN(anyMessage(), 0, 2), 0, 2).AsAny(),
			reflect.TypeFor[[]message.Message]():            rapid.SliceOfN(anyMessage(), 0, 2).AsAny(),
		},
		Kinds: map[reflect.Kind]*rapid.Generator[any]{reflect.String: anyText().AsAny()},
		Fields: map[reflect.Type]map[string]*rapid.Generator[any]{
			reflect.TypeFor[message.File](): {"Data": rapid.SampledFrom([]string{"", "\xff\x00", "text"}).AsAny()},
		},
	}
	all := []*rapid.Generator[journal.Data]{
		of[journal.SessionCreated](c), of[journal.RunStarted](c), of[journal.Resumed](c), of[journal.Said](c), of[journal.Seeded](c), of[journal.Prepared](c),
		of[journal.ModelStarted](c), of[journal.ModelFinished](c), of[journal.ModelFailed](c), of[journal.ToolJudged](c), of[journal.Asked](c),
		of[journal.Answered](c), of[journal.ToolStarted](c), of[journal.ToolFinished](c), of[journal.TaskStarted](c), of[journal.CommandStarted](c), of[journal.CommandEnded](c), of[journal.Compacted](c), of[journal.Stopped](c),
		of[journal.Parked](c), of[journal.Board](c), of[journal.Visited](c), of[journal.Failed](c), of[journal.Timed](c), of[journal.RunFinished](c),
	}
	if len(all) != len(journal.Kinds()) {
		panic("a kind has no generator")
	}
	return rapid.OneOf(all...)
}

func of[D journal.Data](c rapid.MakeConfig) *rapid.Generator[journal.Data] {
	return rapid.Map(rapid.MakeCustom[D](c), func(d D) journal.Data { return d })
}

func TestEveryEntrySurvivesItsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := journal.Entry{
			Seq: rapid.Int64Min(1).Draw(t, "seq"), Time: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			Session: anyText().Draw(t, "session"), Run: anyText().Draw(t, "run"), Data: anyData().Draw(t, "data"),
		}
		if rapid.Bool().Draw(t, "keyed") {
			e.Key = journal.Key{Scope: anyText().Draw(t, "scope"), Op: "x" + anyText().Draw(t, "op"), ID: anyText().Draw(t, "id")}
		}
		b := encode(t, e)
		if !json.Valid(b) || bytes.ContainsRune(b, '\n') {
			t.Fatalf("not a line of JSON: %s", b)
		}
		var again journal.Entry
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, again, equal); d != "" {
			t.Fatalf("-written +read\n%s\n%s", d, b)
		}
		if bb := encode(t, again); !bytes.Equal(b, bb) {
			t.Fatalf("the bytes moved:\n%s\n%s", b, bb)
		}
	})
}

func TestBytesThatAreNoTextAreWrittenTheSameWayTwice(t *testing.T) {
	for _, text := range []string{"a\xffb", `\ufffd` + "\xff", `\\ufffd`, "\xed\xa0\x80", "\ufffd\xc3"} {
		for _, d := range []journal.Data{journal.ToolFinished{Content: text}, journal.Said{Message: message.User(text)}, journal.Prepared{System: text}} {
			b, err := journal.EncodeData(d)
			if err != nil {
				t.Fatal(err)
			}
			read, err := journal.DecodeData(d.Kind(), b)
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			if bb, err := journal.EncodeData(read); err != nil || !bytes.Equal(b, bb) {
				t.Errorf("%q: first %s, then %s, %v", text, b, bb, err)
			}
		}
	}
}

func TestAToolsFilesKeepTheirBytes(t *testing.T) {
	image := "\x89PNG\x00\xff\xfe"
	b, err := journal.EncodeData(journal.ToolFinished{Call: "c", Files: []message.File{{MIME: "image/png", Data: image}}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := journal.DecodeData("tool.finished", b)
	if err != nil || read.(journal.ToolFinished).Files[0].Data != image {
		t.Errorf("%s: %+v, %v", b, read, err)
	}
}

func TestWhatThisProgramCantReadIsRefusedWithAReason(t *testing.T) {
	const head = `"seq":7,"time":"2026-01-01T00:00:00Z","session":"s1",`
	for name, c := range map[string]struct {
		line  string
		class *errdefs.Class
		says  string
	}{
		"a newer version":     {`{"v":2,` + head + `"kind":"said","data":{"message":null}}`, errdefs.NotAvailable, "version 2"},
		"an unknown kind":     {`{"v":1,` + head + `"kind":"dreamt","data":{}}`, errdefs.NotAvailable, `"dreamt"`},
		"no version":          {`{` + head + `"kind":"resumed","data":{}}`, errdefs.Validation, "version"},
		"another JSON object": {`{"a":1}`, errdefs.Validation, "not an entry"},
		"no data":             {`{"v":1,` + head + `"kind":"resumed"}`, errdefs.Validation, "entry 7"},
		"wrong data":          {`{"v":1,` + head + `"kind":"resumed","data":{"owner":1}}`, errdefs.Validation, "resumed"},
		"wrong inputs":        {`{"v":1,` + head + `"kind":"run.started","data":{"inputs":1}}`, errdefs.Validation, "run.started"},
		"wrong board":         {`{"v":1,` + head + `"kind":"board","data":{"set":1}}`, errdefs.Validation, "board"},
		"wrong files":         {`{"v":1,` + head + `"kind":"tool.finished","data":{"files":[{"data":"%"}]}}`, errdefs.Validation, "tool.finished"},
		"an unknown part":     {`{"v":1,` + head + `"kind":"said","data":{"message":{"role":"user","parts":[{"type":"smell"}]}}}`, errdefs.Validation, "smell"},
		"a wrong time":        {`{"v":1,"seq":7,"time":"yesterday","session":"s1","kind":"resumed","data":{}}`, errdefs.Validation, "yesterday"},
	} {
		e := journal.Entry{Run: "untouched"}
		err := json.Unmarshal([]byte(c.line), &e)
		if !errors.Is(err, c.class) || errdefs.Of(err) != c.class || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%v), want %v that says %q", name, err, errdefs.Of(err), c.class, c.says)
		}
		if e.Run != "untouched" || e.Data != nil {
			t.Errorf("%s: left %+v", name, e)
		}
	}
}

func TestFieldsOfALaterReleaseAreSkipped(t *testing.T) {
	var e journal.Entry
	if err := json.Unmarshal([]byte(`{"v":1,"seq":1,"time":"2026-01-01T00:00:00Z","session":"s","kind":"resumed","mood":"good","data":{"owner":"o","why":{"x":1}}}`), &e); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e.Data, journal.Resumed{Owner: "o"}) {
		t.Errorf("%+v", e.Data)
	}
}

type foreign struct{}

func (foreign) Kind() journal.Kind { return "resumed" }

func TestDataThatNobodyCouldReadIsNotWritten(t *testing.T) {
	var none *journal.Said
	for name, d := range map[string]journal.Data{
		"nothing": nil, "a pointer": &journal.Resumed{}, "a nil pointer": none, "a foreign type": foreign{},
		"a channel":       journal.RunStarted{Inputs: map[string]any{"x": make(chan int)}},
		"a broken object": journal.RunFinished{Handoff: json.RawMessage(`{`)},
	} {
		if _, err := journal.EncodeData(d); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := (journal.Entry{Data: d}).MarshalJSON(); !errdefs.Validation.Is(err) {
			t.Errorf("%s in an entry: %v", name, err)
		}
	}
}

func TestAKeyIsReadable(t *testing.T) {
	for want, k := range map[string]journal.Key{
		"model/2": {Op: "model", ID: "2"}, "prepare": {Op: "prepare"}, "review:tool/c1": {Scope: "review", Op: "tool", ID: "c1"},
	} {
		if k.String() != want {
			t.Errorf("got %s, want %s", k, want)
		}
	}
}

func FuzzReadingAnEntryNeverPanics(f *testing.F) {
	for _, e := range samples() {
		b, _ := e.MarshalJSON()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e journal.Entry
		if json.Unmarshal(b, &e) != nil {
			return
		}
		first := encode(t, e)
		var again journal.Entry
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("what was read can't be read again: %v\n%s", err, first)
		}
		if second := encode(t, again); !bytes.Equal(first, second) {
			t.Fatalf("the bytes moved:\n%s\n%s", first, second)
		}
	})
}

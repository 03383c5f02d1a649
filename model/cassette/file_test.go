package cassette_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cassette"
)

func TestAnExchangeIsInTheFileAsSoonAsItIsOver(t *testing.T) {
	file := tape(t)
	r := record(t, says("a"), file)
	for i := range 3 {
		listen(r, false, user(fmt.Sprint(i)))
		p := open(t, file) // as after a crash: nothing was closed
		for j := range i + 1 {
			if got := listen(p, false, user(fmt.Sprint(j))); got.Error != "" {
				t.Error(got.Error)
			}
		}
		if err := p.Done(); err != nil {
			t.Error(err)
		}
	}
	closed(t, r)
}

func TestNothingIsRecordedOverAndNothingIsLostInSilence(t *testing.T) {
	file := tape(t)
	r := record(t, says("a"), file)
	if _, err := cassette.Record(says("b"), file); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	if _, err := cassette.RecordHTTP(nil, file); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	if _, err := cassette.Record(says("b"), filepath.Join(file, "x")); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
	closed(t, r)
	r = record(t, live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		t.Error("what can't be recorded was asked")
		return nil, nil, nil
	}}, tape(t))
	closed(t, r)
	for _, stream := range []bool{false, true} {
		if got := listen(r, stream, user("late")); !strings.Contains(got.Error, "is closed") {
			t.Errorf("%+v", got)
		}
	}
	file = tape(t)
	r = record(t, live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), "before exchange 1 was over") {
			t.Errorf("a call under way is lost, and Close says %v", err)
		}
		return nil, &model.Response{Message: message.Assistant("late")}, nil
	}}, file)
	if got := listen(r, false, user("early")); !strings.Contains(got.Error, "was closed") || strings.Contains(content(t, file), "early") {
		t.Errorf("%+v", got)
	}
	nobody := live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) { return nil, nil, nil }}
	r = record(t, nobody, tape(t))
	if got := listen(r, false, user("a")); got.Class != errdefs.Internal {
		t.Errorf("%+v", got)
	}
	full, err := cassette.Record(says("a"), "/dev/full")
	if err == nil || full != nil {
		t.Error("a device is no new file")
	}
}

func TestWhatIsNoCassetteIsRefusedWithItsPlace(t *testing.T) {
	const head = `{"cassette":1,"kind":"model"}` + "\n"
	const ok = `{"exchange":1,"call":"complete","request":{"messages":[]},"error":{"message":"x"}}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":                {" \n", "it is empty"},
		"no JSON":              {"hello", "line 1: not JSON"},
		"another file":         {`{"interactions":[]}`, "line 1: no cassette"},
		"a list":               {`[]`, "line 1: no cassette"},
		"a later version":      {`{"cassette":2,"kind":"model"}`, "its version is 2"},
		"of HTTP":              {`{"cassette":1,"kind":"http"}`, `kind "http", not "model": Open is for models`},
		"cut off":              {head + ok + "\n" + ok[:30], "line 4: not JSON, or cut off"},
		"no number":            {head + `{"call":"complete"}`, "line 2: no exchange"},
		"number zero":          {head + strings.Replace(ok, "1", "0", 1), "counted from 1"},
		"twice":                {head + ok + ok, "line 3: exchange 1 is there twice"},
		"an unknown member":    {head + strings.Replace(ok, `"call"`, `"extra":1,"call"`, 1), "extra"},
		"another call":         {head + strings.Replace(ok, "complete", "ask", 1), `call: "ask": want complete or stream`},
		"nothing came of it":   {head + `{"exchange":1,"call":"stream","request":{"messages":[]}}`, "neither a response nor an error"},
		"both came of it":      {head + strings.Replace(ok, `"error"`, `"response":{"message":null},"error"`, 1), "a response and an error"},
		"a reply of no role":   {head + `{"exchange":1,"call":"stream","request":{"messages":[]},"response":{"message":{"role":"king"}}}`, "response: "},
		"a class that is none": {head + strings.Replace(ok, `"message":"x"`, `"class":"bad"`, 1), `no class "bad"`},
		"no duration":          {head + strings.Replace(ok, `"message":"x"`, `"provider":"p","retry_after":"soon"`, 1), `retry_after`},
		"another context":      {head + strings.Replace(ok, `"message":"x"`, `"context":"gone"`, 1), `context: "gone"`},
		"after nothing":        {head + strings.Replace(ok, `"messages"`, `"after":{"exchange":7,"messages":0},"messages"`, 1), "no 0 messages of an exchange 7"},
		"after too many":       {head + ok + strings.Replace(strings.Replace(ok, "1", "2", 1), `"messages"`, `"after":{"exchange":1,"messages":1},"messages"`, 1), "no 1 messages of an exchange 1"},
		"a line of no text":    {head + strings.Replace(ok, `"x"`, `{"|":["a",1]}`, 1), "a line that is no text: 1"},
		"lines and more":       {head + strings.Replace(ok, `"x"`, `{"|":["a"],"b":1}`, 1), `a member "b" beside "|"`},
		"lines behind more":    {head + strings.Replace(ok, `"x"`, `{"b":1,"|":["a"]}`, 1), `no list of lines on its own`},
		"a model that can fly": {`{"cassette":1,"kind":"model","model":{"can":["fly"]}}`, `"fly" is nothing`},
	} {
		file := tape(t)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cassette.Open(file); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), file+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for name, x := range map[string]string{
		"no request": `"response":{"status":200}`, "no answer": `"request":{}`, "no status": `"request":{},"response":{"status":7}`,
		"no base64": `"request":{},"response":{"status":200,"body":{"base64":"%"}}`, "another member": `"request":{"verb":"GET"},"response":{"status":200}`,
	} {
		file := tape(t)
		if err := os.WriteFile(file, []byte(`{"cassette":1,"kind":"http"} {"exchange":1,`+x+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cassette.OpenHTTP(file); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cassette.Open(tape(t)); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if _, err := cassette.Open(t.TempDir()); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestAChangeOfWhatLaterRequestsBeginWithIsNoticed(t *testing.T) {
	file := tape(t)
	r := record(t, says("a"), file)
	first := user("first")
	listen(r, false, first)
	listen(r, false, model.Request{Messages: first.Messages.Append(first.Messages.At(0))})
	closed(t, r)
	if err := os.WriteFile(file, []byte(strings.Replace(content(t, file), "first", "First", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cassette.Open(file); err == nil || !strings.Contains(err.Error(), "exchange 1 was changed") {
		t.Error(err)
	}
}

// fakeT is a test of which this one looks what becomes.
type fakeT struct {
	said  string
	later []func()
}

func (f *fakeT) Helper()                           {}
func (f *fakeT) Failed() bool                      { return f.said != "" }
func (f *fakeT) Cleanup(g func())                  { f.later = append(f.later, g) }
func (f *fakeT) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) + "\n" }
func (f *fakeT) Fatalf(format string, args ...any) { f.Errorf(format, args...); runtime.Goexit() }

// run is a test with a model that is asked for some things.
func run(file string, m model.Model, fail bool, asks ...string) string {
	f := &fakeT{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := cassette.New(f, file, func() model.Model { return m })
		for _, a := range asks {
			listen(c, true, user(a))
		}
		if fail {
			f.Errorf("the test fails")
		}
	}()
	<-done
	for _, g := range f.later {
		g()
	}
	return f.said
}

func TestATestPlaysAndRecordsOnlyWhenToldTo(t *testing.T) {
	t.Setenv(cassette.RecordVariable, "")
	file := tape(t)
	if said := run(file, says("a"), false, "1"); !strings.Contains(said, "record it with PAWL_RECORD=1") {
		t.Errorf("no file: %q", said)
	}
	t.Setenv(cassette.RecordVariable, "1")
	if said := run(file, says("a"), true, "1"); said != "the test fails\n" || content(t, file+".part") == "" {
		t.Errorf("a test that failed: %q", said)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a failed test left a file")
	}
	for range 2 {
		if said := run(file, says("a"), false, "1", "2"); said != "" {
			t.Errorf("recording: %q", said)
		}
	}
	t.Setenv(cassette.RecordVariable, "0")
	for _, c := range []struct {
		asks []string
		want string
	}{{[]string{"1", "2"}, ""}, {[]string{"1"}, "not played: exchange 2"}, {[]string{"1", "x"}, "differs from that of exchange 2"}, {[]string{"1", "2", "3"}, "all of its 2 exchanges were played"}} {
		if said := run(file, nil, false, c.asks...); !strings.Contains(said, c.want) || (said == "") != (c.want == "") {
			t.Errorf("%v: %q, want %q", c.asks, said, c.want)
		}
	}
}

func TestATestHasAnHTTPClient(t *testing.T) {
	file := tape(t)
	for _, on := range []string{"1", ""} {
		t.Setenv(cassette.RecordVariable, on)
		f := &fakeT{}
		c := cassette.NewHTTP(f, file, &server{answers: []answer{{200, nil, "hello"}}})
		if got := get(t, c, "https://example.com"); !strings.Contains(got, "hello") {
			t.Error(got)
		}
		for _, g := range f.later {
			g()
		}
		if f.Failed() {
			t.Error(f.said)
		}
	}
}

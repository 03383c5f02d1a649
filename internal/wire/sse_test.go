package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type event struct{ Name, Data string }

// collect reads all events of r, none of which may be over limit.
func collect(r io.Reader, limit int) (seen []event, err error) {
	e := NewEvents(r)
	e.limit = limit
	for e.Next() {
		seen = append(seen, event{string(e.Name()), string(e.Data())})
	}
	return seen, e.Err()
}

// reference is a second reading of the HTML standard, slow and over a whole
// stream, with the two differences that Events documents.
func reference(stream string, limit int) (seen []event, ok bool) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var name, data string
	size := 0
	for line := range strings.SplitSeq(stream+"\n\n", "\n") {
		if line == "" {
			if data != "" {
				seen = append(seen, event{name, strings.ToValidUTF8(strings.TrimSuffix(data, "\n"), "\ufffd")})
			}
			name, data, size = "", "", 0
			continue
		}
		if size += len(line) + 1; size > limit {
			return seen, false
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data += value + "\n"
		}
	}
	return seen, true
}

// pieces is a reader that returns one piece for each Read, as a network does.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

// split cuts stream into pieces of random lengths, empty ones among them.
func split(stream string, random *rand.Rand) *pieces {
	var p pieces
	for stream != "" {
		n := min(random.IntN(1+min(len(stream), 1<<random.IntN(16))), len(stream))
		p = append(p, stream[:n])
		stream = stream[n:]
	}
	return &p
}

var streams = []struct {
	name, in string
	want     []event
}{
	{"nothing has no events", "", nil},
	{"an event ends with a blank line", "data: a\n\ndata: b\n\n", []event{{"", "a"}, {"", "b"}}},
	{"an event can have a name", "event: ping\ndata: {}\n\n", []event{{"ping", "{}"}}},
	{"a name counts for one event", "event: a\ndata: 1\n\ndata: 2\n\n", []event{{"a", "1"}, {"", "2"}}},
	{"the last of several names counts", "event: a\nevent: b\ndata: 1\nevent\nevent: c\n\n", []event{{"c", "1"}}},
	{"a name alone is no event", "event: a\n\ndata: 1\n\n", []event{{"", "1"}}},
	{"lines end with CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []event{{"a", "1"}, {"", "2"}}},
	{"lines end with CR", "event: a\rdata: 1\r\rdata: 2\r\r", []event{{"a", "1"}, {"", "2"}}},
	{"line ends are mixed", "data: 1\r\ndata: 2\rdata: 3\n\rdata: 4\r\n\n\n\rdata: 5\r\r\n", []event{{"", "1\n2\n3"}, {"", "4"}, {"", "5"}}},
	{"LF and CR in this order are two ends", "data: 1\n\rdata: 2\n\r", []event{{"", "1"}, {"", "2"}}},
	{"lines of data are joined", "data: a\ndata: b\ndata:\ndata: c\n\n", []event{{"", "a\nb\n\nc"}}},
	{"one space after the colon goes", "data:a\ndata: b\ndata:  c\ndata:\td\ndata:e \n\n", []event{{"", "a\nb\n c\n\td\ne "}}},
	{"padded JSON keeps its padding", "data:   {\"a\": 1}  \n\n", []event{{"", `  {"a": 1}  `}}},
	{"colons in the value stay", "data: a: b: c\ndata::\n\n", []event{{"", "a: b: c\n:"}}},
	{"a field without a colon has an empty value", "data\n\ndata\ndata\n\n", []event{{"", ""}, {"", "\n"}}},
	{"empty data is data", "data:\n\ndata: \n\n", []event{{"", ""}, {"", ""}}},
	{"comments are skipped", ": hello\n\n:\ndata: a\n:data: b\ndata: c\n\n: bye\n\n", []event{{"", "a\nc"}}},
	{"other fields are skipped", "id: 1\nretry: 10\nfoo: bar\nbaz\ndata: a\n\n", []event{{"", "a"}}},
	{"field names are exact", "Data: a\n data: b\ndata : c\ndatas: d\ndat: e\ndata: f\n\n", []event{{"", "f"}}},
	{"blank lines make no events", "\n\n\r\n\rdata: a\n\n\n\n\n", []event{{"", "a"}}},
	{"a byte order mark at the start is skipped", "\ufeffdata: a\n\n", []event{{"", "a"}}},
	{"a second byte order mark is a part of the field", "\ufeff\ufeffdata: a\n\ndata: \ufeffb\n\n", []event{{"", "\ufeffb"}}},
	{"a byte order mark later is a part of the field", "\n\ufeffdata: a\n\n", nil},
	{"a byte order mark alone is nothing", "\ufeff", nil},
	{"a part of a byte order mark is a part of the field", "\xef\xbbdata: a\n\n", nil},
	{"text is passed on as it is, if it is UTF-8", "data: größer 世界 😀\ndata: \xff\x00\n\n", []event{{"", "größer 世界 😀\n\ufffd\x00"}}},
	{"the last event may lack its blank line", "data: a\n\nevent: x\ndata: b\n", []event{{"", "a"}, {"x", "b"}}},
	{"the last event may lack its line end", "data: a\n\ndata: [DONE]", []event{{"", "a"}, {"", "[DONE]"}}},
	{"the last event may end with CR", "data: a\r", []event{{"", "a"}}},
	{"the last event may end with CRLF", "data: a\r\n", []event{{"", "a"}}},
	{"an unended name is no event", "data: a\n\nevent: b", []event{{"", "a"}}},
	{"a long line spans buffers", "data: " + strings.Repeat("0123456789", 3000) + "\n\ndata: x\n\n", []event{{"", strings.Repeat("0123456789", 3000)}, {"", "x"}}},
	{"many lines span buffers", strings.Repeat("data: 0123456789\r\n", 2000) + "\r\n", []event{{"", strings.Repeat("0123456789\n", 1999) + "0123456789"}}},
}

func TestEventsFollowTheStandardHoweverTheBytesArrive(t *testing.T) {
	for _, test := range streams {
		t.Run(test.name, func(t *testing.T) {
			if want, ok := reference(test.in, MaxEvent); !ok || !slices.Equal(want, test.want) {
				t.Errorf("the reference reads %q", want)
			}
			for name, r := range readers(test.in, 1) {
				got, err := collect(r, MaxEvent)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

// readers returns readers of the same stream in chunks of every kind.
func readers(stream string, seed uint64) map[string]io.Reader {
	random := rand.New(rand.NewPCG(seed, 0))
	return map[string]io.Reader{
		"whole":                    strings.NewReader(stream),
		"byte by byte":             iotest.OneByteReader(strings.NewReader(stream)),
		"half of what is asked":    iotest.HalfReader(strings.NewReader(stream)),
		"the end with the data":    iotest.DataErrReader(strings.NewReader(stream)),
		"random pieces":            split(stream, random),
		"other random pieces":      split(stream, random),
		"random pieces and an end": iotest.DataErrReader(split(stream, random)),
	}
}

func TestEverySplitInThreeGivesTheSameEvents(t *testing.T) {
	const stream = "\ufeffevent: é\r\ndata: 世\r\r\n: c\ndata:b\n\ndata: \r\n\r\ndata: z"
	want, _ := reference(stream, MaxEvent)
	for i := range stream + "." {
		for j := i; j <= len(stream); j++ {
			// The loop over runes is completed by the splits inside of one.
			for _, at := range []int{i, min(i+1, j), min(i+2, j)} {
				got, err := collect(&pieces{stream[:at], stream[at:j], stream[j:]}, MaxEvent)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("split at %d and %d: got %q, %v, want %q", at, j, got, err, want)
				}
			}
		}
	}
}

// strict is a reader that fails the test when it is asked for more than it has.
type strict struct {
	t    *testing.T
	rest []byte
}

func (s *strict) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		s.t.Fatal("more bytes were asked for than the event needs")
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func TestAnEventIsDeliveredAsSoonAsItsBlankLineArrived(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		r := &strict{t: t}
		e := NewEvents(r)
		for range 3 {
			// The CR of a blank line ends the event, its LF comes later.
			r.rest = append(r.rest, "event: n"+end+"data: a"+end+end[:1]...)
			if !e.Next() || string(e.Data()) != "a" || string(e.Name()) != "n" {
				t.Fatalf("%q: got %q, %v", end, e.Data(), e.Err())
			}
			r.rest = append(r.rest, end[1:]...)
		}
	}
}

func TestAReadErrorEndsTheEventsAndDropsTheUnfinishedOne(t *testing.T) {
	broken := errors.New("broken")
	for _, rest := range []string{"", "d", "data: b", "data: b\n", "event: b\r"} {
		r := io.MultiReader(strings.NewReader("data: a\n\n"+rest), iotest.ErrReader(broken))
		for name, r := range map[string]io.Reader{"after the data": r, "with the data": &dataErr{"data: a\n\n" + rest, broken}} {
			e := NewEvents(r)
			if !e.Next() || string(e.Data()) != "a" {
				t.Errorf("%q, %s: the finished event is lost: %v", rest, name, e.Err())
			}
			for range 2 {
				if e.Next() || !errors.Is(e.Err(), broken) || len(e.Data())+len(e.Name()) > 0 {
					t.Errorf("%q, %s: got %q, %v", rest, name, e.Data(), e.Err())
				}
			}
		}
	}
}

// dataErr returns its data together with the error.
type dataErr struct {
	data string
	err  error
}

func (d *dataErr) Read(b []byte) (int, error) {
	n := copy(b, d.data)
	d.data = d.data[n:]
	return n, d.err
}

func TestTheEndIsFinal(t *testing.T) {
	e := NewEvents(strings.NewReader("event: x\ndata: a"))
	if !e.Next() {
		t.Fatal(e.Err())
	}
	for range 3 {
		if e.Next() || e.Err() != nil || len(e.Data())+len(e.Name()) > 0 {
			t.Errorf("got %q, %q, %v", e.Name(), e.Data(), e.Err())
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestReadersThatBreakTheirContractAreErrors(t *testing.T) {
	_, err := collect(readerFunc(func([]byte) (int, error) { return 0, nil }), MaxEvent)
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that returns nothing: %v", err)
	}
	for _, n := range []int{-1, 1 << 30} {
		_, err = collect(readerFunc(func([]byte) (int, error) { return n, nil }), MaxEvent)
		if err == nil || err.Error() != "wire: the reader returned a count out of range" {
			t.Errorf("a reader that returns %d: %v", n, err)
		}
	}
}

func TestAnEventOverTheLimitIsAnError(t *testing.T) {
	const limit = 100
	for _, test := range []struct {
		name, in string
		fits     bool
	}{
		{"a line of the limit", "data:" + strings.Repeat("x", limit-6) + "\n\n", true},
		{"a line over it", "data:" + strings.Repeat("x", limit-5) + "\n\n", false},
		{"a line without an end", "data:" + strings.Repeat("x", 100*limit), false},
		{"lines of the limit", strings.Repeat("data:xxxx\n", limit/10) + "\n", true},
		{"lines over it", strings.Repeat("data:xxxx\n", limit/10) + "x\n\n", false},
		{"comments count", strings.Repeat(":\n", limit) + "\n", false},
		{"events count one by one", strings.Repeat("data:"+strings.Repeat("x", limit-6)+"\n\n", 5), true},
		{"comments between events count one by one", strings.Repeat(": ping\n\n", limit), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := "data: first\n\n" + test.in
			want, ok := reference(in, limit)
			if ok != test.fits {
				t.Errorf("the reference says %t", ok)
			}
			for name, r := range readers(in, 2) {
				got, err := collect(r, limit)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				if test.fits != (err == nil) || err != nil && err.Error() != "wire: a server-sent event is larger than 100 bytes" {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestAnEndlessLineEndsAtMaxEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	chunk := bytes.Repeat([]byte(":"), 1<<20)
	read := 0
	e := NewEvents(readerFunc(func(b []byte) (int, error) {
		n := copy(b, chunk)
		read += n
		return n, nil
	}))
	if e.Next() || e.Err() == nil || !strings.Contains(e.Err().Error(), "larger than 67108864 bytes") {
		t.Errorf("got %v", e.Err())
	}
	if read > MaxEvent+len(chunk) {
		t.Errorf("%d bytes were read", read)
	}
	if e.Next() || e.Err() == nil {
		t.Errorf("the events went on: %v", e.Err())
	}
}

func TestHostileStreamsTakeLinearTime(t *testing.T) {
	// Were one of these quadratic, the test would run for many seconds, not for milliseconds.
	const size = 1 << 18
	for name, stream := range map[string]string{
		"CR only":         strings.Repeat("\r", size),
		"lines ending CR": strings.Repeat("data:\r", size/6),
		"lines ending LF": strings.Repeat("data:\n", size/6),
		"one long line":   "data:" + strings.Repeat("x", size),
		"colons":          strings.Repeat(":", size),
		"small events":    strings.Repeat("data\n\n", size/6),
		"a long name":     "event:" + strings.Repeat("x", size) + "\n" + strings.Repeat(":\n", 10*size) + "data\n\n",
		"lines of data":   "data:" + strings.Repeat("x", 10*size) + "\n" + strings.Repeat("data\n", size),
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(stream),
				iotest.OneByteReader(strings.NewReader(stream)),
			} {
				e := NewEvents(r)
				for e.Next() {
				}
				if e.Err() != nil {
					t.Error(e.Err())
				}
			}
		})
	}
}

func TestMoreIsReadAtOnceWhenMoreWaits(t *testing.T) {
	stream := strings.Repeat("data: "+strings.Repeat("x", 100)+"\n\n", 10_000)
	for most, want := range map[int]int{1000: firstBuffer, 1 << 30: largeBuffer} {
		in, reads := strings.NewReader(stream), 0
		e := spare.New().(*Events)
		e.r = readerFunc(func(b []byte) (int, error) {
			reads++
			return in.Read(b[:min(len(b), most)])
		})
		for e.Next() {
		}
		if e.Err() != nil || cap(e.buf) != want {
			t.Errorf("reads of at most %d bytes: %v, a buffer of %d bytes, want %d", most, e.Err(), cap(e.buf), want)
		}
		if least := len(stream) / min(most, want); reads > least+least/10+10 {
			t.Errorf("reads of at most %d bytes: %d of them, want about %d", most, reads, least)
		}
	}
}

func FuzzEvents(f *testing.F) {
	for _, test := range streams {
		if len(test.in) < 1000 {
			f.Add([]byte(test.in), uint64(1))
		}
	}
	f.Add([]byte("data: "+strings.Repeat("x", 500)+"\n\n"), uint64(3))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		const limit = 256 // in reach of the fuzzer
		want, ok := reference(string(stream), limit)
		for name, r := range readers(string(stream), seed) {
			got, err := collect(r, limit)
			if (err == nil) != ok || !slices.Equal(got, want) {
				t.Fatalf("%s of %q: got %q, %v, want %q, %t", name, stream, got, err, want, ok)
			}
		}
		// A stream that breaks has the same events but the unfinished one.
		broken := errors.New("broken")
		got, err := collect(io.MultiReader(bytes.NewReader(stream), iotest.ErrReader(broken)), limit)
		if ok && (!errors.Is(err, broken) || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || len(got) < len(want)-1) {
			t.Fatalf("%q broken: got %q, %v, want a part of %q", stream, got, err, want)
		}
	})
}

package eventstream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"

	"github.com/pawl-dev/pawl/internal/eventstream"
)

// frame is one frame with headers as they are.
func frame(headers, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(headers)+len(payload)+16))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func text(name, value string) []byte {
	b := append(append([]byte{byte(len(name))}, name...), 7)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
}

// every has a header of every kind before a text.
var every = bytes.Join([][]byte{
	{1, 'a', 0},
	{1, 'b', 1},
	{1, 'c', 2, 9},
	{1, 'd', 3, 0, 9},
	{1, 'e', 4, 0, 0, 0, 9},
	append([]byte{1, 'f', 5}, make([]byte, 8)...),
	{1, 'g', 6, 0, 2, 'x', 'y'},
	append([]byte{1, 'h', 8}, make([]byte, 8)...), append([]byte{1, 'i', 9}, make([]byte, 16)...), text("z", "last"),
}, nil)

// read gives the payloads of all frames and the error at the end.
func read(r io.Reader) (payloads []string, err error) {
	in := eventstream.NewReader(r)
	for {
		m, err := in.Next()
		if err != nil {
			return payloads, err
		}
		payloads = append(payloads, m.Header("z")+":"+string(m.Payload))
	}
}

func stream() []byte {
	return bytes.Join([][]byte{frame(every, []byte("one")), frame(nil, nil), frame(text("z", "x"), bytes.Repeat([]byte("long "), 5000)), frame(text("y", ""), []byte("end"))}, nil)
}

var want = []string{"last:one", ":", "x:" + string(bytes.Repeat([]byte("long "), 5000)), ":end"}

func TestFramesComeOutHoweverTheBytesCome(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(stream()), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream())), "by halves": iotest.HalfReader(bytes.NewReader(stream())),
		"with the end": iotest.DataErrReader(bytes.NewReader(stream())),
	} {
		got, err := read(r)
		if err != io.EOF || len(got) != len(want) { //nolint:errorlint // as io.Reader has it
			t.Fatalf("%s: %d frames, %v", name, len(got), err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: frame %d differs", name, i)
			}
		}
	}
}

func TestAFrameIsThereBeforeMoreIsAskedFor(t *testing.T) {
	r, w := io.Pipe()
	go func() { _, _ = w.Write(frame(nil, []byte("now"))) }() // and nothing more, nor an end
	m, err := eventstream.NewReader(r).Next()
	if err != nil || string(m.Payload) != "now" {
		t.Error(err)
	}
}

func TestACutAtAnyByteIsNoEnd(t *testing.T) {
	whole := append(frame(every, []byte("one")), frame(nil, []byte("two"))...)
	between := len(frame(every, []byte("one")))
	for cut := range whole {
		got, err := read(bytes.NewReader(whole[:cut]))
		if clean := cut == 0 || cut == between; clean != (err == io.EOF) || !clean && !errors.Is(err, io.ErrUnexpectedEOF) { //nolint:errorlint // as io.Reader has it
			t.Errorf("cut at %d: %d frames, %v", cut, len(got), err)
		}
	}
}

func TestAChangedBitAnywhereIsAnError(t *testing.T) {
	whole := frame(text("z", "x"), []byte("payload"))
	for i := range whole {
		for bit := range 8 {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << bit
			if got, err := read(bytes.NewReader(bad)); len(got) > 0 || err == io.EOF { //nolint:errorlint // as io.Reader has it
				t.Errorf("byte %d, bit %d: %q %v", i, bit, got, err)
			}
		}
	}
}

func TestLengthsAndHeadersThatCantBeAreErrors(t *testing.T) {
	lengths := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	for name, data := range map[string][]byte{
		"shorter than a frame": lengths(15, 0), "headers beyond it": lengths(20, 5), "too large": lengths(1<<32-1, 0), "too many headers": lengths(1<<20, 1<<19),
		"a name of nothing": frame([]byte{0, 7}, nil), "a name that is cut": frame([]byte{5, 'a'}, nil), "a kind that there isn't": frame([]byte{1, 'a', 10}, nil),
		"a value that is cut": frame([]byte{1, 'a', 7, 0, 5, 'x'}, nil), "no length": frame([]byte{1, 'a', 7, 0}, nil), "a number that is cut": frame([]byte{1, 'a', 4, 0}, nil),
	} {
		if got, err := read(bytes.NewReader(data)); len(got) > 0 || err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func TestAReadersErrorComesAsItIsAndStays(t *testing.T) {
	cause := errors.New("cable")
	in := eventstream.NewReader(io.MultiReader(bytes.NewReader(frame(nil, nil)), iotest.ErrReader(cause)))
	if _, err := in.Next(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := in.Next(); !errors.Is(err, cause) {
			t.Error(err)
		}
	}
}

// A length is no reason to take memory before the bytes are there.
func TestMemoryIsTakenForWhatComes(t *testing.T) {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, eventstream.MaxPayload), 0)
	head := binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = read(bytes.NewReader(head))
		}
	})
	if n := got.AllocedBytesPerOp(); n > 16<<10 {
		t.Errorf("%d bytes for a frame that never came", n)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(stream(), 3)
	f.Add(frame(every, []byte("x"))[:20], 1)
	f.Fuzz(func(t *testing.T, data []byte, chunk int) {
		at, err := read(bytes.NewReader(data))
		pieces, err2 := read(&chunks{data, max(1, chunk%64)})
		if len(at) != len(pieces) || (err == io.EOF) != (err2 == io.EOF) { //nolint:errorlint // as io.Reader has it
			t.Fatalf("at once %d frames, %v; in pieces %d, %v", len(at), err, len(pieces), err2)
		}
		size := 0
		for _, p := range at {
			size += len(p)
		}
		if size > len(data) {
			t.Fatal("more came out than went in")
		}
	})
}

// chunks gives n bytes at a time.
type chunks struct {
	left []byte
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.left)
	c.left = c.left[n:]
	return n, nil
}

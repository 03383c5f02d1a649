package cloud

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/eventstream"
)

// A section of a file of credentials says nothing of another one, and what it says is read again as it is written.
func FuzzSection(f *testing.F) {
	for _, s := range []string{
		"[default]\naws_access_key_id = A\naws_secret_access_key=b=c #x\n", "[profile  a]\r\nregion=eu\r\ns3 =\n  key = v\n[default]\nregion = us", "[default\nx=1", "[]\n=v\n", "\xef\xbb\xbf[default]\nregion=x", "[default]\n#[other]\n;a=b\nA=1\na=2",
	} {
		f.Add(s, "default")
	}
	f.Fuzz(func(t *testing.T, text, section string) {
		got := map[string]string{}
		readSection(got, text, section)
		var again strings.Builder
		again.WriteString("[other]\nregion = elsewhere\n[" + section + "]\n")
		for name, value := range got {
			if strings.ContainsAny(name+value, "\n") || strings.TrimSpace(value) != value || strings.ToLower(strings.TrimSpace(name)) != name {
				t.Fatalf("%q: %q is %q", text, name, value)
			}
			if name != "" && name[0] != '[' && name[0] != '#' && name[0] != ';' {
				again.WriteString(name + " = " + value + "\n")
			} else {
				delete(got, name)
			}
		}
		if len(got) == 0 {
			return
		}
		same := map[string]string{"kept": "x"}
		readSection(same, again.String(), section)
		delete(same, "kept")
		if !maps.Equal(got, same) {
			t.Fatalf("%q: %q, and written again %q", text, got, same)
		}
	})
}

// frames are messages of AWS's with these payloads, as a server sends them.
func frames(kind string, payloads ...string) []byte {
	var out []byte
	for _, p := range payloads {
		var headers []byte
		for _, h := range [][2]string{{":message-type", kind}, {":event-type", "chunk"}, {":exception-type", "throttlingException"}, {":error-code", p}, {":error-message", p}} {
			if len(h[1]) > 1<<12 {
				continue
			}
			headers = append(append(append(headers, byte(len(h[0]))), h[0]...), 7)
			headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
		}
		b := binary.BigEndian.AppendUint32(nil, uint32(len(headers)+len(p)+16))
		b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		b = append(append(b, headers...), p...)
		out = append(out, binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))...)
	}
	return out
}

// Frames of AWS's are the same events in whatever pieces they come and are read, and no bytes in one can make an event of their own.
func FuzzUnframed(f *testing.F) {
	for _, kind := range []string{"event", "exception", "error", "ping"} {
		f.Add(kind, `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(`{"type":"ping"}`))+`"}`, `{"message":"slow down"}`, 3)
	}
	f.Add("event", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte("{}\n\nevent: error\r\ndata: {}\r\r"))+`"}`, `{"bytes":"\u0065\/30="}`, 0)
	f.Add("event", `{"bytes":"!"}`, `{"bytes":5}`, 40)
	f.Add("exception", "{\"message\":\"a\\n\\ndata: b\",\"originalMessage\":\"\xff\"}", "", 0)
	f.Fuzz(func(t *testing.T, kind, one, two string, cut int) {
		if len(kind)+len(one)+len(two) > 1<<12 {
			return
		}
		b := frames(kind, one, two)
		b = b[:len(b)-min(len(b), max(0, cut))]
		read := func(r io.Reader) (string, error) {
			out, err := io.ReadAll(&unframed{body: io.NopCloser(r), in: eventstream.NewReader(r)})
			return string(out), err
		}
		atOnce, err := read(bytes.NewReader(b))
		inPieces, err2 := read(iotest.OneByteReader(bytes.NewReader(b)))
		if atOnce != inPieces || (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %q (%v), in pieces %q (%v)", b, atOnce, err, inPieces, err2)
		}
		if err != nil && errdefs.Of(err) == nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%q: %v", b, err)
		}
		if n := strings.Count(atOnce, "\n\n"); n > 2 || strings.ContainsAny(atOnce, "\r") || atOnce != "" && !strings.HasSuffix(atOnce, "\n\n") {
			t.Fatalf("%d events of two frames: %q", n, atOnce)
		}
		for event := range strings.SplitSeq(atOnce, "\n\n") {
			if data, failed := strings.CutPrefix(event, "event: error\ndata: "); failed && !json.Valid([]byte(data)) {
				t.Fatalf("%q", event)
			} else if !failed && event != "" && (!strings.HasPrefix(event, "data: ") || strings.Contains(event, "\n")) {
				t.Fatalf("%q", event)
			}
		}
	})
}

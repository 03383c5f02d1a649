package wires_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wires"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Whatever bytes come as a stream, in whatever pieces: an error with a class, or a reply that every wire takes back and that doesn't
// depend on the pieces.
func FuzzStream(f *testing.F) {
	seed(f, "*.sse")
	f.Fuzz(func(t *testing.T, which, size uint8, sse []byte) {
		w := wires.All[int(which)%len(wires.All)]
		atOnce := ask(t, w, "text/event-stream", bytes.NewReader(sse))
		inPieces := ask(t, w, "text/event-stream", &pieces{sse, 1 + int(size)})
		if atOnce.text != inPieces.text || atOnce.thought != inPieces.thought || (atOnce.err == nil) != (inPieces.err == nil) {
			t.Fatalf("%s: at once %+v, in pieces %+v", w.Name, atOnce, inPieces)
		}
		if diff := cmp.Diff(atOnce.reply, inPieces.reply, parts); diff != "" {
			t.Fatalf("%s: pieces change the reply:\n%s", w.Name, diff)
		}
		check(t, w, atOnce)
	})
}

// Whatever bytes come as a whole reply, asked for as one or as a stream.
func FuzzReply(f *testing.F) {
	seed(f, "*.json")
	f.Fuzz(func(t *testing.T, which, size uint8, body []byte) {
		w := wires.All[int(which)%len(wires.All)]
		streamed := ask(t, w, "application/json", &pieces{body, 1 + int(size)})
		check(t, w, streamed)
		whole, err := w.Answering("application/json", func() io.Reader { return bytes.NewReader(body) }).Complete(context.Background(), hi())
		if (err == nil) != (streamed.err == nil) {
			t.Fatalf("%s: as a whole %v, to a request for a stream %v", w.Name, err, streamed.err)
		}
		if diff := cmp.Diff(whole, streamed.reply, parts); diff != "" {
			t.Fatalf("%s: (-whole +stream):\n%s", w.Name, diff)
		}
	})
}

func seed(f *testing.F, pattern string) {
	f.Helper()
	for i, w := range wires.All {
		files, err := filepath.Glob(filepath.Join("../../model", w.Dir, pattern))
		if err != nil || len(files) == 0 {
			f.Fatal(files, err)
		}
		for _, name := range files {
			if strings.HasPrefix(filepath.Base(name), "request_") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), uint8(7), b)
		}
	}
}

func hi() model.Request {
	return model.Request{Messages: message.NewHistory(message.User("Hi"))}
}

// heard is what became of a call.
type heard struct {
	text, thought string
	reply         *model.Response
	err           error
}

func ask(t *testing.T, w wires.Wire, contentType string, body io.Reader) (h heard) {
	t.Helper()
	h.err = w.Answering(contentType, func() io.Reader { return body }).CompleteStream(context.Background(), hi(), func(r model.StreamResult) error {
		if h.reply != nil {
			t.Fatal("a piece after Final")
		}
		h.text += r.Text
		h.thought += r.Reasoning
		h.reply = r.Response
		return nil
	})
	return h
}

func check(t *testing.T, w wires.Wire, h heard) {
	t.Helper()
	if h.err != nil {
		if h.reply != nil || errdefs.Of(h.err) == nil {
			t.Fatalf("%s: %v without a class, or beside a reply", w.Name, h.err)
		}
		return
	}
	if h.reply == nil {
		t.Fatalf("%s: no reply and no error", w.Name)
	}
	if u := h.reply.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.Total()) < 0 {
		t.Fatalf("%s: usage %+v", w.Name, u)
	}
	if err := errors.Join(h.reply.Message.CheckFiles(), wires.Takes(h.reply.Message)); err != nil {
		t.Fatalf("%s: %v", w.Name, err)
	}
}

var parts = cmp.Transformer("parts", func(m message.Message) []message.Part { return slices.Collect(m.Parts()) })

// pieces reads so many bytes at a time.
type pieces struct {
	left []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.left)
	p.left = p.left[n:]
	return n, nil
}

package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// pipes are a listener whose connections hold nothing: what is not read is not sent.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// Who asks and does not read the answer holds a connection no longer than who reads no events, whatever he asks for; who reads slowly gets all of it.
func TestAnAnswerIsReadOrItsConnectionIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Delay: time.Minute, Text: "Done."})})
		if err != nil {
			t.Fatal(err)
		}
		const token = "0123456789abcdef"
		s, err := serve.New(serve.Of(agent.Agent{ID: "a"}, e, journal.Memory()), serve.Options{Tokens: []string{token}})
		if err != nil {
			t.Fatal(err)
		}
		l := make(pipes)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, l) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		dial := func(request string) net.Conn {
			here, there := net.Pipe()
			l <- there
			if _, err := io.WriteString(here, request); err != nil {
				t.Fatal(err)
			}
			return here
		}
		for _, request := range []string{"GET /openapi.json", "GET /", "GET /nothing", "GET /v1/sessions", "OPTIONS *", "POST /a2a", "GET /inspector/"} {
			c := dial(request + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
			time.Sleep(20 * time.Second)
			if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
				t.Errorf("%s: after 20 s there are %d bytes: %v", request, len(b), err)
			}
			_ = c.Close()
		}
		prompt := strings.Repeat("long ", 40_000)
		body := `{"session":"s","wait":true,"prompt":"` + prompt + `"}`
		c := dial("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
		defer func() { _ = c.Close() }()
		began := time.Now()
		res, err := http.ReadResponse(bufio.NewReaderSize(slowly{c}, 16<<10), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || !bytes.Contains(b, []byte(prompt)) || time.Since(began) < 80*time.Second {
			t.Errorf("it read %d bytes in %v: %v", len(b), time.Since(began), err)
		}
	})
}

// slowly reads a little every two seconds.
type slowly struct{ net.Conn }

func (s slowly) Read(b []byte) (int, error) {
	time.Sleep(2 * time.Second)
	return s.Conn.Read(b)
}

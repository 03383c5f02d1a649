package providertest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

// silence plays servers that keep a connection and say too little, in fake time: a call ends with its context and with its time limit, at
// once, and leaves neither a connection nor a goroutine.
func (p Provider) silence(t *testing.T) {
	stream := p.fixture(t, "text.sse")
	some := bytes.Join(events(stream)[:3], nil)
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	servers := []struct {
		name  string
		says  string        // at once
		again string        // and then, every ten seconds, for ever
		whole bool          // Complete is asked
		done  bool          // the reply is there
		after time.Duration // of a limit of 30 seconds between pieces: when it ends the call
	}{
		{"nothing at all", "", "", false, false, 30 * time.Second},
		{"headers without end", "HTTP/1.1 200 OK\r\n", "X-More: 1\r\n", false, false, 30 * time.Second},
		{"a header line without end", "HTTP/1.1 200 OK\r\nX-", "x", true, false, 30 * time.Second},
		{"headers and no more", ok, "", false, false, 30 * time.Second},
		{"a stream that stalls", ok + string(some), "", false, false, 30 * time.Second},
		{"a stream that stalls in an event", ok + string(some) + "data: {", "", false, false, 30 * time.Second},
		{"a stream that trickles comments", ok + string(some), ": still here\n\n", false, false, 30 * time.Second},
		{"a stream that trickles a line", ok + string(some) + "data: {\"", "x", false, false, 30 * time.Second},
		{"a reply that stalls", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{", "", true, false, 30 * time.Second},
		{"a reply that trickles", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{", " ", true, false, 30 * time.Second},
		{"an error that trickles", "HTTP/1.1 500 No\r\nContent-Type: application/json\r\n\r\n{", " ", false, false, 30 * time.Second},
		{"a whole stream that stays open", ok + string(stream), "", false, true, 0},
		{"a whole stream that trickles on", ok + string(stream), ": still here\n\n", false, true, 0},
	}
	for _, s := range servers {
		if s.done && p.lacks("terminal") {
			continue
		}
		for _, by := range []string{"its deadline", "its caller", "its limit"} {
			t.Run(s.name+", ended by "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					closed := make(chan struct{})
					client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						go drip(theirs, s.says, s.again, closed)
						return ours, nil
					}}}
					m := p.New(model.WithBaseURL("http://pipe.test"), model.WithKey(Key), model.WithHTTPClient(client))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					want, limit := error(errdefs.Timeout), s.after
					switch by {
					case "its deadline":
						ctx, cancel = context.WithTimeout(ctx, time.Minute)
						defer cancel()
						want, limit = context.DeadlineExceeded, time.Minute
					case "its caller":
						time.AfterFunc(7*time.Second, cancel)
						want, limit = context.Canceled, 7*time.Second
					default:
						m = model.Wrap(m, resilience.Timeouts(resilience.TimeoutPolicy{First: 30 * time.Second, Idle: 30 * time.Second}))
					}
					start := time.Now()
					var err error
					if s.whole {
						_, err = m.Complete(ctx, hi())
					} else {
						_, err = listen(ctx, t, m, hi())
					}
					took := time.Since(start)
					switch {
					case s.done && (err != nil || took > time.Second):
						t.Errorf("%v after %v", err, took)
					case !s.done && (!errors.Is(err, want) || took < limit || took > limit+time.Second):
						t.Errorf("%v after %v, want %v after %v", err, took, want, limit)
					}
					client.CloseIdleConnections()
					<-closed // a deadlock when it isn't, as with any goroutine that is left
				})
			})
		}
	}
}

// drip is a server of one connection. It closes gone once the other end is closed.
func drip(conn net.Conn, says, again string, gone chan<- struct{}) {
	defer close(gone)
	defer conn.Close() //nolint:errcheck // it is closed either way
	r := bufio.NewReader(conn)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return
	}
	if _, err := io.WriteString(conn, says); err != nil {
		return
	}
	for again != "" {
		time.Sleep(10 * time.Second)
		if _, err := io.WriteString(conn, again); err != nil {
			return
		}
	}
	_, _ = r.ReadByte() // until the other end goes
}

// brokenConnections end in the middle of a stream, or before its last event, on a real connection.
func (p Provider) brokenConnections(t *testing.T) {
	list := events(p.fixture(t, "text.sse"))
	half := bytes.Join(list[:len(list)/2], nil)
	inside := append(bytes.Clone(half), list[len(list)/2][:len(list[len(list)/2])/2]...)
	for name, c := range map[string]struct {
		head  string
		sent  []byte
		reset bool
	}{
		"reset before the headers":   {"", nil, true},
		"closed before the headers":  {"", nil, false},
		"reset in the headers":       {"HTTP/1.1 200 OK\r\nContent-Ty", nil, true},
		"reset between events":       {open, half, true},
		"reset in an event":          {open, inside, true},
		"closed between events":      {open, half, false},
		"closed in an event":         {open, inside, false},
		"closed before its length":   {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000000\r\n\r\n", inside, false},
		"closed in a chunk":          {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n", inside, false},
		"a chunk whose size is none": {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", inside, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = conn.Write(append([]byte(c.head), c.sent...))
				if c.reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				}
				_ = conn.Close()
			})
			for _, way := range []func(context.Context, model.Model) error{
				func(ctx context.Context, m model.Model) error { _, err := m.Complete(ctx, hi()); return err },
				func(ctx context.Context, m model.Model) error {
					return m.CompleteStream(ctx, hi(), func(model.StreamResult) error { return nil })
				},
			} {
				failed(t, within(t, func() error { return way(t.Context(), p.model(s)) }), "connection", "truncated_stream", "malformed_reply")
			}
			s.Close()
			httpapi.CloseIdle()
			goleak.VerifyNone(t, before)
		})
	}
}

const open = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

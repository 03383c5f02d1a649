package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// largestMessage is the longest line that is read.
const largestMessage = 32 << 20

// stdio is a connection of one message a line. The library's own ends at the first line that is no message.
type stdio struct {
	s   *Server
	in  io.Reader
	out io.Writer

	lines   chan jsonrpc.Message
	closed  chan struct{}
	closing sync.Once
	ended   chan struct{} // closed when nothing is read any more
	writes  chan writing
	written chan struct{} // closed when nothing is written any more
	stuck   chan struct{} // closed when a write that can't be ended was given up: nobody reads
	giveUp  sync.Once
	session string // for requests
	gone    context.Context
	lose    func()
}

func newStdio(s *Server, in io.Reader, out io.Writer) *stdio {
	c := &stdio{s: s, in: in, out: out, lines: make(chan jsonrpc.Message), closed: make(chan struct{}), ended: make(chan struct{}), writes: make(chan writing), written: make(chan struct{}), stuck: make(chan struct{}), session: "stdio-" + rand.Text()}
	c.gone, c.lose = context.WithCancel(context.Background())
	go c.read()
	go c.write()
	return c
}

// Connect makes it its own transport.
func (c *stdio) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID is for the library.
func (c *stdio) SessionID() string { return "" }

// Close ends the connection; a reader that can be closed is.
func (c *stdio) Close() error {
	c.closing.Do(func() {
		c.lose()
		close(c.closed)
		if closer, ok := c.in.(io.Closer); ok {
			_ = closer.Close()
		}
	})
	return nil
}

// wait waits for the reader and the writer, if they could be ended.
func (c *stdio) wait() {
	if _, ok := c.in.(io.Closer); ok {
		<-c.ended
	}
	select {
	case <-c.written:
	case <-c.stuck:
	}
}

func (c *stdio) read() {
	defer close(c.ended)
	defer c.lose() // before the library knows: what runs is left, not cancelled
	r := bufio.NewReaderSize(c.in, 64<<10)
	for {
		line, err := readLine(r)
		if errors.Is(err, errTooLong) {
			c.refuse(jsonrpc.CodeInvalidRequest, err.Error())
			continue
		}
		for _, m := range c.messages(line) {
			if r, ok := m.(*jsonrpc.Request); ok {
				r.Extra = &sdk.RequestExtra{Header: http.Header{numberHeader: {c.s.requests.begin(c.session, c.gone, r)}}}
			}
			select {
			case c.lines <- m:
			case <-c.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

var errTooLong = fmt.Errorf("a message of more than %d MiB", largestMessage>>20)

// readLine reads a line. One that is too long is read to its end, and dropped.
func readLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > largestMessage; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && err == nil {
			err = errTooLong
		}
		return line, err
	}
}

// messages reads a line: a message, or several, as an older version of the protocol allows. What is none is answered.
func (c *stdio) messages(line []byte) (out []jsonrpc.Message) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	all, err := split(line)
	if err != nil {
		c.refuse(jsonrpc.CodeParseError, err.Error())
		return nil
	}
	for _, one := range all {
		m, err := decode(one)
		if err != nil {
			c.refuse(jsonrpc.CodeInvalidRequest, err.Error())
			continue
		}
		out = append(out, m)
	}
	return out
}

// split parts what may be several messages.
func split(b []byte) (all []json.RawMessage, err error) {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		err = json.Unmarshal(b, &all)
	} else {
		var one json.RawMessage
		err = json.Unmarshal(b, &one)
		all = []json.RawMessage{one}
	}
	if err != nil {
		return nil, fmt.Errorf("this is no JSON: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("this is no message of JSON-RPC 2.0: it is empty")
	}
	return all, nil
}

// decode reads one message.
func decode(b []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.DecodeMessage(b)
	if err != nil {
		return nil, fmt.Errorf("this is no message of JSON-RPC 2.0: %w", err)
	}
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.Method == "" {
			return nil, errors.New("this is no message of JSON-RPC 2.0: it has no method")
		}
		if !kept(b, m.ID) {
			return nil, errors.New("the request's id is a number that can't be sent back: want an integer of at most 53 bits, or a text")
		}
	case *jsonrpc.Response:
		if m.Error == nil && m.Result == nil {
			return nil, errors.New("this is no message of JSON-RPC 2.0: it has no method, no result and no error")
		}
	}
	return m, nil
}

// kept reports whether an id is as it came: the library makes an integer of any number.
func kept(b []byte, id jsonrpc.ID) bool {
	n, number := id.Raw().(int64)
	if !number {
		return true
	}
	var m struct {
		ID float64 `json:"id"`
	}
	return json.Unmarshal(b, &m) == nil && m.ID == float64(n) && n < 1<<53 && n > -1<<53
}

// refuse answers what is no request.
func (c *stdio) refuse(code int64, text string) { _ = c.line(refusal(code, text)) }

// refusal is an error for a request whose id can't be known.
func refusal(code int64, text string) []byte {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": text}})
	return b
}

// writing is a line on its way out.
type writing struct {
	line []byte
	done chan error
}

// write is apart from those who have something to write: a client that reads nothing keeps it for ever, and is to keep nobody else when the server ends.
func (c *stdio) write() {
	defer close(c.written)
	for {
		select {
		case w := <-c.writes:
			_, err := c.out.Write(w.line)
			w.done <- err
		case <-c.closed:
			return
		}
	}
}

// lastPatience is how long a client that sends nothing any more has for reading a message.
const lastPatience = 15 * time.Second

func (c *stdio) line(b []byte) error {
	w := writing{append(b, '\n'), make(chan error, 1)}
	var late <-chan time.Time
	writes, done, ended := c.writes, (chan error)(nil), c.ended
	for {
		select {
		case writes <- w:
			writes, done = nil, w.done
		case err := <-done:
			return err
		case <-ended:
			timer := time.NewTimer(lastPatience)
			defer timer.Stop()
			late, ended = timer.C, nil
		case <-late:
			_ = c.Close()
		case <-c.closed:
			select {
			case err := <-done:
				return err
			default:
			}
			if done != nil {
				c.giveUp.Do(func() { close(c.stuck) })
			}
			return sdk.ErrConnectionClosed
		}
	}
}

// Read is for the library.
func (c *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.lines:
		return m, nil
	case <-c.ended:
		return nil, io.EOF
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write is for the library.
func (c *stdio) Write(_ context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok && r.Error != nil {
		if e := new(jsonrpc.Error); !errors.As(r.Error, &e) || e.Code == 0 { // what comes before initialize, say
			m = &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: r.Error.Error()}}
		}
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Response); ok {
		defer c.s.requests.answered(c.session, idOf(r.ID.Raw()))
	}
	return c.line(b)
}

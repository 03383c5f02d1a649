package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/process"
)

const (
	endGrace     = 2 * time.Second // for a server to end by itself when its input has ended
	discoverWait = 5 * time.Second // for servers that never answer what they don't know
	tailSize     = 2 << 10         // of what it wrote to its standard error, for messages
)

// stdio is a connection to a process, one message a line. The library's own gives up at the first line that is no message, and many a server prints one.
type stdio struct {
	proc   *process.Process
	in     *os.File // the process reads it
	out    *os.File
	stderr *tail
	warn   func(string)

	lines   chan jsonrpc.Message // what came
	done    chan struct{}        // closed when no more comes
	closed  chan struct{}
	closing sync.Once
	ended   chan struct{} // closed when nothing of it runs any more
	writing chan struct{} // held by who writes

	mu      sync.Mutex // guards what follows
	err     error      // why there are no more lines
	strange int        // lines that were no message
	ask     *time.Timer
}

// startStdio starts a server's process. It runs until close, and then stop, are called; both always are.
func startStdio(cmd *exec.Cmd, mark string, warn func(string)) (*stdio, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		_, _ = inR.Close(), inW.Close()
		return nil, err
	}
	s := &stdio{
		in: inW, out: outR, stderr: &tail{}, warn: warn,
		lines: make(chan jsonrpc.Message), done: make(chan struct{}), closed: make(chan struct{}), ended: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, s.stderr
	s.proc, err = process.Start(cmd, mark)
	_, _ = inR.Close(), outW.Close()
	if err != nil {
		_, _ = inW.Close(), outR.Close()
		return nil, err
	}
	go s.read()
	go func() {
		defer close(s.ended)
		select {
		case <-s.proc.Exited():
			select { // what it still wrote is read, unless somebody else holds its output
			case <-s.done:
			case <-time.After(endGrace):
			}
		case <-s.closed:
			select {
			case <-s.proc.Exited():
			case <-time.After(endGrace):
			}
		}
		s.proc.Stop() // it, or what it left behind
		s.proc.Wait(context.Background(), 0)
		_ = s.Close()
		_ = s.out.Close()
		<-s.done
	}()
	return s, nil
}

// read reads the process' output to its end.
func (s *stdio) read() {
	defer close(s.done)
	r := bufio.NewReaderSize(s.out, 64<<10)
	for {
		line, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
			s.fail(err)
			return
		}
		for _, m := range s.messages(line) {
			select {
			case s.lines <- m:
			case <-s.closed: // it may want to say something more before it ends
				_, _ = io.Copy(io.Discard, r)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *stdio) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// readLine reads a line of any length up to largestMessage.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > largestMessage {
			return nil, fmt.Errorf("a message of more than %d MiB", largestMessage>>20)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// messages reads a line: a message, or several at once, as an older version of the protocol allows. Anything else is passed over.
func (s *stdio) messages(line []byte) (out []jsonrpc.Message) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	all := []json.RawMessage{line}
	if line[0] == '[' {
		if json.Unmarshal(line, &all) != nil {
			all = []json.RawMessage{line}
		}
	}
	for _, one := range all {
		m, err := jsonrpc.DecodeMessage(one)
		if r, ok := m.(*jsonrpc.Request); err != nil || ok && r.Method == "" {
			s.mu.Lock()
			s.strange++
			first := s.strange == 1
			s.mu.Unlock()
			if first {
				s.warn(fmt.Sprintf("it writes to its standard output what is no message of the protocol, which is passed over: %q", short(string(line), 200)))
			}
			continue
		}
		if r, ok := m.(*jsonrpc.Response); ok && r.Error == nil && r.Result == nil {
			continue
		}
		out = append(out, m)
	}
	return out
}

// Read is for the library.
func (s *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.lines:
		return m, nil
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err != nil {
			return nil, s.err
		}
		return nil, io.EOF
	case <-s.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write is for the library.
func (s *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.Method == "server/discover" {
		s.await(r)
	}
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // a process that reads nothing
		_ = s.in.SetWriteDeadline(time.Unix(1, 0))
		close(late)
	})
	n, err := s.in.Write(b)
	deliveryOf(ctx).begun.Store(err == nil) // without its end it is no message
	if !stop() {
		<-late
		_ = s.in.SetWriteDeadline(time.Time{})
	}
	if err != nil && (n > 0 || ctx.Err() == nil) {
		_ = s.Close() // after half a message there is no other
	}
	return err
}

// await answers for a server that does not know the question and is silent about it, so that it is asked in the older way.
func (s *stdio) await(r *jsonrpc.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ask = time.AfterFunc(discoverWait, func() {
		no := &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}
		select {
		case s.lines <- no:
		case <-s.done:
		case <-s.closed:
		}
	})
}

// Close ends the process' input; [stdio.stop] waits for it.
func (s *stdio) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		s.mu.Lock()
		if s.ask != nil {
			s.ask.Stop()
		}
		s.mu.Unlock()
		_ = s.in.Close()
	})
	return nil
}

// stop closes, and waits until nothing of the process runs any more: it ends by itself, or is asked to with SIGTERM, or killed.
func (s *stdio) stop() {
	_ = s.Close()
	<-s.ended
}

// SessionID is for the library.
func (s *stdio) SessionID() string { return "" }

// Connect makes it its own transport.
func (s *stdio) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// tail keeps the end of what is written.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b); n > tailSize {
		t.b = append(t.b[:0], t.b[n-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "\uFFFD"))
}

// short is the beginning of a text.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

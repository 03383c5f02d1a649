package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// wire stands between a store and its server, and counts what goes over it: it understands as much of PostgreSQL's protocol as that takes.
type wire struct {
	mu    sync.Mutex
	said  said
	conns int // open now
	most  int // open at a time
}

// said is what was said over a wire.
type said struct {
	Appends  int // statements that put entries on record, each a transaction
	Leases   int
	Follows  int // renewals of what is followed
	Reads    int // all other statements
	Received int // bytes from the server
}

func (a said) minus(b said) said {
	return said{a.Appends - b.Appends, a.Leases - b.Leases, a.Follows - b.Follows, a.Reads - b.Reads, a.Received - b.Received}
}

func (w *wire) now() said {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

// tap gives an address by which the server of dsn is reached over a wire.
func tap(t *testing.T, dsn string) (tapped string, w *wire) {
	t.Helper()
	host := regexp.MustCompile(`host=(\S+)`).FindStringSubmatch(dsn)[1]
	dir, err := os.MkdirTemp("/tmp", "pawl-wire") // the path of a socket may have about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	w = &wire{}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", filepath.Join(host, ".s.PGSQL.5432"))
			if err != nil {
				t.Error(err)
				_ = client.Close()
				continue
			}
			all.Go(func() { w.joins(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait() // the stores were closed before
		_ = os.RemoveAll(dir)
	})
	return strings.Replace(dsn, "host="+host, "host="+dir, 1), w
}

// joins passes on what one says to the other, until either is gone.
func (w *wire) joins(client, server net.Conn) {
	w.mu.Lock()
	w.conns++
	w.most = max(w.most, w.conns)
	w.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, io.TeeReader(server, received{w}))
		_ = client.Close()
	})
	_ = w.listens(bufio.NewReader(io.TeeReader(client, server))) // it ends when either is gone
	_ = server.Close()
	back.Wait()
	w.mu.Lock()
	w.conns--
	w.mu.Unlock()
}

type received struct{ w *wire }

func (r received) Write(b []byte) (int, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.said.Received += len(b)
	return len(b), nil
}

// listens counts the statements that a client executes: those that it prepared by what it prepared them with.
func (w *wire) listens(r *bufio.Reader) error {
	prepared := map[string]string{}
	first := true
	for {
		kind := byte(0)
		if !first { // the first message of a connection has no kind
			k, err := r.ReadByte()
			if err != nil {
				return err
			}
			kind = k
		}
		first = false
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return err
		}
		body := make([]byte, int(binary.BigEndian.Uint32(size[:]))-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		one, rest, _ := strings.Cut(string(body), "\x00")
		two, _, _ := strings.Cut(rest, "\x00")
		switch kind {
		case 'P':
			prepared[one] = two
		case 'B':
			sql, ok := prepared[two]
			if !ok {
				return errors.New("a statement that was not prepared")
			}
			w.count(sql)
		case 'Q':
			w.count(one)
		}
	}
}

func (w *wire) count(sql string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case strings.Contains(sql, ".entries (session"):
		w.said.Appends++
	case strings.Contains(sql, "SET owner ="):
		w.said.Leases++
	case strings.Contains(sql, ".followed (session"):
		w.said.Follows++
	default:
		w.said.Reads++
	}
}

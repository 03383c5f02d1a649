package crashtest

import (
	"net"
	"strings"
	"sync"
)

// proxy stands between a store and its server, in the child, and breaks what passes.
type proxy struct {
	server   string // a Unix socket
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	refuse bool // all connections
	drop   bool // the next answer, and the connection with it
	conns  []net.Conn
}

// newProxy listens before the server whose socket is in a directory.
func newProxy(socket string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{server: socket, listener: l}
	p.wg.Go(p.serve)
	return p, nil
}

// cut cuts every connection, and refuses new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// lose lets the next request through and cuts its connection when it is answered. New connections are good.
func (p *proxy) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = true
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
	p.wg.Wait()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.connect(client)
	}
}

func (p *proxy) connect(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var server net.Conn
	err := net.ErrClosed
	if !p.refuse {
		server, err = net.Dial("unix", p.server)
	}
	if err != nil {
		_ = client.Close()
		return
	}
	p.conns = append(p.conns, client, server)
	p.wg.Go(func() { p.pass(server, client, false) })
	p.wg.Go(func() { p.pass(client, server, true) })
}

// pass copies until one side ends.
func (p *proxy) pass(to, from net.Conn, answers bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && (answers && p.loses()) {
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// loses reports, once, that an answer is to be lost.
func (p *proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	drop := p.drop
	p.drop = false
	return drop
}

// address splits a DSN of words that begins with the directory of a Unix socket.
func address(dsn string) (socket, rest string) {
	dir, rest, _ := strings.Cut(strings.TrimPrefix(dsn, "host="), " ")
	return dir + "/.s.PGSQL.5432", rest
}

package fence

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// proxyEnv tells programs of the proxy at a port of this machine.
func proxyEnv(port int) []string {
	http, socks := fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("socks5h://127.0.0.1:%d", port)
	own := "localhost,127.0.0.1,::1"
	return []string{
		"http_proxy=" + http, "https_proxy=" + http, "all_proxy=" + socks, "no_proxy=" + own,
		"HTTP_PROXY=" + http, "HTTPS_PROXY=" + http, "ALL_PROXY=" + socks, "NO_PROXY=" + own,
	}
}

// proxy lets commands out to the hosts of a dialer: as an HTTP proxy, with CONNECT and without, and by SOCKS5, at one port.
type proxy struct {
	dialer *Dialer
	server *http.Server
	http   chan net.Conn   // connections that speak HTTP, for the server
	life   context.Context // ends with close; not a caller's, so it has its place here
	end    context.CancelFunc
	work   sync.WaitGroup

	mu   sync.Mutex // guards open, and work.Add against work.Wait
	over bool
	open map[io.Closer]struct{}
}

// firstWords is how long a client has to say what it wants.
const firstWords = 30 * time.Second

func newProxy(d *Dialer) *proxy {
	p := &proxy{dialer: d, http: make(chan net.Conn), open: map[io.Closer]struct{}{}}
	p.life, p.end = context.WithCancel(context.Background())
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport: d.Transport(), FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			refusedOf(r.Context()).note(err)
			refuse(w, err)
		},
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.connect(w, r)
			case r.URL.Scheme == "http" && r.URL.Host != "":
				r.Host = r.URL.Host // what is asked for is what is checked
				forward.ServeHTTP(w, r)
			default:
				http.Error(w, "this is a proxy", http.StatusBadRequest)
			}
		}),
		ReadHeaderTimeout: firstWords,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return WithRefused(ctx, c.(*buffered).refused)
		},
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				p.work.Add(1) // Serve is still counted
			case http.StateClosed, http.StateHijacked:
				p.work.Done()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	p.work.Go(func() {
		_ = p.server.Serve(p) // it ends with Close
		forward.Transport.(*http.Transport).CloseIdleConnections()
	})
	return p
}

// Accept, Close and Addr make the proxy the server's listener.
func (p *proxy) Accept() (net.Conn, error) {
	select {
	case c := <-p.http:
		return c, nil
	case <-p.life.Done():
		return nil, net.ErrClosed
	}
}
func (p *proxy) Close() error   { return nil }
func (p *proxy) Addr() net.Addr { return &net.TCPAddr{} }

// listen serves who comes to l, until l or the proxy is closed, and notes in refused what it refuses them. It returns at once.
func (p *proxy) listen(l net.Listener, refused *Refused) {
	p.track(l, func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.track(c, func() { p.serve(c, refused) })
		}
	})
}

// track runs do, and has close end it by closing c.
func (p *proxy) track(c io.Closer, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		_ = c.Close()
		return
	}
	p.open[c] = struct{}{}
	p.work.Go(func() {
		do()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
	})
}

// close ends everything and waits for it.
func (p *proxy) close() error {
	p.mu.Lock()
	first := !p.over
	p.over = true
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	var err error
	if first {
		p.end()
		err = p.server.Close()
	}
	p.work.Wait()
	return err
}

// serve finds out what a client speaks.
func (p *proxy) serve(c net.Conn, refused *Refused) {
	_ = c.SetReadDeadline(time.Now().Add(firstWords))
	r := bufio.NewReader(c)
	first, err := r.Peek(1)
	if err != nil {
		_ = c.Close()
		return
	}
	if first[0] == socksVersion {
		p.socks(&buffered{c, r, refused})
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	select {
	case p.http <- &buffered{c, r, refused}:
	case <-p.life.Done():
		_ = c.Close()
	}
}

// buffered is a connection of which something was read ahead.
type buffered struct {
	net.Conn
	r       *bufio.Reader
	refused *Refused
}

func (b *buffered) Read(into []byte) (int, error) { return b.r.Read(into) }

// CloseWrite passes an end on.
func (b *buffered) CloseWrite() error { return closeWrite(b.Conn) }

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if errors.Is(err, errdefs.PolicyDenied) {
		status = http.StatusForbidden
	}
	http.Error(w, err.Error(), status)
}

// tellRefusal answers a CONNECT. Clients show of such an answer the status line, if anything, so the reason stands there too.
func tellRefusal(c net.Conn, err error) {
	defer func() { _ = c.Close() }()
	status := "502 Bad Gateway"
	if errors.Is(err, errdefs.PolicyDenied) {
		status = "403 Forbidden"
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, err.Error())
	_ = c.SetWriteDeadline(time.Now().Add(firstWords))
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %s: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", status, line, len(err.Error())+1, err)
}

func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	far, refusal := p.dialer.DialContext(r.Context(), "tcp", r.Host)
	near, rest, err := http.NewResponseController(w).Hijack()
	switch {
	case err != nil && refusal == nil:
		_ = far.Close()
		refuse(w, err)
		return
	case err != nil:
		refuse(w, refusal)
		return
	case refusal != nil:
		refusedOf(r.Context()).note(refusal)
		tellRefusal(near, refusal)
		return
	}
	p.join(&buffered{near, rest.Reader, nil}, far, []byte("HTTP/1.1 200 Connection established\r\n\r\n"))
}

// join says hello and copies both ways until both have ended, in the background.
func (p *proxy) join(near, far net.Conn, hello []byte) {
	p.track(near, func() {
		defer func() { _ = near.Close() }()
		p.track(far, func() {
			defer func() { _ = far.Close() }()
			if _, err := near.Write(hello); err != nil {
				return
			}
			_, _ = io.Copy(near, far)
			_ = closeWrite(near)
		})
		_, _ = io.Copy(far, near)
		_ = closeWrite(far)
	})
}

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// SOCKS5 (RFC 1928): no authentication, CONNECT only.
const (
	socksVersion    = 5
	socksConnect    = 1
	socksRefused    = 2
	socksFailed     = 4
	socksNoCommand  = 7
	socksNoAddress  = 8
	socksNoMethod   = 0xff
	socksIPv4       = 1
	socksName       = 3
	socksIPv6       = 4
	socksReplyBytes = 10
)

func (p *proxy) socks(c *buffered) {
	addr, code, err := socksRequest(c)
	if err != nil {
		_ = c.Close()
		return
	}
	reply := func(code byte) []byte {
		b := make([]byte, socksReplyBytes)
		b[0], b[1], b[3] = socksVersion, code, socksIPv4
		return b
	}
	_ = c.SetReadDeadline(time.Time{})
	if code == 0 {
		var far net.Conn
		far, err = p.dialer.DialContext(p.life, "tcp", addr)
		switch {
		case err == nil:
			p.join(c, far, reply(0))
			return
		case errors.Is(err, errdefs.PolicyDenied):
			c.refused.note(err)
			code = socksRefused
		default:
			code = socksFailed
		}
	}
	_, _ = c.Write(reply(code))
	_ = c.Close()
}

// socksRequest reads what a client asks for; a code other than 0 is why it can't be had.
func socksRequest(c net.Conn) (addr string, code byte, err error) {
	b := make([]byte, 256)
	read := func(n int) error {
		_, err := io.ReadFull(c, b[:n])
		return err
	}
	if err := read(2); err != nil {
		return "", 0, err
	}
	n := int(b[1])
	if err := read(n); err != nil {
		return "", 0, err
	}
	method := byte(socksNoMethod)
	for _, m := range b[:n] {
		if m == 0 {
			method = 0
		}
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil || method != 0 {
		return "", 0, errors.Join(err, errors.New("no common method"))
	}
	if err := read(4); err != nil {
		return "", 0, err
	}
	command, kind := b[1], b[3]
	var host string
	switch kind {
	case socksIPv4, socksIPv6:
		size := map[byte]int{socksIPv4: net.IPv4len, socksIPv6: net.IPv6len}[kind]
		if err := read(size); err != nil {
			return "", 0, err
		}
		host = net.IP(b[:size]).String()
	case socksName:
		if err := read(1); err != nil {
			return "", 0, err
		}
		size := int(b[0])
		if err := read(size); err != nil {
			return "", 0, err
		}
		host = string(b[:size])
	default:
		return "", socksNoAddress, nil
	}
	if err := read(2); err != nil {
		return "", 0, err
	}
	if command != socksConnect {
		return "", socksNoCommand, nil
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(b)))), 0, nil
}

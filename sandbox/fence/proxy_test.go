package fence

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/sandbox"
)

// proxied is a proxy that leads a.com to a server, and that server.
func proxied(t *testing.T, tls bool) (addr string, srv *httptest.Server) {
	t.Helper()
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, b)
	}))
	if tls {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	d, _, _ := resolving(sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.com", "example.com"}}}, srv.Listener.Addr().String(), []string{"1.1.1.1"})
	p := newProxy(d)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.listen(l, nil)
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), srv
}

func through(t *testing.T, scheme, proxy string, srv *httptest.Server, target string) (string, int, error) {
	t.Helper()
	u := &url.URL{Scheme: scheme, Host: proxy}
	tr := &http.Transport{Proxy: http.ProxyURL(u)}
	if old, ok := srv.Client().Transport.(*http.Transport); ok {
		tr.TLSClientConfig = old.TLSClientConfig
	}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Post(target, "text/plain", strings.NewReader("body"))
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return string(b), resp.StatusCode, err
}

func TestTheProxyLeadsToAllowedHostsOnly(t *testing.T) {
	addr, srv := proxied(t, false)
	if got, code, err := through(t, "http", addr, srv, "http://a.com/x"); got != "POST a.com body" || code != 200 || err != nil {
		t.Errorf("%q %d %v", got, code, err)
	}
	if got, code, err := through(t, "http", addr, srv, "http://b.com/x"); code != http.StatusForbidden || !strings.Contains(got, "not allowed") || err != nil {
		t.Errorf("%q %d %v", got, code, err)
	}
	if got, _, err := through(t, "socks5", addr, srv, "http://a.com/x"); got != "POST a.com body" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if _, _, err := through(t, "socks5", addr, srv, "http://b.com/x"); err == nil {
		t.Error("SOCKS leads anywhere")
	}
	tlsAddr, tlsSrv := proxied(t, true)
	for _, scheme := range []string{"http", "socks5"} {
		if got, _, err := through(t, scheme, tlsAddr, tlsSrv, "https://example.com/x"); got != "POST example.com body" || err != nil {
			t.Errorf("%s: %q %v", scheme, got, err)
		}
		_, _, err := through(t, scheme, tlsAddr, tlsSrv, "https://b.com/x")
		if err == nil || scheme == "http" && (!strings.Contains(err.Error(), "b.com:443") || !strings.Contains(err.Error(), "sandbox.network.hosts")) {
			t.Error("CONNECT leads anywhere, or doesn't say why not:", err)
		}
	}
}

// The host that a request names in its line is the one that is asked for, whatever its header says.
func TestAHeaderCannotNameAnotherHost(t *testing.T) {
	addr, _ := proxied(t, false)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "GET http://b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

func TestTheProxyAnswersWhatItDoesNotServe(t *testing.T) {
	addr, _ := proxied(t, false)
	for name, c := range map[string]struct {
		send string
		want []byte
	}{
		"a page":               {"GET / HTTP/1.1\r\nHost: a.com\r\nConnection: close\r\n\r\n", []byte("HTTP/1.1 400")},
		"a password":           {"\x05\x01\x02", []byte("\x05\xff")},
		"a listener":           {"\x05\x01\x00\x05\x02\x00\x03\x05a.com\x00\x50", []byte("\x05\x00\x05\x07\x00\x01")},
		"a kind of address":    {"\x05\x01\x00\x05\x01\x00\x09", []byte("\x05\x00\x05\x08\x00\x01")},
		"an address not named": {"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", []byte("\x05\x00\x05\x02\x00\x01")},
		"nothing":              {"", nil},
		"half a word":          {"\x05\x02\x00", nil},
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, c.send); err != nil {
			t.Error(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.HasPrefix(got, c.want) || c.want == nil && len(got) > 0 {
			t.Errorf("%s: %q %v", name, got, err)
		}
		_ = conn.Close()
	}
}
